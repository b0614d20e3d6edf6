"""The privacy test: thresholds met exactly, users counted once, every rule named."""

import pickle
import warnings
from collections import Counter
from fractions import Fraction
from pathlib import Path

import naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.paper.privacy_test import PrivacyTest, Verdict, check_alternates

PF = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "pf_tokyo"
unhurried = settings(deadline=None)  # the first call compiles
LOOSE = {"par_s": 1, "par_i": 1000, "k": 1}


def spread(L, T):
    """Periods of L slots that cover the day evenly."""
    return [t * T // L for t in range(L)]


def trace(*counts, first=0):
    """A trace with so many slots at place `first`, at the next place, ..."""
    return np.repeat(np.arange(first, first + len(counts)), counts)


def each(verdicts, name):
    """What was measured on each of many fakes."""
    return [getattr(verdict, name) for verdict in verdicts]


def counted(verdicts):
    """How many were tested, passed, and rejected by each rule."""
    return Counter(name for v in verdicts for name in ("tested", *(v.rejected_by or ("passed",))))


@st.composite
def cases(draw, *, gaps=True, min_alternates=1):
    """Fake, seed, alternates with their users, other seeds, number of periods: small, ties and gaps frequent."""
    L, R = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    row = st.lists(st.integers(-1 if gaps else 0, R - 1), min_size=L, max_size=L).filter(lambda r: max(r) >= 0)
    alternates = draw(st.lists(row, min_size=min_alternates, max_size=4))
    users = draw(st.lists(st.integers(0, 2), min_size=len(alternates), max_size=len(alternates)))
    others = draw(st.lists(row, min_size=1, max_size=3))
    return draw(row), draw(row), alternates, users, others, draw(st.integers(1, min(3, L)))


def fractions(L):
    """Thresholds that similarities of L slots often meet exactly."""
    common = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(1, 3), Fraction(1)])
    return st.one_of(common, st.builds(Fraction, st.integers(0, L), st.just(L)))


@pytest.fixture(scope="module")
def tokyo():
    """The 1,000 PF people: 500 seeds, then 500 others; 30 slots each."""
    path = PF / "pf_tokyo_traces.csv.gz"
    if not path.exists():
        pytest.skip("needs the PF Tokyo traces beside the project (../shared/data)")
    r = pd.read_csv(path)["loc"].to_numpy().reshape(1000, 30)
    return ew.Traces(r, ew.Locations(n=400), users=[f"p{i}" for i in range(1000)], start="09:00")


def as_traces(rows, users):
    R = 1 + max(max(r) for r in rows)
    return ew.Traces(rows, ew.Locations(n=max(R, 4)), users=users, step_minutes=1440 / len(rows[0]))


class TestAgainstTheDefinition:
    @unhurried
    @given(cases(), st.data())
    def test_equals_the_naive_twin(self, case, data):
        fake, seed, alternates, users, others, T = case
        L = len(fake)
        par = {name: data.draw(fractions(L), label=name) for name in ("par_s", "par_d")}
        par |= {"par_i": data.draw(st.integers(0, 2)), "k": data.draw(st.integers(2, 1 + len(set(users))))}
        against = data.draw(st.sampled_from(["own", "all"]))
        measured, rejected = naive.privacy_verdict(
            fake,
            seed,
            alternates,
            users,
            spread(L, T),
            T,
            **par,
            others=others if against == "all" else (),
        )

        verdict = ew.privacy_test(
            fake,
            seed,
            as_traces(alternates, users),
            **{name: float(p) if isinstance(p, Fraction) else p for name, p in par.items()},
            periods=T,
            against=against,
            others=others,
        )

        assert set(verdict.rejected_by) == rejected
        assert verdict.passed == (not rejected) == bool(verdict)
        # one division, rounded once: the nearest float, not merely a close one
        assert {name: getattr(verdict, name) for name in measured} == {n: float(m) for n, m in measured.items()}

    @pytest.mark.parametrize("missing", [0.0, 0.3])
    def test_the_closest_of_many_seeds_is_that_of_the_definition(self, missing):
        # people who stay at few places, in a town where all pass through place 0: most seeds are never looked at
        rng = np.random.default_rng(7)
        r = np.repeat(rng.integers(0, 6, (75, 4)), 3, axis=1)
        r[:, ::5] = 0
        r[rng.random(r.shape) < missing] = -1
        seeds, strangers, fakes = as_traces(r[:60], range(60)), as_traces(r[60:65], range(60, 65)), r[65:]

        found = PrivacyTest.prepare(seeds, strangers, periods=2, against="all")(fakes, range(10))

        for i, verdict in enumerate(found):
            measured, _ = naive.privacy_verdict(
                fakes[i], r[i], r[60:65], range(5), spread(12, 2), 2, par_s=1, par_i=12, par_d=1, k=2,
                others=[*r[:i], *r[i + 1 : 60]],
            )  # fmt: skip
            assert (verdict.closest, verdict.quantile) == (float(measured["closest"]), float(measured["quantile"]))

    @unhurried
    @given(cases())
    def test_rooms_agree_on_the_similarities(self, case):
        fake, seed, _, _, _, T = case
        profiles = ew.fit_profiles(as_traces([fake, seed], [0, 1]), periods=T, missing="skip")

        verdict = ew.privacy_test(fake, seed, None, k=1, periods=T)

        both_ways = [ew.geographic_similarity(*profiles), ew.geographic_similarity(*profiles[::-1])]
        assert verdict.sim == pytest.approx(max(both_ways), abs=1e-12)
        assert verdict.sim_s == pytest.approx(ew.semantic_similarity(profiles[1], profiles[0]).sim, abs=1e-12)

    def test_golden_value(self):
        u, v = trace(5, 3, 2), trace(1, 6, 3)

        verdict = ew.privacy_test(v, u, None, k=1)

        assert (verdict.sim, verdict.sim_s) == (0.6, 0.9)

    def test_seed_comes_first(self):
        # E26: the seed lives three quarters of its slots in the first period, where both agree
        seed, fake = [0, 0, 0, -1, 1, -1, -1, -1], [2, 2, -1, -1, 3, 4, 5, 6]
        first, second = Fraction(3, 4) * 1, Fraction(1, 4) * Fraction(1, 4)

        assert ew.privacy_test(fake, seed, None, k=1, periods=2).sim_s == float(first + second)


