"""Kernels of the attack suite: every fake against every person, without the table of all pairs."""

import math

import numpy as np

from elsewhere._jit import njit


@njit
def longest_common_run(a, b, row):
    """
    Return the length of the longest stretch of places that both traces contain, at whatever hour; `row` is
    scratch (L + 1).
    """
    L = len(a)
    best = 0
    row[:] = 0
    for i in range(L):
        for j in range(L - 1, -1, -1):
            if a[i] == b[j]:
                row[j + 1] = row[j] + 1
                if row[j + 1] > best:
                    best = row[j + 1]
            else:
                row[j + 1] = 0
    return best


@njit
def first_visit(trace, t):
    """Return whether a trace is at its place of slot t for the first time."""
    q = 0
    while trace[q] != trace[t]:
        q += 1
    return q == t


@njit
def closest(fakes, skip, people, user, places, scratch, out):
    """
    Set out[f] = (aligned, shared, run): the most that fake f has in common with any person but user `skip[f]`.

    aligned counts equal slots, shared equal places of the two visited sets (`places (N, R)` marks those of people),
    run is `longest_common_run`.
    """
    F, L = fakes.shape
    for f in range(F):
        for k in range(3):
            out[f, k] = 0
        for s in range(len(people)):
            if user[s] == skip[f]:
                continue
            aligned, common, streak, most = 0, 0, 0, 0
            for t in range(L):
                if fakes[f, t] == people[s, t]:
                    aligned += 1
                streak = streak + 1 if places[s, fakes[f, t]] else 0
                most = max(most, streak)
                if streak > 0 and first_visit(fakes[f], t):
                    common += 1
            out[f, 0] = max(out[f, 0], aligned)
            out[f, 1] = max(out[f, 1], common)
            # a common run is one of slots at which the fake is at places of the person
            if most > out[f, 2]:
                out[f, 2] = max(out[f, 2], longest_common_run(fakes[f], people[s], scratch))


@njit
def with_owner(fakes, owner, people, places, scratch, out):
    """Set out[f] = (aligned, shared, run) of fake f and its own seed."""
    F, L = fakes.shape
    for f in range(F):
        s = owner[f]
        aligned, common = 0, 0
        for t in range(L):
            if fakes[f, t] == people[s, t]:
                aligned += 1
            if places[s, fakes[f, t]] and first_visit(fakes[f], t):
                common += 1
        out[f, 0], out[f, 1] = aligned, common
        out[f, 2] = longest_common_run(fakes[f], people[s], scratch) if common > 0 else 0


@njit
def move_likelihoods(steps, start, user, log_p, unseen, out):
    """
    Set out[f, u] = sum over the steps of fake f of ln p(u), slot by slot, so that ties are those of a plain loop.

    Step number k of `steps (F, L - 1)` was made by users `user[start[k] : start[k + 1]]`, -1 by nobody.
    """
    for f in range(len(steps)):
        out[f] = 0.0
        for k in steps[f]:
            if k < 0:
                out[f] += unseen
                continue
            at, end = start[k], start[k + 1]
            for u in range(out.shape[1]):
                if at < end and user[at] == u:
                    out[f, u] += log_p[at]
                    at += 1
                else:
                    out[f, u] += unseen


@njit
def forget(count, leaving, log_count, log_leaving, floor, width, seeds, fakes, rows, sign):
    """
    Take the pairs of one user out of the co-occurrence counts (sign -1), or put them back (+1), logs included.

    `rows[i]` is the seed row of `fakes[i]`; pairs are (seed place, fake place) at every slot. `floor` is added to
    every entry, `width` to every row.
    """
    n, L = fakes.shape
    for i in range(n):
        for t in range(L):
            r, x = seeds[rows[i], t], fakes[i, t]
            count[r, x] += sign
            leaving[r] += sign
    for i in range(n):
        for t in range(L):
            r, x = seeds[rows[i], t], fakes[i, t]
            log_count[r, x] = math.log(count[r, x] + floor)
            log_leaving[r] = math.log(leaving[r] + width)


@njit
def likelihoods(fakes, people, log_count, log_leaving, out):
    """Set out[f, s] = sum_t ln M[s(t), f(t)], M the co-occurrence counts with normalised rows."""
    F, L = fakes.shape
    for s in range(len(people)):
        whole = 0.0
        for t in range(L):
            whole += log_leaving[people[s, t]]
        for f in range(F):
            score = 0.0
            for t in range(L):
                score += log_count[people[s, t], fakes[f, t]]
            out[f, s] = score - whole


@njit
def reconstruct(fakes, seed, prior, log_count, log_leaving, out_above, out_tied):
    """
    Count for every slot how many places score above the true one, and how many the same, the true one included.

    The score of place r at t is ln prior(r) + sum over fakes of ln M[r, f(t)]; closer than 1e-9 is the same.
    """
    n, L = fakes.shape
    for t in range(L):
        true = seed[t]
        mark = prior[true] - n * log_leaving[true]
        for i in range(n):
            mark += log_count[true, fakes[i, t]]
        above, tied = 0, 0
        for r in range(len(prior)):
            score = prior[r] - n * log_leaving[r]
            for i in range(n):
                score += log_count[r, fakes[i, t]]
            if score > mark + 1e-9:
                above += 1
            elif score >= mark - 1e-9:
                tied += 1
        out_above[t], out_tied[t] = above, tied


