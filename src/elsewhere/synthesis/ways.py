"""
Ways: what is seen between two stays.

How many cells a way has depends on its length; which, on how many people pass them, on the moves that people make and
on the straight line: a forward filter and backward sampling over the cells near it (`_life_kernels.draw_way`). A way
once taken is mostly taken again. Without passes in the data there are no ways.
"""

import numpy as np

from elsewhere.synthesis import _life_kernels as kernels
from elsewhere.synthesis.groups import PASSING, Stays
from elsewhere.synthesis.mapping import grid_over, noisy, square_of

SHARP = 0.5  # scale of detours, as a share of people's mean detour by one cell
CHANCE = 0.8  # of ways that are the same again, the share that habit explains


def learn_ways(stays: Stays, ground: kernels.Ground, rng: np.random.Generator) -> kernels.Passages:
    """Learn how people's ways are seen."""
    R = len(ground.xy)
    passes = stays.usage < 0
    key = np.unique(stays.user[passes] * R + stays.place[passes])
    weight = noisy(np.bincount(key % R, minlength=R).astype(float), rng)
    cells = np.flatnonzero(weight > 0)
    corner, columns, rows = grid_over(ground.xy, float(np.sqrt(ground.limits[3])))
    square = square_of(ground.xy[cells], corner, columns, rows)
    order = np.argsort(square, kind="stable")

    # the number of cells between two stays that follow each other without a gap, by distance
    stay = np.flatnonzero(~passes)
    chain = np.cumsum(~stays.joined)
    a, b = stay[:-1], stay[1:]
    linked = (chain[a] == chain[b]) & (stays.place[a] != stays.place[b])
    a, b = a[linked], b[linked]
    direct = np.hypot(*(ground.xy[stays.place[a]] - ground.xy[stays.place[b]]).T)
    step = max(float(np.sqrt(ground.limits[0])) * 0.6, 1e-6)
    number = np.zeros((kernels.LENGTHS + 2, kernels.MOST_PASSES + 1))
    bins = np.minimum(direct / step, kernels.LENGTHS - 1).astype(np.int64)
    np.add.at(number, (bins + 1, np.minimum(b - a - 1, kernels.MOST_PASSES)), 1.0)
    number = number[1:-1] + 0.5 * (number[2:] + number[:-2]) + (number.sum(0) + 1e-3) / (number.sum() + 1e-2)
    number = np.cumsum(number / number.sum(1, keepdims=True), axis=1)
    single = b - a == 2
    middle = ground.xy[stays.place[a[single] + 1]]
    legs = [np.hypot(*(middle - ground.xy[stays.place[end[single]]]).T) for end in (a, b)]
    detour = max(SHARP * float((legs[0] + legs[1] - direct[single]).mean()) if single.any() else 0.0, 1e-3)
    grains = np.maximum((stays.end - stays.start)[passes] // stays.grain, 1)
    length = np.bincount(grains, minlength=2)[1 : max(PASSING // stays.grain, 1) + 1].astype(float) + 1e-9

    # how often the way between two places is the same as the last time, forth or back
    code = np.zeros(len(a), dtype=np.int64)
    for j in range(1, 4):  # the first three cells tell ways apart
        forth, back = np.minimum(a + j, b), np.maximum(b - j, a)
        up = stays.place[a] < stays.place[b]
        cell = np.where(up, stays.place[forth], stays.place[back])
        code = code * (R + 1) + np.where(b - a > j, cell + 1, 0)
    low, high = np.minimum(stays.place[a], stays.place[b]), np.maximum(stays.place[a], stays.place[b])
    order_of = np.lexsort((a, high, low, stays.user[a]))
    low, high, who, code = low[order_of], high[order_of], stays.user[a][order_of], code[order_of]
    again = (low[1:] == low[:-1]) & (high[1:] == high[:-1]) & (who[1:] == who[:-1]) & ((code[1:] > 0) | (code[:-1] > 0))
    habit = CHANCE * float((code[1:] == code[:-1])[again].mean()) if again.any() else 0.0

    # moves along ways, and how many people make them
    follows = np.flatnonzero(stays.joined & (passes | np.append(False, passes[:-1])))
    move = stays.place[follows - 1] * R + stays.place[follows]
    pairs = np.unique(np.column_stack([move, stays.user[follows]]), axis=0)
    moves, people = np.unique(pairs[:, 0], return_counts=True)
    movers = noisy(people.astype(float), rng)
    return kernels.Passages(
        cells[order], weight[cells][order], np.searchsorted(square[order], np.arange(columns * rows + 1)), corner,
        columns, rows, number, step, detour, np.cumsum(length / length.sum()), moves[movers > 0], movers[movers > 0],
        habit,
    )  # fmt: skip
