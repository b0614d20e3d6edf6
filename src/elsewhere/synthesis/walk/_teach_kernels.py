"""Compiled loops that learn lives over days: stays, and every choice as it stood when it was made."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import njit
from elsewhere._search_kernels import first_above
from elsewhere.paper._generate_kernels import open_stream, uniform
from elsewhere.synthesis.walk._hours_kernels import (
    COLUMNS,
    PARTS,
    clear_hours,
    hours_columns,
    new_hours,
    remember_hours,
)
from elsewhere.synthesis.walk._lives_kernels import (
    BINS,
    CROWD_IN,
    CROWD_OUT,
    CROWDS,
    HASTES,
    HOME,
    OTHER,
    OWN_COLUMNS,
    cells_key,
    clear_memory,
    count_of,
    diary_columns,
    diary_weight,
    distance_bin,
    draw_diary,
    longest_way,
    measure_distances,
    midnight_factors,
    new_memory,
    next_anchor,
    on_the_way,
    own_place_columns,
    pair_key,
    pass_columns,
    places_on_the_way,
    remember_visit,
    remember_way,
    table_row,
    table_size,
    trip_length,
)


@njit
def find_stays(r, home, main, longest_pass, row, place, left, arrived):
    """
    Cut days `r` (N, L) into stays; return how many.

    A run of at most `longest_pass` slots between two others is part of the trip to the stay after it, unless it is at
    an anchor or the person comes back to where the trip began: these were visits. `left` is where the trip begins.
    """
    n = 0
    N, L = r.shape
    begin = np.empty(L + 1, dtype=np.int64)
    for i in range(N):
        runs = 0
        for t in range(L):
            if t == 0 or r[i, t] != r[i, t - 1]:
                begin[runs] = t
                runs += 1
        begin[runs] = L
        k = 0
        first = n
        while k < runs:
            j = k
            if k > 0:
                while (
                    j < runs - 1
                    and begin[j + 1] - begin[j] <= longest_pass
                    and r[i, begin[j]] != home[i]
                    and r[i, begin[j]] != main[i]
                ):
                    j += 1
            visits = j > k and n > first and r[i, begin[j]] == place[n - 1]
            if visits:
                j = k
            row[n], place[n], left[n], arrived[n] = i, r[i, begin[j]], begin[k], begin[j]
            n += 1
            k = j + 1
    return n


@njit
def choice_loss(theta, ridge, base, cols, first, chosen, slope):
    """
    Return minus ln likelihood of choices by softmax(base + sum of theta[cols]) plus ridge / 2 theta^2; fill its
    `slope`.

    The candidates of choice i are rows first[i] .. first[i + 1] - 1 of `base` and `cols`, `chosen[i]` the one taken.
    """
    K = cols.shape[1]
    slope[:] = ridge * theta
    loss = 0.0
    for j in range(len(theta)):
        loss += ridge / 2 * theta[j] ** 2
    score = np.empty(len(base))
    for i in range(len(chosen)):
        top = -np.inf
        for p in range(first[i], first[i + 1]):
            v = base[p]
            for k in range(K):
                v += theta[cols[p, k]]
            score[p] = v
            top = max(top, v)
        total = 0.0
        loss -= score[chosen[i]] - top
        for p in range(first[i], first[i + 1]):
            score[p] = math.exp(score[p] - top)
            total += score[p]
        loss += math.log(total)
        for p in range(first[i], first[i + 1]):
            g = score[p] / total - (1.0 if p == chosen[i] else 0.0)
            if abs(g) > 1e-6:
                for k in range(K):
                    slope[cols[p, k]] += g
    return loss


@njit
def make_hash_table(keys, values):
    """Return an open table of these keys, all different, as `table_row` looks them up: its keys and its values."""
    size = table_size(len(keys))
    table, out = np.full(size, -1), np.zeros(size, dtype=np.int64)
    for i in range(len(keys)):
        at = table_row(table, keys[i])
        table[at], out[at] = keys[i], values[i]
    return table, out


@njit
def columns_of_days(L, first, roles, starts, out):
    """Fill in `diary_columns` (N, 4) of days whose stays are first[d] .. first[d + 1] - 1."""
    for d in range(len(out)):
        a, b = first[d], first[d + 1]
        diary_columns(L, b - a, roles[a:b], starts[a:b], out[d])


@njit
def draw_diary_columns(w, kind, role, key, out):
    """Draw a diary from each `role` at midnight; their `diary_columns` (n, 4)."""
    L = len(w.clock)
    roles, starts = np.empty(L + 1, dtype=np.int64), np.empty(L + 1, dtype=np.int64)
    stream = open_stream(key, kind, 1)
    for i in range(len(role)):
        n, _, _, _ = draw_diary(w, kind, role[i], L // 4, 1.0, False, stream, roles, starts)
        diary_columns(L, n, roles, starts, out[i])


@njit
def crowd_level(people, m_min):
    """Return which of CROWDS: fewer than `m_min`, then doublings."""
    level = 0
    while level < CROWDS - 1 and people >= m_min:
        level += 1
        m_min *= 2
    return level


@njit
def crowd_without(moves, movers, mine, move, m_min):
    """Return which of CROWDS make a move, but for the person whose moves are `mine`."""
    return crowd_level(movers[table_row(moves, move)] - (1 if mine[table_row(mine, move)] == move else 0), m_min)


class Choices(NamedTuple):
    """Choices that teach, see `choice_loss`."""

    base: NDArray[np.float64]  # (candidates,)
    cols: NDArray[np.int16]  # (candidates, columns)
    first: NDArray[np.int64]  # (choices + 1,)
    chosen: NDArray[np.int64]  # (choices,)
    size: NDArray[np.int64]  # (2,) choices, candidates


class Stays(NamedTuple):
    """Days cut into stays, S of them, in the order of people and days."""

    r: NDArray[np.int64]  # (N, L)
    day: NDArray[np.int64]  # (N,)
    weekend: NDArray[np.bool_]  # (N,)
    home: NDArray[np.int64]  # (people,)
    main: NDArray[np.int64]  # (people,)
    begin: NDArray[np.int64]  # (people + 1,) first stay of each person
    rows: NDArray[np.int64]  # (people + 1,) first day of each person
    row: NDArray[np.int64]  # (S,)
    place: NDArray[np.int64]  # (S,)
    start: NDArray[np.int64]  # (S,) in the diary
    left: NDArray[np.int64]  # (S,) the slot of the departure before
    arrived: NDArray[np.int64]  # (S,)
    role: NDArray[np.int64]  # (S,)
    rank: NDArray[np.int64]  # (S,) within the day


@njit
def new_choices(choices, columns, candidates):
    """Make room for so many choices, among so many candidates in all."""
    cols, first = np.empty((candidates, columns), dtype=np.int16), np.zeros(choices + 1, dtype=np.int64)
    chosen, size = np.empty(choices, dtype=np.int64), np.zeros(2, dtype=np.int64)
    return Choices(np.empty(candidates), cols, first, chosen, size)


@njit
def has_room(choices, candidates):
    """Tell whether one more choice among so many candidates can be held."""
    return choices.size[0] < len(choices.chosen) and choices.size[1] + candidates <= len(choices.base)


@njit
def add_candidate(choices, base, cols, n):
    """Add a candidate of the choice that is being written."""
    at = choices.size[1]
    choices.base[at] = base
    for k in range(n):
        choices.cols[at, k] = cols[k]
    choices.size[1] = at + 1


@njit
def close_choice(choices, chosen):
    """End a choice."""
    choices.chosen[choices.size[0]] = chosen
    choices.size[0] += 1
    choices.first[choices.size[0]] = choices.size[1]


@njit
def record_diary_choices(w, s, kind, mix, first, midnight, dwell, known, tries, chance, key, candidates):
    """
    Go through the days of people and return the choice of each diary among `tries` others that the law draws.

    `kind` (N,) of each day, `mix` (people, 2, K), stays `first` (N + 1,) of each day, role at `midnight` before it and
    how long it has lasted, whether the day before is `known`; of all days `chance` is kept, and at most so many
    `candidates` in all.
    """
    L, choices = len(w.clock), new_choices(len(kind), COLUMNS, candidates)
    hours, cols, which = new_hours(L), np.empty(COLUMNS, dtype=np.int64), np.empty(4, dtype=np.int64)
    roles, starts = np.empty(L + 1, dtype=np.int64), np.empty(L + 1, dtype=np.int64)
    ahead = np.empty((2, 3))
    for i in range(len(s.rows) - 1):
        stream = open_stream(key, i, 3)
        clear_hours(hours)
        begin, end = s.rows[i], s.rows[i + 1]
        midnight_factors(w, mix[i], s.weekend[begin:end], ahead)
        for row in range(begin, end):
            off = 1 if s.weekend[row] else 0
            a, b = first[row], first[row + 1]
            if hours.days[off] > 0 and uniform(stream) < chance and has_room(choices, tries + 1):
                tomorrow = 1 if s.weekend[min(row + 1, end - 1)] else 0
                for j in range(tries + 1):
                    if j == 0:
                        n = b - a
                        roles[:n], starts[:n] = s.role[a:b], s.start[a:b]
                    else:
                        n, _, _, _ = draw_diary(
                            w, kind[row], midnight[row], dwell[row], 1.0, not known[row], stream, roles, starts
                        )
                    base = ahead[tomorrow, roles[n - 1]] * diary_weight(w, kind[row], n, roles, starts, which)
                    hours_columns(hours, w.part, w.longest_pass, off, L, n, roles, starts, cols)
                    add_candidate(choices, math.log(max(base, 1e-9)), cols, COLUMNS)
                close_choice(choices, choices.first[choices.size[0]])
            remember_hours(hours, off, L, b - a, s.role[a:b], s.start[a:b])
    return choices


@njit
def cells_of(r, row, left, arrived, way, lengths):
    """Write the cells that a trip passes through and their slots; return how many."""
    n = 0
    for t in range(left, arrived):
        if t == left or r[row, t] != r[row, t - 1]:
            way[n], lengths[n] = r[row, t], 0
            n += 1
        lengths[n - 1] += 1
    return n


@njit
def mark_person(w, s, i, add, went, passes, mine, way, lengths):
    """Mark (or unmark) where person i goes, passes and moves, so that the tables can be read without this person."""
    P, part = len(passes), w.part
    for q in range(s.begin[i], s.begin[i + 1]):
        if s.role[q] == OTHER:
            went[s.place[q], part[s.start[q]]] = add
            went[s.place[q], PARTS] = add
        for c in range(cells_of(s.r, s.row[q], s.left[q], s.arrived[q], way, lengths)):
            passes[way[c]] = add
    if not add:
        mine[:] = -1
        return
    for row in range(s.rows[i], s.rows[i + 1]):
        for t in range(1, s.r.shape[1]):
            if s.r[row, t] != s.r[row, t - 1]:
                key = s.r[row, t - 1] * P + s.r[row, t]
                mine[table_row(mine, key)] = key


@njit
def add_new_place_choice(w, memory, h, m, here, onward, x, haste, part, went, cumulative, n, stream, choices):
    """
    Add the choice of a new place x among n others that are drawn by popularity (McFadden 1978).

    Where too few people go to x for a table to have it, the nearest place that it has was chosen.
    """
    popular, P = w.popular[part], len(memory.visited)
    if popular[x] <= 0.0 or x == here:
        nearest, best = -1, np.inf
        for y in range(P):
            if popular[y] > 0.0 and memory.visited[y] == 0 and y != here and y != h and y != m:
                length = trip_length(w.xy, x, y)
                if length < best:
                    nearest, best = y, length
        x = nearest
    if x < 0:
        return
    measure_distances(w, memory, h, m)
    cols = np.empty(5, dtype=np.int64)
    total = cumulative[part, P - 1]
    for j in range(n + 1):
        y = x
        if j > 0:
            y = min(first_above(cumulative[part], uniform(stream) * total), P - 1)
        if memory.visited[y] > 0 or y in (here, h, m) or popular[y] <= 0.0:
            continue
        others = max(popular[y] - went[y, part] - 0.1 * went[y, PARTS], 0.02)
        cols[0] = haste * BINS + distance_bin(w.xy, w.limits, here, y)
        cols[1] = HASTES * BINS + distance_bin(w.xy, w.limits, h, y)
        cols[2] = (HASTES + 1) * BINS + distance_bin(w.xy, w.limits, m if m >= 0 else h, y)
        cols[3] = (HASTES + 2) * BINS + memory.near[y]
        cols[4] = (HASTES + 3) * BINS + (distance_bin(w.xy, w.limits, onward, y) if onward >= 0 else BINS)
        add_candidate(choices, math.log(others / popular[y]), cols, 5)
    close_choice(choices, choices.first[choices.size[0]])


@njit
def add_own_place_choice(w, memory, here, before, onward, x, part, off, haste, context, day, choices):
    """Add the choice of an own place x among the own places."""
    cols, chosen = np.empty(OWN_COLUMNS, dtype=np.int64), -1
    for j in range(memory.size[0]):
        y = memory.own[j]
        if y != here:
            if y == x:
                chosen = choices.size[1]
            own_place_columns(w, memory, here, before, onward, y, part, off, haste, context, day, cols)
            add_candidate(choices, 0.0, cols, OWN_COLUMNS)
    close_choice(choices, chosen)


@njit
def add_pass_choice(w, memory, h, m, ends, cell, cells, x, passes, mine, moves, movers, m_min, among, choices):
    """Add the choice of x, a `cell` of so many, among those on the way; `ends` of the trip, and the cell before."""
    a, b, step = ends
    P, cols, chosen = len(passes), np.empty(9, dtype=np.int64), -1
    xy, limits, keys, counts = w.xy, w.limits, memory.keys, memory.counts
    longest, trips = longest_way(w, a, b), count_of(memory.keys, memory.counts, 3 * P * P + pair_key(P, a, b))
    share, crowd_out = (cell + 1) / (cells + 1), CROWD_OUT + (CROWDS if cell == cells - 1 else 0)
    for j in range(places_on_the_way(w, a, b, longest, among)):
        y = among[j]
        if y not in (a, b, h, m, step):
            if y == x:
                chosen = choices.size[1]
            pass_columns(xy, limits, memory.passed, keys, counts, a, b, trips, step, share, y, cols)
            into, out = step * P + y, y * P + b
            cols[7] = CROWD_IN + crowd_without(moves, movers, mine, into, m_min)
            cols[8] = crowd_out + crowd_without(moves, movers, mine, out, m_min)
            add_candidate(choices, math.log(max(w.passed[y] - passes[y], 0.1)), cols, 9)
    close_choice(choices, chosen)


@njit
def record_choices(w, s, order, cumulative, n, chance, moves, movers, m_min, key, candidates):
    """
    Go through the lives of people in this `order` and return every choice as it stood when it was made.

    These are `asked` (visits, 6), own places, visits, those between such roles, weekend, part of the day and haste, and
    `said` (visits,), whether they went somewhere new; choices of a `new` place, of an own one (`back`) and of cells on
    the way (`through`), of which `chance` (3,) is kept and at most so many `candidates` each; `cells` (S, 4) of each
    trip, which of CROWDS go straight there, earlier trips between these places, and those with as many cells.
    """
    P, L, S, questions = len(w.passed), s.r.shape[1], len(s.row), 0
    asked, said, cells = np.empty((S, 6)), np.empty(S, dtype=np.bool_), np.zeros((S, 4), dtype=np.int64)
    new, back = new_choices(S, 5, candidates), new_choices(S, OWN_COLUMNS, candidates)
    through = new_choices(S, 9, candidates)
    days = np.max(s.rows[1:] - s.rows[:-1])
    memory = new_memory(P, days, L)
    went, passes = np.zeros((P, PARTS + 1), dtype=np.int64), np.zeros(P, dtype=np.int64)
    mine, among = np.full(table_size(days * L), -1), np.empty(P, dtype=np.int64)
    way, lengths = np.empty(L + 1, dtype=np.int64), np.empty(L + 1, dtype=np.int64)
    for i in order:
        stream = open_stream(key, i, 2)
        h, m = s.home[i], s.main[i]
        clear_memory(memory)
        mark_person(w, s, i, 1, went, passes, mine, way, lengths)
        for q in range(s.begin[i], s.begin[i + 1]):
            x, row = s.place[q], s.row[q]
            part, off, day = w.part[s.start[q]], 1 if s.weekend[row] else 0, s.day[row]
            last = q + 1 == len(s.row) or s.row[q + 1] != row
            haste = min(w.dwell[(L if last else s.start[q + 1]) - s.start[q]], HASTES - 1)
            after = 3 if last else s.role[q + 1]
            if s.rank[q] == 0:  # over midnight: this was chosen on the day before, if anybody knows
                if s.role[q] == OTHER and memory.visited[x] == 0:
                    remember_visit(w, memory, h, x, part, off, haste, HOME * 4 + after, day)
                continue
            here, before = s.place[q - 1], s.place[q - 2] if s.rank[q] > 1 else -1
            if s.role[q] == OTHER:
                context, onward = s.role[q - 1] * 4 + after, next_anchor(after, h, m)
                asked[questions, 0], asked[questions, 1] = memory.size[0], memory.size[1]
                asked[questions, 2], asked[questions, 3] = memory.in_context[context], off
                asked[questions, 4], asked[questions, 5] = part, haste
                said[questions] = memory.visited[x] == 0
                questions += 1
                if memory.visited[x] == 0:
                    if uniform(stream) < chance[0] and has_room(new, n + 1):
                        add_new_place_choice(
                            w, memory, h, m, here, onward, x, haste, part, went, cumulative, n, stream, new
                        )
                elif x != here and uniform(stream) < chance[1] and has_room(back, memory.size[0]):
                    add_own_place_choice(w, memory, here, before, onward, x, part, off, haste, context, day, back)
            many = cells_of(s.r, row, s.left[q], s.arrived[q], way, lengths)
            pair, step = pair_key(P, here, x), here
            cells[q, 0], cells[q, 1] = many, crowd_without(moves, movers, mine, here * P + x, m_min)
            cells[q, 2] = count_of(memory.keys, memory.counts, 3 * P * P + pair)
            cells[q, 3] = count_of(memory.keys, memory.counts, cells_key(P, pair, many))
            longest = longest_way(w, here, x)
            for c in range(many):
                y = way[c]
                known = w.passed[y] > 0.0 and y not in (h, m, here, x, step) and on_the_way(w.xy, here, x, y, longest)
                if known and uniform(stream) < chance[2] and has_room(through, P):
                    ends = here, x, step
                    add_pass_choice(
                        w, memory, h, m, ends, c, many, y, passes, mine, moves, movers, m_min, among, through
                    )
                step = y
            if s.role[q] == OTHER:
                remember_visit(w, memory, here, x, part, off, haste, s.role[q - 1] * 4 + after, day)
            remember_way(memory, here, x, way, many)
        mark_person(w, s, i, 0, went, passes, mine, way, lengths)
    return asked[:questions], said[:questions], new, back, through, cells
