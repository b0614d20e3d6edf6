"""The private preset: bounded vectors, exact noise, accounting, and what a canary can be told by (CERTIFICATE 2)."""

import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.privacy.sums import (
    SIGMA,
    bound_of,
    discrete_gaussian,
    eps_of,
    from_generator,
    from_the_system,
    gaussian_delta,
    gaussian_mu,
    noise_of,
    on_grid,
)
from elsewhere.synthesis.private._kernels import scores
from elsewhere.synthesis.private.vectors import MOST, SHARES, Design

ALPHA = 1e-6  # of a sampler's test to fail by chance


def square(side):
    return ew.Locations(xy=[[x, y] for y in range(side) for x in range(side)])


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture(scope="module")
def small():
    return Design.of(square(3), 12)


# --- the vector of one person


def people(R=9, L=12, most_days=4):
    """Odd days: at one place, at two by turns, anywhere; one day or several."""
    place = st.integers(0, R - 1)
    anywhere = st.lists(place, min_size=L, max_size=L)
    still = place.map(lambda r: [r] * L)
    turns = st.tuples(place, place).map(lambda p: [p[i % 2] for i in range(L)])
    return st.lists(st.one_of(anywhere, still, turns), min_size=1, max_size=most_days)


@given(people())
@settings(max_examples=60, deadline=None)
def test_no_person_is_longer_than_one_and_vectors_are_as_defined(small, days):
    row = small.matrix(np.array(days), np.array([0, len(days)])).toarray()[0]
    expected = np.zeros(small.cells)
    for cell, x in naive.person_vector(
        days, small.lengths.tolist(), small.sectors.tolist(), small.rate, small.share, MOST, small.weight
    ).items():
        expected[cell] = x

    assert np.linalg.norm(row) <= 1 + 1e-12
    np.testing.assert_allclose(row, expected, atol=1e-12)
    grid = on_grid(row, 0.8)
    # whole numbers: the sum of squares is exact
    assert sum(int(x) ** 2 for x in grid) <= (0.8 * SIGMA) ** 2
    assert np.all(np.abs(grid) <= np.abs(row) * 0.8 * SIGMA)


def test_a_day_of_ten_thousand_slots_has_norm_at_most_one(rng):
    design = Design.of(square(3), 10_000)
    days = np.stack([rng.integers(9, size=10_000), np.zeros(10_000, dtype=int), np.arange(10_000) % 2])

    norms = np.sqrt(design.matrix(days).power(2).sum(axis=1))

    assert np.all(norms <= 1 + 1e-12)
    assert np.all(norms > 0.5)


def test_the_bounds_are_what_keeps_vectors_short(small, rng, monkeypatch):
    days = np.repeat(rng.integers(9, size=(1, 12)), 4, axis=0)
    assert np.linalg.norm(small.matrix(days[:1]).toarray()) <= 1

    # a person counted twice, under two ids, is two people's worth: the mutant that forgets who is who
    twice = small.matrix(days[:2]).sum(axis=0)
    assert np.linalg.norm(twice) > 1.5
    # and without bounds a day of many moves is longer than 1
    loose = MOST / 100
    monkeypatch.setattr("elsewhere.synthesis.private.vectors.MOST", loose)
    assert np.linalg.norm(small.matrix(days[:1]).toarray()) <= 1  # tighter bounds only shorten
    raw = naive.person_vector(
        days[:1].tolist(),
        small.lengths.tolist(),
        small.sectors.tolist(),
        small.rate,
        small.share,
        [1e-9] * 6,
        [1.0] * 6,
    )
    assert math.sqrt(sum(x * x for x in raw.values())) == pytest.approx(math.sqrt(6))


def test_shares_of_the_norm_sum_to_one(small):
    assert SHARES.sum() == pytest.approx(1)
    assert np.sum(small.weight**2) == pytest.approx(1)


@given(st.lists(people(most_days=3), min_size=1, max_size=4), people(most_days=3))
@settings(max_examples=20, deadline=None)
def test_one_person_more_changes_the_sum_by_one_vector(small, others, person):
    def total(everybody):
        rows = np.array([day for days in everybody for day in days])
        start = np.concatenate([[0], np.cumsum([len(days) for days in everybody])])
        matrix = small.matrix(rows, start)
        return np.bincount(matrix.indices, on_grid(matrix.data, 1.0), small.cells)

    change = total([*others, person]) - total(others)

    assert np.sum((change / SIGMA) ** 2) <= 1
    # and where the person stands among the others does not matter
    np.testing.assert_array_equal(total([person, *others]), total([*others, person]))


