"""The audit: every control is flagged, every attack flags one, independent people pass; and what it promises."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest

from elsewhere.data.places import tile_centres
from elsewhere.data.read import read_visits
from elsewhere.data.slots import Traces
from elsewhere.data.town import simulate_town
from elsewhere.data.visits import Locations, Visits
from elsewhere.errors import ElsewhereError
from elsewhere.evaluation import audit as audits
from elsewhere.evaluation.attack_base import Finding, Needs, Rate, tell_members
from elsewhere.evaluation.attack_copies import people_around
from elsewhere.evaluation.audit import ALL, ATTACKS, Attack, audit

PEOPLE, DAYS = 120, 3
A_RULE = ("A13",)  # whom a place must have as visitors is a rule of publication: real people do not keep it


@pytest.fixture(scope="module")
def town():
    return simulate_town(users=3 * PEOPLE, days=DAYS, locations=250, rng=np.random.default_rng(5))


@pytest.fixture(scope="module")
def groups(town):
    """Return seeds, strangers, and independent people in the place of fakes."""
    order = np.random.default_rng(9).permutation(3 * PEOPLE)
    return tuple(town.visits.of_users(np.sort(order[i::3])) for i in range(3))


def next_cells(where):
    from scipy.spatial import cKDTree

    return cKDTree(where.planar()).query(where.planar(), k=2)[1][:, 1]


def one_visit_copied(seeds, others):
    """Return other people, each with one place of a seed at its hour."""
    rng, place = np.random.default_rng(2), others.place.copy()
    for u in range(seeds.U):
        mine, theirs = seeds.rows(u), others.rows(u)
        i = int(rng.integers(mine.start, mine.stop))
        middle = (seeds.start[i] + seeds.end[i]) // 2
        at = np.flatnonzero((others.start[theirs] <= middle) & (others.end[theirs] > middle))
        place[theirs.start + at[:1]] = seeds.place[i]
    return others.replace(place=place)


def some_verbatim(seeds, others):
    """Return other people, but for one in a hundred, two at least."""
    n = max(2, seeds.U // 100)
    parts = seeds.of_users(np.arange(n)), others.of_users(np.arange(n, others.U))
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "end", "place")}
    return others.replace(user=np.concatenate([parts[0].user, parts[1].user + n]), **columns)


def times_copied(seeds, truth):
    """Return the seeds' own times, every place replaced by another of its class, differently for each person."""
    rng, place = np.random.default_rng(4), seeds.place.copy()
    for u in range(seeds.U):
        swap = np.arange(seeds.R)
        for kind in np.unique(truth):
            there = np.flatnonzero(truth == kind)
            swap[there] = rng.permutation(there)
        place[seeds.rows(u)] = swap[seeds.place[seeds.rows(u)]]
    return seeds.replace(place=place)


def other_hours(seeds):
    """Return the seeds at their own places, in another order: nobody's day, and nobody says whose places they are."""
    rng, place = np.random.default_rng(6), seeds.place.copy()
    for u in range(seeds.U):
        place[seeds.rows(u)] = rng.permutation(place[seeds.rows(u)])
    return seeds.replace(place=place)


def avoided(seeds, others):
    """Return other people who never go where their seed goes: visits there are at the most popular other place."""
    place = others.place.copy()
    popular = np.argsort(-np.bincount(others.place, minlength=others.R))
    for u in range(seeds.U):
        own = np.unique(seeds.place[seeds.rows(u)])
        mine = place[others.rows(u)]
        place[others.rows(u)] = np.where(np.isin(mine, own), popular[~np.isin(popular, own)][0], mine)
    return others.replace(place=place)


@pytest.fixture(scope="module")
def fakes(town, groups):
    seeds, _, others = groups
    rng, own = np.random.default_rng(3), np.arange(PEOPLE)
    moved = seeds.replace(place=next_cells(seeds.locations)[seeds.place])
    wild = others.replace(place=rng.integers(others.R, size=len(others)))
    return {
        "independent": (others, rng.permutation(PEOPLE)),
        "independent, no links": (others, None),
        "the seed itself": (seeds, own),
        "one visit": (one_visit_copied(seeds, others), own),
        "next cell, links shuffled": (moved, rng.permutation(PEOPLE)),
        "next cell, no links": (moved, None),
        "own places, other hours, no links": (other_hours(seeds), None),
        "one in a hundred": (some_verbatim(seeds, others), own),
        "own times elsewhere": (times_copied(seeds, town.truth), own),
        "avoided": (avoided(seeds, others), own),
        "uniform dummies": (wild, own),
    }


