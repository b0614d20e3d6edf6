"""The private preset: bounded vectors, exact noise, accounting, and what a canary can be told by."""

import json
import math

import naive
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.evaluation.attack_noise import SumNeighbours
from elsewhere.privacy.private._fit_kernels import scores
from elsewhere.privacy.private._lives_kernels import (
    GO_HOME,
    GO_MAIN,
    LAW,
    LEAVE_HOME,
    LEAVE_MAIN,
    OFF,
    live,
)
from elsewhere.privacy.private._lives_kernels import OWN as OWN_PLACES
from elsewhere.privacy.private.fit import (
    OWN,
    SPREADS_APART,
    STAY,
    Maps,
    Model,
    Smoother,
    Sums,
    Weigher,
    draw_fakes,
    fit_walk,
)
from elsewhere.privacy.private.release import Mechanism, people_needed
from elsewhere.privacy.private.sums import (
    SIGMA,
    bound_of,
    discrete_gaussian,
    eps_of,
    from_generator,
    from_the_system,
    gaussian_delta,
    gaussian_mu,
    noise_of,
    noisy_sum,
    on_grid,
)
from elsewhere.privacy.private.vectors import MOST, MOST_HABITS, SHARE_OF_HABITS, SHARES, Design
from elsewhere.traces import maps
from elsewhere.data.ground import find_town, is_installed
from elsewhere.traces.maps import read_grid

ALPHA = 1e-6  # of a sampler's test to fail by chance


def square(side):
    return ew.Locations(xy=[[x, y] for y in range(side) for x in range(side)])


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture(scope="module")
def small():
    return Design.of(square(3), 12)


@pytest.fixture(scope="module")
def lived():
    return Design.of(square(3), 12, 3)


@pytest.fixture(scope="module")
def week():
    """900 people of three days on end, who go to work on weekdays and somewhere else at weekends."""
    rng = np.random.default_rng(4)
    home, work = rng.integers(9, size=(2, 900))
    first = rng.integers(7, size=900)
    hour = np.arange(12)
    day = first[:, None] + np.arange(3)
    off = day % 7 >= 5
    out = (hour >= 4) & (hour < 9)
    there = np.where(off, rng.integers(9, size=(900, 3)), work[:, None])
    r = np.where(out & (~off | (rng.random((900, 3)) < 0.4))[:, :, None], there[:, :, None], home[:, None, None])
    return ew.Traces(
        r.reshape(-1, 12), square(3), users=np.repeat(np.arange(900), 3),
        dates=np.datetime64("2024-03-04") + day.ravel(), step_minutes=120,
    )  # fmt: skip


# --- the vector of one person


def people(R=9, L=12, most_days=4):
    """Odd days: at one place, at two by turns, anywhere; one day or several."""
    place = st.integers(0, R - 1)
    anywhere = st.lists(place, min_size=L, max_size=L)
    still = place.map(lambda r: [r] * L)
    turns = st.tuples(place, place).map(lambda p: [p[i % 2] for i in range(L)])
    return st.lists(st.one_of(anywhere, still, turns), min_size=1, max_size=most_days)