def test_scores_are_slopes_of_the_likelihood(rng):
    design = Design.of(square(3), 8)
    tables = design.guess()._replace(
        moving=rng.normal(size=100), leaving=rng.normal(size=9), factor=np.exp(rng.normal(size=126) / 2)
    )
    walk = np.array([[0, 0, 1, 4, 4, 1, 0, 8]])
    out = np.zeros((1, 226))
    scores(walk, tables, out)
    w = {name: getattr(tables, name).tolist() for name in ("first", "places", "lengths", "sectors", "steps")}
    w["onward"] = {}

    def log_prob(theta):
        law = {**w, "moving": theta[:100], "factor": np.exp(theta[100:]), "leaving": tables.leaving}
        day = walk[0].tolist()
        return sum(math.log(naive.walk_step(day[:t], law, 8)[day[t]]) for t in range(1, 8))

    theta = np.concatenate([tables.moving, np.log(tables.factor)])
    for c in [*np.flatnonzero(out[0]), *np.flatnonzero(out[0] == 0)[:5]]:
        up, down = theta.copy(), theta.copy()
        up[c] += 1e-5
        down[c] -= 1e-5
        assert out[0, c] == pytest.approx((log_prob(up) - log_prob(down)) / 2e-5, abs=1e-5)


# --- the noise


def exact_gaussian(sigma, reach):
    z = np.arange(-reach, reach + 1)
    p = np.exp(-(z**2) / (2 * sigma**2))
    return p / p.sum()


@pytest.mark.parametrize("sigma", [1, 3])
@pytest.mark.parametrize("source", ["system", "generator"])
def test_noise_has_the_exact_probabilities_of_a_discrete_gaussian(sigma, source, rng):
    n, reach = 60_000, 12 * sigma
    below = from_the_system if source == "system" else from_generator(rng)

    z = discrete_gaussian(n, below, sigma)

    p = exact_gaussian(sigma, reach)
    seen = np.bincount(z + reach, minlength=2 * reach + 1)
    # a binomial deviates from its mean by more than this with probability ALPHA / cells at most (Bernstein)
    x = math.log(2 * len(p) / ALPHA)
    assert np.all(np.abs(seen - n * p) <= np.sqrt(2 * n * p * (1 - p) * x) + x)


def test_noise_of_the_grid_has_its_standard_deviation():
    z = discrete_gaussian(20_000, from_the_system) / SIGMA

    # chi-square of 20,000 degrees, five standard deviations
    assert abs(np.mean(z**2) - 1) < 5 * math.sqrt(2 / 20_000)
    assert abs(z.mean()) < 5 / math.sqrt(20_000)


def test_the_systems_numbers_are_uniform():
    n, m = 70_000, 7
    seen = np.bincount(from_the_system(m, n), minlength=m)

    x = math.log(2 * m / ALPHA)
    assert len(seen) == m
    assert np.all(np.abs(seen - n / m) <= math.sqrt(2 * n / m * x) + x)


# --- the ledger


@pytest.mark.parametrize(
    ("eps", "sigma", "advantage", "auc"),
    [
        (1.0, 4.225, 0.094, 0.566),
        (2.0, 2.230, 0.177, 0.624),
        (4.0, 1.194, 0.325, 0.723),
        (8.0, 0.653, 0.556, 0.861),
    ],
)
def test_accounting_is_that_of_the_certificate(eps, sigma, advantage, auc):
    mu = gaussian_mu(eps, 1e-6)

    assert 1 / mu == pytest.approx(sigma, abs=6e-4)
    assert bound_of(mu) == pytest.approx((advantage, auc), abs=6e-4)
    assert eps_of(mu, 1e-6) == pytest.approx(eps, rel=1e-6)
    assert gaussian_delta(eps, mu) <= 1e-6
    # delta pays for the step from continuous to discrete noise, which costs next to nothing
    assert mu * 0.99 < noise_of(eps, 1e-6, 170_000) < mu


@pytest.mark.parametrize("eps", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_accounting_agrees_with_that_of_google(eps):
    accounting = pytest.importorskip("dp_accounting", reason="dp-accounting is not installed: E_EXTRA, see dev extra")
    mu = noise_of(eps, 1e-6, 10_000)
    loss = accounting.pld.privacy_loss_distribution.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)

    # within 1 %, on the safe side of a pessimistic estimate that is itself a little above
    assert loss.get_epsilon_for_delta(1e-6) == pytest.approx(eps, rel=0.01)


def test_mu_is_found_by_definition():
    # delta = sup over thresholds of Pr{A | in} - e^eps Pr{A | out}, on a fine grid
    from scipy.stats import norm

    mu, eps = 0.9, 1.5
    x = np.linspace(-10, 10, 200_001)
    assert gaussian_delta(eps, mu) == pytest.approx(np.max(norm.sf(x - mu) - np.exp(eps) * norm.sf(x)), rel=1e-6)
