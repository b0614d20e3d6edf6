"""Certified fakes: bounded lists, exact noise, accounting, the audit; nothing else reaches what is published."""

import dataclasses
import json
import math
import warnings
from datetime import datetime

import naive_certified as naive
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from referee import hold_places

import elsewhere as ew
from elsewhere.data.gazetteer import find_town
from elsewhere.data.places import grid_of
from elsewhere.evaluation.attack_base import auc
from elsewhere.evaluation.attack_noise import eps_proven, neighbours, releases
from elsewhere.run.certified import read_moments, read_rows, split_row
from elsewhere.settings import Reading
from elsewhere.synthesis import _certified_kernels as kernels
from elsewhere.synthesis import certified
from elsewhere.synthesis.certificate import (
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
from elsewhere.synthesis.certified import (
    MAP_MOST,
    MAP_SHARES,
    MAPS,
    MOST,
    OWN,
    PROTOTYPES,
    SHARES,
    STAY,
    Days,
    Design,
    Mechanism,
    Observed,
    Smoother,
    Sums,
    days_of,
    fit_law,
    sums_of,
)

ALPHA = 1e-6  # of a sampler's test to fail by chance
BOX = "46.0,7.0,46.3,7.4,25"


def square(side):
    return ew.Locations(xy=[[x, y] for y in range(side) for x in range(side)])


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture(scope="module")
def small():
    return Design.of(square(3))


# --- the list of one person


def days(most=4):
    """Odd days in slots: at one place, at two by turns, anywhere, seen for some hours, seen once."""
    place = st.integers(0, 8)
    some = st.integers(-1, 8)
    anywhere = st.lists(some, min_size=72, max_size=72)
    still = place.map(lambda r: [r] * 72)
    turns = st.tuples(place, some, st.integers(1, 9)).map(lambda p: [p[i // p[2] % 2] for i in range(72)])
    once = st.tuples(place, st.integers(0, 71)).map(lambda p: [p[0] if t == p[1] else -1 for t in range(72)])
    real = st.one_of(anywhere, still, turns, once).filter(lambda day: max(day) >= 0)
    return st.lists(st.tuples(real, st.booleans()), min_size=1, max_size=most)


def describe(design, people):
    """The bounded lists of people, given as lists of (day, weekend)."""
    rows = np.array([day for person in people for day, _ in person], dtype=np.int32)
    first = np.append(0, np.cumsum([len(person) for person in people]))
    off = np.array([weekend for person in people for _, weekend in person], dtype=np.int64)
    whole = np.tile([1.0, 0.8, 0.25], (len(people), 1))
    return design.describe(Days(rows, first, off, whole)).toarray()


@given(days())
@settings(max_examples=40, deadline=None)
def test_lists_are_as_defined_and_no_longer_than_one(small, person):
    found = describe(small, [person])[0]
    xy = [(x, y) for y in range(3) for x in range(3)]
    maps, blocks = naive.person_list(
        [day for day, _ in person], [int(off) for _, off in person], [1.0, 0.8, 0.25], PROTOTYPES.tolist(), xy,
        small.limits.tolist(),
    )  # fmt: skip
    expected = np.zeros(small.cells)
    of_all = {}
    for (c, x), share in maps.items():
        norm = math.sqrt(sum(s * s for (other, _), s in maps.items() if other == c))
        expected[c * 9 + x] = share / max(norm, MAP_MOST[c])
        of_all[x] = share
    norm = math.sqrt(sum(s * s for s in of_all.values()))
    for x, share in of_all.items():
        expected[6 * 9 + x] = share / max(norm, MAP_MOST[6])
    at = MAPS * 9
    for (name, block), size in zip(blocks.items(), kernels.SIZES, strict=True):
        norm = math.sqrt(sum(x * x for x in block.values()))
        for cell, x in block.items():
            expected[at + cell] = x / max(norm, MOST[name])
        at += size

    np.testing.assert_allclose(found, expected, atol=1e-12)
    row = found * small.weight
    assert np.linalg.norm(row) <= 1 + 1e-12
    grid = on_grid(row, 0.8)
    assert sum(int(x) ** 2 for x in grid) <= (0.8 * SIGMA) ** 2  # whole numbers: the sum of squares is exact


def test_shares_of_the_norm_sum_to_one_and_a_mutant_without_bounds_is_longer(small, monkeypatch):
    assert sum(MAP_SHARES) + sum(SHARES.values()) == pytest.approx(1)
    still = [([4] * 72, False)]
    assert np.linalg.norm(describe(small, [still])[0] * small.weight) > 0.5
    monkeypatch.setattr(certified, "MOST", dict.fromkeys(MOST, 0.001))
    assert np.linalg.norm(describe(small, [still])[0] * small.weight) <= 1 + 1e-12  # tighter bounds only shorten
    # a person counted twice, under two ids, is two people's worth
    twice = describe(small, [still, still]).sum(0) * small.weight
    assert np.linalg.norm(twice) > 1.2


def records(people):
    return st.lists(
        st.tuples(st.integers(0, people - 1), st.integers(0, 5 * 86_400), st.integers(0, 30_000), st.integers(0, 8)),
        min_size=1, max_size=25,
    )  # fmt: skip


def as_observed(rows, people):
    rows = sorted(rows)
    user, start, length, place = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Observed(user, start, start + length, place, people, square(3))


@given(records(3), records(1))
@settings(max_examples=30, deadline=None)
def test_one_person_more_changes_the_sum_by_one_bounded_list(small, others, mine):
    alone = [(3, *row[1:]) for row in mine]
    change = sums_of(as_observed([*others, *alone], 4), small, 0.7) - sums_of(as_observed(others, 4), small, 0.7)

    assert sum(int(x) ** 2 for x in change) <= (0.7 * SIGMA) ** 2
    np.testing.assert_array_equal(change, sums_of(as_observed([(0, *row[1:]) for row in mine], 1), small, 0.7))


@given(records(2))
@settings(max_examples=40, deadline=None)
def test_slots_are_where_somebody_was_longest(rows):
    seen = as_observed(rows, 2)
    found = days_of(seen)
    expected = {}
    for u in (0, 1):
        mine = [i for i in range(len(seen.user)) if seen.user[i] == u]
        for i, after in zip(mine, [*mine[1:], None][: len(mine)], strict=True):
            end = seen.end[i] if after is None else min(seen.end[i], seen.start[after])
            for second in range(int(seen.start[i]), max(int(end), int(seen.start[i]) + 1)):
                key = u, second // 86_400, second % 86_400 // 1200
                here = expected.setdefault(key, {})
                here[int(seen.place[i])] = here.get(int(seen.place[i]), 0) + 1
    rows = {}
    for (u, day, slot), here in expected.items():
        rows.setdefault((u, day), [-1] * 72)[slot] = min(here, key=lambda r: (-here[r], r))

    assert found.r.tolist() == [rows[key] for key in sorted(rows)]
    assert np.diff(found.first).tolist() == [n for u in (0, 1) if (n := sum(key[0] == u for key in rows))]


def test_a_person_of_a_million_records_takes_no_more_room_than_days(small):
    n = 20_000
    seen = Observed(np.zeros(n, np.int64), np.arange(n) * 7, np.full(n, 10**9), np.arange(n) % 9, 1, square(3))

    assert len(days_of(seen).r) <= certified.MOST_DAYS
    assert sum(int(x) ** 2 for x in sums_of(seen, small, 0.7)) <= (0.7 * SIGMA) ** 2


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


def proven(mechanism, rng, noise=discrete_gaussian):
    """The eps that 20,000 releases prove of either file, and the same of one file beside itself."""
    smaller, larger = releases(neighbours(mechanism, rng), 20_000, rng, noise)
    return eps_proven(smaller, larger, 1e-6).low, eps_proven(smaller[::2], smaller[1::2], 1e-6).low


@pytest.fixture
def mechanism(crowd, rng):
    """The sums of a crowd, and of somebody who is at another place every twenty minutes for a week."""
    seen, n = certified.observed(crowd.visits()), 7 * 72
    when = np.arange(n) * 1200
    restless = (np.full(n, seen.U), when, when + 1200, rng.integers(0, 9, n))
    columns = [np.concatenate(pair) for pair in zip(seen[:4], restless, strict=True)]
    return Mechanism(Observed(*columns, seen.U + 1, seen.locations), Design.of(crowd.locations), 1.0, 1e-6)


@pytest.mark.parametrize("eps", [1.0, 4.0])
def test_releases_prove_less_than_the_claim_and_more_than_half_of_it(mechanism, eps, rng):
    mechanism = dataclasses.replace(mechanism, eps=eps)
    eps_found, chance = proven(mechanism, rng)

    assert 0.8 < np.linalg.norm(neighbours(mechanism, rng)) / (mechanism.mu * SIGMA) <= 1  # nearly all that is allowed
    assert eps / 2 < eps_found <= eps
    assert chance < 0.2


def count_twice(seen, design, mu):
    twice = [
        np.concatenate([column, column + shift]) for column, shift in zip(seen[:4], (seen.U, 0, 0, 0), strict=True)
    ]
    return sums_of(Observed(*twice, 2 * seen.U, seen.locations), design, mu)


@pytest.mark.parametrize("fault", ["no noise", "half the noise", "no bounds", "counted twice"])
def test_a_mutant_is_found_out(mechanism, fault, rng, monkeypatch):
    noise = {
        "no noise": lambda n, _: np.zeros(n, dtype=np.int64),
        "half the noise": lambda n, below: discrete_gaussian(n, below, SIGMA // 2),
    }.get(fault, discrete_gaussian)
    if fault == "no bounds":
        monkeypatch.setattr(certified, "bound", lambda _, most: most)
    if fault == "counted twice":
        monkeypatch.setattr(certified, "sums_of", count_twice)

    assert proven(mechanism, rng, noise)[0] > 1.0


def test_the_audit_of_private_fakes_tries_the_sums_out(crowd, few_rounds):
    fakes = ew.generate_fakes(crowd, eps=4.0, n=100)

    found = ew.audit(crowd, None, fakes.r, None, attacks=["A9"], sampler=fakes.mechanism, rng=np.random.default_rng(1))

    told = found.to_dict()["A9"]
    assert told["bar"] == 4.0
    assert 2.0 < told["main"] <= 4.0
    assert told["passed"] is True
    few = ew.audit(
        crowd, None, fakes.r, None, attacks=["A9"], sampler=fakes.mechanism, count_runs=8, rng=np.random.default_rng(1)
    )
    assert "count_runs" in few.to_dict()["A9"]["needs"]


def test_noise_is_where_it_should_be(rng):
    vector = on_grid(np.array([0.6, -0.8, 0.0]), 0.5)
    many = np.array([noisy_sum(2 * vector, 0.5, from_generator(rng)) for _ in range(400)])

    # sd 1 / mu in every number, empty ones too, around the sum; five standard errors
    assert many.std(axis=0) == pytest.approx(np.full(3, 2.0), rel=5 / math.sqrt(800))
    assert many.mean(axis=0) == pytest.approx([1.2, -1.6, 0.0], abs=5 * 2 / math.sqrt(400))


# --- the run


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
    fakes = ew.generate_fakes(crowd, eps=4.0, n=300)

    assert len(fakes) == 300
    assert np.all(fakes.seed == -1)
    assert fakes.r.shape[1] == crowd.L
    told = fakes.certificate
    assert (told.protects, told.eps, told.delta, told.holds) == ("everybody", 4.0, 1e-6, True)
    assert told.auc == pytest.approx(0.723, abs=1e-3)
    pool = ew.publish(fakes)
    assert len(pool) == 300
    assert pool.provenance["parameters"] == {"eps": 4.0, "delta": 1e-6, "days": 1}
    # how many people there are is nowhere in what is published
    assert str(crowd.U) not in str(pool.provenance)


def test_the_number_of_fakes_follows_from_the_noisy_count(crowd, few_rounds, monkeypatch):
    sizes = set()
    for seed in range(4):
        monkeypatch.setattr(certified, "from_the_system", from_generator(np.random.default_rng(seed)))
        sizes.add(len(ew.generate_fakes(crowd.visits(), eps=4.0)))

    assert len(sizes) == 4
    assert all(0 < abs(n - crowd.U) < 75 for n in sizes)  # of a standard deviation of 15


def test_fakes_are_records_of_the_kind_that_came_in(few_rounds, monkeypatch):
    monkeypatch.setattr(certified, "ROUNDS", 16)
    monkeypatch.setattr(certified, "PLACED", 15)
    rng = np.random.default_rng(5)
    n, many = 700, 12
    user = np.repeat(np.arange(n), many)
    start = np.sort(rng.integers(0, 20 * 86_400, (n, many)), axis=1).ravel()
    checkins = ew.Visits(user, start, start, rng.integers(0, 9, n * many), square(3))
    fakes = ew.generate_fakes(checkins, eps=8.0, days=20, n=200, rng=np.random.default_rng(1)).visits

    assert fakes.form.record == "events"
    np.testing.assert_array_equal(fakes.start, fakes.end)
    assert 6 < len(fakes) / 200 < 18  # records of each, where people have twelve
    town = ew.simulate_town(users=700, locations=100, rng=np.random.default_rng(6)).visits
    stays = ew.generate_fakes(town, eps=8.0, n=100).visits
    assert stays.form.record == "visits"
    assert np.mean(stays.end > stays.start) > 0.95


def test_a_laboratory_run_is_repeatable_and_claims_nothing(crowd, few_rounds):
    one, two = (ew.generate_fakes(crowd, eps=4.0, n=50, rng=np.random.default_rng(7)) for _ in range(2))

    np.testing.assert_array_equal(one.r, two.r)
    assert one.certificate.protects == "nobody"
    with pytest.raises(ew.errors.PublicationRefused):
        ew.publish(one)


def test_noise_comes_from_the_operating_system(crowd, few_rounds, monkeypatch):
    asked = []
    monkeypatch.setattr(certified, "from_the_system", lambda m, n: asked.append(n) or from_the_system(m, n))

    ew.generate_fakes(crowd, eps=4.0, n=5)

    assert sum(asked) > 900  # more than one number for every cell


def test_too_few_people_are_refused_with_both_ways_out(crowd, few_rounds):
    with pytest.raises(ew.errors.NotEnoughUsers, match=r"about 1,116 people at eps = 2.*there are about") as refused:
        ew.generate_fakes(crowd, eps=2.0, rng=np.random.default_rng(1))
    assert refused.value.code == "E_EPS"
    eps = float(str(refused.value).split("so few need eps = ")[1].split(",")[0])
    assert 2.0 < eps < 4.0
    with pytest.raises(ew.errors.NotEnoughUsers, match="even eps = 10, the largest, is too little"):
        ew.generate_fakes(crowd.of_users(range(50)), eps=4.0, rng=np.random.default_rng(1))


@pytest.mark.parametrize(("name", "value"), [("eps", 0.0), ("eps", 11.0), ("delta", 0.0), ("delta", 0.5), ("n", 0)])
def test_what_cannot_be_is_refused(crowd, name, value):
    with pytest.raises(ew.errors.InvalidParameter, match=f"`{name}`"):
        ew.generate_fakes(crowd, **{"eps": 4.0, name: value})


@pytest.mark.parametrize("where", [square(46), square(1), ew.Locations(n=9)])
def test_a_map_that_does_not_do_is_refused(where):
    with pytest.raises(ew.errors.InvalidParameter) as refused:
        Design.of(where)
    assert (refused.value.code, refused.value.parameter) == ("E_MAP", "grid")


def test_what_it_does_not_read(crowd):
    with pytest.raises(ew.errors.InvalidParameter) as refused:
        ew.generate_fakes(crowd, n=5)
    assert refused.value.parameter == "n"


def test_nothing_but_the_noisy_sum_reaches_the_fakes(crowd, few_rounds, monkeypatch):
    """Two files with the same sum make the same fakes: no count is taken beside."""
    design = Design.of(crowd.locations)
    y = noisy_sum(sums_of(certified.observed(crowd.visits()), design, 0.8), 0.8, from_the_system)
    monkeypatch.setattr(certified, "noisy_sum", lambda *_: y)
    others = crowd.of_users(range(300))

    one, two = (ew.generate_fakes(t, eps=4.0, n=40, rng=np.random.default_rng(1)) for t in (crowd, others))

    np.testing.assert_array_equal(one.r, two.r)
    assert one.notes == two.notes


def test_lives_of_the_law_do_what_the_sums_say():
    """A town without noise: hours by class, moves a day and where people are, beside an untaught draw."""
    people = ew.simulate_town(users=3000, locations=100, rng=np.random.default_rng(21)).traces
    design = Design.of(people.locations)
    y = sums_of(certified.observed(people.visits()), design, 1.0) / SIGMA
    fitted = fit_law(Sums.of(design, y, 1e-9), np.random.default_rng(2))
    drawn, _ = fitted.draw(np.zeros(1, np.int64), np.array([1, 2], np.uint64), np.arange(3000))
    r = hold_places(drawn[:, 0])

    def apart(a, b):
        return np.abs(np.bincount(a.ravel(), minlength=100) / a.size - np.bincount(b.ravel(), minlength=100) / b.size)

    assert apart(r, people.r).sum() / 2 < 0.12
    assert apart(r[:, 36:39], people.r[:, 36:39]).sum() / 2 < 0.25
    moves = [(x[:, 1:] != x[:, :-1]).sum(1).mean() for x in (r, people.r)]
    assert moves[0] == pytest.approx(moves[1], rel=0.25)


# --- nothing else leaves the house


def people_file(path, extra=(), *, first=False, n=650):
    """A file of n people with some rows more, before or after theirs."""
    rng = np.random.default_rng(9)
    home, work = rng.uniform((46.02, 7.02), (46.28, 7.38), size=(2, n, 2))
    rows = []
    for u in range(n):
        for hour, at in ((0, home), (8, work), (18, home)):
            rows.append((f"u{u}", f"2024-03-04T{hour:02}:10:00", f"2024-03-04T{hour + 5:02}:40:00", *at[u].tolist()))
    rows = [*extra, *rows] if first else [*rows, *extra]
    lines = [",".join(map(str, row)) for row in [("user", "start", "end", "lat", "lon"), *rows]]
    path.write_text("\n".join(lines) + "\n", encoding="latin-1", newline="")


def many_records(n):
    return [
        ("new", f"2024-03-{4 + i % 9:02}T{i // 170 % 24:02}:{i % 60:02}:00", f"2024-03-{14 + i % 9:02}T23:59:00",
         46.1 + i % 7 / 50, 7.1) for i in range(n)
    ]  # fmt: skip


VISIT = ("2024-03-04T08:10:00", "2024-03-04T09:10:00", 46.1, 7.1)
ODD = {
    "a person more": [("new", *VISIT)],
    "other times": [("new", f"0{d}/03/2024 08:10", f"0{d}/03/2024 09:10", 46.1, 7.1) for d in range(1, 9)],
    "times with offsets": [("new", "2024-03-04T08:10:00+05:00", "2024-03-04T09:10Z", 46.1, 7.1)],
    "no times": [("new", "2024-02-31", "soon", 46.1, 7.1), ("new", "0001-01-01T00:00+14:00", "9999-12-31", 46.1, 7.1)],
    "ends first": [("new", "2024-03-04T08:10:00", "2024-03-03T09:10:00", 46.1, 7.1)],
    "far away": [("new", *VISIT[:2], -33.9, 151.2)] * 3,
    "at the poles": [("new", *VISIT[:2], lat, lon) for lat in (-90, 90) for lon in (-180, 180)],
    "swapped": [("new", *VISIT[:2], 7.1, 46.1)] * 3,
    "no numbers": [("new", *VISIT[:2], north, "7.1") for north in ("north", "nan", "1e999", "9" * 5000, "")],
    "quotes": [('"new', *VISIT[:3], '7.1"')] * 2,
    "columns": [("new", *VISIT, 1, 2, 3), ("new",), ("",), ("", *VISIT), ("user", "start", "end", "lat", "lon")],
    "long": [("new" * 100_000, *VISIT)],
    "bytes": [("\xff\xfe\x00new\r", *VISIT), ("n\re\x00w", *VISIT), ("\x1a", *VISIT[:2], "\x00", "7.1")],
    "for ages": [("new", "1970-01-01T00:00", "2099-12-31T23:00", 46.1, 7.1)],
    "now and long ago": [("new", f"{year}-03-04T08:10", f"{year}-03-05T08:10", 46.1, 7.1) for year in (1970, 2099)],
    "many records": many_records(20_000),
    "a million records": many_records(1_000_000),
}
# of whom no row can be read
SILENT = {"other times", "no times", "ends first", "far away", "swapped", "no numbers", "quotes", "columns", "long"}
SILENT |= {"bytes", "at the poles"}


class House:
    """The command, whole, in a world where noise is fixed: whatever differs comes from somebody's rows."""

    def __init__(self, patch, run):
        self.patch, self.run, self.totals, self.y = patch, run, [], None
        patch.setattr(certified, "noisy_sum", self.noisy)
        patch.setattr("elsewhere.run.synthesize.secrets.token_bytes", lambda n: b"s" * n)
        patch.setattr("elsewhere.cli.output.QUIET", 1e6)  # progress is the owner's, and takes as long as it takes

    def noisy(self, total, mu, _):
        """The same noisy sums in every run, those of the first."""
        self.totals.append(total.astype(object))
        self.y = noisy_sum(total, mu, from_generator(np.random.default_rng(4))) if self.y is None else self.y
        return self.y

    def publish(self, folder, *words):
        """All that leaves the house: exit status, what is said in public, files byte by byte."""
        self.patch.chdir(folder)
        status, out, err = self.run(
            "synthesize", "people.csv", "-o", "out", "--eps", 4, "--grid", BOX, "--json", *words
        )
        out, err = (text.replace(str(folder), "") for text in (out, err))
        told = json.loads(out)
        hidden = {"private", "private_fields", *told.get("private_fields", ())}
        public = {name: value for name, value in told.items() if name not in hidden}
        return status, public, err, {path.name: path.read_bytes() for path in sorted(folder.glob("out/*"))}


@pytest.fixture
def house(monkeypatch, run, few_rounds, tmp_path_factory):
    """A house that has published the file as it is: `first` is what left."""
    house, folder = House(monkeypatch, run), tmp_path_factory.mktemp("first")
    people_file(folder / "people.csv")
    if "y" in FIRST:  # of another test: the same
        house.y, house.totals, house.first = FIRST["y"], [FIRST["total"]], FIRST["first"]
    else:
        house.first = house.publish(folder, "-n", 40, "--no-report")
        FIRST.update(y=house.y, total=house.totals[0], first=house.first)
    return house


FIRST = {}


def soaked(what):
    return pytest.param(what, marks=pytest.mark.soak) if "million" in what else what


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("what", list(map(soaked, ODD)))
def test_neighbouring_files_are_published_alike(house, tmp_path, what, first):
    """One person more: the sums move by one bounded list, and from equal noisy sums comes the same, byte by byte."""
    people_file(tmp_path / "people.csv", ODD[what], first=first)

    assert house.publish(tmp_path, "-n", 40, "--no-report") == house.first
    assert house.first[0] == 0
    assert len(house.first[3]) == 5
    change = house.totals[-1] - house.totals[0]
    assert (change**2).sum() <= (noise_of(4.0, 1e-6, len(change)) * SIGMA) ** 2
    assert change.any() == (what not in SILENT)


@pytest.mark.parametrize("what", ["a person more", "for ages", "now and long ago", "many records", "a crowd of places"])
def test_reports_for_the_owner_are_made_whoever_is_in_the_file_and_nobody_else_sees_it(house, tmp_path, what):
    """Dates and numbers of records of one person decide neither whether a run ends nor what it says."""
    crowd = [("new", f"2024-03-04T{i % 24:02}:{i % 60:02}:00", "2024-04-04", 46.01 + i % 29 / 100, 7.01 + i % 37 / 100)
             for i in range(9000)]  # fmt: skip
    people_file(tmp_path / "people.csv", ODD.get(what, crowd))

    assert house.publish(tmp_path, "-n", 40) == house.first
    assert sorted(path.name for path in (tmp_path / "out-private").iterdir()) == ["judgement.json", "report.html"]


def test_whatever_is_said_of_real_people_is_marked_private(house, tmp_path, run):
    people_file(tmp_path / "people.csv")
    house.patch.chdir(tmp_path)
    status, out, err = run("synthesize", "people.csv", "-o", "out", "--eps", 4, "--grid", BOX, "-n", 40)
    first, theorem, *_, last = out.splitlines()

    assert (status, err) == (0, "")
    assert "people at 25 places (private: counted without noise)" in first
    assert (
        theorem == "Odds that a given person is in the file change by at most a factor of 54.60, except with "
        "probability 1e-06, whatever is published."
    )
    assert last.startswith("report, for you alone, as is what the fakes are good for and what attacks learnt: ")


def test_the_owners_report_is_of_the_days_that_the_sums_look_at():
    seen = as_observed(
        [(0, 5 * 86_400 + 60, 10**9, 3), (0, 66 * 86_400, 60, 4), (1, 0, 60, 5), (1, 64 * 86_400, 9, 6)], 2
    )
    visits = seen.visits()

    # weekdays stay: the sixth day of 1970 was a Tuesday, the first a Thursday
    assert (visits.start - certified.MONDAY * 86_400).tolist() == [86_400 + 60, 3 * 86_400]
    assert visits.end[0] == (certified.MONDAY + 1 + certified.MOST_DAYS) * 86_400
    assert visits.place.tolist() == [3, 5]


@pytest.mark.parametrize("enough", [True, False])
def test_what_is_refused_and_how_many_fakes_there_are_follows_from_noisy_sums(house, tmp_path, enough):
    """Files of 650 people, of 30, of nobody at all: equal noisy sums, and so the same answer."""
    house.y = house.y if enough else house.y / 3
    told = []
    for n in (650, 30, 0):
        (tmp_path / str(n)).mkdir()
        people_file(tmp_path / str(n) / "people.csv", [("x", "never", "never", 0, 0)], n=n)
        if n == 0 and enough:
            continue  # of whom nothing is to be reported
        told.append(house.publish(tmp_path / str(n), "--no-report"))

    assert told[1:] == told[:1] * (len(told) - 1)
    assert told[0][0] == (0 if enough else 2)
    assert told[0][2][:5] == ("" if enough else "E_EPS")


@pytest.mark.parametrize("fails", ["elsewhere.run.synthesize.judge_run", "elsewhere.reports.page.report"])
def test_a_judge_or_a_report_that_fails_does_not_hold_a_release_back(house, tmp_path, monkeypatch, fails):
    def fail(*_given, **_named):
        warnings.warn_explicit("of somebody's rows", RuntimeWarning, certified.__file__, 1)
        raise ValueError("of somebody's rows")

    monkeypatch.setattr(fails, fail)
    people_file(tmp_path / "people.csv")
    assert house.publish(tmp_path, "-n", 40) == house.first


def as_parquet(frame, path):
    frame.to_parquet(path)
    return path


def as_csv(frame, path):
    frame.to_csv(path, index=False)
    return path


KINDS = {"csv": as_csv, "parquet": as_parquet, "frame": lambda frame, path: frame}


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("shape", ["fixes", "calls"])
def test_columns_of_another_kind_change_nobody_elses_rows(tmp_path, kind, shape):
    """A missing number makes floats of all others, and one text makes texts of them."""
    when = pd.date_range("2024-03-04T08:00", periods=60, freq="min")
    people = pd.DataFrame({"user": np.arange(60) // 30, "time": when, "lat": 46.15, "lon": 7.15, "tower": [5, 7] * 30})
    towers = ew.Locations([46.1, 46.15], [7.1, 7.15], ids=["5", "7"])
    reading = Reading(grid=BOX) if shape == "fixes" else Reading(locations=towers, columns="place=tower")
    rows = [{"user": 9, "time": when[0], "lat": 46.2, "lon": 7.2, "tower": np.nan}]
    rows += [{"user": None if kind == "parquet" else "x", "time": pd.NaT, "lat": np.nan, "lon": 7.2, "tower": 5}]

    def read(frame):
        seen = read_rows(KINDS[kind](frame, tmp_path / f"people.{kind}"), reading)
        return {tuple(zip(*(c[seen.user == u].tolist() for c in seen[1:4]), strict=True)) for u in range(seen.U)}

    alone, among = read(people), read(pd.concat([pd.DataFrame(rows), people]))
    assert alone <= among
    assert (len(alone), len(among)) == (2, 3 if shape == "fixes" else 2)


NO_UTF8 = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")])


@pytest.mark.parametrize(
    ("role", "odd"),
    [
        ("time", pa.array([2**62], pa.timestamp("us"))),
        ("time", pa.array([-(2**62)], pa.timestamp("ms", "UTC"))),
        ("time", pa.array([2**30], pa.date32())),
        ("time", NO_UTF8),
        ("user", NO_UTF8),
    ],
    ids=["after 9999", "before 1", "date", "text", "name"],
)
def test_a_value_of_parquet_that_python_cannot_hold_is_missing(tmp_path, role, odd):
    """One person's row does not keep the file from being read."""
    when = pa.array([datetime(2024, 3, 4), datetime(2024, 3, 5)])
    columns = {"user": pa.array(["a", "b"]), "time": when if role == "user" else when.cast(odd.type)}
    rows = {name: pa.concat_arrays([column[:1] if name != role else odd, column]) for name, column in columns.items()}
    pq.write_table(pa.table({**rows, "lat": [46.15] * 3, "lon": [7.15] * 3}), tmp_path / "people.parquet")

    seen = read_rows(tmp_path / "people.parquet", Reading(grid=BOX))

    assert (seen.U, (seen.start // 86_400).tolist()) == (2, [19786, 19787])


@pytest.mark.parametrize("given", [{"places": "merge"}, {"cells": 9}, {"unit": "trip"}, {"encoding": "cp1252"}])
def test_options_that_would_do_nothing_are_refused(tmp_path, given):
    with pytest.raises(ew.errors.InvalidParameter) as refused:
        ew.synthesize(tmp_path / "people.csv", tmp_path / "out", eps=4.0, grid=BOX, **given)
    assert (refused.value.code, refused.value.parameter) == ("E_NOT_READ", *given)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-03-04T08:10:00", 1709539800),
        ("2024-03-04 08:10", 1709539800),
        ("2024-03-04", 1709510400),
        ("2024-03-04T08:10:00.75Z", 1709539800 + 3600),
        ("2024-03-04T10:10:00+03:00", 1709539800),
        ("04.03.2024 08:10", None),
        ("2024-02-31T08:10", None),
        ("1709539800", None),
        ("0001-01-01", None),
        ("", None),
    ],
)
def test_times_are_read_row_by_row(text, seconds):
    others = ["2024-03-04T08:10:00", "1/2/2024"]
    alone, among = (read_moments(rows, None, "Europe/Zurich")[-1] for rows in ([text], [*others, text]))

    assert alone == among == (np.iinfo(np.int64).min if seconds is None else seconds)


def test_cells_of_a_line(tmp_path):
    assert split_row('a,"b, c",,"d""e"\r\n', ",") == ["a", "b, c", "", 'd"e']
    assert split_row("a,b,", ",") == ["a", "b", ""]


def test_rows_are_read_as_fixes_by_ids_or_from_tables(tmp_path):
    when = pd.date_range("2024-03-04T08:00", periods=30, freq="min")
    fixes = pd.DataFrame({"uid": "a", "timestamp": when, "latitude": 46.15, "longitude": 7.15})
    seen = read_rows(fixes, Reading(grid=BOX))
    assert (len(seen.locations), seen.tz) == (25, "Europe/Zurich")
    assert (seen.end - seen.start).tolist() == [29 * 60]  # fixes at one place are a stay
    fixes.to_parquet(tmp_path / "fixes.parquet")
    again = read_rows(tmp_path / "fixes.parquet", Reading(grid=BOX))
    assert [x.tolist() for x in again[:4]] == [x.tolist() for x in seen[:4]]
    towers = pd.DataFrame({"tower": ["n", "s"], "lat": [46.1, 46.2], "lon": [7.1, 7.2]})
    towers.to_csv(tmp_path / "towers.csv", index=False)
    calls = pd.DataFrame({"user": ["b", "b", "c"], "time": ["2024-03-04T08:00"] * 3, "tower": ["s", "nowhere", "n"]})
    seen = read_rows(calls, Reading(locations=str(tmp_path / "towers.csv"), columns="place=tower"))
    assert (seen.U, seen.place.tolist()) == (2, [1, 0])


def test_names_of_columns_and_places_may_be_in_any_language(tmp_path):
    (tmp_path / "calls.csv").write_bytes(
        "\ufeffuser,Tag,tour\nb,2024-03-04,é\nc\n".encode() + b"\xe2,2024-03-04,\xc3\n"
    )
    towers = ew.Locations([46.1, 46.2], [7.1, 7.2], ids=["n", "é"])
    seen = read_rows(tmp_path / "calls.csv", Reading(locations=towers, columns="time=Tag,place=tour"))
    assert (seen.U, seen.place.tolist()) == (1, [1])
    (tmp_path / "words.csv").write_text("wer,größe,où\na,2024-03-04,n\n", encoding="utf-8")
    seen = read_rows(tmp_path / "words.csv", Reading(locations=towers, columns="user=wer,time=größe,place=où"))
    assert seen.place.tolist() == [0]


def test_what_cannot_be_read_at_all_is_refused_by_its_header_or_its_name(tmp_path):
    (tmp_path / "a.csv").write_text("who,where\n1,2\n")
    (tmp_path / "a.gpx").write_text("<gpx/>")
    (tmp_path / "a.parquet").write_text("PAR1")
    for name, code in (("a.csv", "E_COLUMNS"), ("a.gpx", "E_FORMAT"), ("a.parquet", "E_OPEN"), ("none.csv", "E_OPEN")):
        with pytest.raises(ew.errors.ElsewhereError) as refused:
            read_rows(tmp_path / name, Reading(grid=BOX))
        assert refused.value.code == code


# --- maps cleaned of noise


@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.3, 1.0]), st.sampled_from([1e-6, 1e-4, 1e-3]))
@example(999_999, 1.0, 1e-3)  # which takes more than a hundred steps
@settings(max_examples=25, deadline=None)
def test_a_map_is_the_mode_of_its_posterior(seed, spread, variance):
    rng = np.random.default_rng(seed)
    smooth, base = Smoother(Design.of(square(3))), rng.dirichlet(np.full(9, 5.0))
    seen = rng.dirichlet(np.full(9, 5.0)) + math.sqrt(variance) * rng.normal(size=9)

    m, _ = smooth.mode(seen, variance, base, spread, 1000.0)

    # where ln density has its most likely value, the pull of what was seen is that of the prior
    f, v = np.log(m / base), variance + STAY * m / 1000
    np.testing.assert_allclose(f, spread * (smooth.near + OWN * np.eye(9)) @ ((seen - m) * m / v), atol=5e-3)


def test_the_evidence_is_that_of_a_gaussian_where_maps_hardly_differ(rng):
    from scipy.stats import multivariate_normal

    smooth, base = Smoother(Design.of(square(3))), np.full(9, 1 / 9)
    seen = base + 1e-4 * rng.normal(size=9)

    def exact(spread):
        K = spread * (smooth.near + OWN * np.eye(9)) / 81  # of base exp(f), for small f
        return multivariate_normal(base, K + np.eye(9) * (1e-8 + STAY / 9 / 1e9)).logpdf(seen)

    found = [smooth.mode(seen, 1e-8, base, spread, 1e9)[1] for spread in (1e-7, 1e-6, 1e-5)]
    np.testing.assert_allclose(np.diff(found), np.diff([exact(x) for x in (1e-7, 1e-6, 1e-5)]), atol=0.01)


# --- one person nobody is like


@pytest.mark.parametrize(
    ("noise", "runs"), [(False, 4), pytest.param(True, 60, marks=pytest.mark.soak)], ids=["without noise", "certified"]
)
def test_no_attack_on_fakes_finds_a_canary_beyond_the_bound_and_without_noise_they_find_it(noise, runs, request):
    """
    One person with places and moves of their own, in a file of 1,300 people and not in it: whole releases.

    The attacker knows everybody else and the canary, and has 1,000 fakes: he counts visits to the canary's places, and
    how far the sums of the fakes point along the canary's list.
    """
    if not noise:
        request.getfixturevalue("few_rounds")
    rng, hour, eps = np.random.default_rng(3), np.arange(12), 4.0
    home, work = rng.integers(12, size=(2, 1300, 1))  # of sixteen places
    leaves, returns = rng.integers(2, 5, size=(2, 1300, 1))
    r = np.where((hour >= leaves) & (hour < 12 - returns), work, home)
    own = np.array([12, 13, 14, 15])
    files = [ew.Traces(x, square(4), step_minutes=120) for x in (r, np.concatenate([r, np.tile(own, 3)[None]]))]
    design = Design.of(square(4))
    seen = [certified.observed(file.visits()) for file in files]
    without, both = (sums_of(x, design, 1.0) / SIGMA for x in seen)
    found = np.empty((2, 2, runs))  # attack, in the file or not, run
    for run, side in np.ndindex(runs, 2):
        draws = np.random.default_rng([run, side])
        if noise:
            fakes = ew.generate_fakes(files[side], eps=eps, n=1000, rng=draws).r
        else:
            fitted = fit_law(Sums.of(design, (without, both)[side], 1e-9), draws)
            key = np.array([run, side], np.uint64)
            fakes = fitted.draw(np.zeros(1, np.int64), key, np.arange(1000))[0][:, 0]
        held = ew.Traces(hold_places(fakes)[:, :: fakes.shape[1] // 12], square(4), step_minutes=120)
        mean = sums_of(certified.observed(held.visits()), design, 1.0) / SIGMA / len(held)
        found[:, side, run] = np.isin(held.r, own).mean(), (mean - without / 1300) @ (both - without)
    # with noise either attack may fail by chance: once in a million runs
    rates = [auc(x, y, level=1 - 1e-6 if noise else 0.95) for y, x in found]
    most = bound_of(noise_of(eps, 1e-6, design.cells))[1]
    plain = [auc(x, y) for y, x in found]
    print(f"canary, {runs} runs, eps {eps:g}: AUC by visits and sums {plain}, at most {most:.3f} with noise")
    if noise:
        assert max(rate.low for rate in rates) <= most
    else:
        assert max(rate.value for rate in rates) > 0.9


# --- maps that nobody has shaped


@pytest.mark.parametrize("text", ["1,2,3", "1,2,3,4,5,6", "5,2,3,4,9", "1,2,3,4,0"])
def test_a_grid_that_is_none_is_refused(text):
    with pytest.raises(ew.errors.InvalidParameter) as refused:
        grid_of(text)
    assert refused.value.parameter == "grid"


@pytest.mark.parametrize("cells", [1, 7, 400])
def test_a_grid_covers_its_box_with_at_most_so_many_cells(cells):
    grid = grid_of(f"46.0,7.0,46.4,7.4,{cells}")

    assert 1 <= len(grid) <= cells
    assert 46.0 < grid.lat.min() <= grid.lat.max() < 46.4
    assert 7.0 < grid.lon.min() <= grid.lon.max() < 7.4


def test_a_town_is_forty_kilometres_about_its_centre():
    town, grid = find_town("Tokyo"), grid_of("Tokyo")

    assert len(grid) == 400
    assert np.abs(grid.lat - town.lat).max() * 111.2 == pytest.approx(19, abs=0.2)
    with pytest.raises(ew.errors.InvalidParameter):
        grid_of("Nowhere at all")


def test_synthesize_takes_no_map_that_is_found_in_the_people(tmp_path):
    with pytest.raises(ew.errors.InvalidParameter) as refused:
        ew.synthesize("people.csv", tmp_path / "out", eps=4.0)
    assert (refused.value.code, refused.value.parameter) == ("E_MAP", "grid")