class TestThresholds:
    # E50, E51, R6, F10
    @pytest.mark.parametrize(("common", "rejected"), [(2, ()), (3, ()), (4, ("similarity",))])
    def test_three_of_thirty_is_a_tenth(self, common, rejected):
        seed, fake = trace(30), trace(common, 30 - common)

        verdict = ew.privacy_test(fake, seed, None, par_s=0.1, par_i=9, k=1)

        assert verdict.rejected_by == rejected
        assert verdict.sim == common / 30

    @pytest.mark.parametrize("L", [7, 30, 49, 72, 96, 1000])
    def test_every_share_of_the_slots_is_met_exactly(self, L):
        seed = trace(L)
        for common in range(1, min(L, 40)):
            fake, share = trace(common, L - common), common / L
            passed = [
                ew.privacy_test(fake, seed, None, par_s=par_s, par_i=9, k=1).passed
                for par_s in (np.nextafter(share, 0), share)
            ]
            assert passed == [False, True]

    def test_zero_is_legal(self):
        verdict = ew.privacy_test([1, 1], [0, 0], [[2, 2]], par_s=0, par_i=0)

        assert verdict.passed
        assert (verdict.sim, verdict.shared) == (0, 0)

    @pytest.mark.parametrize(("par_i", "rejected"), [(0, ("intersection",)), (1, ("intersection",)), (2, ())])
    def test_common_places_up_to_par_i(self, par_i, rejected):
        verdict = ew.privacy_test([0, 1, 2, 3], [1, 0, 4, 5], None, par_s=1, par_i=par_i, k=1)

        assert verdict.rejected_by == rejected
        assert verdict.shared == 2

    @pytest.mark.parametrize(("stay", "found"), [(26, 1), (27, 0), (28, 0)])
    def test_a_difference_of_par_d_is_too_much(self, stay, found):
        # sim_S(seed, fake) = 1, sim_S(alternate, fake) = 1 - (stay - 24) / 30
        fake, seed = trace(24, 6, first=2), trace(24, 6)
        alternate = trace(stay, 30 - stay)

        verdict = ew.privacy_test(fake, seed, [alternate], par_d=0.1)

        assert verdict.alternates == found
        assert verdict.rejected_by == (() if found else ("differential",))
        assert ew.privacy_test(fake, seed, [alternate], par_d=np.nextafter(0.1, 1)).alternates == (stay < 28)

    def test_differences_of_traces_with_gaps_are_exact(self):
        # 9 of 10 slots against 3 of 3: a difference of exactly 1/10, from other denominators
        fake, seed = trace(30), np.array([0] * 27 + [1] * 3)
        alternate = np.array([0, 0, 0] + [-1] * 27)

        assert not ew.privacy_test(fake, seed, [alternate], **LOOSE | {"k": 2}, par_d=0.1).passed
        assert ew.privacy_test(fake, seed, [alternate], **LOOSE | {"k": 2}, par_d=np.nextafter(0.1, 1)).passed

    @unhurried
    @given(cases(), st.data())
    def test_loosening_never_rejects_more(self, case, data):
        fake, seed, alternates, users, others, T = case
        rows = as_traces(alternates, users)
        tight, loose = {}, {}
        for name in ("par_s", "par_d"):
            tight[name], loose[name] = sorted(float(data.draw(fractions(len(fake)))) for _ in range(2))
        tight["par_i"], loose["par_i"] = sorted(data.draw(st.integers(0, 4)) for _ in range(2))
        loose["k"], tight["k"] = sorted(data.draw(st.integers(1, 1 + len(set(users)))) for _ in range(2))
        loose["min_sim"], tight["min_sim"] = sorted(float(data.draw(fractions(len(fake)))) for _ in range(2))

        before, after = (
            ew.privacy_test(fake, seed, rows, **par, periods=T, against="all", others=others) for par in (tight, loose)
        )

        assert set(after.rejected_by) <= set(before.rejected_by)

    @pytest.mark.parametrize(("L", "T"), [(4_000, 24), (40_000, 4)])
    def test_more_slots_than_exact_arithmetic_holds(self, L, T):
        # the least common multiple of the periods' slots does not fit, or fits but for its products
        rng = np.random.default_rng(1)
        rows = np.array([rng.choice(3, L, p=p) for p in ([0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.4, 0.3, 0.3])])
        rows[rng.random(rows.shape) < 0.3] = -1
        fake, seed, alternate = ((row.tolist(), spread(L, T)) for row in rows)
        sim = max(naive.trace_sim_g(fake, seed, T), naive.trace_sim_g(seed, fake, T))
        sim_s = naive.trace_sim_s(seed, fake, T)
        difference = float(abs(sim_s - naive.trace_sim_s(alternate, fake, T)))

        below, above = (
            ew.privacy_test(rows[0], rows[1], rows[2:], par_d=share * difference, periods=T) for share in (0.999, 1.001)
        )

        assert difference > 0.01
        assert (below.alternates, above.alternates) == (0, 1)
        assert below.sim == pytest.approx(float(sim), rel=1e-12)
        assert below.sim_s == pytest.approx(float(sim_s), rel=1e-12)


