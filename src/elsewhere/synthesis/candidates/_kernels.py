"""Compiled loops of the semantic seed: the candidate places of every instant."""

import numpy as np

from elsewhere._jit import njit
from elsewhere.synthesis.streams._kernels import uniform


@njit
def _runs(seed, label):
    """First instant of each maximal run of one class, closed by L; the class of each run; -1 where it is unknown."""
    L = len(seed)
    first = np.empty(L + 1, dtype=np.int64)
    kind = np.empty(L, dtype=np.int64)
    n = 0
    for t in range(L):
        c = label[seed[t]] if seed[t] >= 0 else -1
        if n == 0 or c != kind[n - 1]:
            first[n], kind[n] = t, c
            n += 1
    first[n] = L
    return first[: n + 1], kind[:n]


@njit
def _insert(places, low, high, r):
    """Insert r into the sorted places[low:high] unless it is there; the new end."""
    i = high
    while i > low and places[i - 1] > r:
        i -= 1
    if i > low and places[i - 1] == r:
        return high
    for j in range(high, i, -1):
        places[j] = places[j - 1]
    places[i] = r
    return high + 1


@njit
def _copy(places, low, source, removed):
    """Write the places of `source` that are not removed from `low` on; the end."""
    high = low
    for r in source:
        if not removed[r]:
            places[high] = r
            high += 1
    return high


@njit
def _room(places, needed):
    if needed <= len(places):
        return places
    larger = np.empty(max(needed, 2 * len(places)), dtype=places.dtype)
    for i in range(len(places)):
        larger[i] = places[i]
    return larger


@njit
def _members(classes, k):
    return classes.member[classes.start[k] : classes.start[k + 1]]


@njit
def _widen(c, classes, visited, c_min):
    """
    Class c and as many nearest classes as bring it to c_min places outside visited(seed) (E30), sorted.

    Where not so many exist, the class stays as it is. c_min = 1 widens nothing: where a class of the paper's preset is
    used up, the ladder of E45 helps.
    """
    wide = np.empty(len(classes.everywhere), dtype=classes.member.dtype)
    n, j = 0, 0
    for r in _members(classes, c):
        n = _insert(wide, 0, n, r)
    while 1 < c_min:
        outside = 0
        for i in range(n):
            outside += not visited[wide[i]]
        if outside >= c_min or j == classes.near.shape[1]:
            return wide[:n] if outside >= c_min else _members(classes, c).copy()
        for r in _members(classes, classes.near[c, j]):
            n = _insert(wide, 0, n, r)
        j += 1
    return wide[:n]


@njit
def _subsample(places, par_c, fate, stream):
    """C' of one class: each place is removed with probability par_c, one uniform survivor stays (E39)."""
    kept = np.empty(len(places), dtype=places.dtype)
    n = 0
    for r in places:
        # classes that were widened may overlap: a place removed from C' is removed everywhere
        if fate[r] == 0:
            fate[r] = 1 if uniform(stream) < par_c else 2
        if fate[r] == 2:
            kept[n] = r
            n += 1
    if n == 0 and len(places) > 0:
        kept[0] = places[int(uniform(stream) * len(places))]
        n = 1
    return kept[:n]


@njit
def _blurred(first, kind, classes, blur, visited, stream):
    """Whole class (widened, E30) and sub-sampled class C' of each run: lists of arrays, and an index per instant."""
    L = first[-1]
    whole, kept = [classes.member[:0].copy()], [classes.member[:0].copy()]
    in_whole, in_kept = np.zeros(L, dtype=np.int64), np.zeros(L, dtype=np.int64)
    slot = np.zeros(len(classes.start), dtype=np.int64)
    fate = np.zeros(len(visited), dtype=np.int8)
    for k in range(len(kind)):
        c = kind[k]
        if c < 0:
            continue
        if slot[c] == 0:
            places = _widen(c, classes, visited, blur.c_min)
            slot[c] = len(whole)
            whole.append(places)
            if not blur.per_instant:
                kept.append(_subsample(places, blur.par_c, fate, stream))
        for t in range(first[k], first[k + 1]):
            in_whole[t] = in_kept[t] = slot[c]
            if blur.per_instant:
                in_kept[t] = len(kept)
                kept.append(_subsample(whole[slot[c]], blur.par_c, fate, stream))
                for r in whole[slot[c]]:
                    fate[r] = 0
    return whole, kept, in_whole, in_kept


