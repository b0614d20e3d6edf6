"""The figures: what they draw are the numbers, the same twice, readable in light and dark."""

import re

import numpy as np
import pytest
from matplotlib.colors import to_hex
from reports_made import HOSTILE, LBS, as_events, as_trips, world

from elsewhere.data.visits import DAY, Locations, Visits
from elsewhere.reports import charts, maps
from elsewhere.reports.charts import INKS, Life

HOUR = 3600


def person(rows, *, days=3, **more):
    """Visits (day, hour, until, place) of one person at five places in a row."""
    day, begin, end, place = np.array(rows, dtype=float).T
    at = lambda hour: ((day + 4) * DAY + hour * HOUR).astype(int)  # noqa: E731 - day 4 of the clock was a Monday
    where = Locations(xy=np.column_stack([np.arange(5.0), np.zeros(5)]))
    return Visits(np.zeros(len(rows), int), at(begin), at(end), place.astype(int), where, **more)


def test_the_same_figure_is_the_same_file_and_names_nobody():
    figures = [charts.curves({"people": ([1, 2], [3, 4])}, x="share", y="") for _ in range(4)]
    picture = charts.svg(figures[0], "label")

    assert charts.png(figures[1]) == charts.png(figures[2])
    assert picture == charts.svg(figures[3], "label")
    assert not re.search(r"\b20\d\d-|matplotlib|http", picture)  # no hour, no library, no address


def test_pictures_have_no_colour_of_their_own_no_id_twice_and_nothing_breaks_out():
    one = charts.curves({"people": ([1, 2], [3, 4]), "fakes": ([1, 2], [4, 3])}, x=HOSTILE, y="")
    pictures = charts.svg(one, "first") + charts.svg(one, HOSTILE)
    ids = re.findall(r' id="([^"]+)"', pictures)

    assert not re.search(r"#[0-9a-f]{6}", pictures)
    assert set(re.findall(r"var\(--([\w-]+)\)", pictures)) <= set(INKS)
    assert len(ids) == len(set(ids))
    assert "<b onclick" not in pictures


def test_a_life_has_ranks_by_night_then_by_time_and_rows_by_day():
    life = Life.of(person([(0, 8, 20, 1), (0, 20, 32, 0), (1, 8, 9, 3), (1, 9, 12, 2), (2, 8, 9, 4)]), [0])

    assert life.rank.tolist() == [1, 0, 3, 2, 3]  # home is where the night is, though most time is at place 1 too
    assert life.row.tolist() == [0, 0, 1, 1, 2]
    assert life.names == ("Mon", "Tue", "Wed")


def test_a_strip_has_a_bar_per_stay_goes_on_after_midnight_and_is_blank_where_nothing_was_seen():
    life = Life.of(person([(0, 8, 20, 1), (0, 20, 31, 0), (2, 12, 12, 1)]), [0])
    axes = charts.life_strip(life).axes[0]
    bars = {
        (to_hex(c.get_facecolor()[0]), *(round(float(v), 2) for v in (*path.get_extents().min, path.get_extents().x1)))
        for c in axes.collections
        for path in c.get_paths()
    }

    home, second = INKS["k0"], INKS["k1"]
    assert bars == {
        (second, 8.0, -0.43, 20.0),
        (home, 20.0, -0.43, 24.0),
        (home, 0.0, 0.57, 7.0),
        (second, 12.0, 1.57, 12.15),  # a moment is a tick
    }


def test_of_a_long_life_the_fortnight_with_most_records_is_shown():
    rows = [(d, 12, 12, 0) for d in (0, 30, 31, 33, 34, 60)]
    life = Life.of(person(rows), [0])
    several = Life.of(world()["fakes"], [3, 4, 5])

    assert len(life.visits) == 4
    assert len(life.names) == 14
    assert several.of_several
    assert set(several.row.tolist()) == {0, 1, 2}
    assert np.all(np.diff([several.visits.start[several.row == i].max() // DAY for i in range(3)]) == 0)


def test_a_trip_begins_and_ends_and_is_an_arrow():
    trips = as_trips(world()["fakes"])
    life = Life.of(trips, [5, 6])
    window = maps.Window.of(trips.locations, np.ones(trips.R))

    assert life.rank.tolist() == [0, 1, 0, 1]
    arrows = maps.life_map(life, window).axes[0].patches
    moved = [trips.place[2 * u] != trips.place[2 * u + 1] for u in (5, 6)]
    assert len(arrows) == sum(moved)
    assert len(charts.life_strip(life).axes[0].lines) == 2  # on the way


def test_the_map_of_a_life_has_its_places_once_and_its_moves():
    life = Life.of(person([(0, 8, 9, 1), (0, 9, 10, 2), (0, 10, 11, 1), (0, 20, 30, 0)]), [0])
    axes = maps.life_map(life, maps.Window.of(life.visits.locations, np.ones(5))).axes[0]

    assert sum(len(c.get_offsets()) for c in axes.collections) == 3
    assert len(axes.patches) == 2  # 1 and 2, both ways; 1 to 0


def test_lengths_are_shares_up_to_each_in_per_cent_on_one_scale():
    sides = charts.shares_up_to({"people": np.array([1.0, 1, 2, 8]), "fakes": np.array([2.0, 4, 0, 0])})
    at, up = sides["people"]

    assert at.tolist() == sides["fakes"][0].tolist()
    assert [up[np.searchsorted(at, length)] for length in (0.99, 1.5, 5)] == [0, 50, 75]
    assert sides["fakes"][1][-1] == 100
    assert charts.shares_up_to({"people": np.array([1.0]), "fakes": np.zeros(3)}) is None


def test_the_scale_of_a_use_is_drawn_only_where_there_are_figures():
    use = {"fakes": 0.2, "people": 0.1, "same": 0.05, "chance": 0.6}
    axes = charts.use_scale(use).axes[0]

    assert axes.lines[2].get_xdata()[0] == 0.2
    assert [round(bar.get_width(), 3) for bar in axes.patches] == [0.624, 0.35, 0.2]  # all, rough, good
    assert charts.use_scale(use | {"chance": None}) is None


def test_points_of_the_papers_figure_are_the_numbers():
    curve = charts.location_privacy(LBS).axes[0].containers[0][0]

    assert curve.get_xdata() == pytest.approx([1, 3])
    assert curve.get_ydata() == pytest.approx([0.5, 0.5])


def test_moments_count_as_records_and_every_visited_place_has_a_disc():
    events = as_events(world()["people"])
    count = np.bincount(events.place, minlength=events.R)
    discs = maps.visits_map(count, window=maps.Window.of(events.locations, count)).axes[0].collections

    assert sum(len(c.get_offsets()) for c in discs) == np.sum(count > 0)
    assert max(c.get_sizes()[0] for c in discs) == pytest.approx(260)