class TestSimilarityAndIntersection:
    @unhurried
    @given(cases())
    def test_exchanging_fake_and_seed_changes_nothing(self, case):
        fake, seed, _, _, others, T = case

        there, back = (
            ew.privacy_test(a, b, others, par_s=0.3, par_i=1, k=1, periods=T) for a, b in [(fake, seed), (seed, fake)]
        )

        assert (there.rejected_by, there.sim, there.shared, there.aligned) == (
            back.rejected_by,
            back.sim,
            back.shared,
            back.aligned,
        )

    def test_both_directions_differ_and_the_larger_counts(self):
        # E12: the seed is at home in the first half of the day, the fake has but one instant there
        seed, fake = [0, 0, 0, 1], [0, -1, 2, 2]

        assert ew.privacy_test(fake, seed, None, k=1, periods=2).sim == 0.5
        assert ew.privacy_test(fake, seed, None, k=1, par_s=0.4, par_i=9, periods=2).rejected_by == ("similarity",)

    @unhurried
    @given(cases())
    def test_no_similarity_means_no_common_place(self, case):
        # E14, one period
        fake, seed, *_ = case

        verdict = ew.privacy_test(fake, seed, None, k=1)

        assert (verdict.sim == 0) == (verdict.shared == 0)

    def test_same_place_at_another_hour_is_shared_not_aligned(self):
        # E41
        verdict = ew.privacy_test([1, 2, 2, 2], [0, 0, 0, 1], None, par_s=1, k=1)

        assert (verdict.shared, verdict.aligned) == (1, 0)
        assert verdict.rejected_by == ("intersection",)

    def test_several_periods_tell_day_from_night(self):
        # the same places with day and night exchanged: alike at T = 1, apart at T = 2, shared either way
        one, two = (ew.privacy_test([1, 1, 0, 0], [0, 0, 1, 1], None, k=1, periods=T) for T in (1, 2))

        assert (one.sim, two.sim) == (1, 0)
        assert one.shared == two.shared == 2

    def test_a_missing_instant_is_no_visit(self):
        verdict = ew.privacy_test([-1, 1, 1], [-1, 0, 0], None, k=1)

        assert (verdict.sim, verdict.shared, verdict.aligned) == (0, 0, 0)