@given(people())
@settings(max_examples=30, deadline=None)
def test_no_person_is_longer_than_one_and_vectors_are_as_defined(small, days):
    row = small.matrix(np.array(days), np.array([0, len(days)])).toarray()[0]
    expected = np.zeros(small.cells)
    for cell, x in naive.person_vector(
        days, small.lengths.tolist(), small.sectors.tolist(), small.rate, small.share, MOST, small.weight[:7]
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
    monkeypatch.setattr("elsewhere.privacy.private.vectors.MOST", loose)
    assert np.linalg.norm(small.matrix(days[:1]).toarray()) <= 1  # tighter bounds only shorten
    raw = naive.person_vector(
        days[:1].tolist(),
        small.lengths.tolist(),
        small.sectors.tolist(),
        small.rate,
        small.share,
        [1e-9] * 7,
        [1.0] * 7,
    )
    assert math.sqrt(sum(x * x for x in raw.values())) == pytest.approx(math.sqrt(7))


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


# --- lives over days


def test_slopes_of_lives_are_those_of_the_likelihood(rng):
    """Scores of days against differences of ln Pr{day}, by the definition of the walk with the law of anchors."""
    design = Design.of(square(3), 8, 2)
    tables = design.guess()._replace(
        moving=rng.normal(size=100), leaving=rng.normal(size=9), factor=np.exp(rng.normal(size=126) / 2)
    )
    law, home, main, off = rng.normal(size=LAW), 0, 4, np.array([[False, True]])
    out, score = np.empty((1, 2, 8), dtype=np.int64), np.zeros((1, 2, 226 + LAW))
    live(tables, law, np.array([home]), np.array([main]), off, design.period, rng.random((1, 2, 15)), out, score)
    w = {name: getattr(tables, name).tolist() for name in ("first", "places", "lengths", "sectors", "steps")}

    def log_prob(theta, day, d, own):
        found = 0.0
        for t in range(1, 8):
            now, p, k = day[t - 1], int(design.period[t]), d
            of = theta[226:]
            go = np.zeros(9)
            for r in range(9):
                if r == home:
                    go[r] = of[GO_HOME + p]
                elif r == main:
                    go[r] = of[GO_MAIN + k * 4 + p]
                elif r in own:
                    go[r] = of[OWN_PLACES]
            leave = k * of[OFF]
            leave += of[LEAVE_HOME + k * 4 + p] if now == home else of[LEAVE_MAIN + k * 4 + p] if now == main else 0.0
            steps = (np.array(w["steps"]) * np.exp(go)).tolist()
            changed = {**w, "steps": steps, "onward": {}, "moving": theta[:100], "factor": np.exp(theta[100:226])}
            changed["leaving"] = tables.leaving + leave
            found += math.log(naive.walk_step(day[:t], changed, 8)[day[t]])
        return found

    theta = np.concatenate([tables.moving, np.log(tables.factor), law])
    own = set()
    for d in range(2):
        day = out[0, d].tolist()
        assert day[0] == home
        for c in [*np.flatnonzero(score[0, d]), *np.flatnonzero(score[0, d] == 0)[:5]]:
            up, down = theta.copy(), theta.copy()
            up[c] += 1e-5
            down[c] -= 1e-5
            slope = (log_prob(up, day, d, own) - log_prob(down, day, d, own)) / 2e-5
            assert score[0, d, c] == pytest.approx(slope, abs=1e-5)
        own = set(day)


@given(people(), st.lists(st.booleans(), min_size=4, max_size=4))
@example([[0] * 12] * 3, [False] * 4)  # nobody has more in common: their bound is reached
@settings(max_examples=40, deadline=None)
def test_habits_are_as_defined_and_lives_no_longer_than_one(lived, days, off):
    off = np.array(off[: len(days)])
    row = lived.matrix(np.array(days), np.array([0, len(days)]), off).toarray()[0]
    expected = np.array(naive.life_habits(days, off.tolist(), lived.lengths.tolist(), 3))

    assert np.linalg.norm(row) <= 1 + 1e-12
    assert np.linalg.norm(row[: lived.edges[-2]]) <= math.sqrt(1 - SHARE_OF_HABITS) + 1e-12
    bounded = lived.weight[-1] * expected / max(np.linalg.norm(expected), MOST_HABITS)
    np.testing.assert_allclose(row[lived.edges[-2] :], bounded, atol=1e-12)


@given(people(most_days=8), st.integers(0, 6), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_a_person_of_any_days_is_one_vector_and_the_mean_of_windows(days, first, as_many):
    from elsewhere.privacy.private.release import _parts

    when = np.datetime64("2024-03-04") + first + np.arange(len(days))
    one = ew.Traces(np.array(days), square(3), users=["a"] * len(days), dates=when, step_minutes=120)
    two = ew.Traces(np.zeros((2, 12), int), square(3), users=["b"] * 2, dates=when[:1].repeat(2) + np.arange(2))
    design = Design.of(square(3), 12, as_many)
    alone = sum(_parts(one, design, 0.7))

    assert sum(int(x) ** 2 for x in alone) <= (0.7 * SIGMA) ** 2
    # in company: adding the person to others changes the sum by the same vector
    both = ew.Traces(
        np.concatenate([two.r, one.r]), square(3), users=["b"] * 2 + ["a"] * len(days),
        dates=np.concatenate([two.dates, one.dates]), step_minutes=120,
    )  # fmt: skip
    both = both.select(np.random.default_rng(first).permutation(len(both)))  # rows may come in any order
    np.testing.assert_array_equal(sum(_parts(both, design, 0.7)) - sum(_parts(two, design, 0.7)), alone)
    cut = max(1, len(days) // as_many)
    windows = [np.arange(i * as_many, min((i + 1) * as_many, len(days))) for i in range(cut)]
    weekend = (np.arange(len(days)) + first) % 7 >= 5
    mean = sum(
        design.matrix(np.array(days)[mine], np.array([0, len(mine)]), weekend[mine]).toarray()[0] for mine in windows
    )
    np.testing.assert_allclose(alone, 0.7 * SIGMA * mean / cut, atol=2 + 2e-9 * SIGMA)


def test_mutants_of_lives_are_longer_than_one(lived, rng):
    days, off = rng.integers(9, size=(3, 12)), np.zeros(3, dtype=bool)
    # each day a person of its own: a week counts as often as it has days
    assert np.linalg.norm(lived.matrix(days, np.arange(4), off).sum(axis=0)) > 1.2
    # habits without their bound
    quiet = np.array(naive.life_habits(np.zeros((3, 12), int).tolist(), [False] * 3, lived.lengths.tolist(), 3))
    assert np.linalg.norm(quiet) > MOST_HABITS


def test_lives_have_a_home_and_days_in_order(week, few_rounds):
    fakes = ew.generate_fakes(week, preset="private", days=3, eps=4.0, n=60)

    assert fakes.people == 60
    assert len(fakes) == 180
    np.testing.assert_array_equal(fakes.life, np.arange(180) // 3)
    day = fakes.day.reshape(60, 3)
    assert np.all(np.diff(day, axis=1) > 0)
    np.testing.assert_array_equal(fakes.weekend, fakes.day % 7 >= 5)
    assert 0 < fakes.weekend.mean() < 0.6
    assert np.all(fakes.r.reshape(60, 3, 12)[:, :, 0] == fakes.r.reshape(60, 3, 12)[:, :1, 0])
    pool = ew.publish(fakes)
    assert pool.traces.U == 60
    assert pool.provenance["parameters"] == {"eps": 4.0, "delta": 1e-6, "days": 3}
    dates = pool.traces.dates.reshape(60, 3)
    assert np.all(np.diff(dates, axis=1).astype(int) > 0)
    assert np.all((dates >= np.datetime64("2001-01-01")) & (dates < np.datetime64("2001-05-01")))
    assert any(note.startswith("dates: every fake person lives 3 days") for note in pool.provenance["notes"])


def test_lives_keep_the_habits_of_the_people(week):
    from elsewhere.evaluation.lives import life_measures

    fakes = ew.generate_fakes(week, preset="private", days=3, eps=8.0, n=200, rng=np.random.default_rng(1))

    def mean(r, weekend, name):
        lives = zip(r.reshape(-1, 3, 12), weekend.reshape(-1, 3), strict=True)
        return np.mean([life_measures(x, np.arange(3), off, week.minutes(), week.locations)[name] for x, off in lives])

    off = (week.dates.astype(int) + 3) % 7 >= 5
    for name, apart in (("home_share", 0.1), ("jaccard", 0.15), ("places_after_3_days", 1.0)):
        assert mean(fakes.r, fakes.weekend, name) == pytest.approx(mean(week.r, off, name), abs=apart)


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


@pytest.mark.parametrize("mu", [1e-3, 0.5, 8.0, 50.0, 480.0])
def test_eps_is_the_inverse_of_delta_however_few_people(mu):
    eps = eps_of(mu, 1e-6)  # 500 / mu people are about as many as this mu is for

    assert eps == 0 or gaussian_delta(eps, mu) == pytest.approx(1e-6, rel=1e-6)
    assert (eps == 0) == (gaussian_delta(0.0, mu) <= 1e-6)


# --- the audit of the mechanism (A9): many releases of neighbouring inputs


def toy(eps, *, times=1, noise=discrete_gaussian):
    """A person who is one number of the whole norm (times `times`: what a fault makes), beside five others."""
    mu = noise_of(eps, 1e-6, 1)
    return SumNeighbours(np.array([5 * SIGMA]), times * on_grid(np.ones(1), mu), eps, 1e-6, noise)


@pytest.mark.parametrize("eps", [1.0, 4.0])
def test_releases_prove_less_than_the_claim_and_more_than_half_of_it(eps, rng):
    found = toy(eps).audit(100_000, rng)

    assert eps / 2 < found.eps.low <= eps
    assert found.chance < 0.2


def test_releases_of_a_whole_file_prove_less_than_the_claim_and_more_than_half_of_it(crowd, rng):
    mechanism = Mechanism(crowd, Design.of(crowd.locations, crowd.L), 4.0, 1e-6)
    pair = SumNeighbours.of(mechanism, rng)

    assert 0.8 < np.linalg.norm(pair.change) / (mechanism.mu * SIGMA) <= 1  # nearly all that is allowed
    assert 2.0 < pair.audit(20_000, rng).eps.low <= 4.0


FAULTS = {
    "counted twice": {"times": 2},
    "no bounds": {"times": 5},
    "half the noise": {"noise": lambda n, below: discrete_gaussian(n, below, SIGMA // 2)},
    "no noise": {"noise": lambda n, _: np.zeros(n, dtype=np.int64)},
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_person_counted_twice_unbounded_or_without_noise_is_found_out(fault, rng):
    assert toy(1.0, **FAULTS[fault]).audit(100_000, rng).eps.low > 1.0


def test_the_audit_of_private_fakes_tries_the_sums_out(crowd, few_rounds):
    fakes = ew.generate_fakes(crowd, preset="private", n=100)

    found = ew.audit(crowd, None, fakes.r, None, attacks=["A9"], sampler=fakes.sampler, rng=np.random.default_rng(1))

    told = found.to_dict()["A9"]
    assert told["bar"] == 4.0
    assert 2.0 < told["main"] <= 4.0
    assert told["passed"] is True
    few = ew.audit(
        crowd, None, fakes.r, None, attacks=["A9"], sampler=fakes.sampler, count_runs=50, rng=np.random.default_rng(1)
    )
    assert "count_runs" in few.to_dict()["A9"]["needs"]


def test_noise_is_where_it_should_be(rng):
    vector = on_grid(np.array([0.6, -0.8, 0.0]), 0.5)
    many = np.array([noisy_sum([vector, vector], 3, 0.5, from_generator(rng)) for _ in range(400)])

    # sd 1 / mu in every number, empty ones too, around the sum; five standard errors
    assert many.std(axis=0) == pytest.approx(np.full(3, 2.0), rel=5 / math.sqrt(800))
    assert many.mean(axis=0) == pytest.approx([1.2, -1.6, 0.0], abs=5 * 2 / math.sqrt(400))


# --- the preset


@pytest.fixture(scope="module")
def crowd():
    """800 people between a few of nine places, some with two days, some with gaps; small enough for many runs."""
    rng = np.random.default_rng(3)
    home, work = rng.integers(9, size=(2, 800))
    hour = np.arange(12)
    leaves, returns = rng.integers(2, 5, size=(2, 800))
    at_work = (hour >= leaves[:, None]) & (hour < 12 - returns[:, None])
    r = np.where(at_work, work[:, None], home[:, None])
    r[::50, 3] = -1
    users = np.arange(800)
    users[1::20] -= 1
    return ew.Traces(r, square(3), users=users, step_minutes=120)


def test_everybody_in_the_file_has_a_certificate(crowd, few_rounds):
    fakes = ew.generate_fakes(crowd, preset="private", eps=4.0, n=300)

    assert len(fakes) == 300
    assert np.all(fakes.seed == -1)
    told = fakes.certificate
    assert (told.protects, told.eps, told.delta, told.holds) == ("everybody", 4.0, 1e-6, True)
    assert told.auc == pytest.approx(0.723, abs=1e-3)
    pool = ew.publish(fakes)
    assert len(pool) == 300
    assert pool.provenance["parameters"] == {"eps": 4.0, "delta": 1e-6, "days": 1}
    assert pool.traces.dates is None
    # how many people there are is nowhere in what is published
    assert str(crowd.U) not in str(pool.provenance)


def test_the_number_of_fakes_follows_from_the_noisy_count(crowd, few_rounds):
    sizes = {len(ew.generate_fakes(crowd, preset="private", eps=4.0)) for _ in range(4)}

    assert len(sizes) > 1
    assert all(abs(n - crowd.U) < 150 for n in sizes)


def test_a_laboratory_run_is_repeatable_and_claims_nothing(crowd, few_rounds):
    one, two = (ew.generate_fakes(crowd, preset="private", n=50, rng=np.random.default_rng(7)) for _ in range(2))

    np.testing.assert_array_equal(one.r, two.r)
    assert one.certificate.protects == "nobody"
    with pytest.raises(ew.errors.PublicationRefused):
        ew.publish(one)


def test_noise_comes_from_the_operating_system(crowd, few_rounds, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "elsewhere.privacy.private.release.from_the_system", lambda m, n: asked.append(n) or from_the_system(m, n)
    )

    ew.generate_fakes(crowd, preset="private", n=5)

    assert sum(asked) > 400  # more than one number for every cell


def test_fakes_that_move_are_distinct_and_days_at_one_place_are_as_many_as_they_are(crowd, few_rounds):
    fakes = ew.generate_fakes(crowd, preset="private", n=200, rng=np.random.default_rng(1))
    move = (fakes.r != fakes.r[:, :1]).any(axis=1)

    alike = int(move.sum()) - len(np.unique(fakes.r[move], axis=0))
    assert [f"{alike} of 200 fakes are like another one" in note for note in fakes.notes] == [True] * (alike > 0)
    assert alike < 40
    assert 0 < np.count_nonzero(~move) < 100  # one in nine of the crowd works at home


def test_too_few_people_are_refused_with_both_ways_out(crowd, few_rounds):
    with pytest.raises(ew.errors.NotEnoughUsers, match=r"about 1,116 people at eps = 2.*there are about") as refused:
        ew.generate_fakes(crowd, preset="private", eps=2.0, rng=np.random.default_rng(1))
    assert refused.value.code == "E_EPS"
    eps = float(str(refused.value).split("so few need eps = ")[1].split(",")[0])
    assert 2.0 < eps < 4.0
    with pytest.raises(ew.errors.NotEnoughUsers, match="even eps = 10, the largest, is too little"):
        ew.generate_fakes(crowd.of_users(range(50)), preset="private", rng=np.random.default_rng(1))


@pytest.mark.parametrize(("name", "value"), [("eps", 0.0), ("eps", 11.0), ("delta", 0.0), ("delta", 0.5), ("n", 0)])
def test_what_cannot_be_is_refused(crowd, name, value):
    with pytest.raises(ew.errors.InvalidParameter, match=f"`{name}`"):
        ew.generate_fakes(crowd, preset="private", **{name: value})


def test_a_map_of_too_many_places_is_refused_with_the_number_and_the_way_out():
    with pytest.raises(ew.errors.InvalidParameter, match=r"2 to 2,048 places, .* 2,116: .* `grid` of 2,048 cells"):
        Design.of(square(46), 24)
    with pytest.raises(ew.errors.InvalidParameter, match="this one has 1: give more"):
        Design.of(square(1), 24)


def test_what_it_does_not_read(crowd, few_rounds):
    with pytest.raises(ew.errors.InvalidParameter, match="leave out"):
        ew.generate_fakes(crowd, preset="private", alternates=crowd)
    with pytest.raises(ew.errors.InvalidParameter, match="`n` is for preset"):
        ew.generate_fakes(crowd, n=5)


def test_nothing_but_the_noisy_sum_reaches_the_fakes(crowd, few_rounds, monkeypatch):
    """Two files with the same sum make the same fakes: no constant is tuned on people, no count is taken beside."""
    from elsewhere.privacy.private.release import _parts

    design = Design.of(crowd.locations, crowd.L)
    fixed = noisy_sum(_parts(crowd, design, 0.8), design.cells, 0.8, from_generator(np.random.default_rng(5)))
    monkeypatch.setattr("elsewhere.privacy.private.release.noisy_sum", lambda *_: fixed)
    others = crowd.of_users(range(300))

    one, two = (ew.generate_fakes(t, preset="private", n=40, rng=np.random.default_rng(1)) for t in (crowd, others))

    np.testing.assert_array_equal(one.r, two.r)
    assert one.notes == two.notes


def test_order_of_rows_and_names_of_people_do_not_matter(crowd):
    from elsewhere.privacy.private.release import _parts

    design = Design.of(crowd.locations, crowd.L)
    order = np.random.default_rng(2).permutation(len(crowd))
    one, two = (sum(_parts(t, design, 0.5)) for t in (crowd, crowd.select(order)))

    np.testing.assert_array_equal(one, two)


@given(people(most_days=5), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 11)), max_size=20))
@settings(max_examples=15, deadline=None)
def test_all_days_of_a_person_are_one_vector_gaps_or_not(days, gaps):
    from elsewhere.privacy.private.release import _parts

    r = np.array(days)
    for day, slot in gaps:
        r[day % len(r), slot] = -1
    r = r[(r >= 0).any(axis=1)]  # a day without any place is no day
    assume(len(r))
    person = ew.Traces(r, square(3), users=["one"] * len(r), step_minutes=120)

    total = sum(_parts(person, Design.of(person.locations, 12), 0.7), np.zeros(1, dtype=np.int64))

    assert sum(int(x) ** 2 for x in total) <= (0.7 * SIGMA) ** 2


def test_the_fit_does_not_run_away_where_sums_are_precise():
    from elsewhere.privacy.private.release import _parts
    from elsewhere.synthesis.walk._draw_kernels import draw_walks

    # matched at once to the precision of 3,000 people, these sums led to 1.5 moves a day in place of 8
    town = ew.simulate_town(users=4000, locations=400, rng=np.random.default_rng(17)).traces
    town, rng = town.of_users(np.arange(3000)), np.random.default_rng(2)
    design = Design.of(town.locations, town.L)
    mu = noise_of(8.0, 1e-6, design.cells)
    y = noisy_sum(_parts(town, design, mu), design.cells, mu, from_generator(rng))
    sums = Sums.of(design, y, 1 / mu)
    tables = fit_walk(sums, Maps(sums, Smoother(design)), rng).tables
    walks = np.empty((2000, town.L), dtype=np.int32)
    draw_walks(tables, rng.random((2000, 2 * town.L - 1)), walks)

    moves, real = ((r[:, 1:] != r[:, :-1]).sum(axis=1).mean() for r in (walks, town.r))
    assert abs(moves - real) < 1.0


# --- maps cleaned of noise


@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.3, 1.0]), st.sampled_from([1e-6, 1e-4, 1e-3]))
@settings(max_examples=25, deadline=None)
def test_a_map_is_the_mode_of_its_posterior(seed, spread, variance):
    rng = np.random.default_rng(seed)
    smooth, base = Smoother(Design.of(square(3), 12)), rng.dirichlet(np.full(9, 5.0))
    seen = rng.dirichlet(np.full(9, 5.0)) + math.sqrt(variance) * rng.normal(size=9)

    m, _ = smooth.mode(seen, variance, base, spread, 1000.0)

    # where ln density has its most likely value, the pull of what was seen is that of the prior
    f, v = np.log(m / base), variance + STAY * m / 1000
    np.testing.assert_allclose(f, spread * (smooth.near + OWN * np.eye(9)) @ ((seen - m) * m / v), atol=5e-3)


def test_the_evidence_is_that_of_a_gaussian_where_maps_hardly_differ(rng):
    from scipy.stats import multivariate_normal

    smooth, base = Smoother(Design.of(square(3), 12)), np.full(9, 1 / 9)
    seen = base + 1e-4 * rng.normal(size=9)

    def exact(spread):
        K = spread * (smooth.near + OWN * np.eye(9)) / 81  # of base exp(f), for small f
        return multivariate_normal(base, K + np.eye(9) * (1e-8 + STAY / 9 / 1e9)).logpdf(seen)

    found = [smooth.mode(seen, 1e-8, base, spread, 1e9)[1] for spread in (1e-7, 1e-6, 1e-5)]
    np.testing.assert_allclose(np.diff(found), np.diff([exact(x) for x in (1e-7, 1e-6, 1e-5)]), atol=0.01)


@pytest.mark.parametrize("spread", [0.1, 1.0])
def test_noisy_maps_tell_how_much_they_differ(spread, rng):
    smooth, base = Smoother(Design.of(square(16), 12)), np.full(256, 1 / 256)
    K = spread * (smooth.near + OWN * np.eye(256))
    seen = base * np.exp(rng.multivariate_normal(np.zeros(256), K)) + 3e-4 * rng.normal(size=256)

    found = smooth(seen, 9e-8, base, (0.01, 0.1, 1.0, 10.0), 1e6)

    right = smooth.mode(seen, 9e-8, base, spread, 1e6)[0]
    np.testing.assert_allclose(found, right / right.sum())


@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1e-2, 3e-2]))
@settings(max_examples=20, deadline=None)
def test_parts_of_the_day_are_posterior_means_in_the_directions_in_which_they_differ(seed, noise):
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(seed)
    smooth, base = Smoother(Design.of(square(4), 12)), rng.dirichlet(np.full(16, 5.0))
    variance = noise**2 * rng.uniform(0.5, 2.0, size=16)
    alike = np.outer([1.0, -0.5, -1.0, 0.5], base * rng.normal(size=16))  # homes and places of work
    seen = 0.3 * alike + np.sqrt(variance) * rng.normal(size=(4, 16))

    found = smooth.apart(seen, variance, base)

    turn, _, _ = np.linalg.svd(seen / np.sqrt(variance), full_matrices=False)
    right, like = np.zeros((4, 16)), np.outer(base, base) * (smooth.near + OWN * np.eye(16))
    for direction in turn.T:
        one = direction @ seen
        law = [multivariate_normal(np.zeros(16), x * like + np.diag(variance)).logpdf(one) for x in SPREADS_APART]
        K = SPREADS_APART[np.argmax(law)] * like
        right += np.outer(direction, K @ np.linalg.solve(K + np.diag(variance), one))
    np.testing.assert_allclose(found, right, atol=1e-9)


