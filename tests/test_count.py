"""Theorem 1: the noisy count by enumeration, its sampler, its audit (A9); and the deniable preset made of it."""

import math
import secrets
from itertools import pairwise, product

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import elsewhere as ew
from elsewhere.errors import NotEnoughUsers
from elsewhere.evaluation.attacks.certificates import Neighbours, eps_without_noise
from elsewhere.privacy.deniable import laws as made
from elsewhere.privacy.deniable.count import discrete_laplace, laboratory, margin, mixture, noisy_count, number_of_fakes
from elsewhere.run.model import FittedModel
from elsewhere.run.plan import plan
from elsewhere.run.presets import preset_of
from elsewhere.run.roles import split_users

LAWS = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]  # of two archetypes over three walks
ALPHA = 1e-6


def lab(number=0):
    return np.random.default_rng(number)


def codes_of(learnt, r, user):
    """The archetype of each user, as the deniable preset counts them."""
    return learnt.carried.archetypes.nearest(learnt.classes_of(r), user)


def worst(larger, smaller):
    """The largest |ln| of a ratio of probabilities of one output; tails that were left out do not count."""
    seen = 0.0
    for output in {*larger, *smaller}:
        p, q = larger.get(output, 0.0), smaller.get(output, 0.0)
        if max(p, q) > 1e-7:  # reach 25 leaves out e^-12 at eps0 = .5, spread over all numbers
            seen = max(seen, abs(math.log(p / q)) if min(p, q) > 0 else math.inf)
    return seen


class TestTheorem:
    @pytest.mark.parametrize("eps0", [0.5, 1.0])
    @pytest.mark.parametrize("given", [{}, {"n": 2}, {"k": 1}])
    def test_every_output_of_neighbours_is_within_a_factor(self, eps0, given):
        reach = 60 if eps0 < 1 else 30
        found = 0.0
        for counts in ((0, 0), (0, 1), (2, 1)):
            for a in (0, 1):
                more = [h + (b == a) for b, h in enumerate(counts)]
                pair = (naive.release_law(c, eps0, LAWS, reach=reach, **given) for c in (more, counts))
                found = max(found, worst(*pair))

        assert found <= eps0 + 1e-5
        if not given:  # where the number tells too, the bound is nearly reached
            assert found > eps0 / 2

    @pytest.mark.parametrize(
        ("mutant", "counts"),
        [("no noise", (0, 1)), ("occupied only", (0, 1)), ("number of seeds", (1, 1)), ("abort", (0, 1))],
    )
    def test_broken_releases_are_not(self, mutant, counts):
        more = [counts[0] + 1, counts[1]]
        pair = (naive.release_law(c, 1.0, LAWS, reach=30, mutant=mutant) for c in (more, counts))

        assert worst(*pair) > 1.5

    @given(st.lists(st.integers(-30, 60), min_size=1, max_size=6), st.sampled_from([0.3, 0.5, 2.0]), st.integers(0, 9))
    def test_mixture_and_number_are_those_of_the_definition(self, noisy, eps0, k):
        weights, without = naive.count_mixture(noisy, eps0, k or None)
        found = mixture(np.array(noisy), eps0=eps0, k=k or None)

        np.testing.assert_allclose(found.weights, weights, atol=1e-12)
        assert found.without == pytest.approx(without, abs=1e-12)
        assert found.weights.sum() + found.without == pytest.approx(1)
        assert number_of_fakes(np.array(noisy), None) == max(1, sum(noisy))
        assert number_of_fakes(np.array(noisy), 7) == 7

    @given(st.integers(1, 64), st.sampled_from([0.1, 0.5, 1.0, 3.0]))
    def test_no_noise_exceeds_the_margin_but_with_probability_delta(self, A, eps0):
        def missed(m):  # Pr{some of A counts has noise of more than m}, by the union bound
            return A * math.exp(-eps0 * (m + 1)) / (1 + math.exp(-eps0))

        m = margin(A, eps0)
        assert missed(m) <= 1e-6
        assert m == 0 or missed(m - 2) > 1e-6