class TestAlternates:
    # E52, E53, E60, E61, F11
    FAKE, SEED = trace(6, 2, first=10), trace(6, 2)
    NEAR, FAR = trace(6, 2, first=4), trace(1, 1, 1, 1, 1, 1, 1, 1)

    def verdict(self, near, far, k):
        rows = [self.NEAR] * near + [self.FAR] * far
        return ew.privacy_test(self.FAKE, self.SEED, rows, k=k)

    @pytest.mark.parametrize("k", [2, 3, 5])
    def test_one_short_fails_and_enough_pass(self, k):
        assert self.verdict(k - 2, 4, k).rejected_by == ("differential",)
        assert self.verdict(k - 1, 4, k).passed
        assert self.verdict(k - 1, 4, k).alternates == k - 1

    def test_two_traces_of_one_user_count_once(self):
        rows = [self.NEAR, self.NEAR, self.FAR, self.FAR]
        places = ew.Locations(n=12)
        one, two = (ew.Traces(rows, places, users=users) for users in (["a", "a", "b", "c"], ["a", "b", "c", "c"]))

        assert ew.privacy_test(self.FAKE, self.SEED, one, k=3).alternates == 1
        assert ew.privacy_test(self.FAKE, self.SEED, one, k=3).rejected_by == ("differential",)
        assert ew.privacy_test(self.FAKE, self.SEED, two, k=3).passed

    def test_three_traces_per_user_in_any_order(self):
        # users 0, 1, 2 with three traces each; 0 and 1 match, by their first and by their last trace
        rows = np.array([self.NEAR] + [self.FAR] * 4 + [self.NEAR] + [self.FAR] * 3)
        users = np.repeat([0, 1, 2], 3)
        for order in (np.arange(9), np.arange(9)[::-1], np.random.default_rng(3).permutation(9)):
            alternates = ew.Traces(rows[order], ew.Locations(n=12), users=users[order])
            verdict = ew.privacy_test(self.FAKE, self.SEED, alternates, k=3)
            assert (verdict.alternates, verdict.passed) == (2, True)

    def test_traces_of_one_user_need_not_stand_together(self):
        rows, users = [self.NEAR] * 4 + [self.FAR], ["a", "b", "a", "b", "c"]
        alternates = ew.Traces(rows, ew.Locations(n=12), users=users)
        seeds = ew.Traces([self.SEED, *rows], ew.Locations(n=12), users=["me", *users])

        assert ew.privacy_test(self.FAKE, self.SEED, alternates).alternates == 2
        with pytest.warns(UserWarning, match="E53"):
            test = PrivacyTest.prepare(seeds, "all", k=4)
        assert each(test([self.FAKE], [0]), "alternates") == [2]

    def test_own_user_is_not_counted_where_all_are_alternates(self):
        rows = np.array([self.SEED, self.SEED, self.NEAR, self.FAR])
        seeds = ew.Traces(rows, ew.Locations(n=12), users=["me", "me", "you", "she"])
        with pytest.warns(UserWarning, match="E53"):
            test = PrivacyTest.prepare(seeds, "all", k=3)

        verdicts = test(np.array([self.FAKE] * 4), [0, 1, 2, 3])

        assert each(verdicts, "alternates") == [1, 1, 1, 0]
        assert verdicts[2].rejected_by == ("differential",)

    @pytest.mark.parametrize("k", [2, 10])
    def test_too_few_users_names_the_number_needed(self, k):
        few = ew.Traces([self.FAR] * 6, ew.Locations(n=12), users=["a"] * 3 + ["b"] * 3) if k > 2 else None
        with pytest.raises(
            ew.errors.NotEnoughAlternates, match=f"at least {k - 1} alternate users, got {2 if few else 0}"
        ):
            ew.privacy_test(self.FAKE, self.SEED, few, k=k)

    def test_k_1_switches_the_rule_off_and_says_so(self):
        for alternates in (None, [self.FAR], np.zeros((0, 8), dtype=int)):
            verdict = ew.privacy_test(self.FAKE, self.SEED, alternates, k=1)
            assert verdict.passed
            assert verdict.not_run == ("differential", "others", "min_sim")
            assert verdict.alternates == 0
        assert "differential" not in self.verdict(1, 0, 2).not_run

    def test_constant_fake_needs_min_sim(self):
        # E56: equally unlike everyone
        fake = trace(8, first=20)
        seed, alternate = trace(1, 1, 1, 1, 1, 1, 1, 1), trace(1, 1, 1, 1, 1, 1, 1, 1, first=8)

        assert ew.privacy_test(fake, seed, [alternate]).passed
        assert ew.privacy_test(fake, seed, [alternate], min_sim=0.125).passed
        assert ew.privacy_test(fake, seed, [alternate], min_sim=0.126).rejected_by == ("min_sim",)

    def test_alternates_may_have_other_slots(self):
        hourly = ew.Traces([[4, 4, 4, 5]], ew.Locations(n=12), users=["a"], step_minutes=360)

        assert ew.privacy_test(self.FAKE, self.SEED, hourly).alternates == 1

    def test_seed_users_are_refused_as_alternates(self):
        places = ew.Locations(n=12)
        all_users = ew.Traces([self.SEED, self.NEAR, self.FAR], places, users=["me", "you", "she"])
        seeds, alternates = all_users.select([0]), all_users.select([1, 2])

        check_alternates(seeds, alternates)
        assert ew.privacy_test(self.FAKE, seeds, alternates).passed
        for call in (
            lambda: check_alternates(seeds, all_users),
            lambda: PrivacyTest.prepare(seeds, all_users),
            lambda: ew.privacy_test(self.FAKE, seeds, all_users),
            lambda: ew.privacy_test(self.FAKE, self.SEED, all_users, against="all", others=seeds),
        ):
            with pytest.raises(ew.errors.InvalidTraces, match="1 of its 3 users") as caught:
                call()
            assert caught.value.code == "E_OVERLAP"
            assert "me" not in caught.value.args[0].split()

    def test_row_numbers_are_no_names(self):
        places = ew.Locations(n=12)
        seeds, alternates = ew.Traces([self.SEED, self.FAR], places), ew.Traces([self.NEAR, self.SEED], places)

        check_alternates(seeds, alternates)
        for same in (seeds, ew.Traces([self.NEAR, self.FAR], places)):
            with pytest.raises(ew.errors.InvalidTraces, match="nobody's seed"):
                check_alternates(seeds, same)