FLAGGED = {
    "the seed itself": {"A1", "A2", "A3", "A4", "A5", "A6", "A10", "A13", "A20", "A24"},
    "one visit": {"A1"},
    "next cell, links shuffled": {"A4", "A5", "A10"},
    "next cell, no links": {"A4", "A5", "A10"},
    "own places, other hours, no links": {"A1"},
    "one in a hundred": {"A1"},
    "own times elsewhere": {"A4", "A5", "A10"},
    "avoided": {"A7"},
    "uniform dummies": {"A15"},
}


@pytest.fixture(scope="module")
def found(groups, fakes):
    """Return the audit of every kind of fakes: by all attacks, or by those that must flag it."""
    seeds, strangers, _ = groups
    every = {"independent": ALL, "independent, no links": [a for a in ALL if a != "A15"], "the seed itself": ALL}
    return {
        name: audit(
            seeds,
            strangers,
            lives,
            links,
            attacks=every.get(name) or FLAGGED[name],
            m_min=5,
            rng=np.random.default_rng(1),
        )
        for name, (lives, links) in fakes.items()
    }


@pytest.mark.parametrize("control", FLAGGED)
def test_every_control_is_flagged(found, control):
    assert FLAGGED[control] <= set(found[control].flagged)


# A9 has its own controls, A22 and A23 theirs below
@pytest.mark.parametrize("attack", [a for a in ALL if a not in ("A9", "A22", "A23")])
def test_every_attack_flags_a_control(found, attack):
    assert attack in {each for control in FLAGGED for each in found[control].flagged}


@pytest.mark.parametrize("name", ["independent", "independent, no links"])
def test_independent_people_pass(found, name):
    assert set(found[name].flagged) <= set(A_RULE)
    for finding in found[name].findings:
        if finding.id not in A_RULE:
            assert finding.learnt is not True, finding.words


@pytest.mark.parametrize(("members", "strangers"), [(60, 60), (70, 30)])
def test_people_who_leak_nothing_are_seldom_flagged(town, members, strangers):
    ids = ("A1", "A2", "A3", "A4", "A5", "A6", "A7", "A10", "A20", "A24")
    failed = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(town.visits.U)
        sizes = np.cumsum([0, members, strangers, members])
        sides = (town.visits.of_users(order[a:b]) for a, b in pairwise(sizes))
        links = np.random.default_rng(seed).permutation(members)
        found = audit(*sides, links, attacks=ids, rng=np.random.default_rng(seed))
        failed += found.flagged
        for attack in ("A3", "A10"):  # nor do walks that know nobody tell members, be these fewer or more
            assert found[attack].control.value < found[attack].bar, attack

    # 30 attacks at a chance of .5 to 5 % each
    assert len(failed) <= 2, failed


def test_a_copy_is_found_in_the_way_it_was_made(found):
    how = {
        "one visit": "own person",
        "one in a hundred": "whole day",
        "own places, other hours, no links": "anybody",
    }
    assert {name: found[name]["A1"].details["how"] for name in how} == how


def test_metres_and_links_found_by_the_attacker_name_the_moved_people(found):
    finding = found["next cell, links shuffled"]["A5"]

    assert finding.details["links_found"]["share"].value > 0.95
    assert finding.main.value > 0.95
    assert finding.details["metres"].value < 0.05  # by the links that were given


def test_every_score_names_the_seed_itself(found):
    scores = {
        "A2": {"moves"},
        "A4": {"aligned", "shifted"},
        "A5": {"time_shares", "ranks", "ranks_by_hour", "metres", "metres_by_hour", "places_in_metres", "pairs"},
        "A24": {"distances", "scaled"},
    }
    for attack, names in scores.items():
        details = found["the seed itself"][attack].details
        for name in names:
            assert details[name].value > (0.2 if name == "pairs" else 0.6), name


