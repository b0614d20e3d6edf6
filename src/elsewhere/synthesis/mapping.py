"""
WHERE: one mapping per life from its own places to real places, drawn jointly.

P(sigma) ~ product over own places of W_c(sigma), the people who use a place in way c, times factors of the distances
between tied places (home and everything, main place and everything, places that follow each other), times factors of
usual moves. W_c and moves count people, with noise. Places that few people visit are mostly not published, which is
drawn; the people who use them count for the nearest published places, so that no part of the map empties. The seed's
own contribution is left out when its fake is placed. The factors of distances are raked: places of people are drawn
again with the factors so far, and each factor grows by how much rarer its bin is among them than among people.
"""

from dataclasses import dataclass, field

import numpy as np

from elsewhere.data.visits import Floats, Ints, Locations
from elsewhere.synthesis import _life_kernels as kernels
from elsewhere.synthesis.groups import Groups, Stays

VISITORS, DRAWN = 3.0, 2.0  # people who must be seen at a place, and the scale of the noise on their number
BLUR = 0.7  # scale of the noise on how many use it in which way
LITTLE, NEAREST = 0.05, 3  # least weight of a candidate; published places that an unpublished one counts for
KEPT = 0.3  # what must be left of that number without the seed
LEAST, NOISE = 4.0, 1.5  # people who must pass a cell or make a move, and the scale of the noise
RAKES = 8
SWEEPS = 4
RAKED = 400  # people whose places are drawn again
SIDE = 2.0  # squares of the grid, in usual lengths of a move
TRUST = 12.0  # pairs that the prior of a factor counts for


@dataclass(frozen=True, eq=False)
class Where:
    """What places are to people: the ground that lives are placed on."""

    ground: kernels.Ground = field(repr=False)
    mine: Ints = field(repr=False)  # candidates that each person counts for, and by how much
    mine_part: Floats = field(repr=False)
    mine_first: Ints = field(repr=False)  # (people + 1,)


def noisy(count: Floats, rng: np.random.Generator) -> Floats:
    """Return counts of people with Laplace noise; those that come out below LEAST become 0."""
    out = count + rng.laplace(0.0, NOISE, count.shape)
    return np.where(out >= LEAST, out, 0.0)