def test_every_pool_is_weighed_towards_the_sums(rng):
    """What weighs one pool right may give all the weight to one walk of another."""
    design = Design.of(square(12), 12)
    model = Model(design.guess(), np.zeros(LAW), None)
    r = model.draw(20_000, rng).r
    r = r[rng.random(20_000) < np.exp(4 * ((r % 12 < 4).mean(axis=1) - 1))]  # people who like the west
    sums = Sums.of(design, np.asarray(design.matrix(r).sum(axis=0)).ravel(), 0.0)
    weigh = Weigher.of(sums, Maps(sums, Smoother(design)), None)
    real = np.bincount(r.ravel(), minlength=144) / r.size
    worth = []
    for _ in range(3):
        pool = model.draw(2000, rng)
        weight = np.exp(weigh(pool))
        there = np.zeros(144)
        np.add.at(there, pool.r, (weight / weight.sum() / 12)[:, None])
        drawn = np.bincount(pool.r.ravel(), minlength=144) / pool.r.size
        assert np.abs(there - real).sum() < 0.3 * np.abs(drawn - real).sum()
        worth.append(weight.sum() ** 2 / (weight**2).sum())
    assert min(worth) > 0.7 * max(worth)


# --- a canary: one person nobody is like


def canary_runs(crowd, eps, n, *, noise=True):
    """The best attack there is on the sum: its likelihood ratio, with a canary in the file and without."""
    from elsewhere.privacy.private.release import _parts

    design = Design.of(crowd.locations, crowd.L)
    mu = noise_of(eps, 1e-6, design.cells)
    day = np.array([[0, 0, 8, 8, 0, 0, 8, 8, 2, 2, 6, 6]])
    canary = on_grid(design.matrix(day).toarray()[0], mu)
    without = sum(_parts(crowd, design, mu))
    touched = np.flatnonzero(canary)
    rng = np.random.default_rng(11)
    z = discrete_gaussian(2 * n * len(touched), from_generator(rng)).reshape(2, n, -1) if noise else 0
    seen = np.stack([without + canary, without])[:, None, touched] + z
    return np.broadcast_to(seen, (2, n, len(touched))) @ canary[touched].astype(float), np.linalg.norm(canary / SIGMA)


