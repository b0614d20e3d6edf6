"""The rulers themselves: what real people get who have nothing to hide, at many sizes, and what must still be found."""

import math
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import elsewhere as ew
from elsewhere.evaluation.attacks import linkage, membership, realism
from elsewhere.evaluation.attacks._attacks_kernels import shifted_likelihoods
from elsewhere.evaluation.attacks.candidates import Variant, flagged_by_chance, link_finding
from elsewhere.evaluation.attacks.finding import WITHIN, Fresh, Rate, verdict, wilson
from elsewhere.evaluation.attacks.grams import Grams
from elsewhere.evaluation.attacks.inputs import Link, People
from elsewhere.evaluation.attacks.realism import NAMES, day_features, flagged_share_of_groups

PF = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "pf_tokyo" / "pf_tokyo_traces.csv.gz"


def town(people, seed, locations=150):
    return ew.simulate_town(users=people, locations=locations, rng=np.random.default_rng(seed)).traces


def groups(traces, *sizes, seed=0):
    """Disjoint groups of so many people at random."""
    order = np.random.default_rng(seed).permutation(len(traces))
    ends = np.cumsum((0, *sizes))
    return [traces.select(order[a:b]) for a, b in pairwise(ends)]


def attacked(attack, seeds, holdout, fakes, owner=None, seed=1, **given):
    return ew.audit(seeds, holdout, fakes, owner, attacks=[attack], rng=np.random.default_rng(seed), **given)[attack]


# A15


def tolerance(real, others):
    """4 standard deviations of a cross-validated AUC: both classifiers, both descriptions stay within (alpha 3e-4)."""
    return 4 * realism.auc_deviation(real, others)


def both_figures(finding):
    return {"own": finding.main, "own_control": finding.control} | {
        name: finding.details[name].value for name in ("twelve", "twelve_control")
    }


@pytest.mark.parametrize(("n", "seed"), [(60, 1), pytest.param(150, 2, marks=pytest.mark.soak), (300, 3)])
def test_real_people_are_not_told_from_real_people(n, seed):
    seeds, holdout, others = groups(town(3 * n, seed), n, n, n)
    finding = attacked("A15", seeds, holdout, others.r)

    for name, value in both_figures(finding).items():
        assert abs(value - 0.5) < tolerance(n, n), name
    assert finding.passed is not False