class TestAgainstAllSeeds:
    # E15
    OWN, OTHER = trace(4, 4), trace(4, 4, first=4)
    STRANGERS = np.array([trace(5, 3, first=8), trace(3, 5, first=7), trace(6, 2, first=9)])

    def test_a_copy_of_another_seed(self):
        own, all_seeds = (
            ew.privacy_test(self.OTHER, self.OWN, self.STRANGERS, par_d=1, against=against, others=[self.OTHER])
            for against in ("own", "all")
        )

        assert own.passed
        assert (own.closest, own.quantile) == (None, None)
        assert all_seeds.rejected_by == ("others",)
        assert (all_seeds.closest, all_seeds.quantile) == (1, 0)

    def test_what_strangers_have_is_allowed(self):
        # one of the strangers is as close to a seed as the fake is
        strangers = np.vstack([self.STRANGERS, trace(4, 2, 2, first=4)])
        fake = trace(2, 2, 4, first=4)

        verdict = ew.privacy_test(fake, self.OWN, strangers, par_d=1, against="all", others=[self.OTHER])

        assert (verdict.closest, verdict.quantile) == (0.5, 0.75)
        assert verdict.passed

    def test_the_quantile_is_that_of_95_in_100(self):
        # stranger i spends i of 100 slots at the other seed's place
        own, other = trace(100), trace(100, first=1)
        strangers = [trace(i, 100 - i, first=1) for i in range(1, 101)]

        for fake, rejected in [(trace(95, 5, first=1), ()), (trace(96, 4, first=1), ("others",))]:
            verdict = ew.privacy_test(fake, own, strangers, par_d=1, against="all", others=[other])
            assert (verdict.quantile, verdict.rejected_by) == (0.95, rejected)

    def test_a_user_of_many_days_weighs_as_one(self):
        # of 20 users one is close to the seeds, on each of his 30 days: 95 % are not
        rows = [trace(8, first=8)] * 19 + [self.OTHER] * 30
        alternates = ew.Traces(rows, ew.Locations(n=12), users=[*range(19), *[19] * 30], step_minutes=180)

        verdict = ew.privacy_test(self.OTHER, self.OWN, alternates, par_d=1, against="all", others=[self.OTHER])

        assert verdict.quantile == 0
        assert verdict.rejected_by == ("others",)

    def test_own_user_is_left_out_of_the_others(self):
        places = ew.Locations(n=20)
        seeds = ew.Traces([self.OWN, self.OWN, self.OTHER], places, users=["me", "me", "you"])
        strangers = ew.Traces(self.STRANGERS, places, users=["a", "b", "c"])

        verdict = ew.privacy_test(self.OWN, seeds.select([0]), strangers, par_d=1, against="all", others=seeds)
        batch = PrivacyTest.prepare(seeds, strangers, par_d=1, against="all")(seeds.r, [0, 1, 2])

        assert verdict.closest == 0
        assert each(batch, "closest") == [0, 0, 0]
        with pytest.raises(ew.errors.InvalidParameter, match="at least one other seed"):
            ew.privacy_test(self.OWN, seeds.select([0]), strangers, against="all", others=seeds.select([0, 1]))

    def test_needs_others_and_strangers(self):
        with pytest.raises(ew.errors.InvalidParameter, match="`others`"):
            ew.privacy_test(self.OTHER, self.OWN, self.STRANGERS, against="all")
        with pytest.raises(ew.errors.NotEnoughAlternates, match="at least 1 alternate"):
            ew.privacy_test(self.OTHER, self.OWN, None, k=1, against="all", others=[self.OTHER])

    def test_about_95_percent_of_strangers_pass_in_a_crowd(self):
        # a crowd with popular places; 300 strangers set the quantile, 2,000 others must meet it.
        # Beta(285, 16) for the share below the 285th of 300: .947 with deviation .0129; 5.5 deviations of both draws
        rng = np.random.default_rng(8)
        crowd = 30 * rng.beta(0.5, 3, (2700, 24))
        places, users = ew.Locations(n=31), [f"u{i}" for i in range(2700)]
        people = ew.Traces(crowd.astype(int), places, users=users)
        seeds, strangers, fresh = (people.select(np.arange(*cut)) for cut in [(0, 400), (400, 700), (700, 2700)])
        test = PrivacyTest.prepare(seeds, strangers, par_s=1, par_i=99, k=1, against="all")

        passed = np.mean(each(test(fresh.r, rng.integers(0, 400, 2000)), "passed"))

        assert abs(passed - 285 / 301) < 5.5 * np.hypot(0.0129, np.sqrt(0.05 * 0.95 / 2000))

    def test_hold_out_people_of_tokyo(self, tokyo):
        seeds, strangers, fresh = (tokyo.select(np.arange(*cut)) for cut in [(0, 500), (500, 750), (750, 1000)])
        for periods in (1, 4):
            test = PrivacyTest.prepare(seeds, strangers, par_s=1, par_i=99, k=1, periods=periods, against="all")
            verdicts = test(fresh.r, np.arange(250))
            # the 238th of 250 strangers: Beta(238, 13), .948 with deviation .014, then 250 draws
            assert abs(np.mean(each(verdicts, "passed")) - 238 / 251) < 5 * np.hypot(0.014, np.sqrt(0.05 * 0.95 / 250))
            # the same threshold as against the own seed would leave almost nobody (.2 %)
            assert np.mean(np.array(each(verdicts, "closest")) <= 0.1) < 0.05


