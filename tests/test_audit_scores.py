"""Scores, intervals and comparisons of the attacks: each against its slow twin, or by hand."""

import math
from collections import Counter
from dataclasses import replace

import naive_attacks as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import ndtri
from scipy.stats import binomtest

from elsewhere.data.slots import Traces
from elsewhere.data.visits import DAY, Locations, Visits
from elsewhere.evaluation import (
    attack_base,
    attack_copies,
    attack_linkage,
    attack_membership,
    attack_noise,
    attack_realism,
)
from elsewhere.evaluation.attack_base import (
    Clock,
    Link,
    Lives,
    Rate,
    auc,
    chance_of_top,
    free_walks,
    nearer_to_members,
    user_rate,
    verdict,
    wilson,
)
from elsewhere.evaluation.attack_clock import HOLD, MOST_DAYS, fill_slots, find_clock, put_on_clock
from elsewhere.evaluation.audit import audit, make_case
from elsewhere.evaluation.measures import Plan


@st.composite
def links(draw, *, gaps=False):
    """Return a link of a few people and fakes on a small map, with or without slots at which nobody was seen."""
    U, R, L = draw(st.integers(2, 4)), draw(st.integers(2, 5)), draw(st.integers(3, 6))
    F = draw(st.integers(1, 6))
    cell = st.integers(-1 if gaps else 0, R - 1)
    rows = np.array(draw(st.lists(st.lists(cell, min_size=L, max_size=L), min_size=U + F, max_size=U + F)))
    rows[:, 0] = np.maximum(rows[:, 0], 0)
    owner = np.array(draw(st.lists(st.integers(0, U - 1), min_size=F, max_size=F)))
    where = Locations(xy=np.random.default_rng(R).uniform(0, 9, (R, 2)))
    return Link(Lives.of_slots(rows[U:], where), Lives.of_slots(rows[:U], where), owner)


def rows_of(link):
    return link.fakes.r.tolist(), link.people.r.tolist()


# -- figures -----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 2000), st.floats(0, 1))
def test_wilson_solves_its_equation(n, share):
    rate = wilson(share * n, n)

    assert_allclose([rate.low, rate.high], naive.wilson_ends(share * n, n), atol=1e-9)


def test_fakes_of_one_person_are_not_independent():
    rng = np.random.default_rng(1)
    user = np.repeat(np.arange(100), 10)
    hits = np.repeat(rng.random(100) < 0.3, 10).astype(float)
    clustered, worst = user_rate(hits, user, rng)
    alone = wilson(hits.sum(), len(hits))

    assert clustered.high - clustered.low > 2 * (alone.high - alone.low)
    assert worst == 1.0


def test_no_hit_is_not_certainty():
    rate, _ = user_rate(np.zeros(500), np.repeat(np.arange(50), 10), np.random.default_rng(1))

    assert rate.value == 0
    assert rate.high == wilson(0, 500).high > 0


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_auc_equals_the_count_of_pairs(a, b):
    rate = auc(np.array(a, float), np.array(b, float))

    assert rate.value == pytest.approx(naive.auc_by_pairs(a, b))
    assert 0 <= rate.low <= rate.value <= rate.high <= 1


def test_auc_interval_covers():
    # normal scores half a deviation apart: AUC = Phi(.5 / sqrt 2) = .6382
    rng = np.random.default_rng(3)
    found = [auc(rng.normal(0.5, 1, 60), rng.normal(0, 1, 60)) for _ in range(400)]
    covered = sum(rate.low <= 0.63816 <= rate.high for rate in found)

    # 95 % of 400 is 380; 5.2 standard deviations of 4.36 (alpha 1e-7), and 2 points for the normal approximation
    assert covered >= 400 * 0.93 - 5.2 * 4.36


def test_a_finding_is_above_its_bar_and_clearly_above_chance():
    low, high, chance = Rate(0.01, 0.0, 0.02), Rate(0.5, 0.4, 0.6), Rate(0.08, 0.01, 0.15)

    assert verdict(low, 0.05, None) is True
    assert verdict(high, 0.05, low, chance) is False
    assert verdict(Rate(0.1, 0.01, 0.2), 0.05, low, chance) is None
    assert verdict(high, 0.05, low, Rate(0.4, 0.3, 0.45)) is None
    assert verdict(high, 0.05) is None


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=5), st.integers(1, 4))
def test_ties_are_shared(scores, n):
    own = np.arange(len(scores)) % 4
    expected = [float(naive.among_the_best(row, i, n)) for row, i in zip(scores, own, strict=True)]

    assert_allclose(chance_of_top(np.array(scores, float), own, n), expected)


