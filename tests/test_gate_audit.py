"""A9: the empirical audit of the gate stays below its claim, and finds gates that promise more than they keep."""

import itertools
import json
import math
from dataclasses import dataclass

import naive
import numpy as np
import pytest
from scipy import stats

import elsewhere as ew
from elsewhere.evaluation.attacks.neighbours import Event, Neighbours, choose_event, eps_lower_bound, eps_of_event
from elsewhere.privacy.mechanism import Mechanism
from elsewhere.synthesis.deniable.archetypes import Archetypes

ALPHA = 1e-6
K, GAMMA, EPS0, T = 20, 2.0, 1.0, 12  # claimed: eps 1.154, delta 3.4e-4 before the correction


@dataclass(frozen=True, eq=False)
class NoNoise(Mechanism):
    """The mutant of a fixed threshold."""

    def passes(self, count, below):
        return count >= self.k


@dataclass(frozen=True, eq=False)
class HalfNoise(Mechanism):
    """The mutant whose noise has half the scale, 1 / (2 eps0)."""

    def passes(self, count, below):
        return Mechanism.passes(Mechanism.of(self.sampler, self.seeds, self.tau, k=self.k, gamma=self.gamma,
                                             eps0=2 * self.eps0), count, below)  # fmt: skip


def toy(seed=3, U=60, groups=2):
    """Two kinds of people, told apart by their places: 3 places, 4 instants; with one group, nothing tells them."""
    rng = np.random.default_rng(seed)
    kind = rng.random(U) < 0.55
    r = np.where(rng.random((U, 4)) < 0.85, np.where(kind, 0, 2)[:, None], rng.integers(0, 3, (U, 4)))
    people = ew.Traces(r, ew.Locations(xy=rng.random((3, 2))), step_minutes=360)
    model = ew.aggregate(ew.fit_profiles(people), people.locations, epsilon=0.5)
    archetypes = Archetypes(np.array([[[0.9, 0.1]] * 4, [[0.1, 0.9]] * 4][:groups]))
    sampler = ew.DeniableSampler(model, [0, 1, 1], emission="archetypes", eta=0.02, archetypes=archetypes)
    return sampler, np.ascontiguousarray(people.r, dtype=np.int32)


def neighbours(kind=Mechanism):
    sampler, seeds = toy()
    options = {"k": K, "gamma": GAMMA, "eps0": EPS0, "rng": np.random.default_rng(1), "kind": kind}
    return Neighbours.of(sampler, seeds, np.zeros(4, dtype=np.int64), **options)


def audited(kind, runs, seed=5):
    pair = neighbours(kind)
    smaller, larger = pair.run(runs, floor=0.1, rng=np.random.default_rng(seed))
    claim = pair.claim(t=T, floor=0.1)
    return eps_lower_bound(smaller, larger, delta=claim.delta, level=1 - ALPHA)[0], claim


def test_the_two_sets_differ_by_one_user_who_is_the_kth_of_his_group():
    pair = neighbours()
    assert np.array_equal(pair.larger.seeds[:-1], pair.smaller.seeds)
    code = pair.larger.prepared.emissions.code
    assert (code == code[-1]).sum() == K


def released_laws(pair):
    """Of either set, by enumeration: what is released in one attempt."""
    fakes = np.array(list(itertools.product(range(3), repeat=4)), dtype=np.int32)
    laws = []
    for m in (pair.smaller, pair.larger):
        law = [dict(enumerate(np.exp(c).tolist())) for c in m.sampler.log_prob(fakes, m.seeds).T]
        laws.append(np.array(list(naive.gate_law(law, K, GAMMA, EPS0).values())))
    return fakes, *laws


def test_outcomes_sort_fakes_by_the_true_ratio():
    pair = neighbours()
    fakes, smaller, larger = released_laws(pair)
    assert np.array_equal(pair.outcomes(fakes), np.round(100 * np.log(larger / smaller)))