def test_a_life_turned_shrunk_and_moved_away_is_named_by_its_shape(groups):
    seeds, strangers, _ = groups
    xy = seeds.locations.planar()
    wide = Locations(xy=np.concatenate([xy, 0.5 * xy[:, ::-1] * [1, -1] + 100]))  # another town, 100 km away
    seeds, strangers = (side.replace(locations=wide) for side in (seeds, strangers))
    away = seeds.replace(place=seeds.place + len(xy))
    found = audit(seeds, strangers, away, np.arange(PEOPLE), attacks="A24", rng=np.random.default_rng(1))

    assert found.flagged == ("A24",)
    assert found["A24"].details["distances"].value < 0.1 < 0.9 < found["A24"].details["scaled"].value


@pytest.mark.parametrize(
    ("existence", "tell"),
    [
        (True, ["places_that_exist", "rare_places_that_exist", "rare_moves_that_exist"]),
        (False, ["fakes_without_a_shared_place", "places_that_exist"]),
    ],
)
def test_which_places_exist_gives_members_away(groups, existence, tell):
    members, strangers = (side.of_users(np.arange(30)) for side in groups[:2])
    theirs = np.isin(groups[2].place, members.place)
    release = groups[2].select(theirs == existence)  # of other people, only where members go, or only where none goes
    release = release.of_users(np.unique(release.user))
    found = audit(members, strangers, release, None, attacks="A10", rng=np.random.default_rng(1))

    assert found.flagged == ("A10",)
    for name in tell:
        assert abs(found["A10"].details["auc"][name].value - 0.5) > 0.35, name


def test_links_alone_are_enough_and_the_bars_are_those_of_the_docs(groups):
    ids = {"A2": 0.0112, "A4": 0.01, "A5": 0.1, "A24": 0.01}
    found = audit(groups[0], None, groups[0], np.arange(PEOPLE), attacks=ids, rng=np.random.default_rng(1))

    assert found.flagged == tuple(ids)
    assert {name: found[name].bar for name in ids} == ids


def test_who_is_an_hour_late_is_named_all_the_same(groups):
    seeds, strangers, _ = groups
    late = seeds.replace(start=seeds.start + 3600, end=seeds.end + 3600)
    found = audit(seeds, strangers, late, np.arange(PEOPLE), attacks=["A4", "A5"], rng=np.random.default_rng(1))

    assert found["A4"].details["aligned"].value < 0.2 < 0.5 < found["A4"].details["shifted"].value
    assert found["A5"].details["ranks"].value > 0.5


def test_the_order_of_the_list_gives_away_who_was_made_from_one_person(small):
    seeds, holdout, fakes, _ = small
    rng = np.random.default_rng(4)
    side_by_side, shuffled = np.repeat(rng.permutation(30), 2), rng.permutation(np.repeat(np.arange(30), 2))
    flagged = [
        audit(seeds, holdout, fakes[owner], owner, attacks="A20", rng=np.random.default_rng(1)).flagged
        for owner in (side_by_side, shuffled, np.sort(shuffled), np.arange(30), np.arange(30)[::-1])
    ]

    assert flagged == [("A20",), (), *[("A20",)] * 3]


def in_few_places(people):
    """Return people of the same few days: two hours at one of a dozen places, so that days are lived by several."""
    hour = 7200
    return people.replace(
        start=people.start // hour * hour, end=-(-people.end // hour) * hour, place=people.place % 12,
        locations=Locations(n=12),
    )  # fmt: skip


@pytest.mark.parametrize("change", [lambda people: people, in_few_places], ids=["town", "few places"])
def test_of_two_files_of_other_people_none_is_accused(town, change):
    flagged = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(town.visits.U)
        real, others = (change(town.visits.of_users(np.sort(order[i : i + 100]))) for i in (0, 100))
        flagged += audit(real, None, others, None, rng=np.random.default_rng(seed)).flagged
        copied = audit(real, None, real, None, attacks=["A1", "A4"], rng=np.random.default_rng(seed))
        assert "A1" in copied.flagged

    assert flagged == []


def test_two_files_are_enough_to_find_whom_fakes_point_at(groups, fakes):
    seeds, _, _ = groups
    learnt = {
        name: audit(seeds, None, fakes[name][0], None, attacks=["A4", "A5"], rng=np.random.default_rng(1)).flagged
        for name in ("independent", "next cell, no links", "own times elsewhere")
    }

    assert learnt == {
        "independent": (),
        "next cell, no links": ("A4", "A5"),
        "own times elsewhere": ("A4", "A5"),
    }


