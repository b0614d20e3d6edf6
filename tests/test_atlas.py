"""Maps: what is clipped stays inside and keeps its land, names do not touch, real and fake have one scale."""

import re
from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import elsewhere as ew
from elsewhere.reports import atlas, figures
from elsewhere.reports.days import chart_hours, hours
from elsewhere.reports.preparation import preparation_page
from elsewhere.traces import ground
from elsewhere.traces.ground import Box, clip_line, clip_ring, find_towns, thin_points

LOW, HIGH = np.array([-1.0, -2.0]), np.array([3.0, 2.0])
inside_box = st.tuples(st.floats(-0.999, 2.999), st.floats(-1.999, 1.999))
points = st.integers(3, 12).flatmap(lambda n: arrays(float, (n, 2), elements=st.floats(-6, 6, width=32)))
installed = pytest.mark.skipif(not ground.is_installed(), reason="the packages of the extra 'maps' are not installed")
NYC = (40.75, -73.98)


def places(middle=NYC, n=60, km=8.0, rng=None):
    rng = np.random.default_rng(4) if rng is None else rng
    off = rng.normal(size=(n, 2)) * km / 111.2
    return ew.Locations(
        middle[0] + off[:, 0], (middle[1] + off[:, 1] / np.cos(np.radians(middle[0])) + 180) % 360 - 180
    )


def traces(where, days=40, rng=None):
    rng = np.random.default_rng(5) if rng is None else rng
    return ew.Traces(np.repeat(rng.integers(len(where), size=(days, 6)), 4, axis=1), where, step_minutes=60)


def land_at(where, lat, lon):
    """Whether a map draws land at a point, by its own rings."""
    sheet = atlas.Sheet.of(where, np.ones(len(where), bool))
    x, y = sheet._position(np.array([(lon - sheet.middle[1] + 180) % 360 - 180 + sheet.middle[1], lat]))
    return sum(naive.inside_ring(ring.tolist(), x, y) for ring in sheet.lines()["land"]) % 2 == 1


@given(points, inside_box)
def test_a_clipped_ring_stays_in_the_box_and_holds_what_it_held(ring, point):
    made = clip_ring(ring, LOW, HIGH)

    assert np.all((made >= LOW) & (made <= HIGH))
    near = min((naive_distance(a, b, point) for a, b in zip(ring, np.roll(ring, -1, axis=0), strict=True)), default=1)
    if near > 1e-6:
        assert naive.inside_ring(ring.tolist(), *point) == naive.inside_ring(made.tolist(), *point)


def naive_distance(a, b, point):
    step, off = np.subtract(b, a), np.subtract(point, a)
    share = np.clip(off @ step / max(step @ step, 1e-300), 0, 1)
    return np.hypot(*(off - share * step))


@given(points, st.integers(0, 10), st.floats(0, 1))
def test_a_clipped_line_is_the_line_within_the_box(line, at, share):
    pieces = clip_line(line, LOW, HIGH)
    a, b = line[at % (len(line) - 1)], line[at % (len(line) - 1) + 1]
    point = a + share * (b - a)
    away = min((naive_distance(p, q, point) for piece in pieces for p, q in pairwise(piece)), default=np.inf)

    assert all(len(p) > 1 and np.all((p >= LOW) & (p <= HIGH)) for p in pieces)
    if np.all((point > LOW + 1e-9) & (point < HIGH - 1e-9)) and not np.array_equal(a, b):
        assert away < 1e-6
    if np.any((point < LOW - 1e-6) | (point > HIGH + 1e-6)):
        assert away > 1e-7
    # and no piece is anywhere but on the line
    for piece in pieces:
        for vertex in piece:
            assert min(naive_distance(p, q, vertex) for p, q in pairwise(line)) < 1e-6


@given(points, st.floats(0.05, 3))
def test_thinning_keeps_ends_and_loses_nothing_larger_than_the_grid(line, grid):
    made = thin_points(line, grid)

    assert np.array_equal(made[[0, -1]], line[[0, -1]])
    assert all(min(np.hypot(*(made - p).T)) <= grid * np.sqrt(2) + 1e-9 for p in line)


@given(st.lists(st.tuples(st.text("abcdefgh ", min_size=1, max_size=14), st.floats(-20, 380), st.floats(-20, 280)), max_size=60))  # noqa: E501 # fmt: skip
def test_names_never_touch_each_other_or_the_edge(found):
    made = atlas.place_names(found, 360, 260)

    assert len(made) <= atlas.MOST_NAMES
    frames = [m.frame() for m in made]
    assert all(a >= 0 and b >= 0 and c <= 360 and d <= 260 for a, b, c, d in frames)
    for i, (a, b, c, d) in enumerate(frames):
        assert all(c <= e[0] or a >= e[2] or d <= e[1] or b >= e[3] for e in frames[:i])
    assert not found or made or all(not (60 < x < 300 and 40 < y < 220) for _, x, y in found), "a free name is drawn"


