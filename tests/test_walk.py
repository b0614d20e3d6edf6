"""The walk with memory: its law from the definition, and that nothing in it is of few people."""

import itertools

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pieces import PLAIN

import elsewhere as ew
from elsewhere.synthesis.walk import fit, habits
from elsewhere.synthesis.walk._draw_kernels import draw_far_place, draw_walks, far_pull
from elsewhere.synthesis.walk._walk_kernels import (
    ALL_COLUMNS,
    ALL_MOVING,
    BLOCK,
    LEAST,
    LENGTHS,
    SHAPES,
    columns_of_moves,
    columns_of_steps,
    length_of,
    logistic_loss,
    sector_of,
)
from elsewhere.synthesis.walk.fit import GRID, learn_habits, learn_walk, pool_day_statistics
from elsewhere.synthesis.walk.habits import geometry, ground_of, parts_of_day, reach_mask
from elsewhere.traces.model import hold_places


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
            factor=np.exp(rng.normal(size=ALL_COLUMNS)),
            moving=rng.normal(size=ALL_MOVING),
            leaving=rng.normal(size=9) + leaving,
        )
        uniform, drawn = rng.random((20, 27)), np.empty((20, 14), dtype=np.int32)

        draw_walks(walk, uniform, drawn)

        assert drawn.tolist() == [naive.draw_walk(row, plain(walk), 14) for row in uniform.tolist()]

    @settings(max_examples=20)
    @given(st.integers(0, 2**31), st.sampled_from([0.1, 0.5]))
    def test_what_a_trace_has_been_is_told_as_by_the_naive_walk(self, seed, moving):
        rng = np.random.default_rng(seed)
        grid = np.stack(np.meshgrid([0, 1, 4], [0, 1, 9]), axis=2).reshape(9, 2).astype(float)
        r = rng.integers(0, 9, (4, 40))
        for t in range(1, 40):
            r[:, t] = np.where(rng.random(4) < moving, r[:, t], r[:, t - 1])
        ground = ground_of(ew.Locations(xy=grid))
        found = np.empty((4, 39, 7), dtype=np.int64)

        columns_of_steps(r, ground, parts_of_day(40), found)

        tables = ground.lengths.tolist(), ground.sectors.tolist()
        for row, columns in zip(r.tolist(), found.tolist(), strict=True):
            for t in range(1, 40):
                known = naive.walk_columns(row[:t], *tables, 40)[0] + naive.walk_further_columns(row[:t], *tables)[0]
                assert columns[t - 1] == list(known)

    def test_many_places_are_drawn_like_few(self):
        # more places than one block of sums holds, most of them out of reach
        rng = np.random.default_rng(5)
        R = 2 * BLOCK + 5
        walk = learn_walk(
            rng.integers(0, R, (60, 8)), ew.Locations(xy=rng.random((R, 2))), rng.random(R) < 0.9, rng=rng
        )
        walk = walk._replace(steps=walk.steps * (rng.random((R, R)) < 0.2), leaving=np.full(R, 1.0))
        uniform, drawn = rng.random((100, 15)), np.empty((100, 8), dtype=np.int32)

        draw_walks(walk, uniform, drawn)

        assert drawn.tolist() == [naive.draw_walk(row, plain(walk), 8) for row in uniform.tolist()]

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
        fakes = np.empty((5000, 12), dtype=np.int32)
        draw_walks(walk, rng.random((5000, 23)), fakes)
        town = fakes >= 20
        assert 0.4 < town[:, 0].mean() < 0.6
        assert (town == town[:, :1]).all()

    def test_what_anybody_does_stays_as_likely_as_it_was(self):
        # on a line, the longest move is 5: up to 6.25 nothing is held back, beyond it all is
        where, r = ew.Locations(xy=np.column_stack([np.arange(9.0), np.zeros(9)])), [[0, 1], [3, 8], [8, 7]]
        learnt = learn_habits(r, where, np.ones(9, dtype=bool), rng=np.random.default_rng(0))
        assert learnt.reach == 5
        near = reach_mask(where, learnt.reach)
        away = np.abs(np.subtract.outer(np.arange(9), np.arange(9)))

        np.testing.assert_array_equal(near, np.where(away <= 6, 1.0, LEAST))
        assert (reach_mask(ew.Locations(n=4), 1.0) == 1).all()
        assert (reach_mask(ew.Locations(n=4), 0.0) == 1).all()

    def test_remembers_how_many_people_live_how(self):
        r = np.array([[0, 0, 1, 0], [2, 2, 2, 2], [-1, -1, -1, -1], [0, 1, 2, 1], [1, -1, 0, 0]])
        walk = learn_walk(r, ew.Locations(n=3), np.ones(3, dtype=bool), rng=np.random.default_rng(0))

        assert walk.people == 4  # of one nothing is known
        # of 4: moves 2, 0, 3, 1; places 2, 1, 3, 2; slots at the main place 3, 4, 2, 2; home at the end: two
        expected = [[1, 1, 1, 1, 0], [0, 1, 2, 1, 0], [0, 0, 2, 1, 1], [2, 2, 0, 0, 0]]
        np.testing.assert_array_equal(walk.day_statistics, np.array(expected) / 4)

    def test_gaps_are_stays(self):
        r = np.array([[-1, 2, -1, 1], [-1, -1, -1, -1], [0, 1, 2, -1]])

        np.testing.assert_array_equal(hold_places(r), [[2, 2, 2, 1], [-1, -1, -1, -1], [0, 1, 2, 2]])

    def test_places_without_coordinates_have_no_direction(self):
        lengths, sectors = geometry(ew.Locations(n=4))

        assert (sectors == -1).all()
        assert (lengths == 0).all()


