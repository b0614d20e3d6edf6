"""Ways against enumeration of all ways, their samples against that law, and what is learnt of ways."""

from collections import Counter

import naive_life
import numpy as np
import pytest

from elsewhere.data.visits import DAY, Form, Locations, Visits
from elsewhere.paper._generate_kernels import open_stream
from elsewhere.synthesis import _way_kernels as kernels
from elsewhere.synthesis.generate_life import generate_lives, learn_lives
from elsewhere.synthesis.groups import find_stays
from elsewhere.synthesis.ways import sum_up

KEY = np.array([3, 4], dtype=np.uint64)
SLOT = 1_200
SHARE = (0.5, 0.3, 0.2)  # of all moves, by length


def make_passages(xy, moves, turns, *, detour=9.0, pull=1e9, length=((1.0,),), slow=(), like=(2, 1, 0), again=1.0):
    """Ways over places `xy`; `moves` {(from, to): weight}; one observed way has moves of lengths `like`."""
    R, keys = len(xy), sorted(moves)
    origin, to = (np.array(column) for column in zip(*keys, strict=True))
    first = np.searchsorted(origin, np.arange(R + 1))
    weight = np.array([moves[key] for key in keys])
    aim = xy[to] - xy[origin]
    far = np.hypot(*aim.T)
    aim /= far[:, None]
    table = kernels.Moves(origin, to, first, weight, aim, np.array([naive_life.ring(x) for x in far]))
    rings, share = np.zeros((1, kernels.RINGS), np.int64), np.full(kernels.RINGS, 1e-9)
    rings[0, :3], share[:3] = like, SHARE
    length = np.array(length)
    sums = np.zeros((len(length), kernels.MOST_PASSES + 1, kernels.MOST_TICKS + 1))
    sums[:, 0, 0] = 1.0
    for pace in range(len(length)):
        for n in range(1, kernels.MOST_PASSES + 1):
            sums[pace, n, 1:] = np.convolve(sums[pace, n - 1], length[pace])[: kernels.MOST_TICKS]
    none = np.zeros(0)
    return kernels.Passages(
        table, turns, *sum_up(table, turns), np.full(kernels.LENGTHS, detour), pull, 1.0, np.zeros((0, 3)),
        none, none.astype(np.int64), np.array([sum(like) - 1]), rings, np.flatnonzero(like)[-1:], share, 1.0, 1.0,
        SLOT, 1, np.array(slow), length, sums, 0.0, again, np.zeros(len(xy), np.bool_), np.ones(1, np.bool_),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("n", "start", "goal", "detour", "like"),
    [
        (1, 0, 5, 9.0, (2, 1, 0)),
        (2, 0, 5, 9.0, (0, 1, 2)),
        (2, 0, 5, 9.0, (3, 0, 0)),  # no move as long as the longest
        # where an observed way is unlike what moves make likely, longer ways are drawn near their law only
        (3, 0, 5, 1.5, (8, 5, 3)),
        (4, 0, 8, 9.0, (8, 5, 3)),
        (3, 0, 0, 9.0, (8, 5, 3)),
        (2, 4, 8, 9.0, (2, 1, 0)),
    ],
)
def test_ways_have_the_probabilities_of_their_definition(n, start, goal, detour, like):
    rng = np.random.default_rng(2)
    xy = np.array([[i % 3, i // 3] for i in range(9)]) + rng.uniform(-0.2, 0.2, (9, 2))
    near = [(i, j) for i in range(9) for j in range(9) if i != j and np.hypot(*(xy[i] - xy[j])) < 1.6]
    moves = {pair: rng.uniform(0.2, 3) for pair in [*near, (0, 7), (2, 8)]}
    turns, banned = rng.uniform(0.2, 3, kernels.TURNS), {start, goal, 6}
    turns[9] = 0.1
    passages = make_passages(xy, moves, turns, detour=detour, pull=0.8, like=like, again=0.4)
    law = naive_life.way_law(xy, moves, turns, detour, 0.8, start, goal, n, banned, like, SHARE, 0.4)
    assert len(law) > 1
    room = kernels.new_bridge(passages.moves, passages.coarse)
    out, found, draws = np.zeros(n, np.int64), Counter(), 8_000
    own = np.isin(np.arange(9), list(banned))
    for i in range(draws):
        assert kernels.draw_way(xy, passages, start, goal, n, 0, own, room, open_stream(KEY, 1, i), out)
        found[tuple(out.tolist())] += 1
    assert set(found) <= set(law)
    for cells, p in law.items():
        assert abs(found[cells] / draws - p) <= naive_life.tolerance(p, draws)


def test_where_no_way_leads_none_is_drawn():
    xy = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    passages = make_passages(xy, {(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0}, np.ones(kernels.TURNS))
    room, out = kernels.new_bridge(passages.moves, passages.coarse), np.zeros(4, np.int64)
    drawn = [
        kernels.draw_way(xy, passages, 0, 3, n, 0, np.zeros(4, bool), room, open_stream(KEY, 1, 0), out)
        for n in (1, 2, 3)
    ]
    assert drawn == [False, True, False]
    assert out[:2].tolist() == [1, 2]


@pytest.mark.parametrize(("n", "ticks"), [(1, 3), (2, 4), (3, 7), (4, 5)])
def test_lengths_of_passes_have_the_probabilities_of_their_definition(n, ticks):
    length = (0.5, 0.2, 0.25, 0.05)
    passages = make_passages(
        np.array([[0.0, 0.0], [1.0, 0.0]]), {(0, 1): 1.0}, np.ones(kernels.TURNS), length=((1.0, 0, 0, 0), length),
        slow=(1.1,),
    )  # fmt: skip
    law = naive_life.lengths_law(length, n, ticks)
    took, found, draws = np.zeros(n, np.int64), Counter(), 8_000
    for i in range(draws):
        kernels.draw_lengths(passages, n, ticks, open_stream(KEY, 2, i), took)
        found[tuple((took // SLOT).tolist())] += 1
    assert set(found) <= set(law)
    for lengths, p in law.items():
        assert abs(found[lengths] / draws - p) <= naive_life.tolerance(p, draws)


def drift(people, steps, side, seed):
    """The places (people, steps) of people who drift over side x side cells and rarely turn back, and these cells."""
    rng = np.random.default_rng(seed)
    r = np.zeros((people, steps), np.int64)
    for row in r:
        at, way = rng.integers(2, side - 2, 2), rng.integers(0, 2, 2) * 2 - 1
        for t in range(steps):
            if rng.random() < 0.6:
                axis = int(rng.random() < 0.5)
                if not 0 <= at[axis] + way[axis] < side:
                    way[axis] *= -1
                at[axis] += way[axis]
            row[t] = at[1] * side + at[0]
    return r, np.array([[i % side, i // side] for i in range(side * side)]) * 0.5


@pytest.fixture(scope="module")
def walkers():
    """People who drift for six hours, an hour a cell at times."""
    r, xy = drift(160, 18, 12, 4)
    user, slot = np.nonzero(np.append(np.ones((160, 1), bool), r[:, 1:] != r[:, :-1], axis=1))
    start = 19_786 * DAY + 9 * 3600 + slot * SLOT
    end = np.append(start[1:], 0)
    end[np.append(user[1:] != user[:-1], True)] = 19_786 * DAY + 15 * 3600
    return Visits(user, start, end, r[user, slot], Locations(xy=xy))


def turned_back(visits):
    """The share of records between two others after which somebody goes back to where he was."""
    u, p = visits.user, visits.place
    return np.mean((p[2:] == p[:-2])[u[2:] == u[:-2]])


def test_who_goes_on_is_on_the_way_and_who_turns_back_was_there(walkers):
    stays = find_stays(walkers)
    passes = stays.usage < 0
    assert (stays.end - stays.start)[passes].max() > 1_800  # learnt: nobody turns back
    to_and_fro = walkers.replace(place=np.where(np.arange(len(walkers)) % 2, walkers.user % 144, walkers.place))
    stays = find_stays(to_and_fro)
    assert not (stays.usage < 0).any()


def test_fakes_turn_back_on_the_way_as_rarely_as_people(walkers):
    seeds, alternates, back = walkers.of_users(np.arange(112)), walkers.of_users(np.arange(112, 160)), []
    for entropy in range(1, 7):
        fakes = generate_lives(seeds, alternates=alternates, entropy=entropy).visits
        assert fakes.U > 90
        step = np.hypot(*(walkers.locations.xy[fakes.place[1:]] - walkers.locations.xy[fakes.place[:-1]]).T)
        same = fakes.user[1:] == fakes.user[:-1]
        assert (step[same] < 0.8).mean() > 0.9  # people move to next cells only
        assert abs(len(fakes) / fakes.U / (len(walkers) / walkers.U) - 1) < 0.15
        back.append(turned_back(fakes))
    assert np.mean(back) < turned_back(walkers) + 0.03


def test_turns_are_learnt_as_people_make_them(walkers):
    ways = learn_lives(walkers.of_users(np.arange(112)), rng=np.random.default_rng(0)).ways
    assert ways.turns[8] > 1 > ways.turns[9]
    assert (np.abs(np.log(ways.norm)) < 50).all()


def test_where_too_few_pass_anywhere_lives_have_no_ways(walkers):
    still = walkers.replace(place=np.where(walkers.user == 3, walkers.place, walkers.user % 5))
    assert (find_stays(still).usage < 0).any()
    ways = learn_lives(still, rng=np.random.default_rng(0)).ways
    assert ways.closed.all()
    assert len(ways.moves.to) == 0


def test_trails_of_fixes_give_trails_as_long_and_as_slow_with_as_many_trips():
    r, xy = drift(200, 120, 30, 5)
    user, minute = (x.ravel() for x in np.indices(r.shape))
    start = 19_786 * DAY + 9 * 3600 + 60 * minute
    flag = np.where(minute // 25 % 3 > 0, user * 6 + minute // 25, -1)
    form = Form("fixes", "vehicle-day", interval=60)
    visits = Visits(user, start, start, r.ravel(), Locations(xy=xy), trip=flag).replace(form=form)
    lives = generate_lives(visits.of_users(np.arange(140)), alternates=visits.of_users(np.arange(140, 200)), entropy=1)
    fakes = lives.visits
    assert fakes.U > 120
    same = fakes.user[1:] == fakes.user[:-1]
    step = np.hypot(*(xy[fakes.place[1:]] - xy[fakes.place[:-1]]).T)[same]
    assert (step < 1.1).mean() > 0.95  # two cells a minute at most
    assert (np.diff(fakes.start)[same] > 0).all()
    changes = [(np.diff(x.place) != 0)[x.user[1:] == x.user[:-1]].sum() / x.U for x in (visits, fakes)]
    assert 0.7 < changes[1] / changes[0] < 1.3
    assert abs((fakes.trip >= 0).mean() - (flag >= 0).mean()) < 0.15
    assert (fakes.start == fakes.end).mean() > 0.6
