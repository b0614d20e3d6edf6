"""The deniable mode: exact probabilities, an exact gate, a ledger that agrees with the theorem of READINGS 11."""

import itertools
import json
import math
import random
import secrets

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import elsewhere as ew
from elsewhere.privacy.deniability import buckets, compose, discrete_laplace, release_probability
from elsewhere.privacy.mechanism import Mechanism, release
from elsewhere.synthesis.deniable._kernels import CODES
from elsewhere.synthesis.deniable.archetypes import Archetypes, learn_archetypes
from elsewhere.synthesis.deniable.emissions import window_emissions

ALPHA = 1e-6


def toy(seed=0, R=3, L=4, U=6, T=1):
    rng = np.random.default_rng(seed)
    people = ew.Traces(rng.integers(0, R, (U, L)), ew.Locations(xy=rng.random((R, 2)) * 3), step_minutes=1440 / L)
    return people, ew.aggregate(ew.fit_profiles(people, periods=T), people.locations, epsilon=0.5)


def everything(R, L):
    return np.array(list(itertools.product(range(R), repeat=L)), dtype=np.int32)


class TestEmissions:
    def test_golden_q(self):
        label = np.array([0, 0, 0, 1, 1, 1, 2, 2])
        seed = np.array([[0, 0, 3, 3, 3, 1, 1, 6, 6]], dtype=np.int32)
        eta = 1e-15

        e = window_emissions(seed, label, eta=eta, lam=1.0, par_c=0.25, par_m=0.75, par_l=1.0)

        q = np.exp(e.log_e[:, :, 0])
        golden = {
            (0, 0): 0.75,
            (0, 1): 0.421875,
            (1, 1): 0.5625,
            (2, 0): 0.6416015625,
            (3, 0): 0.6064453125,
            (5, 2): 0.421875,
        }
        for (t, c), value in golden.items():
            assert q[t, c] == pytest.approx(value, abs=1e-12)
        assert q[7, 1] == pytest.approx(eta)
        assert np.exp(e.log_e_own[0, 0]) == pytest.approx(eta)

    @given(
        st.lists(st.integers(0, 5), min_size=1, max_size=8),
        st.lists(st.integers(-1, 2), min_size=6, max_size=6),
        st.floats(0, 0.9),
        st.floats(0, 0.9),
        st.floats(0, 1),
    )
    def test_equals_the_naive_window(self, seed, label, par_c, par_m, par_l):
        label[0] = 0  # at least one class
        eta, lam = 0.01, 0.7
        e = window_emissions(
            np.array([seed], dtype=np.int32), np.array(label), eta=eta, lam=lam, par_c=par_c, par_m=par_m, par_l=par_l
        )
        expected = naive.window_q(seed, label, 6, par_c, par_m, par_l)
        for t, r in itertools.product(range(len(seed)), range(6)):
            log_e = e.log_e_own[t, 0] if e.place[t, 0] == r else e.log_e[t, label[r], 0]
            q = None if expected[t] is None else expected[t][r]
            assert log_e == pytest.approx(0.0 if q is None else lam * math.log(eta + (1 - eta) * q), abs=1e-12)