def test_recognised_is_who_scores_above_all_but_one_stranger_in_a_hundred():
    members, strangers = np.repeat([196.5, 197.5], 5), np.arange(200.0)
    score, inside = np.concatenate([members, strangers]), np.arange(210) < 10

    assert attack_base._recognised(score, inside) == 0.5  # two strangers, 198 and 199, are above those of 197.5


def test_strangers_and_members_exchanged_are_chance():
    rng = np.random.default_rng(5)
    flagged = 0
    for _ in range(300):
        table = rng.normal(size=(60, 40)) + 2 * rng.normal(size=40)  # some people are near to every fake
        more = {str(i): rng.normal(size=(60, 40)) for i in range(5)}  # the best of many is not better than chance
        flagged += nearer_to_members({"one": table, **more}, 20, rng).p <= 0.05
    close = rng.normal(size=(60, 40))
    close[np.arange(60), np.arange(60) % 20] += 9

    # 5 % of 300 are 15 with a deviation of 3.8; 5.3 deviations are alpha 1e-7
    assert flagged <= 15 + 5.3 * 3.8
    told = nearer_to_members({"noise": rng.normal(size=(60, 40)), "close": close}, 20, rng)
    assert told.p < 0.01
    assert told.by == "close"


# -- each score and its slow twin --------------------------------------------------------------------------------------


@given(links())
def test_moves_equal_their_slow_twin(link):
    fakes, people = rows_of(link)
    expected = [naive.reidentified(f, [[s] for s in people]) for f in fakes]

    assert attack_linkage.by_moves(link).round(9).argmax(axis=1).tolist() == expected


@given(links())
def test_move_times_equal_their_slow_twin(link):
    fakes, people = rows_of(link)
    expected = [[20 * naive.timing_score(f, s) for s in people] for f in fakes]

    assert (attack_linkage.by_move_times(link) == np.array(expected, dtype=float)).all()


@given(links(gaps=True))
@settings(max_examples=40)
def test_pairs_equal_their_slow_twin(link):
    fakes, people = rows_of(link)
    found = attack_linkage.by_pairs(link)
    for i in range(len(fakes)):
        expected = np.array(naive.pair_scores(i, fakes, link.owner.tolist(), people, link.people.R))
        # relative to the share of the places, which is the same for all people who are seen at the same slots
        seen = [tuple(np.flatnonzero((np.array(s) >= 0) & (np.array(fakes[i]) >= 0))) for s in people]
        for a in range(len(people)):
            for b in range(a):
                if seen[a] == seen[b]:
                    assert found[i, a] - found[i, b] == pytest.approx(expected[a] - expected[b], abs=1e-9)


@given(links(gaps=True))
@settings(max_examples=30)
def test_pairs_are_put_back(link):
    pairs = attack_linkage.Pairs(link)
    before = pairs.count.copy(), pairs.leaving.copy()
    pairs.score()

    assert (pairs.count == before[0]).all()
    assert (pairs.leaving == before[1]).all()


@given(links(), st.integers(1, 3))
@settings(max_examples=40)
def test_reconstruction_equals_its_slow_twin(link, n):
    fakes, people = rows_of(link)
    found = attack_linkage.reconstruct_seeds(link, n)
    arguments = fakes, link.owner.tolist(), people, link.people.R

    assert found.person.tolist() == np.flatnonzero(np.bincount(link.owner, minlength=1) >= n).tolist()
    for i, person in enumerate(found.person.tolist()):
        assert found.exact[i] == pytest.approx(naive.recovered(person, n, *arguments), abs=1e-9)
        assert found.top5[i] == pytest.approx(min(1.0, naive.recovered(person, n, *arguments, best=5)), abs=1e-9)
        assert found.prior[i] == pytest.approx(naive.recovered(person, 0, *arguments), abs=1e-9)