def test_real_people_are_not_told_where_every_place_is_rare():
    # homes that nobody shares: whoever describes people by themselves, or leaves them out on one side, tells them apart
    rng = np.random.default_rng(4)
    home, work = rng.integers(400, size=(2, 600, 1))
    r = np.where((np.arange(16) // 5 % 2 == 1), work, home)
    r = np.where(rng.random(r.shape) < 0.2, rng.integers(400, size=r.shape), r)
    finding = attacked("A15", r[:200], r[200:400], r[400:], locations=ew.Locations(n=400))

    for name, value in both_figures(finding).items():
        assert abs(value - 0.5) < tolerance(200, 200), name


@pytest.mark.skipif(not PF.exists(), reason="needs PF Tokyo in ../shared/data/pf_tokyo")
@pytest.mark.parametrize("split", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_real_people_of_tokyo_are_not_told_from_each_other(split):
    import pandas as pd

    table = pd.read_csv(PF, usecols=["uid", "slot", "loc"]).sort_values(["uid", "slot"])
    everybody = ew.Traces(table["loc"].to_numpy().reshape(1000, 30), ew.Locations(n=400), start="09:00")
    seeds, others, holdout = groups(everybody, 500, 250, 250, seed=split)
    finding = attacked("A15", seeds, holdout, others.r)

    for name, value in both_figures(finding).items():
        assert abs(value - 0.5) < tolerance(250, 250), name


def test_what_is_not_like_people_is_told():
    seeds, holdout, others = groups(town(450, 7), 150, 150, 150)
    rng = np.random.default_rng(1)
    uniform = attacked("A15", seeds, holdout, rng.integers(150, size=others.r.shape))
    # a few days again and again are days of people, but not of a people
    copies = attacked("A15", seeds, holdout, others.r[np.arange(150) % 5])

    for finding in (uniform, copies):
        assert finding.main > 0.9
        assert finding.passed is False
    assert uniform.details["twelve"].value > 0.9


def test_few_people_give_no_verdict():
    seeds, holdout, others = groups(town(200, 3), 80, 40, 80)
    finding = attacked("A15", seeds, holdout, others.r)

    assert finding.passed is None
    assert finding.fresh.flagged > 0.05
    assert "No verdict" in finding.words
    # a low figure of few people is luck, not a pass; that of many is one
    half = Fresh(Rate(0.5, 0.4, 0.6), 0.9)
    assert realism.classifier_verdict(Rate(0.4, 0.3, 0.55), half, 40, 80) is None
    assert realism.classifier_verdict(Rate(0.4, 0.3, 0.55), half, 400, 800) is True
    assert realism.classifier_verdict(Rate(0.9, 0.8, 0.95), half, 40, 80) is False


def test_days_of_one_person_stay_together():
    fold = realism.folds_of(np.repeat(np.arange(20), 3), 5, np.random.default_rng(1))

    assert (fold.reshape(20, 3) == fold[::3, None]).all()
    assert np.bincount(fold[::3]).tolist() == [4] * 5


# the judge's own description


@st.composite
def days(draw):
    R, L = draw(st.integers(2, 6)), draw(st.integers(2, 20))
    cell = st.integers(0, R - 1)
    rows = st.lists(st.lists(cell, min_size=L, max_size=L), min_size=3, max_size=5)
    return np.array(draw(rows)), R


@given(days())
@settings(max_examples=60, deadline=None)
def test_day_features_equal_their_slow_twin(case):
    rows, R = case
    xy = np.column_stack([np.arange(R) ** 2, np.arange(R) % 3]).astype(float)
    hour = np.arange(rows.shape[1]) // 3
    people = People(rows[:2], np.arange(2), 2)
    found = day_features(rows[2:], ew.Locations(xy=xy), Grams(people, R, hour))
    for day, values in zip(rows[2:].tolist(), found, strict=True):
        slow = naive.day_features(day, rows[:2].tolist(), R, hour.tolist(), xy.tolist())

        assert set(slow) == set(NAMES)
        assert_allclose(values, [slow[name] for name in NAMES], atol=1e-9, err_msg=str(day))


def test_day_features_by_hand():
    # at 0 for two slots, to 1 and back, then on to 2 by 1
    day = np.array([[0, 0, 1, 0, 1, 2, 2, 2]])
    where = ew.Locations(xy=[[0, 0], [3, 0], [3, 4]])
    reference = Grams(People(np.array([[0, 1, 0, 1, 1, 1, 1, 1]]), np.arange(1), 1), 3, np.zeros(8, dtype=int))
    f = dict(zip(NAMES, day_features(day, where, reference)[0], strict=True))

    assert len(NAMES) == len(set(NAMES)) >= 50
    assert (f["stays_up_to_1"], f["stays_up_to_2"], f["stays_up_to_4"]) == (0.6, 0.2, 0.2)
    assert f["back_at_once"] == 2 / 4
    assert f["passed_through"] == 3 / 5
    assert (f["trips"], f["longest_trip"], f["move_after_move"]) == (1, 4 / 8, 3 / 4)
    assert (f["way"], f["net"], f["farthest"]) == (13, 5, 5)
    assert f["trip_straightness"] == pytest.approx(5 / 13)
    assert f["turned_back"] == 2 / 3
    assert f["moves_unseen"] == 1 / 4
    assert f["ways_unseen"] == 1 / 3
    assert f["gap_mean"] == 1 / 8


# A3


@pytest.mark.parametrize(("members", "strangers"), [(280, 120), (500, 250), (500, 500)])
def test_people_who_leak_nothing_gain_nothing(members, strangers):
    found = []
    for seed in range(4):
        seeds, holdout, others = groups(town(2 * members + strangers, seed), members, strangers, members)
        found.append(attacked("A3", seeds, holdout, others.r))
    mean = np.mean([f.main for f in found])
    wide = np.mean([f.interval.high - f.interval.low for f in found]) / 2

    # the interval is 1.96 deviations either way; the mean of 4 scatters half as much: 4 deviations of it
    assert abs(mean) < 4 * wide / 1.96 / 2
    # by chance one in forty is flagged: two of four are not (alpha .004)
    assert sum(f.passed is False for f in found) < 2


@pytest.mark.parametrize(("members", "strangers"), [(280, 120), (500, 250)])
def test_seeds_published_as_they_are_are_found(members, strangers):
    seeds, holdout, others = groups(town(2 * members + strangers, 8), members, strangers, members)
    verbatim = attacked("A3", seeds, holdout, seeds.r)
    few = others.r.copy()
    few[: members // 100] = seeds.r[: members // 100]

    assert verbatim.passed is False
    assert verbatim.main > 2 * verbatim.details["detectable"]
    assert verbatim.details["p"] < 0.01
    # 1 % is less than A3 can see at this size, and it says so; A1 looks for nothing else
    told = attacked("A3", seeds, holdout, few)
    assert 0.01 < told.details["detectable"]
    assert "would miss a gain below" in told.words
    assert attacked("A1", seeds, holdout, few, np.arange(members)).passed is False


@given(st.integers(2, 30), st.integers(2, 30), st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_the_advantage_is_that_of_the_best_threshold(U, n, seed):
    rng = np.random.default_rng(seed)
    ratio = rng.integers(6, size=(1, U + n)).astype(float)
    found, exchanged = membership.advantage(ratio, U)
    slow = max(float((ratio[0, :U] > x).mean() - (ratio[0, U:] > x).mean()) for x in range(-1, 6))

    assert found == pytest.approx(max(slow, 0.0))
    assert len(exchanged) == membership.EXCHANGES - 1
    assert exchanged.min() >= 0


def test_two_audits_of_the_same_fakes_agree_in_whatever_order_people_come():
    rng, U, n = np.random.default_rng(8), 70, 30
    ratio = rng.normal(size=(2, U + n))
    mixed = np.concatenate([rng.permutation(U), U + rng.permutation(n)])
    (gain, by_chance), (again, as_before) = (membership.advantage(r, U) for r in (ratio, ratio[:, mixed]))
    assert gain == pytest.approx(again, abs=1e-12)
    assert by_chance == pytest.approx(as_before, abs=1e-12)
    early = [membership.tpr_by_chance({"a": r[0], "b": r[1]}, U) for r in (ratio, ratio[:, mixed])]
    assert early[0] == early[1]
    seeds, holdout = rng.integers(9, size=(2, 40, 12))
    a3 = [
        ew.audit(seeds, holdout, seeds[::2], np.arange(0, 40, 2), attacks=["A3"], rng=np.random.default_rng(k))["A3"]
        for k in (1, 2)
    ]
    assert (a3[0].main, a3[0].interval, a3[0].passed) == (a3[1].main, a3[1].interval, a3[1].passed)


def test_exchanges_are_level_whatever_the_numbers():
    rng = np.random.default_rng(5)
    for U, n in ((140, 60), (40, 160)):
        p = [
            membership.gain_over_exchanges(*membership.advantage(rng.normal(size=(1, U + n)), U))[1] for _ in range(25)
        ]

        # uniform on (0, 1]: mean .5, deviation .29 / sqrt 25 = .058; 4 of them
        assert abs(np.mean(p) - 0.5) < 0.23


# fresh real people before a bar is used


@given(st.integers(1, 400), st.integers(2, 400), st.floats(0.001, 0.5))
@settings(max_examples=50, deadline=None)
def test_how_often_fresh_people_are_flagged(trials, candidates, bar):
    law = [math.comb(trials, k) * candidates**-k * (1 - 1 / candidates) ** (trials - k) for k in range(trials + 1)]
    slow = sum(p for k, p in enumerate(law) if wilson(k, trials).high > bar)

    assert flagged_by_chance([trials], candidates, bar) == pytest.approx(slow, abs=1e-9)
    assert flagged_by_chance([trials] * 3, candidates, bar) == pytest.approx(1 - (1 - slow) ** 3, abs=1e-9)
    # an attack on fewer fakes flags them by its own number
    few = flagged_by_chance([max(1, trials // 4)], candidates, bar)
    both = flagged_by_chance([trials, max(1, trials // 4)], candidates, bar)
    assert both == pytest.approx(1 - (1 - slow) * (1 - few), abs=1e-9)


def test_a_bar_that_flags_fresh_people_gives_no_verdict():
    above, chance = Rate(0.012, 0.005, 0.02), Rate(0.004, 0.001, 0.015)

    assert verdict(above, 0.01, None, Fresh(chance, 0.3)) is None
    assert verdict(above, 0.01, None, Fresh(chance, 0.01)) is False
    assert verdict(Rate(0.1, 0.05, 0.2), 0.01, None, Fresh(chance, 0.3)) is False
    assert verdict(Rate(0.001, 0.0, 0.005), 0.01, None, Fresh(chance, 0.3)) is True


@pytest.mark.parametrize(("n", "rest"), [(60, 60), (140, 60), (280, 120)])
def test_fresh_people_are_never_flagged_by_times_or_filters(n, rest):
    failed = []
    for seed in range(6):
        seeds, holdout, others = groups(town(2 * n + rest, seed), n, rest, n)
        owner = np.random.default_rng(seed).permutation(n)
        given = {"attacks": ["A4", "A16"], "rng": np.random.default_rng(seed)}
        found = ew.audit(seeds, holdout, others.r, owner, **given)
        failed += [f.id for f in found.findings if f.passed is False]
        for f in found.findings:
            if f.passed is None:
                assert f.fresh.flagged > 0.05 or f.null.high > f.bar
                assert f.fresh.flagged <= 0.05 or "No verdict: fresh real people" in f.words

    # a bar that is used flags fresh people at most 5 times in 100; twelve tries
    assert len(failed) <= 2


def test_groups_of_real_people_that_differ_are_flagged():
    rng = np.random.default_rng(1)
    alike, spread = np.zeros((1, 100)), rng.normal(0, 1, (1, 100))

    assert flagged_share_of_groups(alike, 50, 50, 0.95, rng) == 0.0
    assert flagged_share_of_groups(spread, 50, 50, 0.95, rng) > 0.9


# A5


@given(st.integers(1, 7), st.integers(0, 3), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_shifted_likelihood_equals_its_slow_twin(L, shift, seed):
    rng = np.random.default_rng(seed)
    label, people, fakes = np.array([0, 0, 1, 2]), rng.integers(4, size=(2, L)), rng.integers(4, size=(2, L))
    gain = rng.uniform(0.1, 3, (4, 4))
    runs = linkage.class_runs(people, label)
    out = np.empty((2, 2))
    shifted_likelihoods(fakes, *runs, shift, gain, out)
    for f, fake in enumerate(fakes.tolist()):
        for s, person in enumerate(people):
            slow = naive.shifted_likelihood(fake, label[person].tolist(), shift, gain.tolist())

            assert out[f, s] == pytest.approx(slow, abs=1e-9)


def early_or_late(rng, N=120, L=48, per_class=30, K=3, most=6):
    """Seeds with runs of classes, and fakes anywhere in the same classes, every boundary up to `most` off."""
    seeds, fakes = np.empty((2, N, L), dtype=np.int64)
    for i in range(N):
        at = np.sort(rng.choice(np.arange(2, L - 2), 3, replace=False))
        kind = rng.integers(K, size=4)
        off = np.sort((at + rng.integers(-most, most + 1, 3)).clip(1, L - 1))
        seeds[i] = kind[np.searchsorted(at, np.arange(L), "right")] * per_class
        fakes[i] = kind[np.searchsorted(off, np.arange(L), "right")] * per_class
    seeds += rng.integers(per_class // 2, size=seeds.shape)
    return (
        seeds,
        fakes + rng.integers(per_class // 2, per_class, size=fakes.shape),
        np.arange(K * per_class) // per_class,
    )


def test_who_knows_classes_and_shifts_is_the_strongest():
    rng = np.random.default_rng(3)
    seeds, fakes, label = early_or_late(rng)
    holdout, _, _ = early_or_late(rng)
    found = attacked("A5", seeds, holdout, fakes, np.arange(len(seeds)), classes=label)
    figures = {name: found.details[name].value for name in ("plain", "half_known", "rank_by_sim_s", "with_classes")}

    assert found.details["strongest"] in ("with_classes_1h", "with_classes_2h", "with_classes_day")
    assert found.main == found.details[found.details["strongest"]].value
    assert found.main > 1.5 * max(figures.values())
    assert found.main > 0.3
    # the same attacks on strangers in the place of the seeds, on walks, and on fresh people in the place of the fakes
    for chance in (found.control, found.null.value, found.fresh.rate.value):
        assert chance < 0.06
    assert found.passed is False


def test_avoiding_the_own_seed_gives_it_away():
    # one class, no timetable: all that names the seed is that its fake never goes where it goes
    rng = np.random.default_rng(5)
    seeds = rng.integers(30, size=(60, 20))
    fakes = np.array([rng.choice(np.setdiff1d(np.arange(30), s), 20) for s in seeds])
    link = Link(fakes, np.arange(60), People(seeds, np.arange(60), 60))

    assert linkage.link_by_classes(link, np.zeros(30, dtype=np.int64), 30, 0).mean() > 0.3
    assert (
        linkage.share_a_place(fakes, link.people, 30) == [[bool(set(f) & set(s)) for s in seeds] for f in fakes]
    ).all()


def test_an_attack_on_few_fakes_does_not_hide_what_one_on_all_of_them_finds():
    people = People(np.zeros((400, 1), dtype=np.int64), np.arange(400), 400)
    names = ("main", "control", "null", "fresh")
    links = {name: Link(np.full((400, 1), k), np.arange(400), people) for k, name in enumerate(names)}

    def hits(link, times):
        return (np.arange(len(link.fakes)) < times[link.fakes[0, 0]]).astype(np.float64)

    # of 400 fakes 12 are named, of walks none; by another attack, on 20 of them, none and one
    few = Variant(lambda link: hits(link, (0, 0, 1, 1)), "", np.arange(20))
    inputs = SimpleNamespace(rng=lambda _: np.random.default_rng(1), seeds=SimpleNamespace(U=400), **links)
    found = link_finding(
        inputs, "A5", lambda link: (hits(link, (12, 0, 0, 0)),), bar=0.1, question="", beside={"few": few}
    )

    assert found.details["strongest"] == "plain"
    assert found.null.value == found.fresh.rate.value == 0
    assert found.outcome == WITHIN


@given(st.integers(0, 10_000), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_whole_days_early_or_late_are_compared_as_defined(number, shift):
    rng = np.random.default_rng(number)
    seeds, fakes, label = rng.integers(0, 12, (5, 6)), rng.integers(0, 12, (5, 6)), rng.integers(-1, 3, 12)
    link = Link(fakes, np.arange(5), People(seeds, np.arange(5), 5))
    expected = []
    for i, fake in enumerate(fakes.tolist()):
        score = [naive.whole_day_score(fake, seed, label.tolist(), shift) for seed in seeds.tolist()]
        expected.append((score[i] == max(score)) / score.count(max(score)))
    assert_allclose(linkage.link_by_shifted_day(link, label, 12, shift), expected)


class TestFewFalseAlarms:
    """A10 at one false alarm in a hundred: the best of several attacks, against strangers of whom few are so high."""

    @pytest.fixture(autouse=True)
    def _fewer_exchanges(self, monkeypatch):
        monkeypatch.setattr(membership, "EXCHANGES", 200)

    def noise(self, rng, U=1400, strangers=600):
        return {name: rng.normal(size=U + strangers) for name in "abcde"}

    def best(self, score, U=1400):
        _, early = membership.auc_and_tpr(score, U)
        return max(rate.value for rate in early.values())

    def test_scores_that_tell_nothing_are_seldom_beyond_chance(self):
        rng = np.random.default_rng(1)
        beyond = 0
        for _ in range(60):
            score = self.noise(rng)
            beyond += self.best(score) > membership.tpr_by_chance(score, 1400)
        # binomial of 60 and .025 (+ that of 200 exchanges): more than 6 once in 300
        assert beyond <= 6

    def test_a_few_members_that_stand_out_are_found(self):
        rng = np.random.default_rng(2)
        score = self.noise(rng)
        score["c"][:84] += 6.0  # 6 % of the members
        assert self.best(score) >= 0.06 > membership.tpr_by_chance(score, 1400)

    def test_the_threshold_is_the_higher_quantile(self):
        rng = np.random.default_rng(3)
        for n in (1, 2, 100, 101, 599, 600):
            members, strangers = rng.integers(0, 40, 300).astype(float), rng.integers(0, 40, n).astype(float)
            expected = (members > np.quantile(strangers, 0.99, method="higher")).sum()
            assert membership.count_true_positives(members, strangers) == expected