def test_denser_records_point_at_nobody(groups):
    seeds, _, others = groups
    thin = seeds.select(np.random.default_rng(8).random(len(seeds)) < 0.5)

    assert audit(thin, None, others, None, attacks=["A4", "A5"], rng=np.random.default_rng(1)).flagged == ()


def test_a_few_members_that_are_recognised_are_the_figure():
    rng = np.random.default_rng(3)
    case, _, _ = audits.make_case(*people(600, rng).reshape(3, 200, 10), None, rng=rng)
    score = rng.normal(size=400)
    none = tell_members(case, {"score": score}, knows="all")
    score[:16] += 9  # of 200 members, whom all others hide in the AUC
    some = tell_members(case, {"score": score}, knows="all")
    other_way = tell_members(case, {"score": np.append(rng.normal(0, 1, 200), rng.normal(3, 1, 200))}, knows="all")

    assert (none.passed, none.main.value > 0.4) == (True, True)
    assert other_way.main.value > 0.9
    assert some.passed is False
    assert some.details["auc"]["score"].value < 0.6
    assert some.details["p"] > 0.005
    assert 0.08 <= some.main.value <= 0.13
    assert some.main.low > some.baseline == 0.01


def test_places_are_rare_if_few_of_all_people_visit_them():
    town = Locations(n=3)
    seeds, strangers = np.array([[0, 1], [0, 0]]), np.array([[0, 1], [0, 2]])
    found = audit(
        seeds, strangers, np.array([[0, 1], [2, 2]]), None, attacks=["A13"], m_min=2, locations=town,
        rng=np.random.default_rng(1),
    )["A13"]  # fmt: skip

    assert (found.main.value, found.details["places"], found.details["one_user"]) == (0.5, 1, 1)
    alone = audit(
        seeds, None, np.array([[0, 1]]), None, attacks=["A13"], m_min=2, locations=town, rng=np.random.default_rng(1)
    )
    assert alone["A13"].main.value == 0.5  # without the stranger who goes there


def test_without_a_promise_rare_places_are_compared_with_those_that_real_people_share(groups):
    seeds, strangers, others = groups
    few = np.flatnonzero((seeds.visitors() > 0) & (np.sum([g.visitors() for g in groups[:2]], axis=0) < 5))
    rare = others.replace(place=np.where(np.arange(len(others)) % 3 == 0, few[others.place % len(few)], others.place))
    found = [
        audit(seeds, strangers, fakes, None, attacks="A13", rng=np.random.default_rng(1))["A13"]
        for fakes in (others, rare)
    ]

    assert [f.passed for f in found] == [True, False]
    assert found[0].main.value > 0.01  # real people go there too
    assert found[0].control.value > 0.01


def test_who_is_in_a_tile_counts_for_it():
    # a tile, a finer one inside it, a cafe in the finer one, and a tile far away
    coarse, fine, far = "q0231", "q02310", "q1111"
    lat, lon = (np.empty(4), np.empty(4))
    for i, name in enumerate((coarse, fine, far)):
        key = int(name[1:], 4)
        lat[[0, 1, 3][i]], lon[[0, 1, 3][i]] = (x[0] for x in tile_centres(np.array([key]), len(name) - 1))
    lat[2], lon[2] = lat[1] + 0.01, lon[1] + 0.01
    where = Locations(lat, lon, ids=[coarse, fine, "cafe", far])
    people = Visits([0, 1, 2, 2, 3], [0, 0, 0, 9, 0], [9, 9, 9, 20, 9], [0, 1, 2, 1, 3], where)

    assert people_around(people).tolist() == [3, 2, 1, 1]
    plain = people.replace(locations=Locations(lat, lon, ids=["a", "b", "c", "d"]))
    assert people_around(plain).tolist() == [1, 2, 1, 1]