class TestOriginalTool:
    # of the original tool's fakes at par_l = 1, so many have sim_G < .1, and share no place besides
    MEASURED = {50: (78.5, 67.2), 100: (54.1, 41.6), 150: (48.8, 36.2), 200: (49.1, 29.4)}

    def test_its_fakes_pass_as_often_as_measured(self, tokyo):
        columns = ["user", "trace_no", "time_period"]
        fakes = pd.read_parquet(PF / "sglt_reference_outputs.parquet", filters=[("par_l", "==", 1.0)])
        # "< .1" is the largest threshold below .1; E51 says "<=", which also takes the fakes at 3 of 30
        strict, reading = (
            PrivacyTest.prepare(tokyo.select(np.arange(500)), None, k=1, par_s=par_s)
            for par_s in (np.nextafter(0.1, 0), 0.1)
        )
        for kappa, (similarity, both) in self.MEASURED.items():
            of_kappa = fakes[fakes["clusters"] == kappa].sort_values(columns)
            r, user = (of_kappa[name].to_numpy().reshape(-1, 30) for name in ("poi_index", "user"))
            counts = counted(strict(r, user[:, 0]))
            assert counts["tested"] == 5000
            assert round(100 - counts["similarity"] / 50, 1) == pytest.approx(similarity, abs=0.051)
            assert round(counts["passed"] / 50, 1) == pytest.approx(both, abs=0.051)
            at_three = reading(r, user[:, 0])
            assert 200 < counts["similarity"] - counted(at_three)["similarity"] == each(at_three, "sim").count(0.1)


