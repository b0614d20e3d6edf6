"""Compiled loops of the tempo sampler: forward filter over (place, just moved), backward sample that avoids returns."""

import math

import numpy as np

from elsewhere._jit import njit
from elsewhere.synthesis._kernels import NO_PATH, OK, UNFAKEABLE, open_stream, pick, semantic_seed, uniform

TURNS = 5


@njit
def forward_step(p, length, rows, cols, alpha, stay, far, out):
    """
    One step of the filter; `alpha[i, b]` is that of candidate i with b = 1 if the last step was a move.

    Staying at r has weight p(r, r) stay[b] and leads to b = 0; moving to r' has weight p(r, r') far[length(r, r')] and
    leads to b = 1. The result is scaled to sum 1; returns False if it is 0 throughout.
    """
    n, m = len(rows), len(cols)
    for j in range(m):
        out[j, 0], out[j, 1] = 0.0, 0.0
    same = 0
    for i in range(n):
        row, long, a = p[rows[i]], length[rows[i]], alpha[i, 0] + alpha[i, 1]
        while same < m and cols[same] < rows[i]:
            same += 1
        stays = same < m and cols[same] == rows[i]
        for j in range(same):
            out[j, 1] += a * row[cols[j]] * far[long[cols[j]]]
        for j in range(same + 1 if stays else same, m):
            out[j, 1] += a * row[cols[j]] * far[long[cols[j]]]
        if stays:
            out[same, 0] += row[rows[i]] * (alpha[i, 0] * stay[0] + alpha[i, 1] * stay[1])
    total = 0.0
    for j in range(m):
        total += out[j, 0] + out[j, 1]
    if not total > 0.0:
        return False
    for j in range(m):
        out[j, 0] /= total
        out[j, 1] /= total
    return True


@njit
def bend(xy, a, b, c):
    """Which bin of `TURNS` the turn from the move a -> b to the move b -> c is in: 0 about face, 4 straight on."""
    x, y = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
    v, w = xy[c, 0] - xy[b, 0], xy[c, 1] - xy[b, 1]
    size = math.sqrt((x * x + y * y) * (v * v + w * w))
    cosine = (x * v + y * w) / size if size > 0.0 else 0.0
    turn = 0
    for bound in (-0.8, -0.3, 0.3, 0.8):
        turn += cosine > bound
    return turn


@njit
def bends(r, xy, out):
    """Number of turns by bin, (2, TURNS), at once (1) and after a stay (0); a missing instant (-1) ends a trip."""
    for i in range(len(r)):
        a, b, paused = -1, -1, False
        for t in range(r.shape[1]):
            c = r[i, t]
            if c < 0:
                a, b = -1, -1
            elif c == b:
                paused = True
            else:
                if a >= 0:
                    out[0 if paused else 1, bend(xy, a, b, c)] += 1.0
                a, b, paused = b, c, False


@njit
def filtered(chain, ground, offset, places, stay, far, start, alpha):
    """The forward filter through the candidate sets, from all of the first or from `start` alone; fills `alpha`."""
    length, _, part = ground
    for i in range(offset[1]):
        alpha[i, 0] = chain.first[places[i]] if start < 0 or places[i] == start else 0.0
        alpha[i, 1] = 0.0
    for t in range(len(offset) - 2):
        a, b, c = offset[t], offset[t + 1], offset[t + 2]
        p = chain.table[chain.pair[t]]
        if not forward_step(p, length, places[a:b], places[b:c], alpha[a:b], stay[part[t]], far, alpha[b:c]):
            return False
    return True


@njit
def _ends(offset, places, alpha, end):
    """Weights of the last instant, with and without a move into it; of the place `end` alone unless it is -1."""
    a, b = offset[-2], offset[-1]
    weight = np.zeros(2 * (b - a))
    for i in range(a, b):
        if end < 0 or places[i] == end:
            weight[2 * (i - a)], weight[2 * (i - a) + 1] = alpha[i, 0], alpha[i, 1]
    return weight


