"""The walk with memory: its law from the definition, exact probabilities, and the gate on top of it."""

import itertools
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import elsewhere as ew
from elsewhere import generate
from elsewhere.deny import groups_for
from elsewhere.evaluation.attacks.neighbours import Neighbours
from elsewhere.privacy.mechanism import Mechanism, release
from elsewhere.synthesis.deniable.archetypes import Archetypes
from elsewhere.synthesis.deniable.walk import WalkSampler, stock_for
from elsewhere.synthesis.walk._kernels import BLOCK, COLUMNS, MOVING, stroll
from elsewhere.synthesis.walk.fit import learn_habits, learn_walk, without_gaps
from elsewhere.synthesis.walk.habits import LEAST, geometry, within_reach

ALPHA = 1e-6
STOCK = 5000
GROUPS = Archetypes(np.array([[[0.8, 0.2]] * 4, [[0.1, 0.9]] * 4]))


def people(seed=0, R=3, L=4, U=12):
    rng = np.random.default_rng(seed)
    return ew.Traces(rng.integers(0, R, (U, L)), ew.Locations(xy=rng.random((R, 2)) * 3), step_minutes=1440 / L)


def sampler_of(traces, label, known=None, groups=GROUPS, **parameters):
    R = len(traces.locations)
    model = ew.aggregate(ew.fit_profiles(traces), traces.locations, epsilon=0.5)
    rng = np.random.default_rng(0)
    walk = learn_walk(traces.r, traces.locations, np.ones(R, dtype=bool) if known is None else known, rng=rng)
    return WalkSampler(model, label, walk=walk, archetypes=groups, rng=rng, **{"stock": STOCK, **parameters})


def everything(R, L):
    return np.array(list(itertools.product(range(R), repeat=L)), dtype=np.int32)