class TestManyFakes:
    @unhurried
    @given(cases(), st.data())
    def test_equal_single_calls(self, case, data):
        fake, seed, alternates, users, others, T = case
        rows = [seed, *others]
        owner = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
        assume(len(set(owner)) > 1)
        seeds = ew.Traces(rows, ew.Locations(n=4), users=[f"s{i}" for i in owner], step_minutes=1440 / len(seed))
        strangers = as_traces(alternates, users)
        fakes = np.array([fake, seed, *alternates])
        number = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=len(fakes), max_size=len(fakes)))
        settings = {"par_s": 0.25, "par_d": 0.25, "k": 1 + strangers.U, "periods": T, "min_sim": 0.5}

        verdicts = PrivacyTest.prepare(seeds, strangers, **settings, against="all")(fakes, number)

        for i, s in enumerate(number):
            rest = seeds.select([s, *[j for j in range(len(rows)) if owner[j] != owner[s]]])
            single = ew.privacy_test(
                fakes[i],
                rest.select([0]),
                strangers,
                **settings,
                against="all",
                others=rest.select(np.arange(1, len(rest))),
            )
            assert (verdicts[i].closest, verdicts[i].sim_s) == (single.closest, single.sim_s)
            if len(rest) == len(rows):  # else the quantile also looks at the other traces of the seed's user
                assert verdicts[i] == single

    def test_columns_and_counts(self):
        seeds = ew.Traces([[0, 0, 1, 1]], ew.Locations(n=8), users=["s"])
        alternates = ew.Traces([[2, 2, 3, 3], [4, 4, 5, 5]], ew.Locations(n=8), users=["a", "b"])
        fakes = [[6, 6, 7, 7], [0, 6, 7, 7], [6, 6, 6, 6]]

        verdicts = PrivacyTest.prepare(seeds, alternates)(fakes, [0, 0, 0])

        assert counted(verdicts) == Counter(tested=3, passed=2, similarity=1, intersection=1)
        assert each(verdicts, "passed") == [True, False, True]
        as_traces = ew.Traces(fakes, ew.Locations(n=8))
        assert PrivacyTest.prepare(seeds, alternates)(as_traces, [0, 0, 0]) == verdicts
        assert each([verdict for verdict in verdicts if verdict], "sim") == [0, 0]
        # counting stops at the k-1st alternate
        assert each(verdicts, "alternates") == [1, 1, 1]
        assert each(PrivacyTest.prepare(seeds, alternates, k=3)(fakes, [0, 0, 0]), "alternates") == [2, 2, 2]
        assert len(PrivacyTest.prepare(seeds, alternates)(np.zeros((0, 4), dtype=int), np.zeros(0, dtype=int))) == 0

    def test_a_verdict_does_not_depend_on_the_fakes_before_it(self):
        rng = np.random.default_rng(5)
        seeds, alternates = (
            ew.Traces(rng.integers(-1, 9, (6, 12)), ew.Locations(n=9), users=[f"{name}{i}" for i in range(6)])
            for name in "sa"
        )
        test = PrivacyTest.prepare(seeds, alternates, periods=[0, 1, 2, 24], against="all")
        fakes, number = rng.integers(0, 9, (40, 12)), np.arange(40) % 6

        assert list(test(fakes, number)) == list(test(fakes[::-1], number[::-1]))[::-1]

    def test_goes_to_another_process(self):
        seeds = ew.Traces([[0, 0, 1, 1]], ew.Locations(n=8), users=["s"])
        test = PrivacyTest.prepare(seeds, None, k=1)

        sent = pickle.loads(pickle.dumps(test))  # noqa: S301

        assert sent([[2, 2, 2, 2]], [0])[0] == test([[2, 2, 2, 2]], [0])[0]


class TestClocks:
    def test_plain_arrays_cover_the_day_or_follow_given_traces(self):
        fake, seed = [1, 1, 0, 0], [0, 0, 1, 1]
        short = ew.Traces([[2, 2, 3, 3]], ew.Locations(n=4), users=["a"], step_minutes=20)
        night = ew.Traces([seed], ew.Locations(n=4), users=["s"], step_minutes=20, start="23:20")

        assert ew.privacy_test(fake, seed, [[2, 2, 3, 3]], periods=2).sim == 0
        assert ew.privacy_test(fake, seed, short, periods=2).sim == 1
        assert ew.privacy_test(fake, night, [[2, 2, 3, 3]], periods=2).sim == 0

    def test_place_numbers_may_be_large(self):
        small, large = (
            ew.privacy_test([5 * x, 6 * x, -1], [0, 6 * x, 7 * x], [[x, x, x]], k=2, par_d=0.5)
            for x in (1, 300_000_000)
        )

        assert small == large