@njit
def walk(chain, ground, offset, places, pace, stream, fake, seen):
    """
    A trace through the candidate sets at one tempo; fills `fake`, False if no path is feasible.

    `pace.stay` (P, 2) multiplies the odds of staying, by part of the day, after a stay and after a move; `pace.back`
    those of a place that is visited again later; `pace.far` those of a move by its length; `pace.turn` (2, TURNS) those
    of a place from which the next move turns so, after a stay (0) or at once (1). With probability `pace.home` the
    trace begins where it ends, if it can: the end is drawn first, then the way. `ground` has the `length` of moves,
    (R, R), `xy` (R, 2), or (0, 2) where nothing turns, and the part of the day of each step, (L,). `seen` (R,) comes in
    and goes out all False.
    """
    length, xy, part = ground
    stay, back, home, turn, far = pace
    L = len(fake)
    alpha = np.zeros((len(places), 2))
    if not filtered(chain, ground, offset, places, stay, far, -1, alpha):
        return False
    end = -1
    if L > 1 and uniform(stream) < home:
        drawn = pick(_ends(offset, places, alpha, -1), stream)
        end = places[offset[L - 1] + drawn // 2] if drawn >= 0 else -1
        if (
            not filtered(chain, ground, offset, places, stay, far, end, alpha)
            or not _ends(offset, places, alpha, end).any()
        ):
            # no way back from where it begins: it need not end there
            end = -1
            filtered(chain, ground, offset, places, stay, far, -1, alpha)
    after, moved, beyond, at_once = -1, 0, -1, 0
    for t in range(L - 1, -1, -1):
        a, b = offset[t], offset[t + 1]
        weight = _ends(offset, places, alpha, end) if t == L - 1 else np.zeros(2 * (b - a))
        for i in range(a, b if t < L - 1 else a):
            r = places[i]
            for m in range(2):
                x = alpha[i, m]
                if moved == 0:
                    x = x * chain.table[chain.pair[t], r, r] * stay[part[t], m] if r == after else 0.0
                else:
                    x = 0.0 if r == after else x * chain.table[chain.pair[t], r, after] * far[length[r, after]]
                    x *= back if seen[r] and r != end else 1.0
                    if beyond >= 0 and x > 0.0 and len(xy) > 0:
                        x *= turn[at_once, bend(xy, r, after, beyond)]
                weight[2 * (i - a) + m] = x
        drawn = pick(weight, stream)
        if drawn < 0:
            break
        here = places[a + drawn // 2]
        if after >= 0 and here != after:
            beyond, at_once = after, 1
        elif after >= 0:
            at_once = 0
        after, moved = here, drawn % 2
        fake[t] = after
        seen[after] = True
    for t in range(L):
        if fake[t] >= 0:
            seen[fake[t]] = False
    return drawn >= 0


@njit
def attempts(seeds, rows, tries, classes, blur, chain, ground, tempo, key, fakes, group, status):
    """One attempt per row: semantic seed, a tempo drawn from all, then the walk; fills `fakes`, `group`, `status`."""
    share, stay, back, home, turn, far = tempo
    seen = np.zeros(len(classes.label), dtype=np.bool_)
    for b in range(len(seeds)):
        stream = open_stream(key, tries[b], rows[b])
        offset, places, _ = semantic_seed(seeds[b], classes, blur, stream)
        # the tempo is the population's, not the seed's: how much a seed moves is not for its fakes to tell
        g = pick(share, stream)
        group[b] = g
        for t in range(fakes.shape[1]):
            fakes[b, t] = -1
        status[b] = UNFAKEABLE
        if len(places) > 0:
            pace = (stay[g], back[g], home[g], turn, far[g])
            found = walk(chain, ground, offset, places, pace, stream, fakes[b], seen)
            status[b] = OK if found else NO_PATH
            if not found:
                for t in range(fakes.shape[1]):
                    fakes[b, t] = -1