@njit
def nearest(traces, skip, others, user, keep, out):
    """
    Set out[i] = the `keep` smallest Hamming distances, rising, from trace i to `others` but those of user
    `skip[i]`.
    """
    L = traces.shape[1]
    for i in range(len(traces)):
        for k in range(keep):
            out[i, k] = L + 1
        for s in range(len(others)):
            if user[s] == skip[i]:
                continue
            d = 0
            for t in range(L):
                if traces[i, t] != others[s, t]:
                    d += 1
            if d >= out[i, keep - 1]:
                continue
            k = keep - 1
            while k > 0 and out[i, k - 1] > d:
                out[i, k] = out[i, k - 1]
                k -= 1
            out[i, k] = d


@njit
def knows(kind, known, fake, person, visits_fake, visits_person, tolerance):
    """
    Tell whether a person fits what the adversary knows: slots `known` (rising) of a fake, in one of seven ways.

    0 location, 1 sequence, 2 time, 3 unique location, 4 frequency, 5 probability, 6 proportion.
    """
    h = len(known)
    if kind == 1:
        t = 0
        for i in range(h):
            while t < len(person) and person[t] != fake[known[i]]:
                t += 1
            if t == len(person):
                return False
            t += 1
        return True
    top, own = 1, 1
    if kind == 6:
        for i in range(h):
            top = max(top, visits_fake[known[i]])
            own = max(own, visits_person[fake[known[i]]])
    for i in range(h):
        r = fake[known[i]]
        if kind == 2:
            if person[known[i]] != r:
                return False
            continue
        of_person, of_fake = visits_person[r], visits_fake[known[i]]
        if of_person == 0:
            return False
        if kind == 0:
            times = 0
            for j in range(h):
                if fake[known[j]] == r:
                    times += 1
            if of_person < times:
                return False
        elif kind == 4:
            if of_person != of_fake:
                return False
        elif kind == 5:
            if abs(of_person - of_fake) > tolerance * len(person):
                return False
        elif kind == 6 and abs(of_person / own - of_fake / top) > tolerance:
            return False
    return True


@njit
def single_matches(known, fakes, visits_fake, people, user, visits, start, visitor, tolerance, out):
    """
    Set out[f, kind, i] = the user of the only person that fits knowledge i of fake f; -1 where none or several do.

    `known (F, I, h)` slots; `visits_fake (F, L)` the fake's visits to the place of each slot, `visits (N, R)`
    those of people. Whoever fits visits all known places, so only `visitor[start[r] : start[r + 1]]` of the rarest one
    are looked at, rows of one user in a block.
    """
    F, tries, h = known.shape
    for f in range(F):
        for i in range(tries):
            rare = fakes[f, known[f, i, 0]]
            for j in range(1, h):
                r = fakes[f, known[f, i, j]]
                if start[r + 1] - start[r] < start[rare + 1] - start[rare]:
                    rare = r
            for kind in range(out.shape[1]):
                match = -1
                for at in range(start[rare], start[rare + 1]):
                    s = visitor[at]
                    if user[s] != match and knows(
                        kind, known[f, i], fakes[f], people[s], visits_fake[f], visits[s], tolerance
                    ):
                        if match >= 0:
                            match = -2
                            break
                        match = user[s]
                out[f, kind, i] = max(match, -1)


@njit
def shifted_agreements(mine, theirs, shift, agreed, out):
    """
    Set out[f, s] = largest number of slots at which both are in one class, day s up to `shift` slots earlier or later.

    `mine` (F, L) are the classes of fakes, `theirs` (L, N) those of people; -1 is none. `agreed` (2, N) is room for
    numbers of slots.
    """
    L = mine.shape[1]
    for f in range(len(mine)):
        now, best = agreed[0], agreed[1]
        best[:] = 0
        for early in range(-shift, shift + 1):
            now[:] = 0
            for t in range(L):
                c, column = mine[f, t], theirs[min(max(t - early, 0), L - 1)]
                if c >= 0:
                    for s in range(len(now)):
                        now[s] += column[s] == c
            for s in range(len(now)):
                best[s] = max(best[s], now[s])
        out[f] = best


@njit
def shifted_likelihoods(fakes, first, kind, runs, shift, gain, out):
    """
    Set out[f, s] = ln Pr{f | the runs of s, boundaries moved} / Pr{f}.

    The runs of person s begin at `first[s, : runs[s]]` and are of class `kind[s]`. Each boundary is moved by up to
    `shift` slots, all moves alike, and never before the one that was before it. `gain[c, r]` is the odds of place r
    in class c; the last row serves people whose class is unknown (-1).
    """
    L = fakes.shape[1]
    mass = np.empty(L + 1)
    for f in range(len(fakes)):
        for s in range(len(first)):
            n = runs[s]
            low, high = 0, 0
            mass[0] = gain[kind[s, 0], fakes[f, 0]]
            total = 0.0
            for t in range(1, L):
                i = low
                while i <= high:
                    # run i + 1 begins at t, unless it begins later
                    if i + 1 < n:
                        earliest = max(first[s, i + 1] - shift, 1)
                        latest = min(first[s, i + 1] + shift, L - 1)
                        if t >= earliest:
                            if i == high:
                                high += 1
                                mass[high] = 0.0
                            leave = 1.0 / (latest - t + 1) if t < latest else 1.0
                            mass[i + 1] += mass[i] * leave
                            mass[i] *= 1.0 - leave
                    if mass[i] == 0.0 and i == low and low < high:
                        low += 1
                    i += 1
                for i in range(low, high + 1):
                    mass[i] *= gain[kind[s, i], fakes[f, t]]
                if t % 16 == 0:  # neither too large nor too small for a number
                    scale = 0.0
                    for i in range(low, high + 1):
                        scale = max(scale, mass[i])
                    for i in range(low, high + 1):
                        mass[i] /= scale
                    total += math.log(scale)
            rest = 0.0
            for i in range(low, high + 1):
                rest += mass[i]
            out[f, s] = total + math.log(rest)