class TestBadInput:
    GOOD = {"fake": [2, 2, 3], "seed": [0, 0, 1], "alternates": [[4, 4, 5]]}

    @pytest.mark.parametrize(
        ("name", "value", "shown"),
        [
            ("par_s", -0.1, "equal to 0, got -0.1"),
            ("par_s", 1.5, "equal to 1, got 1.5"),
            ("par_s", float("nan"), "got nan"),
            ("par_s", "much", "number, got 'much'"),
            ("par_d", -0.1, "equal to 0, got -0.1"),
            ("par_d", float("nan"), "got nan"),
            ("par_d", True, "number, got True"),
            ("par_i", -1, "equal to 0, got -1"),
            ("par_i", 0.5, "integer, got 0.5"),
            ("k", 0, "equal to 1, got 0"),
            ("k", -3, "equal to 1, got -3"),
            ("k", 1.5, "integer, got 1.5"),
            ("k", float("nan"), "integer, got nan"),
            ("min_sim", 2, "equal to 1, got 2"),
            ("against", "none", "'own' or 'all', got 'none'"),
            ("periods", 0, "at least 1"),
            ("periods", [0, 12], "rising from 0 to 24"),
        ],
    )
    def test_parameters(self, name, value, shown):
        with pytest.raises(ew.errors.InvalidParameter, match=f"`{name}`.*{shown}") as caught:
            ew.privacy_test(**self.GOOD, **{name: value})
        assert caught.value.parameter == name or name == "periods"

    @pytest.mark.parametrize(
        ("name", "value", "code"),
        [
            ("fake", [2, 2], "E_SHAPE"),
            ("fake", [[2, 2, 3]], "E_SHAPE"),
            ("fake", 3, "E_SHAPE"),
            ("fake", [], "E_EMPTY"),
            ("fake", [-1, -1, -1], "E_EMPTY"),
            ("fake", [2, -2, 3], "E_INDEX"),
            ("fake", [2, 2, 2**40], "E_INDEX"),
            ("fake", [2, 2.5, 3], "E_NUMBER"),
            ("fake", [2, float("nan"), 3], "E_NUMBER"),
            ("fake", ["a", "b", "c"], "E_NUMBER"),
            ("seed", [0, 0], "E_SHAPE"),
            ("seed", [0, None, 1], "E_NUMBER"),
            ("alternates", [4, 4, 5], "E_SHAPE"),
            ("alternates", [[4, 4], [4]], "E_SHAPE"),
            ("alternates", [[4, 4]], "E_SHAPE"),
            ("alternates", [[4, 4, -7]], "E_INDEX"),
            ("alternates", ew.Traces([[0, 1, 1]], ew.Locations(n=2)), "E_INDEX"),
            ("seed", ew.Traces([[0, 1, 1], [1, 1, 1]], ew.Locations(n=9)), "E_SHAPE"),
        ],
    )
    def test_traces(self, name, value, code):
        with pytest.raises(ew.errors.InvalidTraces) as caught:
            ew.privacy_test(**self.GOOD | {name: value})
        assert caught.value.code == code
        if not isinstance(value, ew.Traces):
            assert f"`{name}`" in str(caught.value) or code == "E_EMPTY"

    def test_other_places(self):
        one, two = (ew.Traces([[0, 1, 1]], ew.Locations(n=n), users=[n]) for n in (9, 8))
        with pytest.raises(ew.errors.InvalidTraces, match="same places") as caught:
            ew.privacy_test([2, 2, 3], one, two)
        assert caught.value.code == "E_MISMATCH"
        with pytest.raises(ew.errors.InvalidTraces, match="same places"):
            PrivacyTest.prepare(one, two)

    def test_prepared_with_something_else(self):
        with pytest.raises(ew.errors.InvalidParameter, match="`alternates` must be one of"):
            PrivacyTest.prepare(ew.Traces([[0, 1]], ew.Locations(n=2)), "some")

    def test_inputs_are_not_changed(self):
        given = {name: np.array(value) for name, value in self.GOOD.items()}
        ew.privacy_test(**given)
        assert all(np.array_equal(given[name], value) for name, value in self.GOOD.items())


def test_the_room_claims_no_more_than_it_measures():
    # E54, E58
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        PrivacyTest.prepare(ew.Traces([[0, 1], [1, 0]], ew.Locations(n=3)), "all")
    verdict = ew.privacy_test([2, 2], [0, 0], [[1, 1]])
    spoken = [repr(verdict), str(verdict.rejected_by), *(str(w.message) for w in said), ew.privacy_test.__doc__]
    spoken += [PrivacyTest.__doc__, Verdict.__doc__]

    assert said
    assert not [text for text in spoken if "deniab" in text.lower() or "anonym" in text.lower()]


def test_alternates_are_found_in_any_order():
    # one alternate in a hundred lives like the seed, whoever stands first; the verdict does not depend on the order
    rng = np.random.default_rng(1)
    seeds = ew.Traces([[0, 0, 0, 0, 0, 1, 1, 2]], ew.Locations(n=60), users=["ann"])
    r = rng.integers(3, 50, (400, 8))
    r[rng.permutation(400)[:5]] = [50, 50, 50, 50, 50, 51, 51, 52]
    fake = np.array([[53, 53, 53, 53, 53, 54, 54, 55]])
    for order in (np.arange(400), rng.permutation(400)):
        test = PrivacyTest.prepare(seeds, ew.Traces(r[order], ew.Locations(n=60)), k=4, par_d=0.05)
        assert each(test(fake, [0]), "alternates") == [3]
    everybody = PrivacyTest.prepare(seeds, ew.Traces(r, ew.Locations(n=60)), k=400, par_d=0.05)
    counts = [sorted((row.count(x) for x in set(row)), reverse=True) for row in r.tolist()]
    alike = [sum(map(min, mine, (5, 2, 1))) / 8 for mine in counts]
    assert each(everybody(fake, [0]), "alternates") == [sum(abs(1 - x) < 0.05 for x in alike)]