def test_no_attack_on_the_sum_finds_the_canary_beyond_the_bound(crowd):
    (inside, outside), norm = canary_runs(crowd, 2.0, 400)
    mu = gaussian_mu(2.0, 1e-6)
    found = (inside[:, None] > outside).mean()

    assert 0.9 * mu < norm <= mu  # it is nearly as long as a vector can be
    # five standard errors of an AUC of 400 and 400 (Hanley and McNeil, at most .025)
    assert found <= bound_of(mu).auc + 5 * 0.02
    assert found > 0.5

    (inside, outside), _ = canary_runs(crowd, 2.0, 5, noise=False)
    assert (inside[:, None] > outside).all()  # the sum without noise finds it out


@pytest.mark.parametrize(
    ("noise", "runs"), [(False, 5), pytest.param(True, 200, marks=pytest.mark.soak)], ids=["without noise", "private"]
)
def test_no_attack_on_fakes_finds_the_canary_beyond_the_bound_and_without_noise_they_find_it(noise, runs, few_rounds):
    """
    One person with places and moves of their own, in a file of 1,500 people and not in it: whole runs of the preset.

    The attacker knows everybody else and the canary, and has 2,000 fakes: he counts visits to the canary's places, its
    moves, and how far the sums of the fakes point along the canary's vector.
    """
    from elsewhere.privacy.private.release import sums_of

    rng, hour, eps = np.random.default_rng(3), np.arange(12), 2.0
    home, work = rng.integers(12, size=(2, 1500, 1))  # of sixteen places
    leaves, returns = rng.integers(2, 5, size=(2, 1500, 1))
    r = np.where((hour >= leaves) & (hour < 12 - returns), work, home)
    own = np.array([12, 13, 14, 15])
    day = np.tile(own, 3)[None]
    files = [ew.Traces(rows, square(4), step_minutes=120) for rows in (r, np.concatenate([r, day]))]
    design, moves = Design.of(square(4), 12), np.unique(day[0, :-1] * 16 + day[0, 1:])
    mean, canary = (np.asarray(design.matrix(x).mean(axis=0)).ravel() for x in (r, day))

    def private(people, rng):
        return ew.generate_fakes(people, preset="private", eps=eps, n=2000, rng=rng).r

    def without_noise(people, rng):
        sums = Sums.of(design, sums_of(people, design, 1.0) / SIGMA, 0.0)
        maps = Maps(sums, Smoother(design))
        return draw_fakes(sums, maps, fit_walk(sums, maps, rng), 2000, rng)[0].r

    release = private if noise else without_noise
    seen = np.empty((3, 2, runs))  # attack, in the file or not, run
    for run, side in np.ndindex(runs, 2):
        fakes = np.asarray(release(files[side], np.random.default_rng([run, side]))).astype(np.int64)
        made = (fakes[:, :-1] * 16 + fakes[:, 1:])[fakes[:, 1:] != fakes[:, :-1]]
        along = (np.asarray(design.matrix(fakes).mean(axis=0)).ravel() - mean) @ (canary - mean)
        seen[:, side, run] = np.isin(fakes, own).mean(), np.isin(made, moves).mean(), along
    found = [float((x[:, None] > y).mean() + (x[:, None] == y).mean() / 2) for y, x in seen]
    most = bound_of(noise_of(eps, 1e-6, design.cells)).auc
    print(f"canary, {runs} runs, eps {eps:g}: AUC by visits, moves, sums {found}, at most {most:.3f} with noise")
    if noise:
        # five standard errors of an AUC, at most sqrt(1 / (6 runs)) (Hanley and McNeil, at .5, where they are largest)
        assert max(found) <= most + 5 * math.sqrt(1 / (6 * runs)) < 1
    else:
        assert max(found) > 0.9


