"""
Ways: what is seen between two stays.

The number of cells of a way, and how long it takes, are those of a similar observed way: similar in distance and, where
most ways are new, in the time that the diary leaves for it. The cells are drawn by the bridge: a chain in which a move
depends on the one before (people's moves, noisy, by the turn they make), given both ends and the number of cells, with
the help of a coarser chain that looks ahead (`_way_kernels.draw_way`). Where most ways are new, moves are also as long
as those of the observed way; lengths, turns and cells passed twice are raked against people's. A way once taken is
mostly taken again. Without passes in the data there are no ways.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from elsewhere.data.visits import Floats, Ints, Mask
from elsewhere.sorting import number_parts
from elsewhere.synthesis import _way_kernels as kernels
from elsewhere.synthesis._life_kernels import Ground
from elsewhere.synthesis.groups import ARRIVES, LEAVES, Groups, Stays
from elsewhere.synthesis.mapping import LEAST, noisy

SHARP = 0.5  # pull, as a share of people's mean detour
CHANCE = 0.8  # of ways that are the same again, the share that habit explains
SCALE = 6.0  # bins of the length of a move, for each factor e
AROUND, MOSTLY, RANKED = (8, 40), 0.9, 2_000  # next cells: so many that this share of moves leads to them; of how many
FAR, SAMPLED = 3, 200  # moves farther than these from each cell, and of how many
FAINT = 3.0  # people expected to pass a cell below which it may only be an end
WIDE = 0.98  # of cells on the way are within the ellipse about its ends
USUAL = 12  # moves of each cell that look ahead
KNOWN, ALIKE = 2_000, 40  # observed ways that are kept; that stand for those of a distance
AGAIN = 0.1  # how likely a cell is to be passed twice, beside others, before it is raked
RAKES, WAYS, PRIOR = 8, 1_000, 2.0  # ways drawn again, so many each time; cells and moves that a factor leans on
FINE = 4  # ticks of a usual pass


class _Links(NamedTuple):
    """Pairs of rows: stays with nothing but passes between them."""

    a: Ints
    b: Ints
    apart: Floats  # kilometres
    time: Ints  # seconds
    trip: Ints  # 1: a trip


def learn_ways(
    stays: Stays, groups: Groups, ground: Ground, passed: Floats, rng: np.random.Generator
) -> kernels.Passages:
    """Learn how people's ways are seen; `passed` people are expected to pass each place."""
    R, xy = len(ground.xy), ground.xy
    passes = stays.usage < 0
    links = _find_links(stays, ground.xy)
    step = max(float(np.quantile(links.apart, WIDE)) / kernels.LENGTHS if len(links.a) else 0.0, 1e-6)
    some = np.sort(rng.permutation(len(links.a))[:KNOWN])

    usual = float(np.median((stays.end - stays.start)[passes])) if passes.any() else kernels.TICK
    tick = max(stays.grain, int(min(usual / FINE, kernels.TICK)), 1)
    tick = -(-tick // stays.trail) * stays.trail if stays.trail else tick  # whole intervals between fixes
    slow, length, sums = _learn_lengths(stays, links, tick)
    move, weight = _learn_moves(stays, passes, passed, ground, rng)
    apart = _lengths(move, xy)
    unit = max(float(np.median(apart)) / 2, 1e-6) if len(move) else 1.0
    aim = (xy[move % R] - xy[move // R]) / np.maximum(apart, 1e-9)[:, None]
    first = np.searchsorted(move, np.arange(R + 1) * R)
    moves = kernels.Moves(move // R, move % R, first, weight, aim, _ring_of(apart, unit))
    order = np.argsort(apart)
    stride = float(apart[order][np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)]) if len(move) else 0.0
    habit, guide = _habit(stays, links, R)
    turns = np.ones(kernels.TURNS)
    alike = np.column_stack([np.log(links.apart + step), np.log(links.time / max(tick, kernels.TICK) + 1), links.trip])
    # lengths of the moves of observed ways
    link, nth = number_parts((links.b - links.a)[some])
    row = links.a[some][link] + nth
    rings = np.zeros((len(some), kernels.RINGS), dtype=np.int64)
    np.add.at(rings, (link, _ring_of(np.hypot(*(xy[stays.place[row + 1]] - xy[stays.place[row]]).T), unit)), 1)
    ways = kernels.Passages(
        moves, turns, *sum_up(moves, turns), *_detours(stays, links, xy, step), step, alike[some], links.apart[some],
        links.time[some], (links.b - links.a - 1)[some], rings,
        kernels.RINGS - 1 - (rings[:, ::-1] > 0).argmax(1), (rings.sum(0) + 1) / (rings.sum() + kernels.RINGS),
        guide, max(stride, 1e-6), tick, max(int(usual / 2 / tick), 1), slow, length, sums, habit, AGAIN, passed < FAINT,
        (groups.ways == 0) | (groups.ways == ARRIVES | LEAVES),
    )  # fmt: skip
    return _rake(ways, stays, links, some, xy, rng)


def _find_links(stays: Stays, xy: Floats) -> _Links:
    """Return the stays with passes, or nothing at all, between them."""
    stay = np.flatnonzero(stays.usage >= 0)
    chain = np.cumsum(~stays.joined)
    a, b = stay[:-1], stay[1:]
    linked = (chain[a] == chain[b]) & ((b - a > 1) | (stays.end[a] == stays.start[b]))
    a, b = a[linked], b[linked]
    return _Links(a, b, np.hypot(*(xy[stays.place[a]] - xy[stays.place[b]]).T),
                  np.maximum(stays.start[b] - stays.end[a], 0),  # calls may overlap
                  (stays.use_ways[stays.usage[a]] & LEAVES) // LEAVES)  # fmt: skip


def _on_way(links: _Links) -> tuple[Ints, Ints]:
    """Return the link and the row of every pass on a way."""
    link, nth = number_parts(links.b - links.a - 1)
    return link, links.a[link] + 1 + nth


def _learn_lengths(stays: Stays, links: _Links, tick: int) -> tuple[Floats, Floats, Floats]:
    """Return the paces of ways, the lengths of passes at each pace, and the law of their sums, in ticks."""
    link, row = _on_way(links)
    ticks = np.clip((stays.end - stays.start)[row] // tick, 1, kernels.MOST_TICKS)
    mean = (links.time / tick / np.maximum(links.b - links.a - 1, 1))[link]
    slow = np.quantile(mean, np.arange(1, kernels.PACES) / kernels.PACES) if len(mean) else np.zeros(kernels.PACES - 1)
    length = np.full((kernels.PACES, int(ticks.max(initial=1))), 1e-6)
    np.add.at(length, (np.searchsorted(slow, mean, side="right"), ticks - 1), 1.0)
    length /= length.sum(1, keepdims=True)
    sums = np.zeros((kernels.PACES, kernels.MOST_PASSES + 1, kernels.MOST_TICKS + 1))
    sums[:, 0, 0] = 1.0
    for pace in range(kernels.PACES):
        for n in range(1, kernels.MOST_PASSES + 1):
            sums[pace, n, 1:] = np.convolve(sums[pace, n - 1], length[pace])[: kernels.MOST_TICKS]
    return slow, length, sums


def _detours(stays: Stays, links: _Links, xy: Floats, step: float) -> tuple[Floats, float]:
    """Return, for each bin of distance, the detour through nearly any cell on a way, and the pull against detours."""
    link, row = _on_way(links)
    legs = [np.hypot(*(xy[stays.place[end[link]]] - xy[stays.place[row]]).T) for end in (links.a, links.b)]
    excess = legs[0] + legs[1] - links.apart[link]
    bins = np.minimum(links.apart[link] / step, kernels.LENGTHS - 1)
    out = np.zeros(kernels.LENGTHS)
    for k in range(kernels.LENGTHS):
        rows = np.argsort(np.abs(bins - k), kind="stable")[: max(ALIKE, int((np.abs(bins - k) < 1).sum()))]
        out[k] = np.quantile(excess[rows], WIDE) if len(rows) else 0.0
    return out, max(SHARP * float(excess.mean()) if len(excess) else 0.0, 1e-3)


def _habit(stays: Stays, links: _Links, R: int) -> tuple[float, float]:
    """Return how often the way between two places is the same as the last time, and 1 where most are new, else 0."""
    a, b = links.a, links.b
    code = np.zeros(len(a), dtype=np.int64)
    for j in range(1, 4):  # the first three cells tell ways apart
        forth, back = np.minimum(a + j, b), np.maximum(b - j, a)
        up = stays.place[a] < stays.place[b]
        cell = np.where(up, stays.place[forth], stays.place[back])
        code = code * (R + 1) + np.where(b - a > j, cell + 1, 0)
    low, high = np.minimum(stays.place[a], stays.place[b]), np.maximum(stays.place[a], stays.place[b])
    order = np.lexsort((a, high, low, stays.user[a]))
    low, high, who, code = low[order], high[order], stays.user[a][order], code[order]
    before = (low[1:] == low[:-1]) & (high[1:] == high[:-1]) & (who[1:] == who[:-1])
    again = before & ((code[1:] > 0) | (code[:-1] > 0))
    same = float((code[1:] == code[:-1])[again].mean()) if again.any() else 0.0
    return CHANCE * same, float(before.mean() < 0.5 if len(before) else 1.0)


def _learn_moves(
    stays: Stays, passes: Mask, passed: Floats, ground: Ground, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """
    Return the moves on ways (origin x R + goal, sorted) and how usual each is.

    A move counts its people, noisy, where these are enough; elsewhere what its length and the people who pass its two
    cells make likely. Of the many moves farther than to the next cells a few from each cell stand for all.
    """
    R, xy = len(ground.xy), ground.xy
    follows = np.flatnonzero(stays.joined & (passes | np.append(False, passes[:-1])))
    follows = follows[stays.place[follows] != stays.place[follows - 1]]
    made = np.unique((stays.place[follows - 1] * R + stays.place[follows]) + stays.user[follows] * R * R) % (R * R)
    made, people = np.unique(made, return_counts=True)
    noise = noisy(people.astype(float), rng) * (passed >= FAINT).any()
    known, count = made[noise > 0], noise[noise > 0]
    if not len(made) or not (passed >= FAINT).any() or not np.ptp(xy):
        return known, count
    strength, open_ = passed, np.flatnonzero(passed)
    near = _near_moves(np.flatnonzero(passed >= FAINT), open_, made, xy)
    unit = float(np.median(_lengths(made, xy))) / 2
    # how many people make a move, by its length, for each pair of people who pass its ends
    is_near = np.isin(made, near)
    ring, likely = _ring_of(_lengths(near, xy), unit), strength[near // R] * strength[near % R]
    rate = _rate(made[is_near], people[is_near], xy, unit, ring, likely)
    rate_of_far = partial(_rate, made[~is_near], people[~is_near], xy, unit)
    far, far_weight = _far_moves(near, strength, rate_of_far, xy, unit, rng)
    move = np.concatenate([near, far])
    weight = np.append(np.minimum(likely * rate, LEAST), far_weight)
    keep = ~np.isin(move, known) & (weight > 1e-9)
    move, back = np.unique(np.append(move[keep], known), return_inverse=True)
    return move, np.asarray(np.bincount(back, np.append(weight[keep], count)), dtype=np.float64)


def _near_moves(cells: Ints, ends: Ints, made: Ints, xy: Floats) -> Ints:
    """Return the moves between each end and the next cells, both ways, sorted: so many as hold most moves made."""
    from scipy.spatial import cKDTree

    tree = cKDTree(xy[cells])
    some = made[:: len(made) // RANKED + 1]
    rank = tree.query_ball_point(xy[some // len(xy)], _lengths(some, xy), return_length=True)
    around = int(np.clip(np.quantile(rank, MOSTLY), *AROUND))
    _, near = tree.query(xy[ends], k=min(around + 1, len(cells)))
    here, there = np.repeat(ends, np.size(near) // len(ends)), cells[np.asarray(near).ravel()]
    here, there = here[here != there], there[here != there]
    return np.unique(np.append(here * len(xy) + there, there * len(xy) + here))


def _far_moves(
    near: Ints, strength: Floats, rate_of: Callable[[Ints, Floats], Floats], xy: Floats, unit: float,
    rng: np.random.Generator,
) -> tuple[Ints, Floats]:  # fmt: skip
    """Return FAR moves beyond the near ones from each cell, drawn by weight, each with its share of all weight."""
    R, open_ = len(xy), np.flatnonzero(strength)
    chance = np.cumsum(strength[open_]) / strength.sum()
    goal = open_[np.minimum(np.searchsorted(chance, rng.random(len(open_) * SAMPLED)), len(open_) - 1)]
    move = np.repeat(open_, SAMPLED) * R + goal
    stands_for = strength[move // R] * strength.sum() / SAMPLED * ((move // R != goal) & ~np.isin(move, near))
    weight = (rate_of(_ring_of(_lengths(move, xy), unit), stands_for) * stands_for).reshape(len(open_), SAMPLED)
    running = np.cumsum(weight, axis=1)
    pick = (running[:, None] <= rng.random((len(open_), FAR, 1)) * running[:, None, -1:]).sum(2)
    chosen = move.reshape(len(open_), SAMPLED)[np.arange(len(open_))[:, None], np.minimum(pick, SAMPLED - 1)]
    move, back = np.unique(chosen.ravel(), return_inverse=True)
    return move, np.asarray(np.bincount(back, np.repeat(running[:, -1] / FAR, FAR)), dtype=np.float64)


def _lengths(move: Ints, xy: Floats) -> Floats:
    """Return the kilometres of moves."""
    return np.asarray(np.hypot(*(xy[move // len(xy)] - xy[move % len(xy)]).T))


def _ring_of(length: Floats, unit: float) -> Ints:
    """Return the bin of the length of moves."""
    return np.minimum(SCALE * np.log1p(length / unit), kernels.RINGS - 1).astype(np.int64)


def _rate(made: Ints, people: Ints, xy: Floats, unit: float, ring: Ints, likely: Floats) -> Floats:
    """Return how many people make a move of each ring for what is likely in all moves of that ring."""
    real = np.bincount(_ring_of(_lengths(made, xy), unit), people, kernels.RINGS)
    return np.asarray((real / np.maximum(np.bincount(ring, likely, kernels.RINGS), 1e-9))[ring])


def _rake(
    w: kernels.Passages, stays: Stays, links: _Links, known: Ints, xy: Floats, rng: np.random.Generator
) -> kernels.Passages:
    """Return the ways with factors by which ways drawn again have lengths, turns and cells passed twice as people's."""
    like = rng.permutation(np.flatnonzero((w.cells > 0) & (w.cells <= kernels.MOST_PASSES)))
    if not len(like) or not len(w.moves.to):
        return w
    like = np.resize(like, WAYS)
    for step in range(RAKES):
        real, drawn = np.full((2, kernels.RINGS + kernels.TURNS + 1), PRIOR)
        key = rng.integers(0, 2**63, 2).astype(np.uint64)
        kernels.count_ways(xy, w, stays.place, links.a[known[like]], like, key, real, drawn)
        factor = (real / drawn) ** (0.7 / (1 + step / 3))
        moves = w.moves._replace(weight=w.moves.weight * factor[: kernels.RINGS][w.moves.ring])
        turns = w.turns * factor[kernels.RINGS : -1]
        norm, coarse = sum_up(moves, turns)
        w = w._replace(moves=moves, turns=turns, norm=norm, coarse=coarse, again=w.again * float(factor[-1]))
    return w


def sum_up(moves: kernels.Moves, turns: Floats) -> tuple[Floats, kernels.Coarse]:
    """Return the sum of weight x factor over all that follows each move, and the coarse chain that looks ahead."""
    R, M = len(moves.first) - 1, len(moves.to)
    part = np.arctan2(moves.aim[:, 1], moves.aim[:, 0]) / (2 * np.pi) * kernels.SECTORS
    sector = np.round(part).astype(np.int64) % kernels.SECTORS
    norm, mean = np.zeros(M), np.ones((kernels.SECTORS, kernels.SECTORS))
    kernels.sum_turns(moves, turns, norm, sector, mean)
    order = np.lexsort((-moves.weight, moves.origin))
    rank = np.arange(M) - moves.first[moves.origin]
    usual = np.full((R, USUAL), -1)
    usual[moves.origin[rank < USUAL], rank[rank < USUAL]] = order[rank < USUAL]
    weight = np.bincount(moves.origin * kernels.SECTORS + sector, moves.weight, R * kernels.SECTORS)
    on = np.maximum(weight.reshape(R, -1) @ mean.T, 1e-12)
    return norm, kernels.Coarse(usual, sector, mean.T.copy(), on)