def few(monkeypatch, places, near):
    """Let maps of more than so many places be large, with so many in reach of each."""
    monkeypatch.setattr(habits, "FEW_PLACES", places)
    monkeypatch.setattr(fit, "FEW_PLACES", places)
    monkeypatch.setattr(habits, "NEAR", near)


def maps(rng, R):
    """A plane, a globe, and places without positions."""
    return [
        ew.Locations(xy=rng.random((R, 2)) * [20, 3]),
        ew.Locations(lat=46 + rng.random(R), lon=6 + rng.random(R)),
        ew.Locations(n=R),
    ]


class TestLargeMaps:
    """The walk by what is in reach is the walk over all places."""

    @settings(max_examples=20)
    @given(st.integers(0, 2**31))
    def test_lengths_and_directions_from_positions(self, seed):
        rng = np.random.default_rng(seed)
        for where in maps(rng, 12):
            lengths, sectors = geometry(where)
            with pytest.MonkeyPatch.context() as patch:
                few(patch, 4, 3)
                ground = ground_of(where)
            assert len(ground.lengths) == 0
            assert [[length_of(ground, a, b) for b in range(12)] for a in range(12)] == lengths.tolist()
            assert [[sector_of(ground, a, b) for b in range(12)] for a in range(12)] == sectors.tolist()

    @settings(max_examples=20)
    @given(st.integers(0, 2**31), st.integers(1, 3))
    def test_steps_in_reach_and_beyond_are_those_of_all(self, seed, m_min):
        rng = np.random.default_rng(seed)
        R, known = 14, rng.random(14) < 0.8
        known[0] = True
        for where in maps(rng, R):
            learnt = learn_habits(rng.integers(0, R, (25, 6)), where, known, m_min=m_min, rng=rng)
            whole = learnt.tables(where, known)
            with pytest.MonkeyPatch.context() as patch:
                few(patch, 4, 3)
                walk = learnt.tables(where, known)
            places = np.flatnonzero(known)
            lengths, sectors = geometry(where)
            shape = lengths.astype(int) * 17 + sectors + 1
            for i, r in enumerate(places):
                near = walk.to[walk.row[i] : walk.row[i + 1]]
                assert set(learnt.move[learnt.move // R == r] % R) & set(places) <= set(places[near])
                np.testing.assert_allclose(
                    walk.step[walk.row[i] : walk.row[i + 1]], whole.steps[r, places[near]], rtol=1e-9
                )
                np.testing.assert_array_equal(walk.shape[walk.row[i] : walk.row[i + 1]], shape[r, places[near]])
                beyond = np.setdiff1d(places, [*places[near], r])
                for k in range(walk.far.shape[1]):
                    here = whole.steps[r, beyond[shape[r, beyond] == k]].sum()
                    assert walk.far[i, k] * walk.scale[i] == pytest.approx(here, rel=1e-6, abs=1e-10)
            for name in ("first", "onward_factor", "leaving"):
                np.testing.assert_allclose(getattr(walk, name), getattr(whole, name), rtol=1e-9)

    def test_walks_are_drawn_by_the_law(self, monkeypatch):
        # traces of five slots on six places, counted, against the law from its definition
        rng = np.random.default_rng(4)
        R, known, n, L = 7, np.array([True] * 6 + [False]), 4_000 if PLAIN else 400_000, 5
        where = ew.Locations(xy=rng.random((R, 2)) * [9, 2])
        learnt = learn_habits(rng.integers(0, R, (8, L)), where, known, m_min=3, rng=rng)
        change = {
            "factor": np.exp(rng.normal(size=ALL_COLUMNS)),
            "moving": rng.normal(size=ALL_MOVING),
            "leaving": np.ones(R),
        }
        whole = plain(learnt.tables(where, known)._replace(**change))
        few(monkeypatch, 4, 2)
        walk = learnt.tables(where, known)._replace(**change)
        drawn = np.empty((n, L), dtype=np.int32)
        draw_walks(walk, rng.random((n, 2 * L - 1)), drawn)

        traces, times = np.unique(drawn, axis=0, return_counts=True)
        law = [[naive.walk_step(trace[:t], whole, L)[trace[t]] for t in range(L)] for trace in traces.tolist()]
        expected = n * np.prod(law, axis=1)
        often = expected >= 20
        off = ((times - expected)[often] ** 2 / expected[often]).sum()
        assert off < often.sum() + 4 * np.sqrt(2 * often.sum())
        assert often.sum() > 10
        assert PLAIN or expected.sum() > 0.99 * n  # nearly all traces that there are have been seen

    def test_far_places_are_found_by_proposals_or_by_looking_through_all(self, monkeypatch):
        rng = np.random.default_rng(3)
        R = 80  # nine districts
        where = ew.Locations(xy=rng.random((R, 2)) * [9, 9])
        few(monkeypatch, 4, 3)
        monkeypatch.setattr(habits, "TO_A_DISTRICT", 8)
        walk = learn_habits(rng.integers(0, R, (60, 6)), where, np.ones(R, bool), m_min=4, rng=rng).tables(
            where, np.ones(R, bool)
        )
        assert len(walk.begin) == 10
        factor, seen = np.exp(rng.normal(size=SHAPES)), np.full(R, -1)
        beyond = np.setdiff1d(np.arange(R), [0, *walk.to[: walk.row[1]]])
        seen[beyond[0]] = 5
        law = np.array([far_pull(walk, 0, int(place), factor) for place in range(R)])
        law[np.setdiff1d(np.arange(R), beyond[1:])] = 0
        passed, n = np.cumsum(walk.popular[walk.by_district]), 2_000 if PLAIN else 20_000
        for tries in (2000, 0):
            got = [draw_far_place(walk, 0, factor, passed, seen, np.uint64(seed * 977), tries) for seed in range(n)]
            times, expected = np.bincount(got, minlength=R), n * law / law.sum()
            assert (times[expected == 0] == 0).all()
            some = expected > 0
            off = ((times - expected)[some] ** 2 / expected[some]).sum()
            assert off < some.sum() + 4 * np.sqrt(2 * some.sum())


@given(st.integers(0, 1000))
@settings(max_examples=40)
def test_the_loss_of_moving_and_its_slope(number):
    rng = np.random.default_rng(number)
    n, steps = 6, 12
    weights, ridge = rng.normal(0, 2, n), rng.random(n)
    every, moved = rng.integers(n, size=(steps, 3)), rng.random(steps) < 0.5
    slope = np.empty(n)
    value = logistic_loss(weights, ridge, every, moved, slope)
    assert value == pytest.approx(naive.logistic_loss(weights, ridge, every.tolist(), moved.tolist()), rel=1e-9)
    for j in range(n):
        up, down = weights.copy(), weights.copy()
        up[j] += 1e-6
        down[j] -= 1e-6
        apart = [naive.logistic_loss(w, ridge, every.tolist(), moved.tolist()) for w in (up, down)]
        assert slope[j] == pytest.approx((apart[0] - apart[1]) / 2e-6, abs=1e-4)


def test_a_walk_of_the_product_keeps_to_ways_that_people_share():
    from elsewhere.run.attempts import WalkModel

    people = ew.simulate_town(users=300, locations=60, rng=np.random.default_rng(1)).traces
    learnt = ew.learn(people, "product", kappa=4, rng=np.random.default_rng(2))
    habits = learn_habits(
        people.r, people.locations, learnt.known, user=people.user, m_min=5, rng=np.random.default_rng(3)
    )
    sharper = WalkModel.of(people, learnt, np.random.default_rng(3))
    ways = {(int(p) // 60, int(p) % 60, int(to)) for p, to in zip(habits.pair, habits.onward, strict=True)}
    assert ways

    def on_shared_ways(tables):
        walks = np.empty((1000, people.L), dtype=np.int32)
        draw_walks(tables, np.random.default_rng(4).random((1000, 2 * people.L - 1)), walks)
        stays = [[a for a, _ in itertools.groupby(day)] for day in walks.tolist()]
        mine = [way for s in stays for way in zip(s[:-2], s[1:-1], s[2:], strict=True)]
        return np.mean([way in ways for way in mine])

    plain = on_shared_ways(habits.tables(people.locations, learnt.known))
    assert on_shared_ways(sharper.tables) > 1.3 * plain


class TestSharedByEnoughPeople:
    """Nothing that is learnt rests on fewer than `m_min` users."""

    @settings(max_examples=25)
    @given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 3))
    def test_walk_and_naive_twin(self, seed, m_min, days):
        rng = np.random.default_rng(seed)
        R, people, L = 5, 8, 6
        # half of the people live alike, so that some is shared and some is not
        r = np.where(rng.random((people * days, L)) < 0.5, rng.integers(R, size=L), rng.integers(R, size=(1, L)))
        r = np.where(rng.random(r.shape) < 0.3, rng.integers(R, size=r.shape), r)
        who = rng.permutation(np.repeat(np.arange(people), days))
        where = ew.Locations(xy=rng.random((R, 2)))
        learnt = learn_habits(r, where, np.ones(R, dtype=bool), user=who, m_min=m_min, rng=rng)
        rows, users = r.tolist(), who.tolist()
        count, rest, arrivals, onward = naive.shared_moves(rows, users, R, m_min)
        assert dict(zip(learnt.move.tolist(), learnt.count.tolist(), strict=True)) == {
            a * R + b: n for (a, b), n in count.items()
        }
        assert learnt.rest.tolist() == rest
        assert learnt.arrivals.tolist() == arrivals
        triples = zip(learnt.pair.tolist(), learnt.onward.tolist(), learnt.onward_count.tolist(), strict=True)
        assert {(p, b): n for p, b, n in triples} == {(x * R + a, b): n for (x, a, b), n in onward.items()}
        if m_min > 1:
            visitors = [len({u for f, u in zip(rows, users, strict=True) if x in f}) for x in range(R)]
            visits = [sum(f.count(x) for f in rows) / r.size if visitors[x] >= m_min else 0.0 for x in range(R)]
            begun = naive.shared_beginnings(rows, users, R, m_min)
            np.testing.assert_allclose(learnt.first, [b + 5 * v for b, v in zip(begun, visits, strict=True)])
            assert (learnt.leaving[np.array(visitors) < m_min] == 0).all()

    @settings(max_examples=15)
    @given(st.integers(0, 2**32), st.integers(2, 5))
    def test_lengths_and_weights_rest_on_enough_users(self, seed, m_min):
        rng = np.random.default_rng(seed)
        R, people, L = 6, 9, 5
        r = np.sort(rng.integers(R, size=(people, L)), axis=1)
        r[:3] = rng.integers(R, size=(3, L))
        where = ew.Locations(xy=rng.random((R, 2)) * [9, 1])
        learnt = learn_habits(r, where, np.ones(R, dtype=bool), m_min=m_min, rng=rng)
        lengths, _ = geometry(where)
        moves = [
            (u, t, int(a), int(b)) for u, f in enumerate(r) for t, (a, b) in enumerate(itertools.pairwise(f)) if a != b
        ]

        who_went = [{u for u, _, a, b in moves if lengths[a, b] == k} for k in range(LENGTHS)]
        seen = [sum(lengths[a, b] == k for _, _, a, b in moves) * (len(who_went[k]) >= m_min) for k in range(LENGTHS)]
        leaving = learnt.rest + [
            sum(n for m, n in zip(learnt.move, learnt.count, strict=True) if m // R == x) for x in range(R)
        ]
        expected = [
            sum(leaving[x] * learnt.arrivals[y] for x in range(R) for y in range(R) if x != y and lengths[x, y] == k)
            for k in range(LENGTHS)
        ]
        np.testing.assert_allclose(learnt.kernel, [(s + 0.1) / (e + 1e-9) for s, e in zip(seen, expected, strict=True)])

        far = sorted(
            (max(float(where.distance(a, b)) for u, _, a, b in moves if u == one) for one in {m[0] for m in moves}),
            reverse=True,
        )
        longest = far[min(m_min, len(far)) - 1]
        assert longest <= learnt.reach * (1 + 1e-9) < longest * GRID * (1 + 1e-8)
        assert abs(np.log(learnt.reach) / np.log(GRID) - round(np.log(learnt.reach) / np.log(GRID))) < 1e-6

        cols = np.empty((len(moves), R, 8), dtype=np.int16)
        row, step = np.array([m[:2] for m in moves]).T.copy()
        columns_of_moves(r, row, step, R, ground_of(where), np.arange(R)[None], cols)
        users = [{m[0] for m, c in zip(moves, cols, strict=True) if k in c[m[3]]} for k in range(ALL_COLUMNS)]
        thin = np.array([len(u) < m_min for u in users])
        assert (learnt.destination[:ALL_COLUMNS][thin] == 0).all()
        assert (learnt.destination[:ALL_COLUMNS][~thin] != 0).any()

    @given(st.integers(0, 2**32), st.integers(2, 5))
    def test_day_statistics_of_few_are_pooled(self, seed, m_min):
        rng = np.random.default_rng(seed)
        r, L = rng.integers(3, size=(9, 5)), 5
        who, walks = rng.integers(6, size=9), rng.integers(2, size=(7, L))
        out = pool_day_statistics(r, who, walks, m_min)
        statistics, of_walks = (
            [
                (sum(a != b for a, b in itertools.pairwise(f)), len(set(f)), max(map(f.count, f)), int(f[0] == f[-1]))
                for f in days.tolist()
            ]
            for days in (r, walks)
        )
        for k, (low, high) in enumerate(((0, L - 1), (1, L), (1, L), (0, 1))):
            walked = np.bincount([of[k] for of in of_walks], minlength=L + 1) / len(walks)
            expected = naive.pooled([of[k] for of in statistics], who.tolist(), low, high, walked.tolist(), m_min)
            come = [{u for u, of in zip(who.tolist(), statistics, strict=True) if of[3] == home} for home in (0, 1)]
            if k == 3 and (len(come[0]) < m_min) != (len(come[1]) < m_min):
                expected = {int(len(come[1]) >= m_min): 1.0}  # what few do is not told
            np.testing.assert_allclose(out[k], [expected.get(n, 0.0) for n in range(L + 1)])
            np.testing.assert_allclose(out[k].sum(), 1)