def test_a_threshold_and_the_map_give_members_away(groups):
    seeds, strangers, others = (g.of_users(np.arange(60)) for g in groups)

    def published(visits, rng, least):
        """Publish everybody at places of at least so many visitors: whoever is there decides what is published."""
        enough = visits.visitors() >= least
        return visits.select(enough[visits.place])

    options = {"shadows": 10, "attacks": ["A10", "A22", "A23"], "rng": np.random.default_rng(1)}
    results = {}
    for least in (5, 1):
        release = published(seeds, None, least)
        make = lambda visits, rng, least=least: published(visits, rng, least)  # noqa: E731
        kept = np.unique(release.user)
        results[least] = audit(seeds, strangers, release.of_users(kept), None, generator=make, **options)
    nothing = audit(seeds, strangers, others, None, generator=lambda visits, rng: others, **options)

    by_shadows = {name: rate.value for name, rate in results[1]["A10"].details["auc"].items() if "shadows" in name}
    assert min(by_shadows[f"{name}_by_shadows"] for name in ("closest_fake", "density", "closest_routine")) > 0.9
    assert results[5]["A23"].main.value == 1.0
    assert results[5]["A23"].control.value == 0.0
    assert "A23" in results[5].flagged
    assert "A22" in results[1].flagged
    assert nothing.flagged == ()


def test_another_tools_fakes_from_two_files(groups, tmp_path):
    seeds, strangers, others = (g.of_users(np.arange(40)) for g in groups)
    both = {"real.csv": [seeds, strangers], "fakes.csv": [others]}
    for name, parts in both.items():
        import pandas as pd

        frames = [p.to_frame()[["user", "start", "end", "lat", "lon"]].assign(side=i) for i, p in enumerate(parts)]
        table = pd.concat(frames)
        table["user"] = table.pop("side").astype(str) + "-" + table["user"].astype(str)
        table.to_csv(tmp_path / name, index=False)
    real = read_visits(tmp_path / "real.csv")
    other = read_visits(tmp_path / "fakes.csv", locations=real.locations)
    mine = np.array([str(label).startswith("0-") for label in real.users])
    result = audit(
        real.of_users(mine), real.of_users(~mine), other, None, attacks=["A1", "A5"], rng=np.random.default_rng(1)
    )

    assert result.flagged == ()
    assert result.sizes["fakes"] == 40
    copied = audit(
        real.of_users(mine), real.of_users(~mine), real.of_users(mine), None, attacks=["A1"],
        rng=np.random.default_rng(1),
    )  # fmt: skip
    assert copied.flagged == ("A1",)


# -- what the audit promises -------------------------------------------------------------------------------------------


def people(n, rng, R=20, L=10):
    """Return homes on a line of places, and steps of one or two places at habitual times."""
    r = np.empty((n, L), dtype=np.int64)
    r[:, 0] = rng.integers(R, size=n)
    for t in range(1, L):
        r[:, t] = np.clip(r[:, t - 1] + rng.integers(-2, 3, n), 0, R - 1)
    return r


@pytest.fixture(scope="module")
def small():
    r = people(60, np.random.default_rng(6))
    return r[:30], r[30:], r[:30][::-1].copy(), np.arange(30)


def test_the_result_is_plain_and_speaks_plainly(found):
    result = found["the seed itself"]
    figures = json.loads(json.dumps(result.to_dict(), allow_nan=False))

    assert list(figures) == list(ALL)
    for name in ("main", "control", "baseline", "interval", "bar", "passed", "worst_decile", "risk", "words"):
        assert name in figures["A2"]
    for finding in result.findings:
        assert finding.words.endswith(".")
        assert not re.search(r"\bA\d+\b|anonym|indistinguish|does not leak|deniab", finding.words)


def test_main_lies_in_its_interval_and_risk_is_its_formula(found):
    for result in found.values():
        for attack, figures in result.to_dict().items():
            if figures["interval"] is not None:
                low, high = figures["interval"]
                assert low <= figures["main"] <= high, attack
            if figures["risk"] is not None:
                main, control = figures["main"], figures["control"]
                assert figures["risk"] == pytest.approx((main - control) / (1 - control))


def test_what_lacks_an_input_says_what_it_needs(small):
    seeds, holdout, fakes, _ = small
    result = audit(seeds, holdout, fakes, None, rng=np.random.default_rng(1))
    alone = audit(seeds, None, fakes, None, rng=np.random.default_rng(1))

    assert "`seed_index`" in result["A6"].needs
    assert "`sampler`" in result["A9"].needs
    assert "`generator`" in result["A22"].needs
    assert "coordinates" in result["A24"].needs
    assert result["A2"].main is not None
    assert "`holdout`" in alone["A3"].needs
    assert alone["A1"].main is not None  # a copy is a copy, whoever it was made from