@installed
@pytest.mark.parametrize(
    ("middle", "km", "land", "water"),
    [
        (NYC, 8, [(40.78, -73.965), (40.65, -73.95)], [(40.62, -74.05), (40.9, -73.92)]),  # the Narrows, the Hudson
        ((46.45, 6.5), 20, [(46.6, 6.5)], [(46.45, 6.55)]),  # a lake is water
        ((-16.8, 180.0), 40, [(-16.6, 179.3), (-16.85, -179.97)], [(-17.5, -179.6)]),  # Fiji, both sides of 180
        ((-89.9, 20.0), 30, [(-89.7, 40.0)], []),  # a station at the pole
        ((89.8, 0.0), 30, [], [(89.7, 10.0)]),
    ],
)
def test_land_and_water_are_where_they_are(middle, km, land, water):
    where = places(middle, km=km) if abs(middle[0]) < 89 else ew.Locations([middle[0], middle[0] + 0.05], [-60.0, 60.0])

    assert all(land_at(where, *point) for point in land)
    assert not any(land_at(where, *point) for point in water)


@installed
def test_names_are_of_the_box_the_largest_first():
    found = find_towns(Box(-74.1, 40.6, -73.8, 40.9))
    assert [t.name for t in found[:3]] == ["New York City", "Brooklyn", "Queens"]
    assert all(40.6 <= t.lat <= 40.9 and -74.1 <= t.lon <= -73.8 for t in found)
    assert {"Nadi", "Apia"} <= {t.name for t in find_towns(Box(170, -20, 190, -10))}

    made = atlas.map_of_visits(places(), np.ones(60), title="Visits")
    assert 'class="town"' in made
    assert ">Manhattan</text>" in made
    assert 'class="land"' in made


def test_without_the_packages_the_page_is_made_and_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setattr(ground, "find_spec", lambda name: None)
    fakes = traces(places())
    result = ew.evaluate_publishing(fakes.r, None, fakes.r)
    ew.report(result, tmp_path / "report.html", fakes=fakes)
    html = (tmp_path / "report.html").read_text()

    assert "pip install &#x27;elsewhere[maps]&#x27;" in html
    assert 'class="land"' not in html
    assert html.count("Places by visits, fakes") == 2  # title, and the text for those who do not see
    assert 'class="land"' not in preparation(fakes)


def preparation(fakes):
    told = []
    rows = {"uid": np.repeat(np.arange(len(fakes)), fakes.L), "slot": np.tile(np.arange(fakes.L), len(fakes))}
    r = fakes.r.ravel()
    there = {"lat": fakes.locations.lat[r], "lon": fakes.locations.lon[r]}
    return preparation_page(ew.read_traces({**rows, **there}, report=told.append), told[0])


@installed
def test_prepare_shows_the_same_ground():
    made = preparation(traces(places()))
    assert 'class="land"' in made
    assert "Natural Earth" in made


def test_a_plane_has_no_coast():
    where = ew.Locations(xy=np.random.default_rng(1).random((30, 2)))
    html = "".join(map(str, atlas.atlas(traces(where), None, None)))

    assert 'class="land"' not in html
    assert "pip install" not in html
    assert "Natural Earth" not in html
    assert " km</text>" in html or " m</text>" in html


def test_a_few_far_places_do_not_shrink_the_town():
    town = places(n=50, km=3)
    where = ew.Locations(np.append(town.lat, 48.86), np.append(town.lon, 2.35))
    visits = np.append(np.full(50, 40.0), 3)
    sheet = atlas.Sheet.of(where, visits > 0, visits)
    made = atlas.map_of_visits(where, visits, title="Visits")

    assert sheet.width * sheet.km < 40
    assert sheet.inside.sum() == 50
    said = re.search(r"1 place with 0\.1 % of the visits lies outside the map, up to ([\d,]+) km", made)
    assert 5_800 < int(said[1].replace(",", "")) < 7_000  # flat, so farther than on the globe
    # a few of many are left out; half of all are not
    both = np.append(np.full(50, 40.0), 2000)
    assert atlas.Sheet.of(where, both > 0, both).inside.all()
    alone = atlas.Sheet.of(ew.Locations([46.5], [6.6]), np.array([True]), [7.0])
    assert alone.inside.all()
    assert 0.5 < alone.width * alone.km < 3