@given(links(gaps=True))
def test_metres_equal_their_slow_twins(link):
    fakes, people = rows_of(link)
    xy = link.people.locations.planar().tolist()

    assert_allclose(attack_linkage.by_metres(link), [[-naive.mean_km(f, s, xy) for s in people] for f in fakes])
    expected = [[-naive.km_to_places(f, s, xy) for s in people] for f in fakes]
    assert_allclose(attack_linkage.by_places_in_metres(link), expected, atol=1e-9)


@given(links(gaps=True), st.booleans())
def test_shape_equals_its_slow_twin(link, scaled):
    xy = link.people.locations.planar().tolist()
    mine, theirs = (np.array([naive.shape(row, xy) for row in rows]) for rows in rows_of(link))
    if scaled:
        mine, theirs = (x - x.mean(axis=1, keepdims=True) for x in (mine, theirs))
    expected = [[-np.abs(a - b).sum() for b in theirs] for a in mine]

    assert_allclose(attack_linkage.by_shape(link, scaled=scaled), expected, atol=1e-9)


@given(links())
def test_time_shares_equal_their_slow_twin(link):
    fakes, people = rows_of(link)

    assert_allclose(attack_linkage.by_time_shares(link), [[naive.time_overlap(f, s) for s in people] for f in fakes])


