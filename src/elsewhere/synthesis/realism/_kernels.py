"""Compiled loops of the realism filter: the statistics of days, and a small boosted forest."""

import math

import numpy as np

from elsewhere._jit import njit
from elsewhere.synthesis._kernels import open_stream, uniform

DEPTH = 3
NODES = 2**DEPTH - 1
LEAVES = 2**DEPTH


@njit
def days(r, xy, out):
    """
    Statistics that need nothing but the day itself, one row each; see `features.FEATURES`, the first eleven.

    `xy` (R, 2) are the places in kilometres, or (0, 2) without coordinates: distances are then 1 between places.
    """
    N, L = r.shape
    flat = len(xy) == 0
    for i in range(N):
        day = r[i]
        order = np.sort(day)
        distinct, entropy, top, run = 0, 0.0, 0, 0
        for t in range(L):
            run += 1
            if t + 1 == L or order[t + 1] != order[t]:
                distinct += 1
                entropy -= run / L * math.log(run / L)
                top = max(top, run)
                run = 0
        moves, stay, longest_stay = 0, 1, 1
        path, longest, turn, turns = 0.0, 0.0, 0.0, 0
        before_x, before_y, before = 0.0, 0.0, 0.0
        for t in range(L - 1):
            a, b = day[t], day[t + 1]
            if a == b:
                stay += 1
                longest_stay = max(longest_stay, stay)
                continue
            stay = 1
            moves += 1
            x = 1.0 if flat else xy[b, 0] - xy[a, 0]
            y = 0.0 if flat else xy[b, 1] - xy[a, 1]
            step = math.sqrt(x * x + y * y)
            path += step
            longest = max(longest, step)
            if not flat and before * step > 0.0:
                turn += (x * before_x + y * before_y) / (before * step)
                turns += 1
            before_x, before_y, before = x, y, step
        spread = 0.0
        if not flat:
            mean_x, mean_y = 0.0, 0.0
            for place in day:
                mean_x += xy[place, 0] / L
                mean_y += xy[place, 1] / L
            for place in day:
                spread += ((xy[place, 0] - mean_x) ** 2 + (xy[place, 1] - mean_y) ** 2) / L
        out[i, 0] = moves
        out[i, 1] = distinct
        out[i, 2] = entropy
        out[i, 3] = top / L
        out[i, 4] = longest_stay
        out[i, 5] = (moves - (distinct - 1)) / moves if moves > 0 else 0.0
        out[i, 6] = math.sqrt(spread)
        out[i, 7] = longest
        out[i, 8] = path
        out[i, 9] = turn / turns if turns > 0 else 0.0
        out[i, 10] = 1.0 if day[0] == day[L - 1] else 0.0


@njit
def boost(binned, bins, real, weight, held, trees, rate, ridge, least, feature, cut, leaf, loss):
    """
    Boosted trees of depth 3 for ln(real / fake); fills `feature`, `cut` (trees, 7), `leaf` (trees, 8) and `loss`.

    Rows of weight 0 teach nothing; `loss[k]` is the log loss over `held` with k + 1 trees. A node sends bin <= cut to
    the left; one that finds no split sends everything left (cut 255).
    """
    N, F = binned.shape
    score = np.zeros(N)
    slope, bend = np.empty(N), np.empty(N)
    for k in range(trees):
        for i in range(N):
            p = 1.0 / (1.0 + math.exp(-score[i]))
            slope[i] = weight[i] * (real[i] - p)
            bend[i] = weight[i] * p * (1.0 - p)
        node = np.zeros(N, dtype=np.int64)
        for level in range(DEPTH):
            width, base = 2**level, 2**level - 1
            tally = np.zeros((width, F, bins, 3))
            for i in range(N):
                if weight[i] > 0.0:
                    cell = tally[node[i]]
                    for f in range(F):
                        b = binned[i, f]
                        cell[f, b, 0] += slope[i]
                        cell[f, b, 1] += bend[i]
                        cell[f, b, 2] += weight[i]
            for n in range(width):
                feature[k, base + n], cut[k, base + n] = 0, 255
                whole = tally[n, 0].sum(axis=0)
                best = whole[0] ** 2 / (whole[1] + ridge) + 1e-9
                for f in range(F):
                    g, h, w = 0.0, 0.0, 0.0
                    for b in range(bins - 1):
                        g += tally[n, f, b, 0]
                        h += tally[n, f, b, 1]
                        w += tally[n, f, b, 2]
                        if w < least or whole[2] - w < least:
                            continue
                        gain = g * g / (h + ridge) + (whole[0] - g) ** 2 / (whole[1] - h + ridge)
                        if gain > best:
                            best, feature[k, base + n], cut[k, base + n] = gain, f, b
            for i in range(N):
                at = base + node[i]
                node[i] = 2 * node[i] + (1 if binned[i, feature[k, at]] > cut[k, at] else 0)
        up, down = np.zeros(LEAVES), np.zeros(LEAVES)
        for i in range(N):
            up[node[i]] += slope[i]
            down[node[i]] += bend[i]
        for n in range(LEAVES):
            leaf[k, n] = rate * up[n] / (down[n] + ridge)
        total = 0.0
        for i in range(N):
            score[i] += leaf[k, node[i]]
            if held[i] > 0.0:
                total += held[i] * math.log1p(math.exp(-score[i] if real[i] > 0.5 else score[i]))
        loss[k] = total


@njit
def score(binned, feature, cut, leaf, out):
    """ln(real / fake) of every row: the sum of the leaves it falls into."""
    for i in range(len(binned)):
        total = 0.0
        for k in range(len(feature)):
            node = 0
            for _ in range(DEPTH):
                node = 2 * node + (2 if binned[i, feature[k, node]] > cut[k, node] else 1)
            total += leaf[k, node - NODES]
        out[i] = total


@njit
def coins(key, tries, rows, out):
    """One number of [0, 1) per attempt, from a stream of its own as the attempt has."""
    for i in range(len(out)):
        out[i] = uniform(open_stream(key, tries[i], rows[i]))