def plain(walk):
    """The tables as the naive twin takes them."""
    R = len(walk.first)
    w = {name: getattr(walk, name).tolist() for name in ("first", "places", "lengths", "sectors", "steps")}
    w |= {name: getattr(walk, name).tolist() for name in ("factor", "moving", "leaving")}
    w["onward"] = {
        (int(key) // R, int(key) % R, int(walk.onward[i])): float(walk.onward_factor[i])
        for j, key in enumerate(walk.pair)
        for i in range(walk.start[j], walk.start[j + 1])
    }
    return w


class TestLaw:
    @settings(max_examples=40)
    @given(st.integers(0, 2**31), st.sampled_from([-2.0, 0.0, 2.0]))
    def test_equals_the_naive_walk(self, seed, leaving):
        rng = np.random.default_rng(seed)
        grid = np.stack(np.meshgrid([0, 1, 4], [0, 1, 9]), axis=2).reshape(9, 2).astype(float)
        known = rng.random(9) < 0.8
        known[0] = True
        walk = learn_walk(rng.integers(0, 9, (20, 14)), ew.Locations(xy=grid), known, rng=rng)
        # weights that tell every column from every other; few moves or many
        walk = walk._replace(
            factor=np.exp(rng.normal(size=COLUMNS)),
            moving=rng.normal(size=MOVING),
            leaving=rng.normal(size=9) + leaving,
        )
        uniform, drawn = rng.random((20, 27)), np.empty((20, 14), dtype=np.int16)

        stroll(walk, uniform, drawn)

        assert drawn.tolist() == [naive.stroll(row, plain(walk), 14) for row in uniform.tolist()]

    def test_many_places_are_drawn_like_few(self):
        # more places than one block of sums holds, most of them out of reach
        rng = np.random.default_rng(5)
        R = 2 * BLOCK + 5
        walk = learn_walk(
            rng.integers(0, R, (60, 8)), ew.Locations(xy=rng.random((R, 2))), rng.random(R) < 0.9, rng=rng
        )
        walk = walk._replace(steps=walk.steps * (rng.random((R, R)) < 0.2), leaving=np.full(R, 1.0))
        uniform, drawn = rng.random((100, 15)), np.empty((100, 8), dtype=np.int16)

        stroll(walk, uniform, drawn)

        assert drawn.tolist() == [naive.stroll(row, plain(walk), 8) for row in uniform.tolist()]

    def test_learns_who_goes_straight_on(self):
        # a street of 12 places: everybody walks it end to end, one way or the other
        there = np.arange(12)
        r = np.stack([there, there[::-1]] * 10)
        walk = learn_walk(
            r, ew.Locations(xy=np.column_stack([there, 0 * there])), np.ones(12, bool), rng=np.random.default_rng(0)
        )

        law = naive.walk_step([5, 6, 7], plain(walk), 12)

        assert law[8] > 20 * law[6]

    def test_nobody_goes_much_farther_than_anybody_went(self):
        # two towns, 16,700 km apart, and nobody goes from one to the other
        rng = np.random.default_rng(0)
        lat = np.concatenate([46.5 + 0.05 * rng.standard_normal(20), -33.9 + 0.05 * rng.standard_normal(20)])
        lon = np.concatenate([6.6 + 0.05 * rng.standard_normal(20), 151.2 + 0.05 * rng.standard_normal(20)])
        r = rng.integers(0, 20, (100, 12)) + 20 * (np.arange(100) % 2)[:, None]
        walk = learn_walk(r, ew.Locations(lat=lat, lon=lon), np.ones(40, dtype=bool), rng=rng)
        fakes = np.empty((5000, 12), dtype=np.int16)
        stroll(walk, rng.random((5000, 23)), fakes)
        town = fakes >= 20
        assert 0.4 < town[:, 0].mean() < 0.6
        assert (town == town[:, :1]).all()

    def test_what_anybody_does_stays_as_likely_as_it_was(self):
        # on a line, the longest move is 5: up to 6.25 nothing is held back, beyond it all is
        where, r = ew.Locations(xy=np.column_stack([np.arange(9.0), np.zeros(9)])), [[0, 1], [3, 8], [8, 7]]
        habits = learn_habits(r, where, np.ones(9, dtype=bool), rng=np.random.default_rng(0))
        assert habits.reach == 5
        near = within_reach(where, habits.reach)
        away = np.abs(np.subtract.outer(np.arange(9), np.arange(9)))

        np.testing.assert_array_equal(near, np.where(away <= 6, 1.0, LEAST))
        assert (within_reach(ew.Locations(n=4), 1.0) == 1).all()
        assert (within_reach(ew.Locations(n=4), 0.0) == 1).all()

    def test_remembers_how_many_people_live_how(self):
        r = np.array([[0, 0, 1, 0], [2, 2, 2, 2], [-1, -1, -1, -1], [0, 1, 2, 1], [1, -1, 0, 0]])
        walk = learn_walk(r, ew.Locations(n=3), np.ones(3, dtype=bool), rng=np.random.default_rng(0))

        assert walk.people == 4  # of one nothing is known
        # of 4: moves 2, 0, 3, 1; places 2, 1, 3, 2; instants at the main place 3, 4, 2, 2; home at the end: two
        expected = [[1, 1, 1, 1, 0], [0, 1, 2, 1, 0], [0, 0, 2, 1, 1], [2, 2, 0, 0, 0]]
        np.testing.assert_array_equal(walk.lives, np.array(expected) / 4)

    def test_gaps_are_stays(self):
        r = np.array([[-1, 2, -1, 1], [-1, -1, -1, -1], [0, 1, 2, -1]])

        np.testing.assert_array_equal(without_gaps(r), [[2, 2, 2, 1], [0, 1, 2, 2]])

    def test_places_without_coordinates_have_no_direction(self):
        lengths, sectors = geometry(ew.Locations(n=4))

        assert (sectors == -1).all()
        assert (lengths == 0).all()


class TestSampler:
    @pytest.mark.parametrize("label", [[0, 1, 0], [0, -1, 1]])
    @pytest.mark.parametrize("lam", [0.0, 0.6, 1.0])
    def test_probabilities_by_enumeration(self, label, lam):
        traces = people()
        sampler = sampler_of(traces, label, lam=lam, strength=3.0)
        fakes = everything(3, 4)

        log_prob = sampler.log_prob(fakes, traces)

        np.testing.assert_allclose(np.exp(log_prob).sum(axis=0), 1, atol=1e-9)
        code = sampler.archetypes.nearest(np.asarray(label)[traces.r])
        for a in (0, 1):
            assert (code == a).any()
        if lam == 0:
            n = dict(zip(map(tuple, sampler.stock.r.tolist()), sampler.stock.copies.tolist(), strict=True))
            expected = [n.get(f, 0) / STOCK for f in map(tuple, fakes.tolist())]
            np.testing.assert_allclose(np.exp(log_prob), np.array(expected)[:, None].repeat(12, axis=1), rtol=1e-5)

    def test_samples_match_the_probabilities(self):
        traces = people(1)
        sampler = sampler_of(traces, [0, 1, 1], strength=2.0)
        n = 100_000

        drawn = sampler.sample(traces.r[2], n, rng=np.random.default_rng(7))

        seen = np.bincount(drawn @ np.array([27, 9, 3, 1]), minlength=81)
        expected = np.exp(sampler.log_prob(everything(3, 4), traces.r[2:3])[:, 0]) * n
        assert stats.chisquare(seen, expected * n / expected.sum()).pvalue > ALPHA

    def test_a_point_on_an_edge_draws_the_walk_above_it(self):
        sampler = sampler_of(people(1), [0, 1, 1], strength=2.0)
        tau = np.zeros(4, dtype=np.int64)
        # four walks of groups' probabilities (1/2, 0, 1/4, 1/4) and (0, 0, 0, 1)
        with np.errstate(divide="ignore"):
            log_p = np.log(np.array([[2, 0], [0, 0], [1, 0], [1, 4]]) / 4)
        sampler.stock = replace(sampler.stock, r=sampler.stock.r[:4], log_p=log_p.astype(np.float32))
        sampler._reach = np.cumsum(np.exp(log_p.T), axis=1)
        uniform = np.array([0.0, 0.49, 0.5, 0.74, 0.75, 1 - 2**-53])[:, None].repeat(4, axis=1)

        for group, expected in ((0, [0, 0, 2, 2, 3, 3]), (1, [3] * 6)):
            drawn = sampler.draw(np.array([float(group)]), uniform, tau)
            np.testing.assert_array_equal(drawn, sampler.stock.r[expected])

    def test_never_leaves_the_known_places(self):
        traces = people(2, R=5)
        known = np.array([True, True, False, True, False])
        sampler = sampler_of(traces, [0, 1, 0, 1, 0], known=known)

        drawn = sampler.sample(traces.r[0], 500, rng=np.random.default_rng(1))

        assert known[drawn].all()
        assert np.isneginf(sampler.log_prob(np.array([[0, 2, 1, 1]]), traces.r[:1]))

    def test_one_known_place_is_a_stay(self):
        traces = people(3)
        sampler = sampler_of(traces, [0, 1, 1], known=np.array([False, True, False]))

        assert (sampler.sample(traces.r[0], 10, rng=np.random.default_rng(1)) == 1).all()
        assert sampler.log_prob(np.array([[1, 1, 1, 1]]), traces.r[:1]) == pytest.approx(0)

    def test_a_seed_speaks_through_its_group_alone(self):
        traces = people(4)
        sampler = sampler_of(traces, [0, 1, 1], strength=2.0)

        log_prob = sampler.log_prob(everything(3, 4)[::5], traces)

        code = sampler.archetypes.nearest(np.array([0, 1, 1])[traces.r])
        assert len(np.unique(code)) == 2
        for a in (0, 1):
            mine = log_prob[:, code == a]
            np.testing.assert_array_equal(mine, mine[:, :1].repeat(mine.shape[1], axis=1))
        assert np.abs(log_prob[:, code == 0][:, 0] - log_prob[:, code == 1][:, 0]).max() > 0.1

    def test_says_what_it_is(self):
        assert sampler_of(people(), [0, 1, 1]).emission == "walk"

    def test_refuses_what_it_cannot_do(self):
        traces = people()
        with pytest.raises(ew.InvalidTraces, match="4 instants"):
            sampler_of(traces, [0, 1, 1]).log_prob([[0, 1, 2]], [[0, 1, 2]])
        with pytest.raises(ew.InvalidParameter, match="`strength`"):
            sampler_of(traces, [0, 1, 1], strength=-1.0)
        with pytest.raises(ew.InvalidTraces, match="4 instants"):
            sampler_of(traces, [0, 1, 1], groups=Archetypes(np.full((2, 5, 2), 0.5)))
        # the first class too many would be taken for no class, further ones for what is behind the table
        for label in ([0, 1, 2], [0, 1, 5]):
            with pytest.raises(ew.InvalidParameter, match="2 classes"):
                sampler_of(traces, label)


class TestGate:
    def test_released_fakes_have_the_law_of_the_theorem(self):
        traces = people(5, U=10)
        sampler = sampler_of(traces, [0, 1, 1], strength=2.0)
        k, gamma, eps0, n = 4, 2.0, 1.0, 40_000
        mechanism = Mechanism.of(sampler, traces.r, np.zeros(4, dtype=np.int64), k=k, gamma=gamma, eps0=eps0)

        out = release(mechanism, n, floor=0.01, entropy=3, laboratory=True)

        fakes = everything(3, 4)
        log_prob = sampler.log_prob(fakes, traces)
        laws = [dict(zip(map(tuple, fakes.tolist()), np.exp(col).tolist(), strict=True)) for col in log_prob.T]
        law = naive.gate_law(laws, k, gamma, eps0)
        expected = np.array([law[tuple(f)] for f in fakes.tolist()])
        seen = np.bincount(out.r @ np.array([27, 9, 3, 1]), minlength=81)
        some = expected > 0
        assert seen[~some].sum() == 0
        assert stats.chisquare(seen[some], expected[some] / expected.sum() * n).pvalue > ALPHA
        assert out.passed / out.attempts == pytest.approx(expected.sum(), abs=0.02)

    def test_the_auditor_knows_its_law(self):
        traces = people(6, U=12)
        sampler = sampler_of(traces, [0, 1, 1], strength=2.0)
        tau = np.zeros(4, dtype=np.int64)
        pair = Neighbours.of(sampler, traces.r, tau, k=3, gamma=2.0, eps0=1.0, rng=np.random.default_rng(0))

        fakes = everything(3, 4)
        fakes = fakes[sampler.stock.find(fakes) >= 0]  # what cannot be released is no outcome
        log_prob = sampler.log_prob(fakes, pair.larger.seeds)
        laws = [dict(zip(map(tuple, fakes.tolist()), np.exp(col).tolist(), strict=True)) for col in log_prob.T]
        law = naive.gate_law(laws, 3, 2.0, 1.0)
        # up to the fake's own constant, which both sets share
        found = Neighbours.log_released(pair.larger, fakes) + sampler.common(fakes, tau)
        np.testing.assert_allclose(np.exp(found), [law[tuple(f)] for f in fakes.tolist()], rtol=1e-6, atol=1e-12)


def of_the_town(town=None):
    town = town or ew.simulate_town(users=120, locations=40, rng=np.random.default_rng(3)).traces
    return ew.generate_fakes(
        town,
        preset="deniable",
        emission="walk",
        kappa=4,
        k=16,
        m_min=2,
        delta_target=1e-3,
        rng=np.random.default_rng(1),
    )


def test_the_preset_walks():
    fakes = of_the_town()

    assert isinstance(fakes.sampler, WalkSampler)
    assert fakes.learnt.known[fakes.r].all()
    # each released fake stands in its seed's bucket with at least one seed, the seed itself
    assert min(v.in_bucket for v in fakes.verdicts) >= 1
    assert fakes.sampler.stock.copies.sum() == stock_for(60) > stock_for(1)


def test_stock_and_groups_are_for_the_seeds_planned_not_for_those_left(monkeypatch):
    whole = generate._with_known_places

    def fewer(roles, learnt, *, deniable):
        roles = whole(roles, learnt, deniable=deniable)
        return replace(roles, seeds=roles.seeds.select(np.arange(45)), seed_rows=roles.seed_rows[:45])

    whole_town = of_the_town()
    everybody = whole_town.sampler.stock
    monkeypatch.setattr(generate, "_with_known_places", fewer)
    fakes = of_the_town()

    # whether somebody's places are all rare is his secret: it changes how many fakes there are, not their laws
    assert len(fakes.r) == 45
    k = fakes.preset.k
    assert groups_for(45, 60, k) < groups_for(60, 60, k) == fakes.preset.archetypes == whole_town.preset.archetypes
    np.testing.assert_array_equal(fakes.sampler.stock.r, everybody.r)
    np.testing.assert_array_equal(fakes.sampler.stock.log_p, everybody.log_p)


def test_the_sampler_knows_nothing_of_any_seed():
    # the same people with other seeds: model, classes, groups and stock are the same to the last bit (section 11)
    one = of_the_town()
    r = np.array(one.seeds.r)
    r[one.seed_rows] = np.roll(r[one.seed_rows], 7, axis=1)[::-1]
    town = ew.Traces(r, one.seeds.locations, users=one.seeds.users)
    other = of_the_town(town)

    np.testing.assert_array_equal(one.seed_rows, other.seed_rows)
    np.testing.assert_array_equal(one.learnt.classes.label, other.learnt.classes.label)
    np.testing.assert_array_equal(one.learnt.known, other.learnt.known)
    for mine, theirs in ((one.sampler.stock, other.sampler.stock), (one.sampler.archetypes, other.sampler.archetypes)):
        for name, value in vars(mine).items():
            np.testing.assert_array_equal(value, getattr(theirs, name))
    assert not np.array_equal(one.r, other.r)


def test_many_fakes_of_a_small_stock_are_alike_and_it_is_said(monkeypatch):
    monkeypatch.setattr("elsewhere.synthesis.deniable.walk.MOST_STOCK", 300)
    town = ew.simulate_town(users=120, locations=40, rng=np.random.default_rng(3)).traces
    given = {"preset": "deniable", "kappa": 4, "k": 16, "m_min": 2, "delta_target": 1e-3}
    fakes = ew.generate_fakes(town, per_seed=4, rng=np.random.default_rng(1), **given)

    distinct = len(np.unique(fakes.r, axis=0))
    assert distinct < 0.8 * len(fakes)
    assert any(f"only {distinct} of {len(fakes)} fakes differ" in note for note in fakes.notes)