def learn_mapping(stays: Stays, groups: Groups, locations: Locations, rng: np.random.Generator) -> Where:
    """Learn where people live their classes, and how far apart."""
    R, K = len(locations), groups.K
    xy = locations.planar() if locations.has_coordinates else np.zeros((R, 2))
    cell, count = np.unique(groups.use_class * R + stays.use_place, return_counts=True)
    shared = shared_places(stays, R, rng)
    open_ = _open_cells(cell, shared, K, R)
    to, part = _nearest_open(cell, open_, xy, R) if locations.has_coordinates else _same_open(cell, open_)
    people_of = np.bincount(to.ravel(), (part * count[:, None]).ravel(), len(open_))
    weight: Floats = np.maximum(people_of + rng.laplace(0.0, BLUR, len(open_)), LITTLE)
    of_cell = cell
    cell = open_

    # own places of each person, and how often each follows each
    rows = np.flatnonzero(stays.usage >= 0)
    chain = np.cumsum(~stays.joined)
    near = np.append(False, (stays.user[rows][1:] == stays.user[rows][:-1]))
    day = stays.start[rows] // 86_400
    near &= np.append(False, (chain[rows][1:] == chain[rows][:-1]) | (day[1:] == day[:-1]))
    a, b = stays.usage[rows][np.flatnonzero(near) - 1], stays.usage[rows][near]
    a, b = a[a != b], b[a != b]
    size = np.bincount(stays.use_user, minlength=stays.people)
    person_first = np.append(0, np.cumsum(size))
    moves_first = np.append(0, np.cumsum(size**2))
    owner = stays.use_user[a]
    local = person_first[owner]
    moves = np.bincount(moves_first[owner] + (a - local) * size[owner] + b - local, minlength=moves_first[-1])
    length = np.hypot(*(xy[stays.use_place[a]] - xy[stays.use_place[b]]).T)
    length = length[length > 0]
    unit = float(np.median(length)) / 2 if len(length) else 1.0
    limits = (unit * (2 ** (np.arange(1, kernels.BINS) / 2) - 1)) ** 2

    corner, columns, height = grid_over(xy, SIDE * 2 * unit)
    square = square_of(xy, corner, columns, height)
    order = np.lexsort((cell % R, square[cell % R], cell // R))
    cell, weight = cell[order], weight[order]
    place, cls = cell % R, cell // R
    squares = columns * height
    first = np.searchsorted(cls, np.arange(K + 1))
    begin = np.searchsorted(cls * squares + square[place], (np.arange(K)[:, None] * squares + np.arange(squares + 1)))
    pair, people = _movers(stays.use_place[a], stays.use_place[b], owner, R)
    ground = kernels.Ground(
        xy, limits, place, first, weight, weight.copy(), np.append(0.0, np.cumsum(weight)), begin, corner, columns,
        height, np.zeros((2, 2, K, kernels.BINS)), np.zeros(kernels.BINS), np.zeros(0, np.int64), np.zeros(0),
    )  # fmt: skip
    if locations.has_coordinates:
        ground = _rake(ground, stays, groups, moves, moves_first, person_first, rng)
    keep = noisy(people.astype(float), rng)
    if (keep > 0).any() and not locations.has_coordinates:
        ground = _usual_moves(ground, pair[keep > 0], keep[keep > 0], R)

    # which candidates each person counts for
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    use = np.searchsorted(of_cell, groups.use_class * R + stays.use_place)
    some = part[use] > 0
    who = np.repeat(stays.use_user, some.sum(1))
    return Where(ground, back[to[use][some]], part[use][some], np.searchsorted(who, np.arange(stays.people + 1)))


def shared_places(stays: Stays, R: int, rng: np.random.Generator) -> Floats:
    """Return the noisy number of visitors of each place, 0 where that is below VISITORS."""
    visitors = np.bincount(np.unique(stays.user * R + stays.place) % R, minlength=R)
    out = visitors + rng.laplace(0.0, DRAWN, R)
    out = np.where((out >= VISITORS) & (visitors > 0), out, 0.0)
    return out if out.any() else (visitors > 0).astype(float)


def _open_cells(cell: Ints, shared: Floats, K: int, R: int) -> Ints:
    """Return the (class, place) cells of published places, sorted; a class without any gets all published places."""
    kept = cell[shared[cell % R] > 0]
    missing = np.setdiff1d(np.arange(K), kept // R)
    return np.sort(np.concatenate([kept, (missing[:, None] * R + np.flatnonzero(shared > 0)).ravel()]))


def _same_open(cell: Ints, open_: Ints) -> tuple[Ints, Floats]:
    """Return the open cell that each cell is, (n, 1), and whether it is one."""
    at = np.minimum(np.searchsorted(open_, cell), len(open_) - 1)
    return at[:, None], (open_[at] == cell).astype(float)[:, None]


def _nearest_open(cell: Ints, open_: Ints, xy: Floats, R: int) -> tuple[Ints, Floats]:
    """Return (n, NEAREST) the open cells that a cell counts for, and by how much: itself, or the nearest ones."""
    from scipy.spatial import cKDTree

    at, same = _same_open(cell, open_)
    to, part = np.repeat(at, NEAREST, axis=1), np.zeros((len(cell), NEAREST))
    part[:, 0] = same[:, 0]
    for c in np.unique(cell // R):
        lost = np.flatnonzero((cell // R == c) & (part[:, 0] == 0))
        rows = np.flatnonzero(open_ // R == c)
        if len(lost) and len(rows):
            near = min(NEAREST, len(rows))
            _, found = cKDTree(xy[open_[rows] % R]).query(xy[cell[lost] % R], k=near)
            to[lost[:, None], np.arange(near)] = rows[np.asarray(found).reshape(len(lost), near)]
            part[lost[:, None], np.arange(near)] = 1 / near
    return to, part


def grid_over(xy: Floats, side: float) -> tuple[Floats, int, int]:
    """Return corner and side of a grid over the map, its columns and rows: at most about 4,096 squares."""
    corner, size = xy.min(0), np.ptp(xy, axis=0)
    side = max(side, float(np.sqrt(size.prod() / 4096)), float(size.max()) / 2048, 1e-6)
    return np.array([*corner, side]), int(size[0] / side) + 1, int(size[1] / side) + 1


def square_of(xy: Floats, corner: Floats, columns: int, rows: int) -> Ints:
    """Return the number of the square of each point."""
    at = np.minimum((xy - corner[:2]) / corner[2], (columns - 1, rows - 1)).astype(np.int64)
    return np.asarray(at[:, 1] * columns + at[:, 0])


def _movers(a: Ints, b: Ints, owner: Ints, R: int) -> tuple[Ints, Ints]:
    """Return the unordered pairs of places that follow each other in somebody's life, and how many people's."""
    key = np.minimum(a, b) * R + np.maximum(a, b)
    order = np.lexsort((key, owner))
    key, owner = key[order], owner[order]
    distinct = np.append(True, (key[1:] != key[:-1]) | (owner[1:] != owner[:-1])) if len(key) else np.zeros(0, bool)
    return np.unique(key[distinct], return_counts=True)


def _rake(
    ground: kernels.Ground, stays: Stays, groups: Groups, moves: Ints, moves_first: Ints, person_first: Ints,
    rng: np.random.Generator,
) -> kernels.Ground:  # fmt: skip
    """Return the ground with factors under which tied places are as far apart, and used as often, as people's are."""
    n = np.bincount(stays.use_user, minlength=stays.people)
    people = np.flatnonzero((n > 1) & (n <= 200))
    people = rng.permutation(people)[:RAKED]
    take = np.concatenate([np.arange(person_first[u], person_first[u + 1]) for u in people] or [np.zeros(0, int)])
    flow = np.concatenate([moves[moves_first[u] : moves_first[u + 1]] for u in people] or [np.zeros(0, int)])
    first, flow_first = np.append(0, np.cumsum(n[people])), np.append(0, np.cumsum(n[people] ** 2))
    rows = np.flatnonzero(stays.usage >= 0)
    time = np.bincount(stays.usage[rows], np.maximum(stays.end[rows] - stays.start[rows], 60), len(stays.use_user))
    K, R = groups.K, len(ground.xy)
    cls = np.repeat(np.arange(K), np.diff(ground.first))
    cell = cls * R + ground.place
    order = np.argsort(cell)
    square = cls * ground.columns * ground.rows + square_of(
        ground.xy[ground.place], ground.corner, ground.columns, ground.rows
    )
    goal = ground.people / np.maximum(np.bincount(cls, ground.people, K), 1e-9)[cls]
    again = np.empty(len(take), dtype=np.int64)
    for step in range(RAKES):
        damp = 0.7 / (1 + step / 3)  # factors of several ties act together
        real, drawn = np.zeros((5, K, kernels.BINS)), np.zeros((5, K, kernels.BINS))
        key = rng.integers(0, 2**63, 2).astype(np.uint64)
        kernels.count_distances(
            ground, groups.role, first, groups.use_class[take], stays.use_place[take], time[take], flow, flow_first,
            3, key, real, drawn, again,
        )  # fmt: skip
        # classes with few pairs lean on all classes
        total = real.sum(1, keepdims=True) + TRUST, drawn.sum(1, keepdims=True) + TRUST
        base = np.log(total[0] / total[0].sum(2, keepdims=True)) - np.log(total[1] / total[1].sum(2, keepdims=True))
        prior = drawn.sum(2, keepdims=True) / np.maximum(drawn.sum(2, keepdims=True), 1) * TRUST / kernels.BINS
        few = np.log(real + prior + 1e-3) - np.log(drawn + prior + 1e-3)
        pairs = drawn.sum(2, keepdims=True)
        change = (pairs * few + 3 * TRUST * base) / (pairs + 3 * TRUST)
        change = damp * np.clip(change, -1.0, 1.0)
        anchor = ground.anchor + change[:4].reshape(2, 2, K, kernels.BINS)
        used = groups.use_class[take][again >= 0] * R + again[again >= 0]
        count = np.bincount(order[np.searchsorted(cell[order], used)], minlength=len(cell)).astype(float)
        wanted = goal * np.bincount(cls, count, K)[cls]
        weight = ground.weight * _nearer(wanted, count, np.arange(len(cell)), 2.0, damp)
        weight *= _nearer(wanted, count, square, 4.0, damp)
        ground = ground._replace(
            anchor=np.clip(anchor, -6, 6),
            step=np.clip(ground.step + change[4, 0], -6, 6),
            weight=weight,
            total=np.append(0.0, np.cumsum(weight)),
        )
    return ground


def _nearer(wanted: Floats, count: Floats, group: Ints, prior: float, damp: float) -> Floats:
    """Return factors that bring counts, summed by group, nearer to what is wanted."""
    factor = (np.bincount(group, wanted) + prior) / (np.bincount(group, count) + prior)
    return np.asarray((np.clip(factor, 0.3, 3.0) ** damp)[group])


def _usual_moves(ground: kernels.Ground, pair: Ints, people: Floats, R: int) -> kernels.Ground:
    """Return the ground with a factor for pairs that more people have than their weights make likely."""
    use = np.bincount(ground.place, ground.weight, R)
    a, b = pair // R, pair % R
    total = max(use.sum(), 1e-9)
    expected = use[a] * use[b] / total + 1.0
    order = np.argsort(pair)
    factor = np.clip(np.log1p(people / expected), 0.0, 2.0) * 0.5
    return ground._replace(moves=pair[order], usual=factor[order])
