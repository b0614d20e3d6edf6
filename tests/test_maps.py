"""Maps: land and water are where they are, names do not touch, a town is not shrunk by a few far places."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.data import ground
from elsewhere.data.ground import Box, find_towns, read_outlines
from elsewhere.data.visits import Visits
from elsewhere.reports import maps
from elsewhere.reports.charts import LETTERS, WIDTH
from elsewhere.reports.page import preparation_page

installed = pytest.mark.skipif(not ground.is_installed(), reason="the packages of the extra 'maps' are not installed")
NYC = (40.75, -73.98)


def places(middle=NYC, n=60, km=8.0):
    off = np.random.default_rng(4).normal(size=(n, 2)) * km / 111.2
    lon = (middle[1] + off[:, 1] / np.cos(np.radians(middle[0])) + 180) % 360 - 180
    return ew.Locations(middle[0] + off[:, 0], lon)


def visits(where, n=40):
    rng = np.random.default_rng(5)
    hour = np.tile(np.arange(0, 24, 4), n) * 3600
    return Visits(np.repeat(np.arange(n), 6), hour, hour + 4 * 3600, rng.integers(len(where), size=6 * n), where)


def is_land(where, lat, lon):
    """Whether a map draws land at a point, by its own rings."""
    window = maps.Window.of(where, np.ones(len(where)))
    box = window.box()
    rings = read_outlines(box)["land"]
    return sum(naive.inside_ring(ring.tolist(), box.west + (lon - box.west) % 360, lat) for ring in rings) % 2 == 1


@installed
@pytest.mark.parametrize(
    ("middle", "km", "land", "water"),
    [
        (NYC, 8, [(40.78, -73.965), (40.65, -73.95)], [(40.62, -74.05), (40.9, -73.92)]),  # the Narrows, the Hudson
        ((46.45, 6.5), 20, [(46.6, 6.5)], [(46.45, 6.55)]),  # a lake is water
        ((-16.8, 180.0), 40, [(-16.6, 179.3), (-16.85, -179.97)], [(-17.5, -179.6)]),  # Fiji, both sides of 180
        ((89.8, 0.0), 30, [], [(89.7, 10.0)]),
    ],
)
def test_land_and_water_are_where_they_are(middle, km, land, water):
    where = places(middle, km=km) if middle[0] < 89 else ew.Locations([middle[0], middle[0] + 0.05], [-60.0, 60.0])

    assert all(is_land(where, *point) for point in land)
    assert not any(is_land(where, *point) for point in water)


@installed
@pytest.mark.parametrize("box", [Box(-74.3, 40.4, -73.6, 41.0), Box(170, -50, 200, -30), Box(-180, -80, 180, 84)])
def test_outlines_stay_in_their_box_and_are_few(box):
    layers = read_outlines(box)
    points = np.concatenate([piece for pieces in layers.values() for piece in pieces])

    assert np.all(points >= np.subtract(box[:2], 1e-9))
    assert np.all(points <= np.add(box[2:], 1e-9))
    assert 0 < len(points) <= ground.MOST_POINTS


@installed
def test_borders_of_the_whole_file_are_read():
    # the records of the file are found by its index: their lengths leave gaps
    box = Box(60.0, 30.0, 100.0, 50.0)
    border = np.concatenate(read_outlines(box)["border"])
    assert np.ptp(border[:, 0]) > 30


@installed
def test_names_are_of_the_box_the_largest_first_and_the_map_has_them():
    towns = find_towns(Box(-74.1, 40.6, -73.8, 40.9))
    axes = maps.visits_map(places(), np.ones(60)).axes[0]

    assert [t.name for t in towns[:3]] == ["New York City", "Brooklyn", "Queens"]
    assert {"Nadi", "Apia"} <= {t.name for t in find_towns(Box(170, -20, 190, -10))}
    assert {"New York City", "Brooklyn"} <= {text.get_text() for text in axes.texts}
    assert len(axes.patches) == 2  # water, land


@given(st.lists(st.tuples(st.text("ab", min_size=1, max_size=9), st.floats(-9, 9), st.floats(-9, 9)), max_size=40))
def test_names_never_touch_each_other_or_the_edge(towns):
    half = np.array([10.0, 6.2])
    km = 20 / (72 * WIDTH)
    frames = [
        (x, y, 0.32 * LETTERS * len(name) * km, 0.75 * LETTERS * km) for name, x, y in maps.place_names(towns, half)
    ]

    assert len(frames) <= maps.MOST_NAMES
    assert all(abs(x) + wide <= 10 and abs(y) + tall <= 6.2 for x, y, wide, tall in frames)
    for i, (x, y, wide, tall) in enumerate(frames):
        assert all(abs(x - a) >= wide + c or abs(y - b) >= tall + d for a, b, c, d in frames[:i])


def test_a_few_far_places_do_not_shrink_the_town():
    town = places(n=50, km=3)
    where = ew.Locations(np.append(town.lat, 48.86), np.append(town.lon, 2.35))
    weight = np.append(np.full(50, 40.0), 3)
    window = maps.Window.of(where, weight)

    assert 2 * window.half[0] < 40
    assert window.inside.sum() == 50
    assert window.outside(weight).startswith("Outside: 1 place with 0.1 % of the time, up to 6,")
    # a few of many are left out; half of all are not
    assert maps.Window.of(where, np.append(np.full(50, 40.0), 2000)).inside.all()
    alone = maps.Window.of(ew.Locations([46.5], [6.6]), [7.0])
    assert alone.inside.all()
    assert 0.5 < 2 * alone.half[0] < 3


def test_the_window_rests_on_what_is_visited():
    town = places(n=30, km=3)
    windows = []
    for lat, lon in ((41.9, -75.0), (41.0, -73.0)):
        where = ew.Locations(np.append(town.lat, lat), np.append(town.lon, lon))
        windows.append(maps.Window.of(where, np.append(np.ones(30), 0)))

    assert np.array_equal(windows[0].half, windows[1].half)
    assert np.array_equal(windows[0].xy[:30], windows[1].xy[:30])


def test_without_the_packages_pages_are_made_and_say_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setattr(ground, "find_spec", lambda name: None)
    read_outlines.cache_clear()
    fakes = visits(places())
    ew.report({"usefulness": None, "audit": None}, tmp_path / "report.html", fakes=fakes)
    for html in ((tmp_path / "report.html").read_text(), preparation_page(fakes)):
        assert "pip install &#39;elsewhere[maps]&#39;" in html
        assert "fill: var(--land)" not in html
    read_outlines.cache_clear()