@given(links())
@settings(max_examples=40)
def test_shifted_nearness_equals_its_slow_twin(link):
    kinds = range(link.people.R)
    mine, theirs = (np.array([[row == k for k in kinds] for row in lives.r], float) for lives in link[:2])
    second = np.arange(mine.shape[2]) * 14_400  # six slots of four hours
    found = attack_linkage.shifted_nearness(mine, theirs, second, 240)
    again = attack_linkage.shifted_nearness(mine, theirs, second, 60)
    for table, most in ((found, 0), (again, min(2, mine.shape[2] - 1))):
        expected = [
            [
                naive.shifted_score(f, s, mine.mean(axis=0), theirs.mean(axis=0), second // 43_200 % 2, most)
                for s in theirs
            ]
            for f in mine
        ]
        assert_allclose(table, expected, atol=1e-4)


@given(links(gaps=True))
def test_what_is_in_common_equals_its_slow_twin(link):
    fakes, people = rows_of(link)
    found = attack_copies.overlap_with_own(link)
    for i, (f, o) in enumerate(zip(fakes, link.owner.tolist(), strict=True)):
        s = [p if p >= 0 else -2 for p in people[o]]  # unseen is no place in common
        assert found[i].tolist() == list(naive.in_common(f, s))


@given(links(gaps=True))
def test_what_is_in_common_with_anybody_equals_its_slow_twin(link):
    fakes, people = rows_of(link)
    expected = [[naive.in_common(f, [p if p >= 0 else -2 for p in s]) for s in people] for f in fakes]

    assert attack_copies.by_agreement(link).tolist() == [[aligned for aligned, _ in row] for row in expected]
    assert attack_copies.by_shared_places(link).tolist() == [[shared for _, shared in row] for row in expected]


@given(links())
@settings(max_examples=40)
def test_likelihood_ratio_equals_its_slow_twin(link):
    fakes, people = rows_of(link)
    found = attack_membership.likelihood_ratio(link.people, link.fakes)

    assert_allclose(found, naive.membership_ratio([[s] for s in people], fakes), atol=1e-9)


@given(links(gaps=True))
@settings(max_examples=60)
def test_membership_scores_equal_their_slow_twins(link):
    release, people = rows_of(link)
    hours = (link.people.clock.hour % 24).tolist()
    found = attack_membership.membership_scores(link.people, link.fakes)
    xy = link.people.locations.planar().tolist()
    for u in range(len(people)):
        nearest, apart = naive.neighbours(u, people, release)
        expected = {"density": naive.density(u, people, release, hours), "closest_fake": nearest}
        expected["fakes_without_a_shared_place"] = apart
        expected["rare_places_that_exist"] = naive.rare_places_that_exist(u, people, release)
        expected["closest_in_metres"] = max(-naive.mean_km(f, people[u], xy) for f in release)
        expected["most_avoided"] = attack_linkage.by_absence(Link(link.fakes, link.people))[:, u].max()
        near = attack_linkage.by_routine(Link(link.people, link.fakes), attack_linkage.kinds_by_rank)[u]
        expected["closest_routine"] = (max(near) - np.mean(near)) / (np.std(near) + 1e-9)
        for name, value in expected.items():
            assert found[name][u] == pytest.approx(value, abs=1e-9), name


def test_people_of_whom_no_two_slots_follow_are_attacked_too():
    thin = np.where(np.arange(12) % 2, -1, np.random.default_rng(1).integers(4, size=(40, 12)))
    seeds, strangers, fakes = (Traces(r, Locations(n=4)).visits() for r in (thin[:16], thin[16:28], thin[28:]))
    strangers = strangers.select(strangers.user != 3)  # and one of them is not seen at all
    found = audit(seeds, strangers, fakes, None, rng=np.random.default_rng(2))

    assert {name for name in ("A2", "A3", "A10") if found[name].main is None} == set()
    assert found.flagged == ()


def test_shadow_releases_weigh_a_score_by_both_laws():
    shadow = np.array([[3.0, 1.0], [1.0, 5.0], [5.0, 1.0], [1.0, 7.0]])
    inside = np.array([[True, False], [False, True], [True, False], [False, True]])
    # means with and without: 4 and 1, 6 and 1; variances 1 and 0, 1 and 0: half of them together on average
    expected = [((4 - 1) ** 2 - (4 - 4) ** 2) / (2 * 0.5), ((1 - 1) ** 2 - (1 - 6) ** 2) / (2 * 0.5)]

    assert_allclose(attack_membership.log_ratio(np.array([4.0, 1.0]), shadow, inside), expected)


def test_the_map_is_scored_by_hand():
    where = Locations([46.0, 46.1, 46.2], [7.0, 7.0, 7.0])
    people = Visits([0, 0, 1, 2], [0, 9, 0, 0], [9, 20, 9, 9], [0, 1, 1, 2], where)
    release = Visits([0], [0], [9], [0], where.select([0, 1]))
    found = attack_membership.map_scores(people, release)
    km = where.distance(0, [0, 1, 2])

    assert found["places_on_the_map"].tolist() == [0.5, 0.0, 0.0]
    assert found["rare_places_on_the_map"].tolist() == [1.0, 0.0, 0.0]
    expected = [-(math.log(1e-6) + math.log(km[1])) / 2, -math.log(km[1]), -math.log(km[2])]
    assert found["distance_to_the_map"] == pytest.approx(expected, rel=1e-4)


def test_all_lives_of_a_person_are_in_one_fold():
    user = np.repeat(np.arange(20), 3)
    fold = attack_realism._folds(user, 5, np.random.default_rng(1))

    assert all(len(set(fold[user == u])) == 1 for u in range(20))
    assert np.bincount(fold).tolist() == [12] * 5


def test_existence_and_absence_by_hand():
    where = Locations(n=5)
    people = Lives.of_slots(np.array([[0, 1, 1], [2, 3, 3], [0, 3, 3]]), where)
    release = Lives.of_slots(np.array([[0, 1, 1], [0, 4, 4]]), where)
    found = attack_membership.existence(people, release)

    assert found["places_that_exist"].tolist() == [1.0, 0.0, 0.5]
    assert found["rare_moves_that_exist"].tolist() == [1.0, 0.0, 0.0]
    # the first person has place 0 of both fakes and 1 of one: 1.5 are expected, and the fakes have 2 and 1
    expected = np.array([[1.5 - 2, 0, 0], [1.5 - 1, 0, 0]]) / np.sqrt([2.0, 0.5, 1.5])
    assert_allclose(attack_linkage.by_absence(Link(release, people)), expected)


def test_ranks_and_usual_places_by_hand():
    lives = Lives.of_slots(np.array([[7, 7, 7, 2, 2, 4, -1]]), Locations(n=9), minutes=60)

    assert attack_linkage.kinds_by_rank(lives).tolist() == [[0, 0, 0, 1, 1, 2, -1]]
    assert attack_linkage.usual_places(lives)[0, :8].tolist() == [7, 7, 7, 2, 2, 4, -1, -1]


def test_free_walks_follow_the_steps_of_all_people():
    people = Lives.of_slots(np.array([[0, 1, 0]] * 4 + [[0, 2, 0]] * 2), Locations(n=3))
    walks = free_walks(people, np.ones((40_000, 3), dtype=bool), np.random.default_rng(2))
    law = 4 / 6

    # 5.3 standard deviations are alpha 1e-7
    assert (walks[:, 0] == 0).all()
    assert abs((walks[:, 1] == 1).mean() - law) < 5.3 * math.sqrt(law * (1 - law) / 40_000)
    assert set(zip(walks[:, :-1].ravel(), walks[:, 1:].ravel(), strict=True)) == {(0, 1), (1, 0), (0, 2), (2, 0)}


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 90), st.integers(0, 4)), min_size=1, max_size=8))
def test_slots_equal_their_slow_twin(drawn):
    rows, now = [], 0
    for gap, length, place in drawn:
        rows.append((60 * (now + gap), 60 * (now + gap + length), place))
        now += gap + length
    start, end, place = (np.array(column) for column in zip(*rows, strict=True))
    visits = Visits(np.zeros(len(rows), dtype=int), start, end, place, Locations(n=5))
    for timed in (True, False):
        found = fill_slots(visits, 0, 30, 100, timed=timed)
        assert found[0].tolist() == naive.slots_of(rows, 0, 1800, 100, HOLD[timed], timed)