class TestNoise:
    @pytest.mark.parametrize("eps0", [0.3, 0.5, 2.0])
    def test_frequencies_are_those_of_the_law(self, eps0):
        n, cells = 30_000, range(-6, 7)
        below = laboratory(lab())
        drawn = np.array([discrete_laplace(eps0, below) for _ in range(n)])

        z = norm.ppf(1 - ALPHA / 2 / len(cells))
        for value in cells:
            p = naive.noise_law(value, eps0)
            assert abs((drawn == value).mean() - p) <= z * math.sqrt(p * (1 - p) / n) + 1 / n

    def test_of_the_operating_system_in_production(self):
        assert isinstance(discrete_laplace(0.5, secrets.randbelow), int)

    @given(st.lists(st.integers(-1, 3), max_size=12), st.integers(4, 7))
    def test_counts_without_noise_are_counts_and_none_counts_nowhere(self, codes, A):
        # eps0 = 60: noise other than 0 comes once in 10^25 times
        found = noisy_count(np.array(codes, dtype=np.int64), A, eps0=60.0, below=laboratory(lab()))

        assert found.tolist() == [codes.count(a) for a in range(A)]

    def test_empty_archetypes_get_noise_too(self):
        below = laboratory(lab(1))
        found = [noisy_count(np.array([0]), 3, eps0=0.5, below=below) for _ in range(200)]

        assert (np.std(found, axis=0) > 1.5).all()  # sqrt(2) / .5 = 2.8, all three

    @pytest.mark.parametrize("codes", [[3], [-2], [[0]]])
    def test_codes_of_no_archetype_are_refused(self, codes):
        with pytest.raises(ew.errors.InvalidParameter):
            noisy_count(np.array(codes), 3, eps0=0.5, below=laboratory(lab()))


def half(codes, A, *, eps0, below):
    return noisy_count(codes, A, eps0=2 * eps0, below=below)


def silent(codes, A, *, eps0, below):
    return np.bincount(codes[codes >= 0], minlength=A)


def occupied(codes, A, *, eps0, below):
    count = silent(codes, A, eps0=eps0, below=below)
    return np.where(count > 0, noisy_count(codes, A, eps0=eps0, below=below), 0)


def refusing(codes, A, *, eps0, below):
    if len(codes) < 12:
        raise NotEnoughUsers("too few seeds.")
    return noisy_count(codes, A, eps0=eps0, below=below)


class TestAudit:
    CODES = np.array([0] * 5 + [1] * 6 + [2])  # without him of archetype 2: 11 seeds

    def pair(self, **named):
        found = Neighbours.of(self.CODES, 3, 0.5)
        assert (found.newcomer, len(found.codes)) == (2, 11)
        return Neighbours(found.codes, 2, 3, 0.5, **named)

    def test_proves_less_than_the_claim_and_more_than_half_of_it(self):
        proven = self.pair().audit(12_000, lab())

        assert 0.25 < proven.eps.low <= 0.5
        assert proven.chance < 0.1

    @pytest.mark.parametrize(
        "named",
        [
            {"count": silent},
            {"count": occupied},
            {"count": half},
            {"count": refusing},
            {"number": None},
        ],
        ids=["no noise", "noise on occupied archetypes only", "half the noise", "refuses by seeds", "n = seeds"],
    )
    def test_what_keeps_no_promise_is_found_out(self, named):
        pair = self.pair(**{k: v for k, v in named.items() if v is not None})
        if "number" in named:  # the number of seeds itself, noted beside the counts
            seeds = iter([11] * 3000 + [12] * 3000)
            pair = self.pair(number=lambda noisy, n: next(seeds))
        proven = pair.audit(3000, lab(1))

        assert proven.eps.low > 0.5

    def test_a_count_without_noise_would_be_found_out_by_so_many_runs(self):
        assert eps_without_noise(2000) > 4
        assert eps_without_noise(8) < 0.5

    @pytest.mark.soak
    def test_a_hundred_thousand_releases(self):
        proven = self.pair().audit(100_000, lab(2))
        print(
            f"\nA9, 100,000 releases of either set: eps >= {proven.eps.low:.3f}, claimed .5, chance {proven.chance:.3f}"
        )

        assert 0.4 < proven.eps.low <= 0.5


TOWN = ew.simulate_town(users=120, days=2, locations=60, rng=lab(1)).traces
SMALL = {"preset": "deniable", "kappa": 4, "m_min": 2}


