"""The pool of walks and the laws of the archetypes on it, from their definition."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import elsewhere as ew
from elsewhere.privacy.deniable import laws as made
from elsewhere.privacy.deniable.archetypes import Archetypes, scores
from elsewhere.privacy.deniable.laws import LEAST_POOL, MOST_POOL, Laws, pool_for
from elsewhere.synthesis.walk.fit import learn_walk

R, L, KAPPA = 8, 6, 3
RIDGES = made.RIDGE_VISITS, made.RIDGE_STATISTICS, made.RIDGE_HOME
LABEL = np.array([0, 0, 1, 1, 2, 2, -1, 0])


def lab(number=0):
    return np.random.default_rng(number)


def ground(seed=0, A=3):
    rng = lab(seed)
    places = ew.Locations(xy=rng.random((R, 2)))
    people = ew.Traces(rng.integers(0, R, (40, L)), places, step_minutes=1440 / L)
    walk = learn_walk(people.r, places, np.ones(R, dtype=bool), rng=rng)
    return people, walk, groups_of(rng.dirichlet(np.full(KAPPA, 0.5), (A, L)), rng.dirichlet(np.full(A, 5.0)))


def groups_of(share, size):
    return Archetypes(share, np.log(np.maximum(share, 1e-3)), np.zeros(len(share)), size)


def pool_of(walk, groups, *, size=4000, strength=1.0, rng=None):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "STRENGTH", strength)
        return Laws.of(walk, groups, LABEL, size=size, rng=rng or lab())


def stock_of(seed=0, *, A=3, size=4000, strength=1.0):
    _, walk, groups = ground(seed, A)
    return pool_of(walk, groups, size=size, strength=strength, rng=lab(seed)), groups


def laws(stock):
    p = np.exp(stock.log_p.astype(np.float64))
    return p / p.sum(axis=0)


class TestLaw:
    @settings(max_examples=15)
    @given(st.integers(0, 2**31))
    def test_equals_the_definition(self, seed):
        kept = []

        class Spied(made._Sharing):
            @classmethod
            def of(cls, *given, **named):
                kept.append(super().of(*given, **named))
                return kept[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(made, "_Sharing", Spied)
            stock, _ = stock_of(seed, size=300)
        law = kept[0]

        plain = (x.tolist() for x in (law.score, law.place, law.slot, law.statistics, law.level, law.column))
        expected = naive.stock_law(stock.r.tolist(), stock.copies.tolist(), *plain)

        np.testing.assert_allclose(laws(stock), expected, rtol=1e-4, atol=1e-9)

    @settings(max_examples=5)
    @given(st.integers(0, 2**31), st.sampled_from([0.0, 2.0]))
    def test_the_dual_and_its_slope_equal_the_definition(self, seed, strength):
        asked = []
        _, walk, groups = ground(seed, A=2)
        rng = lab(seed)
        r = rng.integers(0, R, (25, L)).astype(np.int32)
        share = np.concatenate([groups.share, np.zeros((2, L, 1))], axis=2)
        column = np.where(LABEL >= 0, LABEL, KAPPA)

        def spied(loss, start, **named):
            asked.append((loss, start))
            return minimize(loss, start, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("scipy.optimize.minimize", spied)
            made._Sharing.of(r, share, groups.size, column, R, strength=strength, walk=walk)
        loss, start = asked[0]

        def dual(z):
            given = r.tolist(), share.tolist(), groups.size.tolist(), column.tolist(), R, strength
            people = walk.people, walk.day_statistics.tolist(), made.TRUST
            return naive.sharing_dual(*given, *people, made.SHARPNESS, RIDGES, z.tolist())

        z = start + rng.normal(size=len(start))
        value, slope = loss(z)
        assert value == pytest.approx(dual(z), rel=1e-9)
        for _ in range(4):
            way = rng.normal(size=len(z))
            rise = (dual(z + 1e-5 * way) - dual(z - 1e-5 * way)) / 2e-5
            assert slope @ way == pytest.approx(rise, rel=1e-5, abs=1e-5)

    def test_all_groups_together_are_where_the_walk_is(self):
        stock, groups = stock_of(2, size=20_000, strength=1.0)
        together, own = laws(stock) @ groups.size, stock.copies / stock.copies.sum()

        def figures(p):
            column = np.where(LABEL >= 0, LABEL, KAPPA)[stock.r]
            moves = (stock.r[:, 1:] != stock.r[:, :-1]).sum(axis=1)
            yield np.bincount(stock.r.ravel(), np.repeat(p, L), R)
            yield np.concatenate([np.bincount(column[:, t], p, KAPPA + 1) for t in range(L)])
            yield np.bincount(moves, p, L)

        kept = [np.abs(a - b).max() for a, b in zip(figures(together), figures(own), strict=True)]
        apart = [np.abs(a - b).max() for a, b in zip(figures(laws(stock)[:, 0]), figures(own), strict=True)]
        # visits and the number of moves are kept up to their ridges; one group alone is far from the visits
        assert max(kept[:2]) < 0.12
        assert kept[2] < 0.03
        assert apart[1] > 3 * kept[1]

    @pytest.mark.parametrize("returns", [0.25, 0.6])
    def test_as_many_come_home_as_people_do(self, returns):
        _, walk, groups = ground(9)
        statistics = walk.day_statistics.copy()
        statistics[3, :2] = 1 - returns, returns
        stock = pool_of(walk._replace(day_statistics=statistics), groups, size=20_000)
        home = stock.r[:, 0] == stock.r[:, -1]

        assert (laws(stock) @ groups.size)[home].sum() == pytest.approx(returns, abs=0.03)
        assert abs(stock.copies[home].sum() / stock.copies.sum() - returns) > 0.05  # the stock itself does not

    def test_all_groups_together_live_as_people_do_the_more_there_are_of_them(self):
        _, walk, groups = ground(5)
        statistics = walk.day_statistics.copy()
        statistics[0] = 0
        statistics[0, [4, 5]] = 0.7, 0.3  # of the walks .32 and .63
        share = np.einsum("a,atc->tc", groups.size, groups.share)
        away = []
        for people in (0, 200, 100_000):
            stock = pool_of(walk._replace(day_statistics=statistics, people=people), groups, size=20_000)
            together, column = laws(stock) @ groups.size, LABEL[stock.r]
            moves = np.bincount((stock.r[:, 1:] != stock.r[:, :-1]).sum(axis=1), together, L + 1)
            classes = np.array([[together[column[:, t] == c].sum() for c in range(KAPPA)] for t in range(L)])
            classes /= classes.sum(axis=1, keepdims=True)
            away.append((abs(moves[4] - 0.7), np.abs(classes - share).mean()))
        (nobody, as_many, many) = np.array(away)
        # up to their ridges: of nobody the walk's own, of as many as the walks count for half way, of very many theirs
        assert nobody[0] > 0.3
        assert 0.3 < as_many[0] / nobody[0] < 0.7
        assert many[0] < 0.25 * nobody[0]
        assert many[1] < as_many[1] < nobody[1]

    @settings(max_examples=20)
    @given(st.integers(0, 2**31), st.sampled_from([0.0, 1.0, 3.0]))
    def test_no_walk_is_made_likelier_than_the_strength_allows(self, seed, strength):
        stock, groups = stock_of(seed, strength=strength)
        ratio = laws(stock) / (stock.copies / stock.copies.sum())[:, None]

        # the optimiser stops near its goal, where a group's law sums to 1
        assert ratio.max() < 1.1 * len(groups.share) * np.exp(strength)

    def test_more_strength_agrees_more_with_the_group(self):
        agreement = []
        for strength in (0.0, 1.0, 2.5):
            stock, groups = stock_of(4, size=20_000, strength=strength)
            column = LABEL[stock.r]
            s = scores(column, groups.share - np.einsum("a,atc->tc", groups.size, groups.share))
            agreement.append(float((laws(stock) * s).sum(axis=0) @ groups.size))

        assert 0.1 < agreement[0] < agreement[1] < agreement[2]

    def test_where_all_are_one_group_they_live_as_people_do_too(self):
        # of few seeds there is one group: it has nothing to set it apart, but hours, day statistics and homes to keep
        _, walk, groups = ground(9, A=1)
        statistics = walk.day_statistics.copy()
        statistics[3, :2] = 0.4, 0.6
        statistics[0] = 0
        statistics[0, [4, 5]] = 0.7, 0.3
        walk = walk._replace(day_statistics=statistics, people=100_000)
        stock = pool_of(walk, groups, size=20_000, strength=3.0)
        law, own = laws(stock)[:, 0], stock.copies / stock.copies.sum()
        moves = (stock.r[:, 1:] != stock.r[:, :-1]).sum(axis=1)
        home = stock.r[:, 0] == stock.r[:, -1]

        assert law[home].sum() == pytest.approx(0.6, abs=0.03)
        assert own[home].sum() < 0.3
        assert law[moves == 4].sum() == pytest.approx(0.7, abs=0.1)
        assert own[moves == 4].sum() < 0.5
        assert (law / own).max() < 1.1 * np.exp(3)

    def test_a_group_of_nobody_walks_as_everybody(self):
        _, walk, groups = ground(7)
        groups = groups_of(groups.share, np.array([0.6, 0.4, 0.0]))
        stock = pool_of(walk, groups)
        own = stock.copies / stock.copies.sum()

        np.testing.assert_allclose(laws(stock)[:, 2], own, rtol=1e-5)
        assert 1.5 < (laws(stock) / own[:, None]).max() < 1.1 * 3 * np.exp(1)


class TestPool:
    def test_every_walk_is_found_and_nothing_else(self):
        stock, _ = stock_of(6, size=500)

        np.testing.assert_array_equal(stock.find(stock.r.astype(np.int32)), np.arange(len(stock)))
        known = set(map(tuple, stock.r.tolist()))
        others = [f for f in lab(1).integers(0, R, (200, L)).tolist() if tuple(f) not in known]
        assert others
        assert (stock.find(np.array(others, dtype=np.int32)) == -1).all()
        assert stock.copies.sum() == 500

    def test_its_size_follows_the_fakes(self):
        assert pool_for(1) == LEAST_POOL
        assert pool_for(500) == 200_000
        assert pool_for(10**6) == MOST_POOL

    def test_a_point_on_an_edge_draws_the_walk_above_it(self):
        stock, _ = stock_of(1, A=2, size=50)
        # four walks of probabilities (1/2, 0, 1/4, 1/4) and (0, 0, 0, 1)
        with np.errstate(divide="ignore"):
            log_p = np.log(np.array([[2, 0], [0, 0], [1, 0], [1, 4]]) / 4).astype(np.float32)
        copies = np.array([1, 1, 1, 1])
        few = replace(stock, r=stock.r[:4], log_p=log_p, copies=copies, reach=np.array([[1.0], [1.0], [4.0]]))
        point = np.array([0.0, 0.49, 0.5, 0.74, 0.75, 1 - 2**-53])

        for a, expected in ((0, [0, 0, 2, 2, 3, 3]), (1, [3] * 6), (2, [0, 1, 2, 2, 3, 3])):
            np.testing.assert_array_equal(few._found(a, point), expected)

    def test_blocks_of_walks_are_one_law(self, monkeypatch):
        monkeypatch.setattr(made, "STEP", 7)
        stock, _ = stock_of(6, size=500)
        point = lab(3).random(3000)
        whole = np.cumsum(np.exp(stock.log_p[:, 0].astype(np.float64)))

        np.testing.assert_array_equal(stock._found(0, point), np.searchsorted(whole, point * whole[-1], side="right"))

    def test_refuses_what_does_not_fit(self):
        _, walk, groups = ground()
        with pytest.raises(ew.errors.InvalidParameter, match="7 places"):
            Laws.of(walk, groups, LABEL[:7], size=9, rng=lab())
        with pytest.raises(ew.errors.InvalidParameter, match="6 slots"):
            Laws.of(walk, groups_of(groups.share[:, :5], groups.size), LABEL, size=9, rng=lab())
        with pytest.raises(ew.errors.InvalidParameter, match="all classes"):
            Laws.of(walk, groups, LABEL + 1, size=9, rng=lab())
        with pytest.raises(ew.errors.InvalidTraces, match="6 slots"):
            stock_of()[0].codes(np.zeros((1, 5), dtype=np.int32))

    def test_a_large_map_is_drawn_on_its_known_places(self):
        _, walk, groups = ground(3)
        places = np.array([2, 5, 7, 11, 40, 41, 80, 99])
        label = np.full(100, -1)
        label[places] = LABEL
        here = Laws.of(walk, groups, label, size=400, rng=lab(1), places=places)
        plain = Laws.of(walk, groups, LABEL, size=400, rng=lab(1))
        (r, which), (small, same) = (x.draw(np.array([0.5, 0.3, 0.2]), 0.0, 50, lab(2)) for x in (here, plain))

        np.testing.assert_array_equal(r, places[small])
        np.testing.assert_array_equal(which, same)
        np.testing.assert_array_equal(here.log_prob_of(r), plain.log_prob_of(small))
