"""A map found in people who are no seeds: nothing that seeds do changes it, nor the clock, nor anybody else's trace."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.privacy.deniable.release import COINS, THE_MAP
from elsewhere.run.reading import read_apart, toss_coin

KEY = b"a key of 32 bytes, of the system"
HOURS = np.arange(24)


def town_of(n, seed=0):
    """Fixes once an hour of people who live and work somewhere near Lausanne, with some noise."""
    rng = np.random.default_rng(seed)
    spots = rng.uniform((46.50, 6.55), (46.56, 6.70), (12, 2))
    home, work = rng.integers(12, size=n), rng.integers(12, size=n)
    at = np.where((HOURS > 7) & (HOURS < 18), work[:, None], home[:, None])
    place = spots[at] + rng.normal(0, 2e-4, (n, 24, 2))
    return {f"person {i}": place[i] for i in range(n)}


def table_of(people, day="2024-05-14"):
    rows = [
        (who, f"{day} {h:02}:10:00", *at) for who, path in people.items() for h, at in zip(HOURS, path, strict=True)
    ]
    return dict(zip(("uid", "time", "lat", "lng"), map(list, zip(*rows, strict=True)), strict=True))


def apart(people, **options):
    reports = []
    traces = read_apart(table_of(people), key=KEY, report=reports.append, **{"max_gap": "6h", **options})
    return traces, reports[-1]


def of_others(people, traces):
    others = [i for i, label in enumerate(traces.labels) if not toss_coin(KEY, label)]
    return traces.of_users(others)


def test_coins_are_fair_independent_of_each_other_and_the_same_every_time():
    thrown = np.array([[toss_coin(bytes([k]) * 32, f"person {i}") for i in range(400)] for k in range(25)])

    # 10,000 coins: six standard errors of the share, and of the share in which two neighbours agree
    assert abs(thrown.mean() - 0.5) < 6 * 0.005
    assert abs((thrown[:, 1:] == thrown[:, :-1]).mean() - 0.5) < 6 * 0.005
    assert toss_coin(KEY, "ann") == toss_coin(KEY, "ann")


def test_people_who_are_not_asked_for_are_as_if_they_were_not_there():
    people = town_of(30)
    some = {who: path for who, path in people.items() if not toss_coin(KEY, who)}
    one = ew.read_traces(table_of(people), people=lambda who: who in some, max_gap="6h")
    two = ew.read_traces(table_of(some), max_gap="6h")

    assert one.labels == two.labels
    assert one.locations == two.locations
    np.testing.assert_array_equal(one.r, two.r)


def test_a_fault_is_told_with_the_line_it_stands_in(tmp_path):
    table = table_of(town_of(4))
    lines = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
    lines[80] = lines[80].replace("2024-05-14", "nonsense")  # of person 3: line 82 of the file
    (tmp_path / "x.csv").write_text("\n".join(["uid,time,lat,lng", *lines]) + "\n")

    with pytest.raises(ew.errors.InvalidTraces, match=r"x\.csv, line 82"):
        ew.read_traces(tmp_path / "x.csv", people=lambda who: who == "person 3")


def test_nobody_asked_for_is_refused():
    with pytest.raises(ew.errors.InvalidTraces, match="nobody"):
        ew.read_traces(table_of(town_of(3)), people=lambda who: False)


@given(st.integers(0, 2**32), st.sampled_from(["noise", "elsewhere", "travel", "gone", "one spot"]))
@settings(max_examples=12, deadline=None)
def test_what_seeds_do_changes_neither_map_nor_clock_nor_the_traces_of_others(draw, how):
    rng, people = np.random.default_rng(draw), town_of(40)
    before, told = apart(people)
    seeds = [who for who in people if toss_coin(KEY, who)]
    assert told.seeds == frozenset(seeds)

    changed = dict(people)
    for who in seeds:
        path = people[who]
        changed[who] = {
            "noise": path + rng.normal(0, 0.02, path.shape),
            "elsewhere": path + [-80.0, 140.0],  # another clock, if it were asked
            "travel": np.where(HOURS[:, None] > 12, path + [3.0, 3.0], path),
            "gone": path,
            "one spot": np.full(path.shape, [46.53, 6.6]),
        }[how]
    if how == "gone":
        for who in seeds:
            del changed[who]
    after, _ = apart(changed)

    assert after.locations == before.locations
    assert (after.tz, after.L, after.start) == (before.tz, before.L, before.start)
    one, two = of_others(people, before), of_others(changed, after)
    assert one.labels == two.labels
    np.testing.assert_array_equal(one.r, two.r)


def test_seeds_are_at_the_nearest_place_of_the_others_map():
    people = town_of(60, seed=3)
    traces, told = apart(people)
    spots = np.column_stack([traces.locations.lat, traces.locations.lon])
    seeds = [i for i, label in enumerate(traces.labels) if label in told.seeds]

    assert told.places_by in ("shared", "grid")
    assert len(seeds) > 10
    for i in seeds:
        path = people[traces.labels[i]]
        km = (path[:, None] - spots) * [111.2, 111.2 * np.cos(np.radians(46.5))]
        nearest = np.argmin(np.hypot(*np.moveaxis(km, -1, 0)), axis=1)
        # noise of 20 m: an anchor may lie on the other side of a border
        assert (traces.r[traces.user == i][0][::3] == nearest).mean() > 0.7


def test_a_map_that_is_given_leaves_nothing_to_find():
    places = ew.Locations([46.51, 46.55], [6.6, 6.65])
    traces, told = apart(town_of(20), locations=places)

    assert told.seeds is None
    assert traces.locations == places


@pytest.fixture(scope="module")
def made():
    traces, told = apart(town_of(120, seed=1))
    return traces, told.seeds


class TestLibrary:
    def test_the_seeds_that_were_given_are_the_seeds(self, made):
        traces, seeds = made
        fakes = ew.generate_fakes(traces, preset="deniable", seeds=seeds, kappa=3, m_min=2, n=30)
        states = dict(fakes.certificate.conditions)

        assert {traces.labels[u] for u in traces.user[fakes.seed_rows]} == seeds
        assert (states[COINS], states[THE_MAP]) == ("asserted", "asserted")
        assert fakes.certificate.holds

    @pytest.mark.parametrize("preset", ["product", "paper", "private"])
    def test_other_presets_refuse_them(self, made, preset):
        traces, seeds = made
        with pytest.raises(ew.errors.InvalidParameter, match="seeds"):
            ew.generate_fakes(traces, preset=preset, seeds=seeds)