@njit
def _reaches(source, longest, blur, stream):
    """A reach G for each place, P(G >= d) = par_m^d, cut at the end of the adjacent run; none if redrawn (E42)."""
    reach = np.zeros(len(source), dtype=np.int64)
    for i in range(0 if blur.independent else len(source)):
        u, power = uniform(stream), blur.par_m
        while reach[i] < longest and u < power:
            reach[i] += 1
            power *= blur.par_m
    return reach


@njit
def _boundaries(first, kept, in_kept, blur, stream):
    """Reaches of C' of run k into run k + 1 (item 2k) and of run k + 1 into run k (item 2k + 1)."""
    reach = [np.zeros(0, dtype=np.int64)]
    reach.pop()
    for k in range(len(first) - 2):
        t = first[k + 1]
        reach.append(_reaches(kept[in_kept[t - 1]], first[k + 2] - t, blur, stream))
        reach.append(_reaches(kept[in_kept[t]], t - first[k], blur, stream))
    return reach


@njit
def _join(places, low, high, source, reach, d, blur, removed, stream):
    """Merge into places[low:high] those of `source` that come as far as distance d; the new end."""
    power = blur.par_m**d
    for i in range(len(source)):
        joins = uniform(stream) < power if blur.independent else reach[i] >= d
        if joins and not removed[source[i]]:
            high = _insert(places, low, high, source[i])
    return high


@njit
def _ladder(places, low, c, whole, classes, c_min, removed):
    """Steps 2 to 4 of E45 for an instant of class c without candidates: the new end, and the step or -1."""
    high = _copy(places, low, whole, removed)
    if high > low:
        return high, 2
    for j in range(classes.near.shape[1] if c >= 0 else 0):
        high = _copy(places, low, _members(classes, classes.near[c, j]), removed)
        if high - low >= c_min:
            return high, 3
    high = _copy(places, low, classes.everywhere, removed)
    return high, 4 if high > low else -1


@njit
def semantic_seed(seed, classes, blur, stream):
    """
    Candidate set of every instant (E38-E45): offsets, sorted places, and the step of the ladder that was needed.

    Numbers are drawn class by class, boundary by boundary, instant by instant. A step of -1 marks the instant that
    cannot be faked; there are no places then.
    """
    L = len(seed)
    first, kind = _runs(seed, classes.label)
    visited = np.zeros(len(classes.label), dtype=np.bool_)
    for r in seed:
        if r >= 0:
            visited[r] = True
    offset, step = np.zeros(L + 1, dtype=np.int64), np.zeros(L, dtype=np.int8)
    places = np.empty(32 * L + len(classes.everywhere), dtype=classes.member.dtype)
    whole, kept, in_whole, in_kept = _blurred(first, kind, classes, blur, visited, stream)
    reach = _boundaries(first, kept, in_kept, blur, stream)
    removed = np.zeros_like(visited)
    k = 0
    for t in range(L):
        if t == first[k + 1]:
            k += 1
        gone = uniform(stream) < blur.par_l and seed[t] >= 0
        if gone:
            removed[seed[t]] = True
        low = offset[t]
        places = _room(places, low + len(classes.everywhere))
        own = _copy(places, low, kept[in_kept[t]], removed)
        high = own
        if k > 0:
            left = kept[in_kept[first[k] - 1]]
            high = _join(places, low, high, left, reach[2 * k - 2], t - first[k] + 1, blur, removed, stream)
        if k + 1 < len(kind):
            right = kept[in_kept[first[k + 1]]]
            high = _join(places, low, high, right, reach[2 * k + 1], first[k + 1] - t, blur, removed, stream)
        if high > low:
            step[t] = 0 if own > low else 1
        else:
            high, step[t] = _ladder(places, low, kind[k], whole[in_whole[t]], classes, blur.c_min, removed)
        if gone:
            removed[seed[t]] = False
        if step[t] < 0:
            return offset, places[:0], step
        offset[t + 1] = high
    return offset, places[: offset[L]], step