def test_an_attack_does_not_depend_on_the_others(small):
    alone = audit(*small, attacks="A2", rng=np.random.default_rng(1)).to_dict()
    together = audit(*small, attacks=["A4", "A2", "A10"], rng=np.random.default_rng(1)).to_dict()
    again = audit(*small, attacks=["A10", "A4", "A2"], rng=np.random.default_rng(1)).to_dict()

    assert list(together) == ["A2", "A4", "A10"]
    assert alone["A2"] == together["A2"]
    assert again == together


def test_arrays_traces_and_visits_are_the_same_to_it(small):
    seeds, holdout, fakes, owner = small
    where = Locations(n=20)
    ids = ["A1", "A2", "A4", "A5", "A6", "A13"]
    typed = [Traces(r, where) for r in (seeds, holdout, fakes)]
    given = {
        "arrays": (seeds, holdout, fakes),
        "traces": typed,
        "mixed": (typed[0], holdout, fakes),
    }
    results = {
        name: audit(*sides, owner, attacks=ids, locations=where, rng=np.random.default_rng(1)).to_dict()
        for name, sides in given.items()
    }

    assert results["arrays"] == results["traces"] == results["mixed"]
    by_visits = audit(*(t.visits() for t in typed), owner, attacks=["A2"], rng=np.random.default_rng(1))
    assert by_visits["A2"].main.value > 0  # slots of 30 minutes, where those of the tables are 20


def test_renaming_places_changes_no_linkage(small):
    seeds, holdout, fakes, owner = small
    name = np.random.default_rng(9).permutation(20)
    ids = ["A1", "A2", "A4", "A5", "A6"]
    before, after = (
        audit(*sides, owner, attacks=ids, locations=Locations(n=20), rng=np.random.default_rng(1)).to_dict()
        for sides in ((seeds, holdout, fakes), (name[seeds], name[holdout], name[fakes]))
    )

    for attack in ids:
        assert after[attack]["main"] == pytest.approx(before[attack]["main"], abs=1e-12), attack


@pytest.mark.parametrize("weeks", [1, 5])
def test_fakes_of_other_dates_are_compared_by_the_week(groups, weeks):
    seeds, strangers, _ = (g.of_users(np.arange(40)) for g in groups)
    later = seeds.replace(start=seeds.start + weeks * 7 * 86_400, end=seeds.end + weeks * 7 * 86_400)
    result = audit(seeds, strangers, later, np.arange(40), attacks=["A5"], rng=np.random.default_rng(1))

    assert result["A5"].main.value == 1.0
    assert any("week" in note for note in result.notes)


def test_of_sampled_people_the_fakes_are_their_own(groups, monkeypatch):
    monkeypatch.setattr(audits, "MOST_PEOPLE", 30)
    found = audit(groups[0], None, groups[0], np.arange(PEOPLE), attacks="A4", rng=np.random.default_rng(1))

    assert (found.sizes["seed_users"], found.sizes["fakes"]) == (30, 30)
    assert found["A4"].main.value > 0.6  # of the seeds themselves, who are named by their own times


def test_more_people_than_are_looked_at_are_sampled(groups, monkeypatch):
    monkeypatch.setattr(audits, "MOST_PEOPLE", 30)
    seeds, strangers, _ = groups
    result = audit(seeds, strangers, seeds, np.arange(PEOPLE), attacks=["A2"], rng=np.random.default_rng(1))

    assert result.sizes["seed_users"] == result.sizes["holdout_users"] == result.sizes["fakes"] == 30
    assert result["A2"].main.value == 1.0
    assert any(f"30 of {PEOPLE} seeds" in note for note in result.notes)


def test_the_worst_role_is_the_finding(groups):
    seeds, strangers, others = (g.of_users(np.arange(60)) for g in groups)
    roles = {"model people": others, "alternates": strangers.of_users(np.arange(30))}
    result = audit(
        seeds, strangers, others, None, roles=roles, attacks=["A1", "A2", "A4"], rng=np.random.default_rng(1)
    )

    assert result["A1"].details["role"] == result["A2"].details["role"] == "model people"
    assert set(result.flagged) == {"A1", "A2"}
    assert result["A2"].details["roles"]["alternates"] != "learnt something"
    assert "roles" not in result["A4"].details