@pytest.fixture(autouse=True)
def small_pools(monkeypatch):
    monkeypatch.setattr(made, "LEAST_POOL", 1500)
    monkeypatch.setattr(made, "PER_FAKE", 10)


@pytest.fixture(scope="module")
def learnt():
    people = TOWN.of_users(np.arange(60))
    return ew.learn(people, preset_of("deniable", m_min=2), kappa=4, rng=lab(2))


@pytest.fixture(scope="module")
def others():
    return TOWN.of_users(np.arange(60, 120))


def released(learnt, seeds, **named):
    named = {"n": 40, "rng": lab(3)} | named
    return ew.generate_fakes(seeds, model=learnt, disjoint=True, **SMALL, **named)


class TestLaws:
    def test_draws_follow_the_mixture(self, learnt):
        laws = learnt.carried.laws(learnt.model.locations, learnt.classes.label, learnt.known, size=3000, rng=lab(4))
        weights, without, n = np.linspace(1, 2, laws.A), 0.3, 40_000
        weights *= 0.7 / weights.sum()
        r, which = laws.draw(weights, without, n, lab(5))
        at = laws.find(r)

        law = np.exp(laws.log_prob_of(laws.r.astype(np.int32))) @ weights
        law += without * laws.copies / laws.copies.sum()
        assert law.sum() == pytest.approx(1, abs=1e-6)
        often = np.argsort(-law)[:50]
        z = norm.ppf(1 - ALPHA / 2 / 50)
        for walk in often:
            p = law[walk]
            assert abs((at == walk).mean() - p) <= z * math.sqrt(p * (1 - p) / n) + 1 / n
        for a, p in enumerate([*weights, without]):
            share = (which == (a if a < laws.A else -1)).mean()
            assert abs(share - p) <= z * math.sqrt(p * (1 - p) / n)
        # of each archetype the law of its walks too: a draw from another's would be seen here
        for a in range(laws.A):
            mine = at[which == a]
            own = np.exp(laws.log_prob_of(laws.r.astype(np.int32))[:, a])
            top = int(np.argmax(own))
            assert abs((mine == top).mean() - own[top]) <= z * math.sqrt(own[top] / len(mine)) + 1 / len(mine)

    def test_laws_are_probabilities_and_unknown_traces_have_none(self, learnt):
        laws = learnt.carried.laws(learnt.model.locations, learnt.classes.label, learnt.known, size=700, rng=lab(4))

        np.testing.assert_allclose(np.exp(laws.log_prob_of(laws.r.astype(np.int32))).sum(axis=0), 1, rtol=1e-5)
        nowhere = np.tile(np.arange(60), 2)[: laws.r.shape[1]][None].astype(np.int32)
        assert np.isneginf(laws.log_prob_of(nowhere)).all()
        seeds = TOWN.r[:5]
        codes = laws.codes(seeds)
        np.testing.assert_array_equal(
            laws.log_prob(laws.r[:3].astype(np.int32), seeds), laws.log_prob_of(laws.r[:3].astype(np.int32))[:, codes]
        )