# --- maps that nobody has shaped


@given(st.floats(-80, 80), st.floats(-180, 180), st.floats(0.01, 5), st.floats(0.01, 20), st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_a_lattice_is_the_regions_it_draws(south, west, high, wide, cells):
    from elsewhere.traces.maps import Regions, make_lattice

    grid = make_lattice(south, west, south + high, (west + wide + 180) % 360 - 180, cells)
    rng = np.random.default_rng(1)
    lat = rng.uniform(south - 0.1 * high, south + 1.1 * high, 200).clip(-90, 90)
    lon = (rng.uniform(west - 0.1 * wide, west + 1.1 * wide, 200) + 180) % 360 - 180

    assert 1 <= len(grid) <= cells
    np.testing.assert_array_equal(grid.place_of(lat, lon), Regions.place_of(grid, lat, lon))


@pytest.mark.parametrize("text", ["1,2,3", "1,2,3,4,5,6", "a,2,3,4,5", "5,2,3,4,9", "1,2,3,4,1.5", "1,2,3,4,0"])
def test_a_grid_that_is_none_is_refused(text):
    with pytest.raises(ew.errors.InvalidParameter, match="grid"):
        read_grid(text)


@pytest.mark.skipif(not is_installed(), reason="names of towns are not installed (extra `maps`)")
class TestGridAboutATown:
    """A map that the name of a town alone decides: public, whatever the file holds."""

    @pytest.mark.parametrize(("text", "cells"), [("Tokyo", 400), (" tokyo ,100", 100), ("Suva,9", 9)])
    def test_it_is_forty_kilometres_about_the_largest_town_of_the_name(self, text, cells):
        grid, (south, west, north, east) = read_grid(text), read_grid(text).box
        town = find_town(text.split(",")[0])
        assert len(grid) == cells
        assert grid.place_of(np.array([town.lat]), np.array([town.lon]))[0] >= 0
        np.testing.assert_allclose((north - south) * 111.195, 40, rtol=1e-3)
        np.testing.assert_allclose((east - west) % 360 * 111.195 * np.cos(np.radians(town.lat)), 40, rtol=1e-3)

    def test_of_several_towns_the_largest_is_meant(self):
        assert find_town("london").population > 1_000_000

    @pytest.mark.parametrize("text", ["Nowhere-on-Sea,400", "Tokyo,many", "Tokyo,0"])
    def test_others_are_refused(self, text):
        with pytest.raises(ew.errors.InvalidParameter, match="grid"):
            read_grid(text)


def test_towns_without_their_names_are_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(maps, "is_installed", lambda: False)
    with pytest.raises(ew.errors.InvalidParameter, match=r"elsewhere\[maps\]"):
        read_grid("Tokyo")


# --- the command


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Fixes of 700 people between six towns' worth of cells, with times: nothing in it is a place yet."""
    rng = np.random.default_rng(4)
    path = tmp_path_factory.mktemp("private") / "fixes.csv"
    lines = ["user,time,lat,lon"]
    for user in range(700):
        lat, lon = 46.0 + rng.integers(4, size=2) / 10 + 0.05, 7.0 + rng.integers(4, size=2) / 10 + 0.05
        for hour in range(24):
            k = int(9 <= hour < 9 + user % 9)
            lines.append(f"u{user},2024-03-04T{hour:02d}:30,{lat[k]:.4f},{lon[k]:.4f}")
    path.write_text("\n".join(lines))
    return path


GRID = ("--grid", "46.0,7.0,46.4,7.4,16", "--step", "1h", "--preset", "private")


def test_a_map_found_in_the_traces_is_refused(run, table, tmp_path):
    status, *said = run("synthesize", table, "-o", tmp_path / "out", "--preset", "private")

    assert status == 2
    assert "E_MAP" in said[1]
    assert "--grid" in said[1]
    # what else it would refuse for, and `plan` knows, is said at once
    assert f"needs about {people_needed(4, 1e-6)} people with a usable day at eps = 4; `elsewhere plan`" in said[1]
    assert not (tmp_path / "out").exists()


def test_synthesize_publishes_a_certificate_and_keeps_figures_private(run, table, tmp_path, few_rounds):
    status, *said = run("synthesize", table, "-o", tmp_path / "out", "--eps", 6, "-n", 100, *GRID)

    assert status == 0, said
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert told["certificate"]["protects"] == "everybody"
    assert told["certificate"]["eps"] == 6
    assert told["fakes"] == 100
    assert "700" not in json.dumps(told["provenance"])
    assert not (tmp_path / "out" / "report.html").exists()
    assert not (tmp_path / "out-private" / "links.csv").exists()
    assert (tmp_path / "out-private" / "report.html").exists()


def test_the_zone_is_that_of_the_map_and_not_of_the_people(run, table, tmp_path, few_rounds, monkeypatch):
    """Places in Tokyo, people in Valais: the clock is Tokyo's, by a grid, by places and by regions alike."""
    from elsewhere.run.reading import reading_keywords
    from elsewhere.settings import PRESETS, Reading

    places = tmp_path / "places.csv"
    places.write_text("id,lat,lon\n" + "\n".join(f"{i},35.{60 + i},139.7" for i in range(9)))
    square = [[139.6, 35.5], [139.8, 35.5], [139.8, 35.8], [139.6, 35.8], [139.6, 35.5]]
    feature = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [square]}}
    regions = {"type": "FeatureCollection", "features": [feature]}
    for way in ({"grid": "35.5,139.6,35.8,139.8,9"}, {"locations": places}, {"regions": regions}):
        assert reading_keywords(Reading(**way), PRESETS["private"])["tz"] == "Asia/Tokyo"
        assert reading_keywords(Reading(**way, tz="UTC"), PRESETS["private"])["tz"] == "UTC"
    flat = ew.Locations(xy=[[0.0, 0.0], [1.0, 1.0]])
    assert reading_keywords(Reading(locations=flat), PRESETS["private"])["tz"] == "UTC"