def test_the_instance_strains_the_gate():
    # the true eps of this pair is close to the claim, so a lower bound above the claim is no accident of a dull pair
    pair = neighbours()
    _, smaller, larger = released_laws(pair)
    smaller, larger = smaller / smaller.sum(), larger / larger.sum()
    claim = pair.claim(t=T, floor=0.1)
    assert 0.8 * EPS0 < np.log(larger / smaller).max() <= claim.eps
    assert np.maximum(0, larger - math.exp(claim.eps) * smaller).sum() <= claim.delta


def test_the_gate_keeps_its_claim():
    found, claim = audited(Mechanism, 15_000)
    assert 0.5 < found.low < claim.eps


@pytest.mark.parametrize("mutant", [NoNoise, HalfNoise])
def test_gates_with_too_little_noise_are_found_out(mutant):
    found, claim = audited(mutant, 15_000)
    assert found.low > claim.eps


def test_releases_weighed_as_without_noise_are_those_of_a_gate_without_noise():
    pair = neighbours()
    (smaller, larger), bare = pair.run_twice(20_000, floor=0.1, rng=np.random.default_rng(5))
    assert np.array_equal(smaller, pair.run(20_000, floor=0.1, rng=np.random.default_rng(5))[0])
    fakes = np.array(list(itertools.product(range(3), repeat=4)), dtype=np.int32)
    outcome = pair.outcomes(fakes)
    values, index = np.unique(outcome, return_inverse=True)
    for m, seen, weighed in ((pair.smaller, smaller, bare[0]), (pair.larger, larger, bare[1])):
        law = [dict(enumerate(np.exp(c).tolist())) for c in m.sampler.log_prob(fakes, m.seeds).T]
        exact = np.array(list(naive.gate_law(law, K, GAMMA, EPS0, noise=False).values()))
        noisy = np.array(list(naive.gate_law(law, K, GAMMA, EPS0).values()))
        exact, noisy = (np.bincount(index, x / x.sum(), len(values)) for x in (exact, noisy))
        share = np.array([(weighed == v).mean() for v in values])
        # the variance of drawing again comes on top of that of the releases and their weights, at most (max ratio)^2
        width = np.sqrt(2 * np.maximum(exact, 1e-4) / len(weighed)) * max(1.0, (exact / noisy).max())
        assert np.all(np.abs(share - exact) < 5 * width)
        assert np.abs(np.array([(seen == v).mean() for v in values]) - exact).max() > 0.02  # the noise does change them


@pytest.mark.soak
@pytest.mark.parametrize("kind", [Mechanism, NoNoise, HalfNoise])
def test_a_hundred_thousand_releases(kind):
    found, claim = audited(kind, 100_000, seed=6)
    print(f"\n{kind.__name__}: eps >= {found.low:.3f} (estimate {found.value:.3f}), claimed {claim.eps:.3f}")
    assert (found.low > claim.eps) == (kind is not Mechanism)


def test_the_loop_over_seeds_is_found_out_by_the_number_of_outputs():
    # every seed tried once, all in one bucket far above k: the number of fakes tells the number of seeds
    rng = np.random.default_rng(2)
    claim = ew.deniability_ledger(k=K, gamma=GAMMA, eps0=EPS0, t=T, acceptance=0.1, seeds=40)
    P = naive.gate_law([{0: 1.0}] * 40, K, GAMMA, EPS0)[0]
    smaller, larger = rng.binomial(40, P, 4000), rng.binomial(41, P, 4000)
    found, _ = eps_lower_bound(smaller, larger, delta=claim.delta, level=1 - ALPHA)
    assert found.low > claim.eps


