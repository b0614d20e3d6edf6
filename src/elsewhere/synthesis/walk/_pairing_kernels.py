"""Compiled loops of the pairing: weights of walks for seeds, margins, and which walk is taken."""

import math

import numpy as np

from elsewhere._jit import njit
from elsewhere.synthesis.walk._walk_kernels import BLOCK


@njit
def fill_kernel(skeleton, classes, slots, beta, agreed, out):
    """
    Fill `out` (S, N) with exp(beta (a - most) / slots[s]): walk f agrees with seed s at a slots, the best at `most`.

    A walk, of `classes` (L, N), agrees where it has the class of the skeleton (S, L); -1 is none. `agreed` (N,) is room
    for numbers of slots.
    """
    S, L = skeleton.shape
    weight = np.empty(L + 1, dtype=np.float32)
    for s in range(S):
        agreed[:] = 0
        for t in range(L):
            c, column = skeleton[s, t], classes[t]
            if c >= 0:
                for f in range(len(agreed)):
                    agreed[f] += column[f] == c
        most, row = np.int64(agreed.max()), out[s]
        for a in range(most + 1):
            weight[a] = math.exp(beta * (a - most) / slots[s])
        for f in range(len(agreed)):
            row[f] = weight[agreed[f]]


@njit
def rake(value, goal, rounds, damped, most, w):
    """
    Change the weights `w` (N,) until their sums by `value` (M, N) of each margin come near its `goal` (M, B).

    Iterative proportional fitting: of every margin in turn the weights are multiplied by (goal / sum) ** damped, and
    after each round no weight is more than `most` of the whole.
    """
    M, N = value.shape
    sums, factor = np.zeros((4, goal.shape[1])), np.empty(goal.shape[1])
    for _ in range(rounds):
        for k in range(M):
            # four sums of each value: additions need not wait for one another
            sums[:] = 0.0
            for f in range(N):
                sums[f & 3, value[k, f]] += w[f]
            for b in range(len(factor)):
                now = (sums[0, b] + sums[1, b]) + (sums[2, b] + sums[3, b])
                factor[b] = (goal[k, b] / now) ** damped if now > 0.0 else 1.0
            for f in range(N):
                w[f] *= factor[value[k, f]]
        total = w.sum()
        for f in range(N):
            w[f] = min(w[f] / total, most)


@njit
def variance_of_visits(walks, goal, out):
    """Fill `out` (R,) with the variance of the slots that walks (N, L) spend at each place; `goal` (N,) sums to 1."""
    R = len(out)
    mean, slots = np.zeros(R), np.zeros(R, dtype=np.int64)
    out[:] = 0.0
    for f in range(len(walks)):
        for t in range(walks.shape[1]):
            slots[walks[f, t]] += 1
        for t in range(walks.shape[1]):
            p = walks[f, t]
            mean[p] += goal[f] * slots[p]
            out[p] += goal[f] * slots[p] * slots[p]
            slots[p] = 0
    for p in range(R):
        out[p] = max(out[p] - mean[p] * mean[p], 0.0)


@njit
def sum_over_slots(walks, worth, out):
    """Fill `out` (N,) with the sum of `worth` (R,) over the slots of each walk (N, L)."""
    for f in range(len(walks)):
        total = 0.0
        for t in range(walks.shape[1]):
            total += worth[walks[f, t]]
        out[f] = total


@njit
def visitors_by_place(r, R):
    """
    Return the traces that visit a place, each once: numbers start[p] to start[p + 1] of the second; -1 is no
    place.
    """
    start, last = np.zeros(R + 1, dtype=np.int64), np.full(R, -1)
    for i in range(len(r)):
        for t in range(r.shape[1]):
            if r[i, t] >= 0 and last[r[i, t]] != i:
                last[r[i, t]] = i
                start[r[i, t] + 1] += 1
    start = np.cumsum(start)
    free, trace = start.copy(), np.empty(start[R], dtype=np.int32)
    last[:] = -1
    for i in range(len(r)):
        for t in range(r.shape[1]):
            if r[i, t] >= 0 and last[r[i, t]] != i:
                last[r[i, t]] = i
                trace[free[r[i, t]]] = i
                free[r[i, t]] += 1
    return start, trace


@njit
def forbid_shared_places(seeds, walks, R, limit, out):
    """Set `out` (S, N) to 0 where seed s and walk f have more than `limit[s]` places in common."""
    start, trace = visitors_by_place(walks, R)
    shared, met, last = np.zeros(len(walks), dtype=np.int64), np.empty(len(walks), dtype=np.int64), np.full(R, -1)
    for s in range(len(seeds)):
        n = 0
        for t in range(seeds.shape[1]):
            place = seeds[s, t]
            if place < 0 or last[place] == s:
                continue
            last[place] = s
            for m in range(start[place], start[place + 1]):
                f = trace[m]
                if shared[f] == 0:
                    met[n] = f
                    n += 1
                shared[f] += 1
        for j in range(n):
            if shared[met[j]] > limit[s]:
                out[s, met[j]] = 0.0
            shared[met[j]] = 0


@njit
def take_walks(K, V, rows, uniform, out):
    """
    Fill `out` with a walk for each of `rows` in turn, by weights K V (S, N), whose V becomes 0; -1 where none
    is left.
    """
    N = K.shape[1]
    blocks = (N + BLOCK - 1) // BLOCK
    passed = np.empty(blocks)
    for i in range(len(rows)):
        row, total = K[rows[i]], 0.0
        for b in range(blocks):
            some, worth = row[b * BLOCK : (b + 1) * BLOCK], V[b * BLOCK : (b + 1) * BLOCK]
            s0, s1, n = 0.0, 0.0, len(some)
            for f in range(0, n - 1, 2):
                s0 += some[f] * worth[f]
                s1 += some[f + 1] * worth[f + 1]
            total += s0 + s1 + (some[n - 1] * worth[n - 1] if n % 2 == 1 else 0.0)
            passed[b] = total
        point, found, b = uniform[i] * total, -1, 0
        if total > 0.0:
            # rounding may leave the point at the last sum: then the last possible walk is taken
            while point >= passed[b] and passed[b] < total:
                b += 1
            point -= passed[b - 1] if b > 0 else 0.0
            for f in range(b * BLOCK, min((b + 1) * BLOCK, N)):
                if row[f] * V[f] > 0.0:
                    found = f
                    point -= row[f] * V[f]
                    if point < 0.0:
                        break
            V[found] = 0.0
        out[i] = found