def test_numbered_slots_are_refused_because_people_would_say_how_many_there_are(run, tmp_path):
    path = tmp_path / "slots.csv"
    path.write_text("user,slot,lat,lon\n" + "\n".join(f"{u},{t},46.05,7.05" for u in range(5) for t in range(24)))

    status, *said = run("synthesize", path, "-o", tmp_path / "out", *GRID)

    assert status == 2
    assert "E_SLOTS" in said[1]
    assert "column of times" in said[1]


def test_fakes_that_do_not_match_the_sums_are_refused():
    from elsewhere.privacy.private.release import _require_a_match

    day = np.array([0.7, 0.1, 0.1, 0.1])
    _require_a_match(np.repeat(np.arange(4), [60, 15, 15, 10])[None], day, 1000)
    with pytest.raises(ew.errors.NotEnoughUsers, match="do not match") as refused:
        _require_a_match(np.repeat(np.arange(4), [1, 33, 33, 33])[None], day, 1000)
    assert refused.value.code == "E_EPS"


def test_plan_counts_people_by_the_gap_that_a_theorem_takes(run, tmp_path):
    """290 people are known every 20 minutes, ten every 4 hours: who fills gaps of 6 hours, finds them all."""
    often = [f"{hour:02d}:{minute}" for hour in range(24) for minute in ("00", "20", "40")]
    seldom = [f"{hour:02d}:30" for hour in range(0, 24, 4)]
    lines = [
        f"u{user},2024-03-04T{time},46.{user % 4}5,7.05" for user in range(300) for time in (often, seldom)[user >= 290]
    ]
    path = tmp_path / "fixes.csv"
    path.write_text("\n".join(["user,time,lat,lon", *lines]))

    status, *said = run("plan", path, "--json")

    told = json.loads(said[0])
    assert status == 0
    assert (told["people"], told["people_by_a_public_gap"]) == (290, 300)
    assert "With 300 people" in told["presets"]["private"]["useful"]