def test_bounds_are_clopper_pearson_and_hold_as_often_as_they_say():
    event = Event(1, 1, True)
    smaller, larger = np.repeat([0, 1], [90, 10]), np.repeat([0, 1], [60, 40])
    low = stats.binomtest(40, 100).proportion_ci(0.95, "exact").low
    high = stats.binomtest(10, 100).proportion_ci(0.95, "exact").high
    found = eps_of_event(event, smaller, larger, delta=0.01)
    assert found.low == pytest.approx(math.log((low - 0.01) / high))
    assert found.value == pytest.approx(math.log(0.39 / 0.1))
    rng = np.random.default_rng(1)
    wrong = sum(
        eps_lower_bound(rng.integers(6, size=400), rng.integers(6, size=400), delta=0.0)[0].low > 0 for _ in range(400)
    )
    assert wrong <= stats.binom.isf(ALPHA, 400, 0.05)


def test_the_event_is_the_one_that_tells_most():
    smaller, larger = np.repeat([3, 7, 9], [500, 480, 20]), np.repeat([3, 7, 9], [500, 400, 100])
    assert choose_event(smaller, larger, delta=0.0) == Event(9, 9, True)
    assert choose_event(larger, smaller, delta=0.0) == Event(9, 9, False)


def test_in_the_suite():
    sampler, seeds = toy()
    fakes = np.concatenate([sampler.sample(s, 1, rng=np.random.default_rng(i)) for i, s in enumerate(seeds)])
    options = {"attacks": ["A9"], "k": K, "gamma": GAMMA, "eps0": EPS0, "gate_runs": 4000}
    owner = np.arange(len(seeds))
    found = ew.audit(
        seeds, None, fakes, owner, sampler=sampler, t=T, rng=np.random.default_rng(1), **options
    ).to_dict()["A9"]
    assert found["status"] == "run"
    assert found["passed"] is True
    assert 0 < found["main"] <= found["bar"]
    assert found["control"] < 0.2
    assert found["without_noise"] > found["bar"]
    json.dumps(found, allow_nan=False)
    for wrong, needs in (({"t": K}, "`t`"), ({"k": 60, "t": 2}, "60"), ({"sampler": Silent()}, "of this package")):
        given = {"sampler": sampler, "t": T, **options, **wrong}
        found = ew.audit(seeds, None, fakes, owner, rng=np.random.default_rng(1), **given)["A9"]
        assert found.status == "not run"
        assert needs in found.needs


def audit_of(sampler, seeds, **given):
    fakes = np.concatenate([sampler.sample(s, 1, rng=np.random.default_rng(i)) for i, s in enumerate(seeds)])
    options = {"k": K, "t": T, "gamma": GAMMA, "eps0": EPS0, "gate_runs": 4000, **given}
    rng = np.random.default_rng(1)
    return ew.audit(seeds, None, fakes, np.arange(len(seeds)), attacks=["A9"], sampler=sampler, rng=rng, **options)[
        "A9"
    ]


def test_where_no_gate_would_be_found_out_the_audit_says_so():
    # one group: every attempt passes alike, so the releases are those of any gate, and 0 would look like a proof
    found = audit_of(*toy(groups=1))
    assert found.status == "not run"
    assert found.main is found.passed is None
    assert "would not be found out" in found.needs
    assert audit_of(*toy(), gate_runs=8).status == "not run"  # and so would be any figure of eight runs
    assert "above the gate's delta" in audit_of(*toy(), k=3, t=1).needs  # nothing is claimed of such a gate


@pytest.mark.parametrize("users", [2, 5, K, K + 1, K + 5])
def test_tiny_sets_are_not_audited(users):
    sampler, seeds = toy()
    found = audit_of(sampler, seeds[:users])
    assert found.status == "not run"
    assert found.main is found.passed is None
    assert found.needs


@pytest.mark.parametrize("mutant", [NoNoise, HalfNoise])
def test_bad_gates_are_flagged_in_the_suite(mutant, monkeypatch):
    monkeypatch.setattr(Neighbours.of, "__kwdefaults__", {**Neighbours.of.__kwdefaults__, "kind": mutant})
    found = audit_of(*toy(), gate_runs=12_000)
    assert found.status == "run"
    assert found.passed is False
    assert found.main > found.bar


class Silent:
    """A sampler of another tool."""

    def log_prob(self, fakes, seeds):
        return np.zeros((len(fakes), len(seeds)))