def test_classes_are_an_attack_of_their_own(town, groups):
    seeds, strangers, _ = (g.of_users(np.arange(50)) for g in groups)
    lives = times_copied(seeds, town.truth)
    for classes in (None, town.truth):
        found = audit(
            seeds, strangers, lives, np.arange(50), attacks=["A5"], classes=classes, rng=np.random.default_rng(1)
        )["A5"].details
        assert ("classes" in found) is (classes is not None)
    assert found["classes"].value > 0.9


def test_a_new_attack_is_one_function_and_one_row(small, monkeypatch):
    def attempt(case):
        if case.strangers is None:
            raise Needs("`holdout`")
        return Finding(Rate(0.5, 0.4, 0.6), baseline=0.1, bar=0.2, passed=False, words="It works.")

    monkeypatch.setitem(ATTACKS, "A99", Attack("something new", attempt))
    monkeypatch.setattr(audits, "ALL", tuple(ATTACKS))
    seeds, holdout, fakes, owner = small
    result = audit(seeds, holdout, fakes, owner, attacks="A99", rng=np.random.default_rng(1))

    assert result.flagged == ("A99",)
    assert (result["A99"].title, result["A99"].outcome) == ("something new", "learnt something")
    assert audit(seeds, None, fakes, owner, attacks="A99", rng=np.random.default_rng(1))["A99"].needs == "`holdout`"


def test_what_generate_fakes_returns_brings_its_links_and_has_no_order(groups):
    seeds, strangers, _ = (g.of_users(np.arange(30)) for g in groups)

    class Made:
        visits, seed_of_life = seeds, np.arange(30)

    result = audit(seeds, strangers, Made(), None, attacks=["A2", "A20"], rng=np.random.default_rng(1))

    assert result["A2"].main.value == 1.0
    assert "published list" in result["A20"].needs


BAD = {
    "one user": (lambda s, h, f, o: (s[:1], h, f, np.zeros_like(o)), {}, "E_TOO_FEW"),
    "no such seed": (lambda s, h, f, o: (s, h, f, o + 1), {}, "E_INDEX"),
    "too few links": (lambda s, h, f, o: (s, h, f, o[:-1]), {}, "E_SHAPE"),
    "half places": (lambda s, h, f, o: (s + 0.5, h, f, o), {}, "E_NUMBER"),
    "NaN": (lambda s, h, f, o: (s, h, np.full(f.shape, np.nan), o), {}, "E_NUMBER"),
    "words": (lambda s, h, f, o: (s, "abc", f, o), {}, "E_NUMBER"),
    "too few places": (lambda s, h, f, o: (s, h, f, o), {"locations": Locations(n=3)}, "E_INDEX"),
    "classes": (lambda s, h, f, o: (s, h, f, o), {"classes": [0, 1]}, "E_MISMATCH"),
    "unknown attack": (lambda s, h, f, o: (s, h, f, o), {"attacks": ["A99"]}, "E_PARAM"),
    "no attack": (lambda s, h, f, o: (s, h, f, o), {"attacks": []}, "E_PARAM"),
    "m_min": (lambda s, h, f, o: (s, h, f, o), {"m_min": 0}, "E_PARAM"),
    "rng": (lambda s, h, f, o: (s, h, f, o), {"rng": 7}, "E_PARAM"),
    "option": (lambda s, h, f, o: (s, h, f, o), {"k": 7}, "E_CALL"),
    "generator": (lambda s, h, f, o: (s, h, f, o), {"generator": lambda v, g: 3, "attacks": "A22"}, "E_PARAM"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_a_code(small, case):
    change, options, code = BAD[case]
    with pytest.raises(ElsewhereError) as error:
        audit(*change(*small), **{"attacks": ["A5"], "rng": np.random.default_rng(1), **options})

    assert error.value.code == code


def test_nothing_of_anybody_is_shown(groups):
    seeds, strangers, _ = groups
    case, _, _ = audits.make_case(seeds, strangers, seeds, None, rng=np.random.default_rng(1), **audits.OPTIONS)
    shown = repr(case) + repr(case.seeds) + repr(case.fakes)

    assert not re.search(r"\[|array|\d{3,}", shown.replace("0x", "").split(" at ")[0])
    assert isinstance(case.seeds.visits, Visits)