def test_plan_and_refusal_count_the_same_people_and_offer_the_gap_that_keeps_them(run, tmp_path):
    """16 of 95 people have no gap above 6 hours, the others have some of 9."""
    often, seldom = ("00:10", "05:00", "10:00", "15:00", "20:00", "23:50"), ("00:10", "08:50", "17:30", "23:50")
    lines = [
        f"u{user},2024-03-04T{time},46.{(user + i) % 4}5,7.05"
        for user in range(95)
        for i, time in enumerate(often if user < 16 else seldom)
    ]
    path = tmp_path / "fixes.csv"
    path.write_text("\n".join(["user,time,lat,lon", *lines]))

    said = run("plan", path)[1]
    small = run("synthesize", path, "-o", tmp_path / "out", *GRID)[2]

    assert "95 people with a usable day; 16 for private" in said
    assert "gaps of up to 6h are filled unless --max-gap gives another length" in small
    wide = run("plan", path, "--max-gap", "12h", "--json")[1]
    assert json.loads(wide)["people_by_a_public_gap"] == 95


def test_days_are_an_option_of_the_command(run, table, tmp_path, few_rounds):
    status, *said = run("synthesize", table, "-o", tmp_path / "out", "--eps", 6, "-n", 50, "--days", 2, *GRID)

    assert status == 0, said
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert told["provenance"]["parameters"]["days"] == 2
    with (tmp_path / "out" / "fakes.csv").open() as file:
        rows = file.read().splitlines()[1:]
    assert len({row.split(",")[0] for row in rows}) == 50


def test_fit_and_prepared_folders_are_refused(run, table, tmp_path):
    status, *said = run("fit", table, "-o", tmp_path / "model", *GRID)
    assert status == 2
    assert "in one step" in said[1]
    assert run("prepare", table, "-o", tmp_path / "ready", "--step", "1h")[0] == 0
    status, *said = run("synthesize", tmp_path / "ready", "-o", tmp_path / "out", *GRID)
    assert status == 2
    assert "E_MAP" in said[1]
    assert not (tmp_path / "out").exists()