MONDAY = (4 + 7 * 2800) * DAY


def test_fakes_within_a_day_of_peoples_dates_are_compared_by_date_and_others_by_the_day_or_week():
    def side(first, last, hours):
        start = np.arange(MONDAY + 3600 * first, MONDAY + 3600 * last, 3600 * hours)
        return Visits(np.zeros(len(start), int), start, start + 1800, np.zeros(len(start), int), Locations(n=1))

    people, long = side(0, 20, 1), side(0, 24 * (MOST_DAYS + 1), 12)
    for off in (-20, 0, 20):
        clock = find_clock({"seeds": people, "fakes": side(off, off + 20, 1)}, 30)
        assert (clock.period, clock.origin % (7 * DAY)) == (0, MONDAY % (7 * DAY))
        assert clock.second[-1] == (max(off, 0) + 19) * 3600 + 1800 + (off < 0) * 7 * DAY
    assert find_clock({"seeds": people, "fakes": side(60, 80, 1)}, 30).period == DAY
    assert find_clock({"seeds": people, "fakes": side(60, 120, 1)}, 30).period == 7 * DAY
    assert find_clock({"seeds": long, "fakes": long}, 30).period == 7 * DAY
    assert find_clock({"seeds": long, "fakes": long}, 50).period == 0  # slots that no day is a multiple of


def test_weeks_are_folded_into_one_and_places_off_the_map_left_out():
    where = Locations([46.0, 46.1, 46.2], [7.0, 7.0, 7.0])
    clock = Clock(60, 0, 7 * DAY, np.arange(168) * 3600)
    like = Lives(np.zeros((1, 1), dtype=int), where.select([0, 1]), clock)
    start = np.array([0, 7, 9, 14]) * DAY + MONDAY  # place 1 on a Monday, 0 on two others; on a Wednesday nowhere known
    found = put_on_clock(Visits([0] * 4, start, start + DAY, [1, 0, 2, 0], where), like, True).r[0]

    assert found[:24].tolist() == [0] * 24
    assert (found[26:] == -1).all()


@given(st.integers(0, 2**32))
def test_whole_days_equal_their_slow_twin(seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-1, rng.integers(1, 4), (3, 21))
    rows[1, 6:12] = rows[0, :6]  # the same day on another date
    days = Clock(240, 0, 0, np.arange(21) * 14_400)  # three days of six slots, and half of one
    found = attack_copies.whole_days(Lives(rows, Locations(n=3), days))
    wanted = naive.whole_days(rows.tolist(), 6, attack_copies.FEWEST_MOVES)

    assert Counter((i, moves) for (i, _), moves in found.items()) == Counter((i, x) for (i, _), x in wanted.items())
    assert len({day for _, day in found}) == len({day for _, day in wanted})


def test_the_worst_tenth_of_people_are_those_of_whom_most_is_found():
    rng = np.random.default_rng(4)
    seeds, holdout = rng.integers(6, size=(2, 25, 12))
    case, _, _ = make_case(seeds, holdout, np.where(rng.random((25, 12)) < 0.6, seeds, 0), np.arange(25), rng=rng)
    exact = np.sort(attack_linkage.reconstruct_seeds(case.link, 1).exact)
    found = attack_linkage.reconstruction(replace(case, options={}))

    assert exact[0] < exact[-3]
    assert found.worst_decile == pytest.approx(exact[-3:].mean())  # three of 25


