"""Compiled loops of the tempo sampler: forward filter over (place, just moved), backward sample that avoids returns."""

import numpy as np

from elsewhere._jit import njit
from elsewhere.synthesis._kernels import NO_PATH, OK, UNFAKEABLE, open_stream, pick, semantic_seed, uniform


@njit
def forward_step(p, rows, cols, alpha, stay, out):
    """
    One step of the filter; `alpha[i, b]` is that of candidate i with b = 1 if the last step was a move.

    Staying at r has weight p(r, r) stay[b] and leads to b = 0; moving to r' has weight p(r, r') and leads to b = 1.
    The result is scaled to sum 1; returns False if it is 0 throughout.
    """
    n, m = len(rows), len(cols)
    for j in range(m):
        out[j, 0], out[j, 1] = 0.0, 0.0
    same = 0
    for i in range(n):
        row, a = p[rows[i]], alpha[i, 0] + alpha[i, 1]
        while same < m and cols[same] < rows[i]:
            same += 1
        stays = same < m and cols[same] == rows[i]
        for j in range(same):
            out[j, 1] += a * row[cols[j]]
        for j in range(same + 1 if stays else same, m):
            out[j, 1] += a * row[cols[j]]
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
def walk(chain, offset, places, stay, back, stream, fake, seen):
    """
    A trace through the candidate sets at one tempo; fills `fake`, False if no path is feasible.

    `stay` (2,) multiplies the odds of staying after a stay and after a move; `back` those of a place that is visited
    again later. `seen` (R,) comes in and goes out all False.
    """
    L = len(fake)
    alpha = np.zeros((len(places), 2))
    for i in range(offset[1]):
        alpha[i, 0] = chain.first[places[i]]
    for t in range(L - 1):
        a, b, c = offset[t], offset[t + 1], offset[t + 2]
        p = chain.table[chain.pair[t]]
        if not forward_step(p, places[a:b], places[b:c], alpha[a:b], stay, alpha[b:c]):
            return False
    after, moved = -1, 0
    for t in range(L - 1, -1, -1):
        a, b = offset[t], offset[t + 1]
        weight = np.zeros(2 * (b - a))
        for i in range(a, b):
            r = places[i]
            for m in range(2):
                x = alpha[i, m]
                if after >= 0 and moved == 0:
                    x = x * chain.table[chain.pair[t], r, r] * stay[m] if r == after else 0.0
                elif after >= 0:
                    x = 0.0 if r == after else x * chain.table[chain.pair[t], r, after]
                    x *= back if seen[r] else 1.0
                weight[2 * (i - a) + m] = x
        drawn = pick(weight, stream)
        if drawn < 0:
            break
        after, moved = places[a + drawn // 2], drawn % 2
        fake[t] = after
        seen[after] = True
    for t in range(L):
        if fake[t] >= 0:
            seen[fake[t]] = False
    return drawn >= 0


@njit
def attempts(seeds, rows, tries, classes, blur, chain, stay, back, key, fakes, group, status):
    """One attempt per row: semantic seed, a tempo drawn from all, then the walk; fills `fakes`, `group`, `status`."""
    seen = np.zeros(len(classes.label), dtype=np.bool_)
    for b in range(len(seeds)):
        stream = open_stream(key, tries[b], rows[b])
        offset, places, _ = semantic_seed(seeds[b], classes, blur, stream)
        # the tempo is the population's, not the seed's: how much a seed moves is not for its fakes to tell
        group[b] = int(uniform(stream) * len(back))
        for t in range(fakes.shape[1]):
            fakes[b, t] = -1
        status[b] = UNFAKEABLE
        if len(places) > 0:
            g = group[b]
            found = walk(chain, offset, places, stay[g], back[g], stream, fakes[b], seen)
            status[b] = OK if found else NO_PATH
            if not found:
                for t in range(fakes.shape[1]):
                    fakes[b, t] = -1