class TestPreset:
    def test_says_where_a_number_comes_from_that_nobody_asked_for(self, learnt, others):
        assert any("noisy count of the seeds" in note for note in released(learnt, others, n=None).notes)
        assert not any("noisy count" in note for note in released(learnt, others).notes)

    def test_promises_the_seeds_eps0_for_any_number(self):
        fakes = ew.generate_fakes(TOWN, n=150, **SMALL)

        assert len(fakes) == 150
        assert (fakes.certificate.protects, fakes.certificate.eps, fakes.certificate.delta) == ("seeds", 0.5, 0)
        assert fakes.certificate.fakes_covered == "any number"
        assert all(state != "not met" for _, state in fakes.certificate.conditions)
        pool = ew.publish(fakes)
        assert pool.provenance["certificate"]["eps"] == 0.5
        assert set(np.unique(fakes.r)) <= set(np.flatnonzero(fakes.frame.known))
        with pytest.raises(ew.errors.PublicationRefused):
            ew.publish(fakes)

    def test_without_n_the_number_follows_from_the_noisy_counts(self, learnt, others):
        numbers = {len(released(learnt, others, n=None, rng=lab(i))) for i in range(6)}

        assert len(numbers) > 2  # 60 seeds, noise of standard deviation 2.8 sqrt(A)
        assert all(20 < number < 100 for number in numbers)
        assert len(released(learnt, others, n=None, per_seed=3)) == 3 * len(released(learnt, others, n=None))

    def test_a_laboratory_run_is_repeatable_and_claims_nothing(self, learnt, others):
        one, two = released(learnt, others), released(learnt, others)

        np.testing.assert_array_equal(one.r, two.r)
        assert one.certificate.protects == "nobody"
        assert "laboratory" in one.certificate.words[0]

    def test_days_of_a_person_count_once(self, learnt, others):
        twice = others.select(np.repeat(np.arange(len(others)), 2))
        some = others.select(np.flatnonzero(others.user != 3).tolist() + np.flatnonzero(others.user == 3).tolist() * 9)

        fakes = released(learnt, others)
        np.testing.assert_array_equal(released(learnt, twice).r, fakes.r)
        np.testing.assert_array_equal(released(learnt, some).r, fakes.r)

    def test_a_seed_of_no_code_changes_nothing(self):
        # on a map without coordinates nothing stands in for a place that nobody of the model visits
        bare = ew.Traces(TOWN.r, ew.Locations(n=TOWN.R + 1), users=TOWN.users, step_minutes=TOWN.step_minutes)
        people, seeds = bare.of_users(np.arange(60)), bare.of_users(np.arange(60, 120))
        learnt = ew.learn(people, preset_of("deniable", m_min=2), kappa=4, rng=lab(2))
        nobody = np.full((1, TOWN.L), TOWN.R, dtype=np.int32)
        named = [*map(str, seeds.users), "stranger"]
        more = ew.Traces(np.concatenate([seeds.r, nobody]), bare.locations, users=named, step_minutes=TOWN.step_minutes)

        assert codes_of(learnt, nobody, np.zeros(1, dtype=np.int64)).tolist() == [-1]
        np.testing.assert_array_equal(released(learnt, more).r, released(learnt, seeds).r)
        assert len(released(learnt, more.of_users([60]))) == 40  # the stranger alone

    def test_nothing_is_refused_because_of_seeds(self, learnt, others):
        # seeds with gaps; one seed who never moves
        gaps = others.r.copy()
        gaps[:, 5:20] = -1
        gappy = ew.Traces(gaps, TOWN.locations, users=others.users, step_minutes=TOWN.step_minutes)
        still = ew.Traces(np.zeros((1, TOWN.L)), TOWN.locations, step_minutes=TOWN.step_minutes)

        for seeds in (gappy, still):
            assert len(released(learnt, seeds)) == 40

    def test_k_drops_archetypes_with_few_seeds(self, learnt, others):
        A = len(learnt.carried.archetypes.share)
        strict = released(learnt, others, k=1000)
        none = released(learnt, others, k=None)

        assert {v.archetype for v in strict.verdicts} == {-1}
        assert {v.archetype for v in none.verdicts} <= set(range(A))
        sure = released(learnt, others, k=5, eps0=3.0, n=200)
        codes = codes_of(learnt, others.r, others.user)
        behind = np.bincount(codes[codes >= 0], minlength=A)
        drawn = np.unique([v.archetype for v in sure.verdicts if v.archetype >= 0])
        assert (behind[drawn] >= 5).all()

    def test_fakes_are_compared_with_seeds_of_their_archetype(self, learnt, others):
        fakes = released(learnt, others, n=200)
        codes = codes_of(learnt, others.r, others.user)[others.user]
        which = np.array([v.archetype for v in fakes.verdicts])
        has_seeds = np.isin(which, codes)

        np.testing.assert_array_equal(codes[fakes.seed[has_seeds]], which[has_seeds])

    def test_order_tells_nothing(self, learnt, others):
        which = np.array([v.archetype for v in released(learnt, others, n=2000).verdicts])
        runs = 1 + sum(a != b for a, b in pairwise(which))
        p = np.bincount(which[which >= 0]) / len(which)
        expected = 1 + (len(which) - 1) * (1 - (p**2).sum())

        assert abs(runs - expected) < norm.ppf(1 - ALPHA / 2) * math.sqrt(len(which))

    def test_coins_decide_who_is_a_seed(self):
        roles = [split_users(TOWN, preset_of("deniable"), None, lab(i)) for i in range(8)]
        shares = [len(np.unique(TOWN.user[r.seed_rows])) for r in roles]

        assert len(set(shares)) > 2  # a permutation would give 60 each time
        assert all(abs(n - 60) < norm.ppf(1 - ALPHA / 2) * math.sqrt(30) for n in shares)
        for r in roles:
            assert not set(TOWN.users[r.seed_rows]) & set(r.model.users)

    def test_too_few_to_learn_from_are_refused_with_what_to_do(self):
        with pytest.raises(NotEnoughUsers, match="60 people or more"):
            ew.generate_fakes(TOWN.of_users(np.arange(15)), **SMALL)

    @pytest.mark.parametrize(
        "wrong", [{"eps0": 0.0}, {"eps0": -1}, {"k": -1}, {"n": 0}, {"n": 2.5}, {"alternates": TOWN}, {"gamma": 4}]
    )
    def test_what_cannot_be_is_refused(self, wrong):
        with pytest.raises(ew.ElsewhereError):
            ew.generate_fakes(TOWN, **SMALL, **wrong)

    def test_a_model_without_archetypes_is_refused(self, others):
        plain = ew.learn(TOWN.of_users(np.arange(60)), preset_of("product", m_min=2), kappa=4, rng=lab(2))
        with pytest.raises(ew.errors.InvalidParameter, match="learn it again under the deniable preset"):
            released(plain, others)

    def test_saved_fakes_keep_their_certificate(self, tmp_path, learnt, others):
        fakes = released(learnt, others, rng=None, k=3)
        fakes.save(tmp_path / "fakes")

        assert ew.Fakes.load(tmp_path / "fakes").certificate == fakes.certificate

    def test_a_saved_model_makes_the_same_fakes(self, tmp_path, learnt, others):
        learnt.save(tmp_path / "model")

        np.testing.assert_array_equal(
            released(FittedModel.load(tmp_path / "model"), others).r, released(learnt, others).r
        )


