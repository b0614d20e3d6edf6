"""Maps: towns have their names, which do not touch; a town is not shrunk by a few far places."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.data.gazetteer import Box, find_town, find_towns
from elsewhere.reports import maps
from elsewhere.reports.charts import LETTERS, WIDTH

NYC = (40.75, -73.98)


def places(middle=NYC, n=60, km=8.0):
    off = np.random.default_rng(4).normal(size=(n, 2)) * km / 111.2
    lon = (middle[1] + off[:, 1] / np.cos(np.radians(middle[0])) + 180) % 360 - 180
    return ew.Locations(middle[0] + off[:, 0], lon)


def test_names_are_of_the_box_the_largest_first_and_the_map_has_them():
    towns = find_towns(Box(-74.1, 40.6, -73.8, 40.9))
    axes = maps.visits_map(np.ones(60), window=maps.Window.of(places(), np.ones(60))).axes[0]

    assert [t.name for t in towns[:3]] == ["New York City", "Brooklyn", "Queens"]
    assert {"Nadi", "Apia"} <= {t.name for t in find_towns(Box(170, -20, 190, -10))}
    assert {"New York City", "Brooklyn"} <= {text.get_text() for text in axes.texts}
    assert find_town("new york city").population == max(t.population for t in towns)


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