def test_shadow_releases_have_everybody_as_often_as_not():
    rng = np.random.default_rng(4)
    sides = [Traces(r, Locations(n=5)).visits() for r in rng.integers(5, size=(3, 9, 8))]
    case, _, _ = make_case(*sides, None, rng=rng, generator=lambda visits, _: visits, shadows=6)
    tables = attack_membership.shadow_releases(case, lambda lives, _: {"people": np.full(18, float(len(lives)))})
    people, who = tables["people"]

    assert people.tolist() == [[9.0] * 18] * 6
    assert (who.sum(axis=1) == 9).all()
    assert (who.sum(axis=0) == 3).all()
    assert (who[::2] != who[1::2]).all()


def test_one_stay_does_not_make_instants_into_stays():
    rng = np.random.default_rng(3)
    sides = [
        Visits(np.repeat(range(20), 9), when, when, rng.integers(5, size=180), Locations(n=5))
        for when in (np.tile(np.arange(9) * 6 * 3600, 20) + rng.integers(3600, size=180) for _ in range(3))
    ]
    end = sides[1].end.copy()
    end[0] += 1800
    stay = sides[1].replace(end=end)
    (one, _, _), (two, _, _) = (make_case(sides[0], each, sides[2], None, rng=rng) for each in (sides[1], stay))

    assert np.array_equal(one.others.r, two.others.r)
    assert (one.others.r >= 0).mean() > 0.8  # a check-in holds until the next: the same for all people


def test_figures_are_shares_within_their_intervals():
    rng = np.random.default_rng(6)
    seeds, holdout, others = rng.integers(8, size=(3, 25, 12))
    for fakes, links in ((seeds, np.arange(25)), (others, None)):
        attacks = ["A1", "A2", "A3", "A4", "A5", "A6", "A7", "A10"]
        found = audit(seeds, holdout, fakes, links, attacks=attacks, rng=rng)
        for rate in (getattr(f, name) for f in found.findings for name in ("main", "control", "null", "fresh")):
            assert rate is None or 0 <= rate.low <= rate.value <= rate.high <= 1
        assert (found["A3"].main.low > 0.5) == (fakes is seeds)


def test_wrong_links_do_not_hide_copies_nor_what_the_scores_say():
    rng = np.random.default_rng(7)
    seeds, holdout = rng.integers(8, size=(2, 60, 24))
    found = audit(seeds, holdout, seeds, np.roll(np.arange(60), 1), attacks="A2", rng=rng)["A2"]

    assert found.passed is False
    assert found.main.value > 0.9
    assert found.details["strongest"] == "moves"
    assert found.details["moves"].value < 0.1


@pytest.mark.parametrize(("copies", "passed"), [(0, True), (45, False)])
def test_two_files_show_that_many_fakes_point_at_one_person(copies, passed):
    rng = np.random.default_rng(8)
    seeds, fakes = rng.integers(8, size=(2, 100, 24))
    fakes[:copies] = seeds[:copies]
    found = audit(seeds, None, fakes, None, attacks="A2", rng=rng)["A2"]

    assert found.passed is passed
    assert found.main.value >= copies / 100


@pytest.mark.parametrize(("p", "learnt"), [(0.001, True), (0.1, False)])
def test_the_best_of_several_scores_shows_something_where_exchanges_say_so(p, learnt):
    case, _, _ = make_case(*np.zeros((3, 4, 6), dtype=int), None, rng=np.random.default_rng(1))
    found = attack_base._without_links(case, attack_base.Nearer(Rate(0.6, 0.55, 0.65), p, "moves"), "all")

    assert (found.passed, found.learnt) == (not learnt, learnt)


def test_places_that_the_seeds_do_not_know_are_of_no_class():
    rows = np.arange(12).reshape(3, 4) % 3
    seeds, fakes = (Traces(rows, Locations(n=3, ids=list(ids))).visits() for ids in ("abc", "abd"))
    case, _, _ = make_case(seeds, None, fakes, None, classes=[0, 1, 0], rng=np.random.default_rng(1))

    assert case.label.tolist() == [0, 1, 0, -1]