class TestPlan:
    def test_the_four_presets_in_order_of_what_they_promise(self):
        found = plan(10_000, eps0=0.25, eps=2.0)

        assert [p.preset for p in found] == ["paper", "product", "deniable", "private"]
        assert [p.certificate.protects for p in found] == ["nobody", "nobody", "seeds", "everybody"]
        assert [p.certificate.eps for p in found] == [None, None, 0.25, 2.0]
        assert all(p.enough for p in found)
        assert found[3].people_needed == 1116  # 500 x 2.2304, rounded up

    @pytest.mark.parametrize(
        ("people", "eps", "word"),
        [(300, 4.0, "refuses: it needs 597"), (1000, 4.0, "rougher"), (6000, 4.0, "as without noise")],
    )
    def test_private_by_the_number_of_people(self, people, eps, word):
        told = plan(people, eps=eps)[3]

        assert word in told.useful
        assert told.enough == (people >= told.people_needed)

    @given(st.integers(0, 10**7), st.floats(0.01, 5), st.floats(0.1, 10))
    def test_more_people_never_promise_less(self, people, eps0, eps):
        less, more = plan(people, eps0=eps0, eps=eps), plan(2 * people + 1, eps0=eps0, eps=eps)

        assert all(b.enough >= a.enough for a, b in zip(less, more, strict=True))


def test_enumeration_and_code_agree_on_what_is_published():
    # the whole release of a toy by the code, against the law of `naive.release_law`
    counts, eps0, n = [2, 1], 1.0, 2
    law = naive.release_law(counts, eps0, LAWS, n=n, reach=30)
    below, rng, runs = laboratory(lab(7)), lab(8), 20_000
    codes = np.repeat([0, 1], counts)
    seen = dict.fromkeys(product(range(3), repeat=n), 0)
    laws = np.array([*LAWS, [1 / 3] * 3])
    for _ in range(runs):
        mixed = mixture(noisy_count(codes, 2, eps0=eps0, below=below), eps0=eps0)
        which = rng.choice(3, n, p=[*mixed.weights, mixed.without])
        seen[tuple(int(rng.choice(3, p=laws[a])) for a in which)] += 1

    z = norm.ppf(1 - ALPHA / 2 / len(seen))
    for fakes, hits in seen.items():
        p = law[n, fakes]
        assert abs(hits / runs - p) <= z * math.sqrt(p * (1 - p) / runs)