class TestSampler:
    @pytest.mark.parametrize("label", [[0, 1, 0], [0, 0, 1], [0, -1, 1]])
    @pytest.mark.parametrize(("eta", "lam"), [(1e-3, 1.0), (0.1, 0.3)])
    def test_probabilities_by_enumeration(self, label, eta, lam):
        people, model = toy()
        sampler = ew.DeniableSampler(model, label, eta=eta, lam=lam)
        fakes = everything(3, 4)

        log_prob = sampler.log_prob(fakes, people)

        np.testing.assert_allclose(np.exp(log_prob).sum(axis=0), 1, atol=1e-9)
        p = model.rows(np.arange(3)).tolist()
        for s, seed in enumerate(people.r.tolist()):
            law = naive.trace_law(model.pi_bar.tolist(), p, naive.window_q(seed, label, 3, 0.25, 0.75, 1.0), eta, lam)
            np.testing.assert_allclose(np.exp(log_prob[:, s]), [law[tuple(f)] for f in fakes.tolist()], rtol=1e-9)

    @pytest.mark.parametrize("emission", ["window", "archetypes", "allotted"])
    @pytest.mark.parametrize("group", [0, 1])
    def test_samples_match_the_probabilities(self, emission, group):
        _, model = toy(1)
        label = [0, 1, 1]
        seed = np.array([[[0, 0, 1, 0], [2, 1, 1, 2]][group]])
        archetypes = Archetypes(np.array([[[0.8, 0.2]] * 4, [[0.1, 0.9]] * 4])) if emission != "window" else None
        if archetypes is not None:
            assert archetypes.nearest(np.array(label)[seed]).tolist() == [group]
        sampler = ew.DeniableSampler(model, label, emission=emission, eta=0.05, lam=0.8, archetypes=archetypes)
        fakes, n = everything(3, 4), 100_000

        drawn = sampler.sample(seed[0], n, rng=np.random.default_rng(7))

        seen = np.bincount(drawn @ np.array([27, 9, 3, 1]), minlength=81)
        expected = np.exp(sampler.log_prob(fakes, seed)[:, 0]) * n
        assert stats.chisquare(seen, expected * n / expected.sum()).pvalue > ALPHA

    def test_several_periods(self):
        people, model = toy(2, T=2)
        sampler = ew.DeniableSampler(model, [0, 1, 0])

        log_prob = sampler.log_prob(everything(3, 4), people)

        np.testing.assert_allclose(np.exp(log_prob).sum(axis=0), 1, atol=1e-9)
        p = {pair: model.rows(np.arange(3), *pair) for pair in ((0, 0), (0, 1), (1, 1))}
        f = (2, 0, 1, 1)
        tau = (0, 0, 1, 1)
        common = model.first(0)[f[0]] * math.prod(p[tau[t], tau[t + 1]][f[t], f[t + 1]] for t in range(3))
        q = naive.window_q(people.r[0].tolist(), [0, 1, 0], 3, 0.25, 0.75, 1.0)
        mine = common * math.prod(1e-3 + (1 - 1e-3) * q[t][f[t]] for t in range(4))
        whole = sampler.log_prob(np.array([f]), people)[0, 0]
        ratio = sampler.log_prob(np.array([(2, 0, 1, 1), (0, 0, 0, 0)]), people)[:, 0]
        g = (0, 0, 0, 0)
        other = model.first(0)[0] * math.prod(p[tau[t], tau[t + 1]][0, 0] for t in range(3))
        other *= math.prod(1e-3 + (1 - 1e-3) * q[t][g[t]] for t in range(4))
        assert ratio[0] == whole
        assert ratio[0] - ratio[1] == pytest.approx(math.log(mine / other))
        with pytest.raises(ew.InvalidParameter, match="`tau`"):
            sampler.log_prob(everything(3, 4), people.r)

    def test_lambda_zero_carries_nothing_of_the_seed(self):
        people, model = toy(3)
        log_prob = ew.DeniableSampler(model, [0, 1, 0], lam=0).log_prob(everything(3, 4), people)

        np.testing.assert_allclose(log_prob, log_prob[:, :1].repeat(len(people), axis=1), atol=1e-12)
        np.testing.assert_allclose(log_prob[:, 0], model.loglik(everything(3, 4)), atol=1e-9)

    def test_all_seeds_of_one_archetype_share_their_law(self):
        people, model = toy(4, U=12)
        label = np.array([0, 1, 1])
        archetypes = learn_archetypes(label[people.r], 2, 2, rng=np.random.default_rng(0))
        sampler = ew.DeniableSampler(model, label, emission="archetypes", archetypes=archetypes)

        log_prob = sampler.log_prob(everything(3, 4)[:5], people)

        assert len(np.unique(log_prob[0])) <= 2

    def test_groups_may_be_a_plain_array(self):
        people, model = toy(4)
        share = [[[0.9, 0.1]] * 4, [[0.2, 0.8]] * 4]
        plain, typed = (
            ew.DeniableSampler(model, [0, 1, 1], emission="archetypes", archetypes=x).log_prob(people.r, people.r)
            for x in (share, Archetypes(np.array(share)))
        )
        assert np.array_equal(plain, typed)

    def test_refuses_what_it_cannot_do(self):
        people, model = toy()
        for wrong in ({"eta": 0}, {"eta": 1}, {"lam": 1.5}, {"lam": -0.1}, {"par_m": 1.0}, {"emission": "loud"}):
            with pytest.raises(ew.InvalidParameter, match=f"`{next(iter(wrong))}`"):
                ew.DeniableSampler(model, [0, 1, 0], **wrong)
        with pytest.raises(ew.InvalidParameter) as caught:
            ew.DeniableSampler(model, [0, 1])
        assert caught.value.code == "E_MISMATCH"
        sampler = ew.DeniableSampler(model, [0, 1, 0])
        rng = np.random.default_rng(1)
        for n in (-1, 1.5, "3", None, True):
            with pytest.raises(ew.InvalidParameter, match="`n`"):
                sampler.sample(people.r[0], n, rng=rng)
        assert sampler.sample(people.r[0], 0, rng=rng).shape == (0, 4)
        with pytest.raises(ew.InvalidParameter, match="`rng`"):
            sampler.sample(people.r[0], 1, rng=None)
        with pytest.raises(ew.InvalidParameter, match="`model`"):
            ew.DeniableSampler("model", [0, 1, 0])
        for tau in ("ab", [[0, 0]], [0.5] * 4):
            with pytest.raises(ew.InvalidParameter, match="`tau`"):
                ew.DeniableSampler(model, [0, 1, 0], tau=tau)
        for groups in (3, "two", [[[0.5, 0.6]] * 4], [[[1.5, -0.5]] * 4]):
            with pytest.raises(ew.InvalidParameter, match="`archetypes`"):
                ew.DeniableSampler(model, [0, 1, 0], emission="archetypes", archetypes=groups)
        with pytest.raises(ew.InvalidTraces) as caught:
            sampler.log_prob([[0, 1], [0]], people.r)
        assert caught.value.code == "E_SHAPE"
        with pytest.raises(ew.InvalidTraces, match="one length"):
            sampler.log_prob(people.r[:, :3], people.r)
        with pytest.raises(ew.InvalidTraces) as caught:
            sampler.log_prob(people.r + 1, people.r)
        assert caught.value.code == "E_INDEX"