def test_real_and_fake_have_one_scale():
    where = places()
    real, fakes = traces(where), traces(where, 25, np.random.default_rng(6))
    html = "".join(map(str, atlas.atlas(fakes, real, None)))
    figures = re.findall(r"<h4>(.*?)</h4>(.*?)</figure>", html, re.DOTALL)
    bars = [re.findall(r">([\d.]+ k?m)</text>", body)[-1] for _, body in figures]
    share = [100 * np.bincount(t.r.ravel(), minlength=60) / t.r.size for t in (real, fakes)]
    largest = max(s.max() for s in share)

    assert [title for title, _ in figures] == [
        "Places by visits, real traces", "Places by visits, fakes", "Trips, real traces", "Trips, fakes",
    ]  # fmt: skip
    assert len(set(bars)) == 1
    for (_, body), s in zip(figures[:2], share, strict=True):
        drawn = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"[^>]*><title>([\d.]+) %', body)
        assert len(drawn) == np.sum(s > 0)
        for _, _, r, value in drawn:
            assert float(r) == pytest.approx(1.2 + 8.8 * np.sqrt(float(value) / largest), abs=0.03)


def test_the_shareable_box_rests_on_what_the_fakes_visit():
    town = places(n=30, km=3)
    where = ew.Locations(np.append(town.lat, 41.9), np.append(town.lon, -75.0))
    fakes = ew.Traces(np.random.default_rng(2).integers(30, size=(20, 12)), where, step_minutes=120)
    elsewhere = ew.Locations(np.append(town.lat, 41.0), np.append(town.lon, -73.0))
    moved = ew.Traces(fakes.r, elsewhere, step_minutes=120)

    assert atlas.atlas(fakes, None, None) == atlas.atlas(moved, None, None)


@given(arrays(int, (5, 6), elements=st.integers(-1, 4)), arrays(int, 5, elements=st.integers(-1, 2)))
def test_flows_are_those_of_the_definition(r, zone):
    made = atlas.flows(r, zone)
    found, total = naive.trips_between(r.tolist(), zone.tolist())

    assert {tuple(p): n for p, n in zip(made.pair.tolist(), made.trips.tolist(), strict=True)} == found
    assert made.of == total
    assert made.trips.tolist() == sorted(made.trips.tolist(), reverse=True)


@given(arrays(int, (4, 9), elements=st.integers(-1, 3)), st.sampled_from([20, 60, 90, 160]))
def test_hours_are_those_of_the_definition(r, step):
    r[:, 0] = np.maximum(r[:, 0], 0)
    made = ew.Traces(r, ew.Locations(n=4), step_minutes=step, start="22:30")
    found = naive.away_and_trips_by_hour(r.tolist(), made.minutes().tolist())
    got = hours(made)

    assert [h - 0.5 for h in got.hour] == sorted(found)
    assert got.away == pytest.approx([found[h][0] for h in sorted(found)])
    assert got.trips == pytest.approx([found[h][1] for h in sorted(found)])


def test_charts_by_hour_have_a_point_per_hour_and_side():
    both = chart_hours(traces(places()), traces(places()))
    only = chart_hours(traces(places()), None)

    assert str(both[0]).count("<circle") == 2 * 24 + 2  # and one in each legend
    assert str(only[0]).count("<circle") == 2 * 24
    assert "real traces" not in str(only[0])


@installed
def test_a_page_grows_by_little(tmp_path, monkeypatch):
    # the worst: places all over the globe, six maps
    rng = np.random.default_rng(8)
    where = ew.Locations(rng.uniform(-60, 75, 300), rng.uniform(-180, 180, 300))
    real, fakes = traces(where), traces(where, 20, rng)
    result = ew.evaluate_publishing(fakes.r, None, fakes.r)
    size = {}
    for there in (True, False):
        if not there:
            monkeypatch.setattr(ground, "find_spec", lambda name: None)
        arguments = {"edition": "owner", "real": real, "classes": ew.SemanticClasses(np.arange(300) % 3)}
        ew.report(result, tmp_path / "report.html", fakes=fakes, **arguments)
        size[there] = (tmp_path / "report.html").stat().st_size

    assert 10_000 < size[True] - size[False] < 150_000


@installed
def test_figures_for_print_have_the_coast_too():
    axes = figures.visited_places(places(), np.ones(60)).axes[0]
    assert len(axes.patches) == 1
    assert len(axes.collections[0].get_offsets()) == 60
    assert np.ptp(axes.get_xlim()) < 100