def test_bounds_of_the_noise_are_those_of_exact_binomial_intervals():
    more, less, n, m = np.array([30, 50, 60, 60]), np.array([10, 0, 60, 5]), 60, 80
    found = attack_noise.bounds_of_mu((more, less), (n, m))
    for i, (k, j) in enumerate(zip(more.tolist(), less.tolist(), strict=True)):
        p, q = (binomtest(x, of).proportion_ci(attack_base.LEVEL) for x, of in ((k, n), (j, m)))
        pairs = (k / n, j / m), (p.low, q.high), (p.high, q.low)
        with np.errstate(invalid="ignore"):
            wanted = [np.nan_to_num(ndtri(a) - ndtri(b)).clip(0, attack_noise.LARGEST_MU) for a, b in pairs]
        assert found[i] == pytest.approx(wanted)


def test_walks_are_seen_where_fakes_are():
    rng = np.random.default_rng(2)
    seeds, fakes = rng.integers(0, 3, (9, 8)), rng.integers(-1, 3, (20, 8))
    case, _, _ = make_case(seeds, None, Traces(fakes, Locations(n=3)), None, rng=rng)

    assert np.array_equal(case.walks(rng).r == -1, case.fakes.r < 0)


def test_real_people_are_told_from_fakes_by_two_halves_that_share_nobody(monkeypatch):
    rng, halves, told = np.random.default_rng(3), [], attack_realism.tell_apart
    at_home = np.tile(np.arange(24)[:, None], 10)  # real people stay where they are, two of the fakes never do
    fakes = np.where((np.arange(10) % 2) & (np.arange(12)[:, None] < 2), 24, at_home[:12])
    case, _, _ = make_case(at_home[12:], at_home[:12], fakes, None, rng=rng)

    def spied(real, *rest):
        halves.append([set(half.place.tolist()) for half in real])
        return told(real, *rest)

    monkeypatch.setattr(attack_realism, "tell_apart", spied)
    found = attack_realism.real_or_fake(case)
    for one, other in halves:
        assert len(one) == len(other) == 6
        assert not one & other
        assert len(one | other) == 12
    assert found.details["single"]["moves_per_day"] == pytest.approx(7 / 12)
    assert found.details["mean_fake"]["moves_per_day"] == pytest.approx(1.5)
    assert found.worst_decile == 1.0 > found.main.value  # those two


@pytest.mark.parametrize(("goal", "back", "on"), [(0, 1, 0), (2, 0, 1), (3, 0, 0)])
def test_turns_are_described_by_hand(goal, back, on):
    where = Locations(xy=np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 1.0]]))
    hours = np.array([0, 8, 9, 17]) * 3600 + 4 * DAY
    life = Visits([0] * 3, hours[:-1], hours[1:], [0, 1, goal], where)
    found = attack_realism.describe_lives(life, life, Plan(where))

    assert (found["turned_back"][0], found["straight_on"][0], found["back_at_once"][0]) == (back, on, back)
    assert found["turn"][0] == pytest.approx(on - back)


def test_a_day_is_described_by_hand():
    where = Locations(xy=np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 8.0]]))
    hours = np.array([0, 8, 9, 17, 24]) * 3600 + 4 * DAY
    life = Visits([0] * 4, hours[:-1], hours[1:], [0, 1, 2, 0], where)
    found = attack_realism.describe_lives(life, life, Plan(where))

    assert found["moves_per_day"].tolist() == [3.0]
    assert found["places"].tolist() == [3.0]
    assert found["km_mean"][0] == pytest.approx((5 + 5 + 8) / 3)
    assert found["moves_unseen"].tolist() == found["hours_unseen"].tolist() == [0.0]
    assert [found[f"time_at_place_{i}"][0] for i in range(4)] == pytest.approx([15 / 24, 8 / 24, 1 / 24, 0])
    for later, part in ((0, 0), (5, 6)):  # a Monday, a Saturday
        there = life.replace(start=life.start + later * DAY, end=life.end + later * DAY)
        hours = attack_realism.describe_lives(there, life, Plan(where))
        assert [hours[f"presence_{i}"][0] for i in range(part, part + 6)] == pytest.approx([1 / 6] * 6)