def laws_of_a_toy(rng, n, outputs):
    """n random laws over a few outputs, some alike, as seeds of one kind are."""
    kinds = rng.dirichlet(np.ones(outputs) * 0.7, size=max(1, n // 3))
    laws = [
        kinds[rng.integers(len(kinds))] if rng.random() < 0.7 else rng.dirichlet(np.ones(outputs)) for _ in range(n)
    ]
    return [{f: float(x) for f, x in enumerate(law)} for law in laws]


def excess(a, b, eps):
    """The largest Pr_a{Y} - e^eps Pr_b{Y} over all sets Y of outputs."""
    return sum(max(0.0, a[f] - math.exp(eps) * b.get(f, 0.0)) for f in a)


class TestTheorem:
    def neighbours(self, rng, k):
        laws = laws_of_a_toy(rng, int(rng.integers(k, 3 * k)), int(rng.integers(2, 6)))
        more = [*laws, laws_of_a_toy(rng, 1, len(laws[0]))[0]]
        return laws, more

    def test_inequality_on_random_toys_both_ways_and_conditioned_on_release(self):
        rng = np.random.default_rng(11)
        for _ in range(400):
            k, gamma, eps0 = int(rng.integers(2, 8)), float(rng.uniform(1.2, 6)), float(rng.uniform(0.2, 2))
            laws, more = self.neighbours(rng, k)
            a, b = (naive.gate_law(x, k, gamma, eps0) for x in (laws, more))
            for t in range(1, k):
                ledger = ew.deniability_ledger(k=k, gamma=gamma, eps0=eps0, t=t)
                assert excess(a, b, ledger.eps) <= ledger.delta + 1e-12
                assert excess(b, a, ledger.eps) <= ledger.delta + 1e-12
                floor = min(sum(a.values()), sum(b.values()))
                if ledger.delta >= floor:
                    continue
                retried = ew.deniability_ledger(
                    k=k, gamma=gamma, eps0=eps0, t=t, acceptance=floor, seeds=len(laws), released=1
                )
                c, d = ({f: x / sum(law.values()) for f, x in law.items()} for law in (a, b))
                assert excess(c, d, retried.eps) <= retried.delta + 1e-12
                assert excess(d, c, retried.eps) <= retried.delta + 1e-12

    def test_a_filter_of_the_fake_alone_changes_nothing(self):
        # an attempt at f goes on with an arbitrary probability a(f), else fails unseen
        rng = np.random.default_rng(14)
        for _ in range(300):
            k, gamma, eps0 = int(rng.integers(2, 8)), float(rng.uniform(1.2, 6)), float(rng.uniform(0.2, 2))
            laws, more = self.neighbours(rng, k)
            keep = {f: float(x) for f, x in enumerate(rng.random(len(laws[0])) ** 3)}
            a, b = (naive.gate_law(x, k, gamma, eps0, keep=keep) for x in (laws, more))
            for t in range(1, k):
                ledger = ew.deniability_ledger(k=k, gamma=gamma, eps0=eps0, t=t)
                assert max(excess(a, b, ledger.eps), excess(b, a, ledger.eps)) <= ledger.delta + 1e-12
                floor = min(sum(a.values()), sum(b.values()))
                if ledger.delta >= floor:
                    continue
                retried = ew.deniability_ledger(k=k, gamma=gamma, eps0=eps0, t=t, acceptance=floor, seeds=len(laws))
                c, d = ({f: x / sum(law.values()) for f, x in law.items()} for law in (a, b))
                assert max(excess(c, d, retried.eps), excess(d, c, retried.eps)) <= retried.delta + 1e-12

    def test_a_filter_that_looks_at_the_seed_is_caught(self):
        # the same inequality, were a(f) allowed to depend on who else is among the seeds
        k, gamma, eps0 = 4, 2.0, 1.0
        laws = [{0: 0.5, 1: 0.5}] * 8
        a = naive.gate_law(laws, k, gamma, eps0, keep={0: 1.0, 1: 0.01})
        b = naive.gate_law([*laws, laws[0]], k, gamma, eps0, keep={0: 1.0, 1: 1.0})
        ledger = ew.deniability_ledger(k=k, gamma=gamma, eps0=eps0, t=3)
        assert excess(b, a, ledger.eps) > ledger.delta

    @pytest.mark.parametrize("mutant", [{"noise": False}, {"loop": True}])
    def test_mutants_are_caught_by_the_same_inequality(self, mutant):
        rng = np.random.default_rng(12)
        caught = 0
        for _ in range(400):
            k, gamma, eps0 = int(rng.integers(2, 8)), float(rng.uniform(1.2, 6)), float(rng.uniform(0.2, 2))
            laws, more = self.neighbours(rng, k)
            a, b = (naive.gate_law(x, k, gamma, eps0, **mutant) for x in (laws, more))
            ledger = ew.deniability_ledger(k=k, gamma=gamma, eps0=eps0, t=1)
            caught += max(excess(a, b, ledger.eps), excess(b, a, ledger.eps)) > ledger.delta + 1e-12
        assert caught > 0


class TestGate:
    def test_noise_is_exactly_two_sided_geometric(self):
        draws = random.Random(3)
        for eps0 in (1.0, 0.3):
            n = 40_000
            noise = np.array([discrete_laplace(eps0, draws.randrange) for _ in range(n)])
            alpha = math.exp(-eps0)
            inside = np.arange(-6, 7)
            law = (1 - alpha) / (1 + alpha) * alpha ** np.abs(inside)
            seen = np.array([(noise == z).sum() for z in inside])
            rest = n - seen.sum()
            assert stats.chisquare([*seen, rest], [*(law * n), n * (1 - law.sum())]).pvalue > ALPHA

    @given(st.integers(0, 30), st.integers(2, 20), st.floats(0.1, 3))
    def test_release_probability_satisfies_the_two_inequalities(self, c, k, eps0):
        P = release_probability(c, k=k, eps0=eps0)
        assert 0 <= P <= 1
        assert release_probability(c + 1, k=k, eps0=eps0) <= math.exp(eps0) * P * (1 + 1e-12)
        if c < k:
            assert P <= math.exp(-eps0 * (k - c))

    def mechanism(self, **changes):
        people, model = toy(5, U=30)
        sampler = ew.DeniableSampler(model, [0, 1, 1], eta=0.05, lam=0.5)
        options = {"k": 4, "gamma": 3.0, "eps0": 1.0, **changes}
        return people, sampler, Mechanism.of(sampler, people.r, np.zeros(4, dtype=np.int64), **options)

    def test_released_fakes_follow_the_law_of_the_mechanism(self):
        people, sampler, mechanism = self.mechanism()
        fakes = everything(3, 4)
        log_prob = sampler.log_prob(fakes, people)
        laws = [dict(enumerate(np.exp(column).tolist())) for column in log_prob.T]
        one = naive.gate_law(laws, 4, 3.0, 1.0)

        out = release(mechanism, 20_000, floor=0.05, entropy=5, laboratory=True)

        seen = np.bincount(out.r @ np.array([27, 9, 3, 1]), minlength=81)
        law = np.array([one[f] for f in range(81)]) / sum(one.values())
        assert stats.chisquare(seen, law * 20_000).pvalue > ALPHA
        accepted = out.passed / out.attempts
        tolerance = stats.norm.isf(ALPHA / 2) * math.sqrt(accepted * (1 - accepted) / out.attempts)
        assert abs(accepted - sum(one.values())) < tolerance

    def test_released_fakes_follow_the_law_of_the_mechanism_with_a_filter(self):
        weight = np.linspace(0.2, 1, 81)
        number = np.array([27, 9, 3, 1])
        people, sampler, mechanism = self.mechanism(keep=lambda fakes: weight[fakes @ number])
        log_prob = sampler.log_prob(everything(3, 4), people)
        laws = [dict(enumerate(np.exp(column).tolist())) for column in log_prob.T]
        one = naive.gate_law(laws, 4, 3.0, 1.0, keep=weight)

        out = release(mechanism, 20_000, floor=0.05, entropy=6, laboratory=True)

        law = np.array([one[f] for f in range(81)])
        seen = np.bincount(out.r @ number, minlength=81)
        assert stats.chisquare(seen, law / law.sum() * 20_000).pvalue > ALPHA
        tolerance = stats.norm.isf(ALPHA / 2) * math.sqrt(law.sum() * (1 - law.sum()) / out.attempts)
        assert abs(out.passed / out.attempts - law.sum()) < tolerance

    def test_counts_are_those_of_the_bucket(self):
        people, sampler, mechanism = self.mechanism()
        fakes, seed, count, log_prob = mechanism.attempts(np.random.default_rng(1))
        everyone = sampler.log_prob(fakes, people)
        bucket = np.ceil(-everyone / math.log(3.0))
        own = bucket[np.arange(len(seed)), seed]

        assert np.array_equal(count, (bucket == own[:, None]).sum(axis=1))
        np.testing.assert_allclose(log_prob, everyone[np.arange(len(seed)), seed])
        members = np.where(bucket == own[:, None], everyone, np.nan)
        assert np.nanmax(np.nanmax(members, axis=1) - np.nanmin(members, axis=1)) < math.log(3.0)

    def test_seeds_of_one_probability_share_a_bucket_also_at_a_power_of_gamma(self):
        # three places, each a class of its own, a uniform chain, e = 1 at the seed's place and 1/2 elsewhere: a fake
        # that leaves the seed at j of L instants has Pr{f|s} = 2^-(L + j) exactly
        L, n = 30, 600
        places = ew.Locations(xy=np.zeros((3, 2)))
        people = ew.Traces([np.roll([0, 1, 2], i)[np.arange(L) % 3] for i in range(3)], places)
        model = ew.aggregate(ew.fit_profiles(people), places, epsilon=1e14)
        sampler = ew.DeniableSampler(model, [0, 1, 2], eta=0.5, par_c=0, par_m=0, par_l=0)
        seeds = np.random.default_rng(4).integers(0, 3, (n, L)).astype(np.int32)
        for power in (1, 2):
            mechanism = Mechanism.of(
                sampler, seeds, np.zeros(L, dtype=np.int64), k=2, gamma=2.0**power, eps0=1.0, intersection=False
            )
            fakes, seed, count, log_prob = mechanism.attempts(np.random.default_rng(5))
            bits = L + (fakes[:, None] != seeds[None]).sum(axis=2)
            exact = -(-bits // power)  # the ceiling, in whole numbers
            own = exact[np.arange(len(seed)), seed]
            assert np.array_equal(count, (exact == own[:, None]).sum(axis=1))
            assert np.array_equal(buckets(log_prob, 2.0**power), own)

    @given(st.lists(st.floats(1e-300, 1.0), min_size=2, max_size=6), st.floats(1.01, 50))
    def test_a_bucket_is_never_wider_than_gamma(self, probabilities, gamma):
        log_prob = np.log([*probabilities, 1.0])
        bucket = buckets(log_prob, gamma)
        assert bucket[-1] == 0
        for b in np.unique(bucket):
            assert np.ptp(log_prob[bucket == b]) <= math.log(gamma) + 1e-12
        assert np.isposinf(buckets(np.array([-np.inf]), gamma)[0])

    def test_laws_that_are_not_kept_draw_the_same_fakes(self, monkeypatch):
        # 100,000 seeds: filters come by batches of attempts, whatever fits, instead of once for all
        _, _, kept = self.mechanism()
        for at_once in (1, 5 * 4 * 3, 1e9):
            monkeypatch.setattr("elsewhere.privacy.mechanism.CACHED_FILTERS", 0)
            monkeypatch.setattr("elsewhere.privacy.mechanism.FILTERS_AT_ONCE", at_once)
            _, _, fresh = self.mechanism()
            assert fresh.filters is None
            for a, b in zip(*(m.attempts(np.random.default_rng(3)) for m in (kept, fresh)), strict=True):
                assert np.array_equal(a, b)

    def test_many_codes_are_counted_in_blocks_like_few(self):
        # more seeds than one block of the kernel holds, and not a multiple of it
        people, model = toy(7, U=2 * CODES + 13)
        sampler = ew.DeniableSampler(model, [0, 1, -1], eta=0.05, lam=0.5, par_l=0.7)
        fakes = everything(3, 4)[::7]
        tau = np.zeros(4, dtype=np.int64)
        whole = sampler.log_prob_given(fakes, sampler.prepare(people.r, tau), np.zeros(len(fakes)))
        for s in (0, CODES - 1, CODES, 2 * CODES, 2 * CODES + 12):
            alone = sampler.log_prob_given(fakes, sampler.prepare(people.r[s : s + 1], tau), np.zeros(len(fakes)))
            np.testing.assert_allclose(whole[:, s], alone[:, 0], rtol=1e-12)
            q = naive.window_q(people.r[s].tolist(), [0, 1, -1], 3, 0.25, 0.75, 0.7)
            for i, f in enumerate(fakes.tolist()):
                told = sum(0.5 * math.log(0.05 + 0.95 * q[t][r]) for t, r in enumerate(f) if people.r[s, t] != 2)
                z = sampler.prepare(people.r[s : s + 1], tau).log_z[0]
                assert whole[i, s] == pytest.approx(told - z)

    def test_release_frequency_per_count_catches_a_threshold_off_by_one(self):
        _, _, mechanism = self.mechanism()
        draws, n = random.Random(9), 20_000
        for c in (2, 4, 5):
            rate = mechanism.passes(np.full(n, c), draws.randrange).mean()
            exact, mutant = (release_probability(c, k=k, eps0=1.0) for k in (4, 3))
            tolerance = stats.norm.isf(ALPHA / 2) * math.sqrt(exact * (1 - exact) / n)
            assert abs(rate - exact) < tolerance < abs(mutant - exact)

    def test_folded_intersection_shares_no_place_and_counts_alike(self):
        people, _, mechanism = self.mechanism(intersection=True, k=2)
        fakes, seed, count, _ = mechanism.attempts(np.random.default_rng(2))
        for fake, s, c in zip(fakes, seed, count, strict=True):
            if c > 0:
                assert not set(fake.tolist()) & set(people.r[s].tolist())
        assert (count > 0).any()

    def test_folded_intersection_leaves_out_every_seed_that_shares_a_place(self):
        # for s and for every s' alike (READINGS section 11): else the count is of seeds that could not have made f
        people, model = toy(5, R=6, L=3, U=40)
        sampler = ew.DeniableSampler(model, [0, 1, 1, 0, 1, 0], eta=0.05, lam=0.5)
        tau = np.zeros(3, dtype=np.int64)
        mechanism = Mechanism.of(sampler, people.r, tau, k=2, gamma=3.0, eps0=1.0, intersection=True)
        fakes, seed, count, _ = mechanism.attempts(np.random.default_rng(2))
        bucket = buckets(sampler.log_prob(fakes, people), 3.0)
        shared = np.array([[bool(set(f) & set(s)) for s in people.r.tolist()] for f in fakes.tolist()])
        own = np.arange(len(seed)), seed
        expected = ((bucket == bucket[own][:, None]) & ~shared).sum(axis=1)
        assert np.array_equal(count, np.where(shared[own], 0, expected))
        assert ((bucket == bucket[own][:, None]) & shared)[~shared[own]].any()  # and some are left out

    def test_seeds_are_drawn_uniformly_with_replacement(self):
        # a loop over the seeds, or a draw without replacement, has counts that are too even: the left tail
        _, _, mechanism = self.mechanism()
        rng, n = np.random.default_rng(13), 30
        drawn = [np.bincount(mechanism.attempts(rng)[1], minlength=n) for _ in range(20)]
        statistic = sum(stats.chisquare(d).statistic for d in drawn)
        assert ALPHA < stats.chi2.sf(statistic, (n - 1) * len(drawn)) < 1 - ALPHA
        assert stats.chisquare(np.sum(drawn, axis=0)).pvalue > ALPHA

    def test_noise_is_the_operating_systems_except_in_a_laboratory(self, monkeypatch):
        # R4, R5
        _, _, mechanism = self.mechanism()
        asked = []
        below = secrets.randbelow
        monkeypatch.setattr("secrets.randbelow", lambda n: (asked.append(n), below(n))[1])
        release(mechanism, 50, floor=0.05, entropy=1, laboratory=True)
        assert not asked
        out = release(mechanism, 50, floor=0.05, entropy=1, laboratory=False)
        assert len(asked) >= out.attempts  # at least a draw for every attempt
        again = release(mechanism, 50, floor=0.05, entropy=1, laboratory=False)
        assert not np.array_equal(out.r, again.r)

    def test_a_laboratory_gate_takes_any_noise(self):
        # the noise draws whole numbers below the denominator of 1 / eps0, which may be beyond 64 bits
        mechanism = self.mechanism(eps0=0.7 / 3e10)[2]
        assert release(mechanism, 20, floor=0.05, entropy=3, laboratory=True).r.shape == (20, 4)

    def test_same_entropy_same_fakes_whatever_the_workers(self):
        from concurrent.futures import ThreadPoolExecutor

        _, _, mechanism = self.mechanism()
        alone = release(mechanism, 700, floor=0.05, entropy=8, laboratory=True)
        with ThreadPoolExecutor(3) as pool:
            together = release(mechanism, 700, floor=0.05, entropy=8, laboratory=True, executor=pool)
        assert np.array_equal(alone.r, together.r)
        assert np.array_equal(alone.seed, together.seed)

    def test_stops_when_the_floor_is_not_met(self):
        _, _, mechanism = self.mechanism(k=30, gamma=1.0001)
        with pytest.raises(ew.NothingPassed) as caught:
            release(mechanism, 500, floor=0.9, entropy=1, laboratory=True)
        assert caught.value.code == "E_ACCEPTANCE"
        assert caught.value.exit_status == 3

    def test_luck_does_not_hide_an_acceptance_below_the_floor(self):
        _, _, mechanism = self.mechanism(k=12)
        rate = release(mechanism, 1, floor=0.01, entropy=1, laboratory=True)
        accepted = rate.passed / rate.attempts
        assert accepted < 0.9
        with pytest.raises(ew.NothingPassed):
            release(mechanism, 1, floor=min(1.0, accepted * 1.3), entropy=1, laboratory=True)

    def test_refuses_what_it_cannot_promise(self):
        for wrong in ({"gamma": 1.0}, {"k": 1}, {"eps0": 0.0}):
            with pytest.raises(ew.InvalidParameter, match=f"`{next(iter(wrong))}`"):
                self.mechanism(**wrong)
        with pytest.raises(ew.NotEnoughUsers, match="at least 31"):
            self.mechanism(k=31)


class TestLedger:
    @pytest.mark.parametrize(
        ("k", "gamma", "eps0", "t", "eps", "delta", "named"),
        [
            (50, 4, 1, 30, 1.1252, 2.06e-9, 0.1212),
            (50, 4, 1, 36, 1.1054, 8.32e-7, 0.1026),
            (20, 4, 1, 8, 1.4055, 6.14e-6, 0.3636),
            (100, 2, 0.5, 60, 0.5328, 2.06e-9, 0.0328),
            (10, 4, 1, 4, 1.6931, 2.48e-3, 0.5714),
        ],
    )
    def test_golden_numbers(self, k, gamma, eps0, t, eps, delta, named):
        ledger = ew.deniability_ledger(k=k, gamma=gamma, eps0=eps0, t=t)
        assert ledger.eps == pytest.approx(eps, abs=5e-5)
        assert ledger.delta == pytest.approx(delta, rel=5e-3)
        assert ledger.named == pytest.approx(named, abs=5e-5)

    @pytest.mark.parametrize("eps0", [1e-320, 5e-324, 1e-12])
    def test_an_eps0_for_which_no_k_is_enough(self, eps0):
        with pytest.raises(ew.InvalidParameter, match="`k` must be above 1000000000000"):
            ew.deniability_ledger(k=50, gamma=4, eps0=eps0)

    def test_t_is_the_best_that_meets_the_target(self):
        chosen = ew.deniability_ledger(k=50, gamma=4, eps0=1, acceptance=0.3, seeds=400)
        assert chosen.delta <= 1e-6
        better = ew.deniability_ledger(k=50, gamma=4, eps0=1, t=chosen.t + 1, acceptance=0.3, seeds=400)
        assert better.eps < chosen.eps
        assert better.delta > 1e-6

    def test_correction_for_retries(self):
        plain = ew.deniability_ledger(k=50, gamma=4, eps0=1, t=30)
        corrected = ew.deniability_ledger(k=50, gamma=4, eps0=1, t=30, acceptance=0.5, seeds=200)
        assert corrected.eps == pytest.approx(plain.eps + math.log(1 + 1 / 200) - math.log(1 - plain.delta / 0.5))
        assert corrected.delta == pytest.approx((1 + 1 / 200) * plain.delta / 0.5)

    def test_composition(self):
        assert compose(1.125, 0.0, 1) == (1.125, 0.0, "single")
        eps, delta, rule = compose(0.1, 1e-9, 100)
        assert rule == "optimal"
        assert eps < 10
        assert delta <= 100 * 1e-9 + 1.1e-6
        # Kairouz, Oh and Viswanath for n = 2, i = 1: eps = 0 holds with delta_1 = (e^{2 eps} - 1) / (1 + e^eps)^2
        eps, delta, _ = compose(0.5, 0.0, 2, slack=0.5)
        assert eps == 0
        assert delta == pytest.approx((math.exp(1.0) - 1) / (1 + math.exp(0.5)) ** 2)

    def test_too_many_fakes_carry_no_claim(self):
        words = ew.deniability_ledger(k=50, gamma=4, eps0=1, released=100, acceptance=0.5, seeds=100).in_words()
        assert "no claim" in words
        # a ledger is arithmetic: it cannot know whether A9 ran on this output
        assert "was audited" not in words
        assert "test-suite" in words
        few = ew.deniability_ledger(k=400, gamma=2, eps0=0.05, released=20, acceptance=0.5, seeds=1000)
        assert few.basic == (20 * few.eps, 20 * few.delta)
        assert few.eps_all < few.basic[0]
        assert f"eps = {few.basic[0]:.1f}" in few.in_words()
        assert f"{few.composition} composition, eps = {few.eps_all:.3f}" in few.in_words()
        assert "no claim" not in few.in_words()

    def test_composition_equals_the_sum_over_outcomes(self):
        # n-fold randomised response is the worst case of Kairouz, Oh and Viswanath
        for eps, n in ((0.1, 60), (1.1, 120), (0.4, 61)):
            total, delta, rule = compose(eps, 1e-9, n)
            assert rule == "optimal"
            exact = naive.randomised_response_delta(eps, n, total)
            assert exact <= 1e-6 < naive.randomised_response_delta(eps, n, total - 2 * eps)
            assert delta == pytest.approx(1 - (1 - 1e-9) ** n * (1 - exact), rel=1e-6)

    def test_a_hundred_million_fakes_take_no_time_to_compose(self):
        eps, delta, rule = compose(0.001, 1e-15, 10**8)
        assert rule == "optimal"
        # about n eps^2 / 2 + eps sqrt(2 n ln(1 / slack)), as advanced composition
        assert 50 < eps < 50 + 0.001 * math.sqrt(2e8 * math.log(1e6))
        assert delta < 2e-6

    @given(
        st.integers(2, 200), st.floats(1.01, 50), st.floats(0.05, 5), st.floats(0.01, 1), st.integers(0, 500), st.data()
    )
    def test_a_stricter_gate_never_costs_more(self, k, gamma, eps0, acceptance, more, data):
        t = data.draw(st.integers(1, k - 1))
        free = {"acceptance": acceptance, "seeds": k + more}
        try:
            here = ew.deniability_ledger(k=k, gamma=gamma, eps0=eps0, t=t, **free)
        except ew.InvalidParameter:
            assert math.exp(-eps0 * (k - t)) >= acceptance
            return
        larger_k = ew.deniability_ledger(
            k=k + 1, gamma=gamma, eps0=eps0, t=t, acceptance=acceptance, seeds=k + more + 1
        )
        wider = ew.deniability_ledger(k=k, gamma=2 * gamma, eps0=eps0, t=t, **free)
        oftener = ew.deniability_ledger(k=k, gamma=gamma, eps0=eps0, t=t, acceptance=1.0, seeds=k + more)
        assert larger_k.delta <= here.delta <= 1
        # but where it is too small for a number, or where both are no probability any more and are cut at 1
        assert larger_k.delta < here.delta or here.delta < 1e-300 or larger_k.delta == 1
        assert larger_k.eps <= here.eps < wider.eps
        assert here.named <= wider.named <= 1
        assert oftener.eps <= here.eps
        assert oftener.delta <= here.delta
        assert here.eps >= eps0

    def test_large_and_extreme_values(self):
        loud = ew.deniability_ledger(k=50, gamma=4, eps0=1e4)
        assert "factor of at most inf" in loud.in_words()
        assert json.dumps(ew.deniability_ledger(k=np.int64(50), gamma=np.float64(4), eps0=1).to_dict())
        # the formula gives delta' = 1.02: nothing is claimed, and said as a probability
        assert ew.deniability_ledger(k=50, gamma=4, eps0=0.01, t=49, acceptance=0.9905, seeds=50, released=5).delta == 1

    @pytest.mark.parametrize(
        ("eps0", "seeds", "why"),
        [
            (1, 500, None),
            (5.5, 500, None),
            (6.5, 500, "more than the 500 seeds"),
            (6.5, 5000, None),
            (9.5, 10**6, None),
            (10, 10**6, "above 10"),
            (20, 500, "a factor of 5.3e+08"),
            (1000, 500, "without limit"),
        ],
    )
    def test_an_eps_that_promises_nothing_is_said_to(self, eps0, seeds, why):
        ledger = ew.deniability_ledger(k=50, gamma=4, eps0=eps0, acceptance=0.1, seeds=seeds, released=5)
        assert (ledger.vacuous is not None) == (ledger.eps > 10 or ledger.eps > math.log(seeds)) == (why is not None)
        assert ("promises nothing in practice" in ledger.in_words()) == (why is not None)
        assert why is None or why in ledger.vacuous
        assert "`eps0`" in (ledger.vacuous or "`eps0`")
        assert max(map(len, ledger.in_words().split())) < 40  # no number of three hundred digits

    @pytest.mark.parametrize("value", ["4", "", None, float("nan"), math.inf, -math.inf, True, np.True_, [4], 10**400])
    @pytest.mark.parametrize("name", ["k", "gamma", "eps0", "t", "delta_target", "acceptance", "seeds", "released"])
    def test_refuses_what_is_no_number(self, name, value):
        if name == "t" and value is None:
            pytest.skip("the default")
        good = {"k": 50, "gamma": 4, "eps0": 1, "acceptance": 0.5, "seeds": 100, name: value}
        with pytest.raises(ew.InvalidParameter, match=f"`{name}`") as caught:
            ew.deniability_ledger(**good)
        assert caught.value.code == "E_PARAM"

    def test_refuses_what_has_no_meaning(self):
        good = {"k": 50, "gamma": 4, "eps0": 1}
        for wrong in ({"k": 1}, {"gamma": 1}, {"eps0": 0}, {"t": 50}, {"t": 0}, {"delta_target": 0}, {"released": 0}):
            with pytest.raises(ew.InvalidParameter, match=f"`{next(iter(wrong))}`"):
                ew.deniability_ledger(**{**good, **wrong})
        with pytest.raises(ew.InvalidParameter, match="at least 15"):
            ew.deniability_ledger(k=10, gamma=4, eps0=1)
        with pytest.raises(ew.InvalidParameter, match="give both"):
            ew.deniability_ledger(**good, acceptance=0.5)
