"""Compiled loops of diaries: how a day goes on, which of the own places comes next, what a whole life is like."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._jit import njit
from elsewhere.paper._generate_kernels import open_stream, uniform
from elsewhere.paper._profile_kernels import draw_index

DAY, SLOT, SLOTS = 86_400, 1_200, 72
PARTS = 8  # of the week: four of the day, weekdays and weekends apart
ENOUGH = 8  # pieces of which the next one is drawn
NEAR, FAR = 1_800, 5_400  # seconds from now at which they begin
BRIEF = 7_200  # a shorter stay keeps its length, a longer one the hour at which it ends
RECENT = 10  # earlier days that a day is compared with
NEW = 2  # weights of going somewhere new, beside two per class
OWN = 6  # weights of an own place
WATCH = 4 * 3_600
TRIES = 8  # diaries of which one is taken
FEATURES = 12 + DAY // WATCH  # of a diary
TASTES = (4, 6, 8, 12, 13, 14, 15, 16, 17)  # those in which people differ: stays, new places, time at home, hours
FADES = (2.0, 10.0, 40.0)  # days after which a day counts for a third of what it did
SOON = (120, 240, 420, 600, 900, 1_200, 1_800, 3_600, 10_800)  # seconds between two places
TIES = 2 * (len(SOON) + 1)  # by the time between, those of trips after all others
HOME = 0


class Pieces(NamedTuple):
    """Stays cut at the border of the day: seconds of their day, and what follows each."""

    user: NDArray[np.int64]
    usage: NDArray[np.int64]
    cls: NDArray[np.int64]
    day: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    carried: NDArray[np.int64]  # 1: goes on from the day before
    over: NDArray[np.int64]  # 1: goes on the day after
    after: NDArray[np.int64]  # class of the next piece of the day, -1 none
    again: NDArray[np.int64]  # 1: that is at the same place
    gap: NDArray[np.int64]  # seconds until it
    way: NDArray[np.int64]  # 1: spent on a way that is seen, or none


class Law(NamedTuple):
    """
    The law of diaries: pieces of stays, what is learnt of choices, who has which days, when people are seen.

    K classes, Q kinds of day, T habits. A piece says how long a stay of its class, begun then, lasts, and what follows.
    """

    pieces: Pieces
    by_type: NDArray[np.int64]  # pieces sorted by ((type, kind, class), carried), start
    type_first: NDArray[np.int64]
    by_kind: NDArray[np.int64]
    kind_first: NDArray[np.int64]
    by_class: NDArray[np.int64]
    class_first: NDArray[np.int64]
    open_type: NDArray[np.int64]  # first pieces of days that nothing is carried into, by (type, kind)
    open_type_first: NDArray[np.int64]
    open_kind: NDArray[np.int64]
    open_kind_first: NDArray[np.int64]
    day_first: NDArray[np.int64]  # pieces of each day
    day_kind: NDArray[np.int64]
    days: NDArray[np.int64]  # days by (type, weekend)
    days_first: NDArray[np.int64]
    begins: NDArray[np.float64]  # (Q, K + 1) share of days of a kind that begin carried in a class, or open
    phases: NDArray[np.float64]  # (1 + FADES,) how much of having a record on a day follows all days, and recent ones
    habits: NDArray[np.float64]  # (types, T) people of each type with each habit
    mix: NDArray[np.float64]  # (T, 2, Q) how often days of each kind are
    spread: NDArray[np.float64]  # (2, Q) concentration of people's shares about it
    tastes: NDArray[np.float64]  # (TASTES,) deviation between people, in ln weight of a diary by each of them
    type_of: NDArray[np.int64]  # (people,)
    first_day: NDArray[np.int64]  # (people,) first and last day of each person, from the border on
    last_day: NDArray[np.int64]
    role: NDArray[np.int64]  # (K,)
    leaves: NDArray[np.int64]  # (K,) 1: on a trip
    new: NDArray[np.float64]  # (2 K + NEW,)
    own: NDArray[np.float64]  # (OWN,)
    like: NDArray[np.float64]  # (FEATURES,)
    border: int  # seconds after midnight at which days begin
    lo: int  # second of the first and last day at which most people begin and end to be seen, -1 where they differ
    hi: int
    most_own: int  # own places of a life, and pieces of a day
    most_day: int
    grain: int


class Memory(NamedTuple):
    """What one person has done so far."""

    cls: NDArray[np.int64]  # (M,) class of each own place
    visits: NDArray[np.int64]  # (M,)
    parts: NDArray[np.int64]  # (M, PARTS)
    moves: NDArray[np.int64]  # (M, M)
    soon: NDArray[np.int64]  # (M, M) how soon at best one followed the other: 0 never, TIES at once
    last: NDArray[np.int64]  # (M,) day of the last visit
    slots: NDArray[np.int64]  # (days, SLOTS) own place, -1 nothing recorded
    off: NDArray[np.int64]  # (days,)
    own_of: NDArray[np.int64]  # (K,) own places of each class
    visits_of: NDArray[np.int64]  # (K,)
    size: NDArray[np.int64]  # (2,) own places, days
    among: NDArray[np.int64]  # (M,) own places that may come next, with what speaks for them, and their weights
    columns: NDArray[np.float64]  # (M, OWN)
    weight: NDArray[np.float64]  # (M,)


class Choices(NamedTuple):
    """What people chose, written down: a new place or not, which own place, which diary beside those of the law."""

    new: NDArray[np.float64]  # (N, 2 K + NEW)
    said: NDArray[np.float64]  # (N,)
    own: NDArray[np.float64]  # (N, candidates, OWN)
    many: NDArray[np.int64]  # (N,) candidates
    chosen: NDArray[np.int64]  # (N,)
    like: NDArray[np.float64]  # (N, 1 + TRIES, FEATURES)
    size: NDArray[np.int64]  # (3,) of each


class Day(NamedTuple):
    """One diary: own place, class, start, end and way of each piece; `state`: pieces, own places after it, over."""

    own: NDArray[np.int64]
    cls: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    way: NDArray[np.int64]  # 1: reached by a way that is seen
    slots: NDArray[np.int64]
    new_cls: NDArray[np.int64]  # classes of places that are new on this day
    state: NDArray[np.int64]


@njit
def new_memory(most, days, K):
    """Make an empty memory."""
    i = np.int64
    return Memory(
        np.zeros(most, i), np.zeros(most, i), np.zeros((most, PARTS), i), np.zeros((most, most), i),
        np.zeros((most, most), i), np.zeros(most, i), np.full((days, SLOTS), -1), np.zeros(days, i),
        np.zeros(K, i), np.zeros(K, i), np.zeros(2, i), np.zeros(most, i), np.zeros((most, OWN)), np.zeros(most),
    )  # fmt: skip


@njit
def clear_memory(memory):
    """Make the memory that of somebody new."""
    n = memory.size[0]
    memory.visits[:n] = 0
    memory.parts[:n] = 0
    memory.moves[:n, :n] = 0
    memory.soon[:n, :n] = 0
    memory.last[:n] = -9
    memory.own_of[:] = 0
    memory.visits_of[:] = 0
    memory.size[:] = 0


@njit
def new_day(most):
    """Make room for a diary."""
    i = np.int64
    return Day(
        np.zeros(most, i), np.zeros(most, i), np.zeros(most, i), np.zeros(most, i), np.zeros(most, i),
        np.full(SLOTS, -1), np.zeros(most, i), np.zeros(3, i),
    )  # fmt: skip


@njit
def _window(start, order, lo, hi, t, reach):
    """Return the range of order[lo:hi], sorted by start, that begins within `reach` of t."""
    a, b = lo, hi
    while a < b:
        m = (a + b) // 2
        if start[order[m]] < t - reach:
            a = m + 1
        else:
            b = m
    first, b = a, hi
    while a < b:
        m = (a + b) // 2
        if start[order[m]] <= t + reach:
            a = m + 1
        else:
            b = m
    return first, a


@njit
def draw_piece(law, habit, kind, off, c, carried, t, stream):
    """Draw a piece of class c that begins at about t: of this type and kind, else of this kind, else of such a day."""
    K, Q = len(law.role), len(law.begins)
    orders = (law.by_type, law.by_kind, law.by_class)
    firsts = (law.type_first, law.kind_first, law.class_first)
    rows = ((habit * Q + kind) * K + c, kind * K + c, off * K + c)
    for level in range(3):
        order, cell = orders[level], rows[level] * 2 + carried
        lo, hi = firsts[level][cell], firsts[level][cell + 1]
        for reach in (NEAR, FAR):
            a, b = _window(law.pieces.start, order, lo, hi, t, reach)
            if b - a >= ENOUGH:
                return order[a + int(uniform(stream) * (b - a))]
            if carried:
                break
    if lo == hi:  # never on such a day
        cell = ((1 - off) * K + c) * 2 + carried
        lo, hi = law.class_first[cell], law.class_first[cell + 1]
    a, b = _window(law.pieces.start, order, lo, hi, t, 4 * FAR)
    if a == b:
        a, b = lo, hi
    return order[a + int(uniform(stream) * (b - a))] if b > a else -1


@njit
def draw_opening(law, habit, kind, stream):
    """Draw the first piece of a day that nothing is carried into, -1 where there is none."""
    cell = habit * len(law.begins) + kind
    a, b = law.open_type_first[cell], law.open_type_first[cell + 1]
    if b - a >= ENOUGH:
        return law.open_type[a + int(uniform(stream) * (b - a))]
    a, b = law.open_kind_first[kind], law.open_kind_first[kind + 1]
    return law.open_kind[a + int(uniform(stream) * (b - a))] if b > a else -1


@njit
def part_of(t, off):
    """Return the part of the week of a second of the day (from its border on)."""
    return min(t * 4 // DAY, 3) + 4 * off


@njit
def list_own(memory, day, c, here, before, part):
    """
    List the own places of class c but `here`, those that are new today last; return how many are older, and in all.

    What speaks for one of before: visits, those at this part of the week, from here, back, lately.
    """
    known, old = memory.size[0], 0
    from_here = 0 <= here < known
    for x in range(known):
        if memory.cls[x] == c and x != here:
            out, memory.among[old] = memory.columns[old], x
            out[0] = math.log1p(memory.visits[x])
            out[1] = math.log1p(memory.parts[x, part])
            out[2] = math.log1p(memory.moves[here, x]) if from_here else 0.0
            out[3] = 1.0 if x == before and from_here else 0.0
            out[4] = 1.0 if memory.size[1] - memory.last[x] <= 2 else 0.0
            out[5] = 1.0 if x == before and not from_here else 0.0  # where the person was seen last, days ago perhaps
            old += 1
    n = old
    for x in range(known, day.state[1]):
        if day.new_cls[x - known] == c and x != here:
            memory.among[n] = x
            n += 1
    return old, n


@njit
def new_columns(memory, c, fresh, out):
    """Fill in what speaks for a new place of class c, of which `fresh` places are new today already."""
    K = len(memory.own_of)
    out[:] = 0.0
    out[c] = 1.0
    out[K + c] = math.log1p(memory.own_of[c] + fresh)
    out[2 * K] = math.log1p(memory.visits_of[c] + fresh)
    out[2 * K + 1] = math.log1p(memory.size[1])


@njit
def draw_own(law, memory, day, c, here, before, part, stream):
    """Draw which own place of class c comes after `here`: one of before, one that is new today, or a newer one."""
    known, added, K = memory.size[0], day.state[1] - memory.size[0], len(law.role)
    old, n = list_own(memory, day, c, here, before, part)
    for k in range(n):
        v = 0.0
        for j in range(OWN if k < old else 0):
            v += law.own[j] * memory.columns[k, j]
        memory.weight[k] = math.exp(v)
    fresh, w = n - old, law.new
    logit = (
        w[c] + w[K + c] * math.log1p(memory.own_of[c] + fresh)
        + w[2 * K] * math.log1p(memory.visits_of[c] + fresh) + w[2 * K + 1] * math.log1p(memory.size[1])
    )  # fmt: skip
    full = known + added >= len(memory.cls) - 1 or added >= len(day.new_cls) - 1
    if n > 0 and (full or uniform(stream) * (1.0 + math.exp(logit)) >= math.exp(logit)):
        return memory.among[draw_index(memory.weight, n, uniform(stream))]
    if full:
        return max(here, 0)
    day.new_cls[added] = c
    day.state[1] += 1
    return known + added


@njit
def rounded(t, grain):
    """Return t rounded to the grain of the file's times."""
    return (t + grain // 2) // grain * grain


@njit
def wobble(length, grain, stream):
    """Draw by how much a length is changed: a slot to either side, or up to a quarter of it."""
    if length == 0:
        return 0
    if grain >= 600:
        if length <= 2 * grain:
            return 0
        return (int(uniform(stream) * 3) - 1) * grain
    most = min(1200.0, 0.25 * length)
    return int((2.0 * uniform(stream) - 1.0) * most)


@njit
def draw_day(law, memory, habit, kind, off, here, before, first_piece, lo, hi, stream, day):
    """Draw one diary into `day`, between seconds `lo` and `hi`: at place `here`, carried over, or by an opening."""
    day.state[0], day.state[1], day.state[2] = 0, memory.size[0], 0
    pieces = law.pieces
    q, grain, most, way, opens = 0, law.grain, len(day.own) - 1, 0, here < 0 and first_piece < 0
    if here >= 0:
        c, t, x = memory.cls[here], lo, here
        p = draw_piece(law, habit, kind, off, c, 1, 0, stream)
        if p < 0:
            p = draw_piece(law, habit, kind, off, c, 0, 0, stream)
    else:
        p = first_piece if first_piece >= 0 else draw_opening(law, habit, kind, stream)
        if p >= 0:
            c = pieces.cls[p]
            t = lo if first_piece >= 0 else max(lo, rounded(pieces.start[p] + wobble(3600, grain, stream), grain))
            t = min(t, DAY - grain)
            x = draw_own(law, memory, day, c, -1, before, part_of(t, off), stream)
    while p >= 0 and q < most:
        length = pieces.end[p] - pieces.start[p]
        if pieces.over[p] == 1:
            end = DAY
        elif length == 0:
            end = t
        else:
            end = (t + length if length < BRIEF and (q > 0 or opens) else pieces.end[p]) + wobble(length, grain, stream)
            end = max(rounded(end, grain), t + grain)
            if pieces.end[p] < hi <= end and t + grain < hi:  # it ended within what is seen
                end = hi - grain
        stays_on = end >= DAY
        day.own[q], day.cls[q], day.start[q], day.end[q], day.way[q] = x, c, t, min(end, DAY), way
        q += 1
        if stays_on:
            day.state[2] = 1
            break
        if pieces.after[p] < 0:
            break
        gap = pieces.gap[p]
        t = end + (max(rounded(gap + wobble(gap, grain, stream), grain), grain) if gap > 0 else 0)
        if pieces.end[p] + gap < hi <= t:
            t = max(hi - grain, end)
        way = pieces.way[p]
        if t >= DAY:
            if way == 1:  # who would still be on the way does not leave
                day.end[q - 1], day.state[2] = DAY, 1
            break
        if pieces.again[p] == 0:
            c = pieces.after[p]
            to = draw_own(law, memory, day, c, x, before, part_of(t, off), stream)
            before, x = x, to
        p = draw_piece(law, habit, kind, off, c, 0, t, stream)
    day.state[0] = q
    fill_slots(day)


@njit
def fill_slots(day):
    """Write the own place of each slot of a diary."""
    day.slots[:] = -1
    for q in range(day.state[0]):
        a, b = day.start[q] // SLOT, max((day.end[q] - 1) // SLOT, day.start[q] // SLOT)
        for t in range(a, min(b + 1, SLOTS)):
            day.slots[t] = day.own[q]


@njit
def day_features(law, memory, off, day, out):
    """Fill in what a diary is chosen by: how like the earlier days of the person, how busy, how much at home."""
    out[:] = 0.0
    n, seen, known = day.state[0], 0, memory.size[0]
    best, total, near = 0.0, 0.0, 0.0
    for back in range(memory.size[1]):
        d = memory.size[1] - 1 - back
        if memory.off[d] != off:
            continue
        equal, either = 0, 0
        for t in range(SLOTS):
            a, b = day.slots[t], memory.slots[d, t]
            if a >= 0 or b >= 0:
                either += 1
                equal += 1 if a == b else 0
        share = equal / either if either > 0 else 1.0
        total += share
        best = max(best, share)
        if seen == 0:
            near = share
        seen += 1
        if seen == RECENT:
            break
    if seen > 0:
        out[0], out[1], out[2] = total / seen, best, near
        out[3] = out[0] * out[0]
    home, brief, returns, distinct = 0, 0, 0, 0
    for q in range(n):
        out[12 + min(day.start[q], DAY - 1) // WATCH] += 1.0 / n
        length = day.end[q] - day.start[q]
        if law.role[day.cls[q]] == HOME:
            home += length
            returns += 1
        elif length <= 3600:
            brief += 1
        old = False
        for z in range(q):
            old = old or day.own[z] == day.own[q]
        distinct += 0 if old else 1
    out[4], out[5] = n, n * n / 10.0
    out[6], out[7] = day.state[1] - known, distinct
    out[8] = home / 36000.0
    out[9] = out[8] * out[8]
    out[10], out[11] = brief, returns


@njit
def choose_day(law, memory, off, tastes, days, stream):
    """Draw one of several diaries, by weights exp(likeness and all that people's days are chosen by)."""
    features, shares, top = np.zeros(FEATURES), np.zeros(len(days)), -1e18
    for a in range(len(days)):
        day_features(law, memory, off, days[a], features)
        shares[a] = 0.0
        for j in range(len(TASTES)):
            shares[a] += tastes[j] * features[TASTES[j]]
        for k in range(FEATURES):
            shares[a] += law.like[k] * features[k]
        top = max(top, shares[a])
    for a in range(len(days)):
        shares[a] = math.exp(shares[a] - top)
    return max(draw_index(shares, len(days), uniform(stream)), 0)


@njit
def tie_of(gap, trip):
    """Return how soon one place followed another, by the seconds between and whether by a trip (1): 1 to TIES."""
    tie = TIES // 2 * (1 + trip)
    for limit in SOON:
        tie -= gap >= limit
    return tie


@njit
def remember_day(law, memory, off, day):
    """Take a diary into the memory."""
    today, known = memory.size[1], memory.size[0]
    for j in range(day.state[1] - known):
        c = day.new_cls[j]
        memory.cls[known + j] = c
        memory.own_of[c] += 1
    memory.size[0] = day.state[1]
    for q in range(day.state[0]):
        x = day.own[q]
        if q > 0 or day.start[q] > 0 or memory.visits[x] == 0:
            memory.visits[x] += 1
            memory.visits_of[day.cls[q]] += 1
            memory.parts[x, part_of(day.start[q], off)] += 1
        if q > 0:
            memory.moves[day.own[q - 1], x] += 1
            tie = tie_of(day.start[q] - day.end[q - 1], law.leaves[day.cls[q - 1]])
            memory.soon[day.own[q - 1], x] = max(memory.soon[day.own[q - 1], x], tie)
        memory.last[x] = today
    memory.slots[today] = day.slots
    memory.off[today] = off
    memory.size[1] += 1


@njit
def note_choice(memory, day, c, x, here, before, part, rows):
    """Write down that own place x of class c, perhaps a new one, came after `here`."""
    old, n = list_own(memory, day, c, here, before, part)
    i, j = rows.size[0], rows.size[1]
    if n > 0 and i < len(rows.new):
        new_columns(memory, c, n - old, rows.new[i])
        rows.said[i] = 1.0 if x >= day.state[1] else 0.0
        rows.size[0] += 1
    for k in range(old):
        if memory.among[k] == x and 1 < old <= rows.own.shape[1] and j < len(rows.own):
            rows.own[j, :old], rows.many[j], rows.chosen[j] = memory.columns[:old], old, k
            rows.size[1] += 1


@njit
def replay_day(pieces, memory, own, a, b, off, here, before, rows, day):
    """Live pieces a to b again, `here` to begin with, and write their choices down; return the last place but one."""
    known = memory.size[0]
    day.state[0], day.state[1], day.state[2] = b - a, known, 0
    for q in range(b - a):
        x, c, t = own[a + q], pieces.cls[a + q], pieces.start[a + q]
        day.own[q], day.cls[q], day.start[q], day.end[q] = x, c, t, pieces.end[a + q]
        if q == 0 and here >= 0:
            continue
        if x != here:
            note_choice(memory, day, c, x, here, before, part_of(t, off), rows)
        if x >= day.state[1]:
            day.new_cls[x - known] = c
            day.state[1] = x + 1
        before, here = here, x
    fill_slots(day)
    return before


@njit
def replay(law, people, offset, habit_of, kind, off, own, share, key, rows):
    """
    Live these people's days again and write down their choices.

    Person i has days offset[i] : offset[i + 1]; `own` numbers a person's places as they appear. Of the days, a share is
    put beside diaries that the law draws for the same person, kind and state.
    """
    pieces, longest = law.pieces, np.diff(offset).max()
    memory, real, other = new_memory(own.max() + 66, longest + 1, len(law.role)), new_day(256), new_day(256)
    for n in range(len(people)):
        i = people[n]
        clear_memory(memory)
        stream = open_stream(key, 0, n)
        here, before = -1, -1
        for d in range(offset[i], offset[i + 1]):
            a, b = law.day_first[d], min(law.day_first[d + 1], law.day_first[d] + 255)
            if here >= 0 and not (b > a and pieces.start[a] == 0 and own[a] == here):
                here = -1
            last = replay_day(pieces, memory, own, a, b, off[d], here, before, rows, real)
            if rows.size[2] < len(rows.like) and b > a and uniform(stream) < share and memory.size[1] > 0:
                like = rows.like[rows.size[2]]
                day_features(law, memory, off[d], real, like[0])
                for j in range(1, len(like)):
                    draw_day(law, memory, habit_of[i], kind[d], off[d], here, before, -1, 0, DAY, stream, other)
                    day_features(law, memory, off[d], other, like[j])
                rows.size[2] += 1
            remember_day(law, memory, off[d], real)
            here, before = -1, last
            if b > a and pieces.over[b - 1] == 1:
                here = own[b - 1]
            elif b > a:
                before = own[b - 1]


@njit
def draw_kind(law, mix, recent, state, inner, stream):
    """Draw the kind of a day that begins in class `state` (K: open); of days within a span, whether it has a record."""
    shares = np.empty(len(mix))
    likely_kinds(mix, law.phases, recent, shares)
    if not inner:  # a span begins and ends with a record, whatever the phase
        shares[0] = 0.0
    for k in range(len(mix)):
        shares[k] *= law.begins[k, state]
    kind = draw_index(shares, len(mix), uniform(stream))
    if kind < 0:
        kind = max(draw_index(mix, len(mix), uniform(stream)), 0)
    return kind


@njit
def draw_first(law, habit, off, lo, stream):
    """Return the piece of a day of this habit in which somebody is seen at second `lo`, and the kind of day."""
    cell, kind = habit * 2 + off, 0
    a, b = law.days_first[cell], law.days_first[cell + 1]
    for _ in range(40 if b > a else 0):
        donor = law.days[a + int(uniform(stream) * (b - a))]
        kind = law.day_kind[donor]
        for p in range(law.day_first[donor], law.day_first[donor + 1]):
            if law.pieces.start[p] <= lo < law.pieces.end[p]:
                return p, kind
    return -1, kind


@njit
def append_day(day, border, limit, until, here, diary):
    """Write the pieces of a day that begins at second `border` behind a diary, up to second `limit` of it."""
    n, own, end = diary.state[0], diary.own, diary.end
    for q in range(day.state[0]):
        s, e = day.start[q], min(day.end[q], limit)
        if s >= until:
            break
        if s >= limit:
            if day.way[q] == 1 and n > 0:  # who would still be on the way does not leave
                end[n - 1] = border + limit
            break
        if q == 0 and here >= 0 and n > 0 and own[n - 1] == day.own[0] and end[n - 1] == border + s:
            end[n - 1] = border + e
            continue
        if n == len(own):
            break
        own[n], diary.cls[n], diary.way[n] = day.own[q], day.cls[q], day.way[q]
        diary.start[n], end[n] = border + s, border + e
        n += 1
    diary.state[0] = n


@njit
def draw_diary(law, habit, mix, tastes, off, memory, days, stream, diary):
    """
    Draw the diary of one life; return its number of pieces. Times are seconds since the first border.

    `mix` (2, Q) the person's kinds of day, `tastes` (TASTES,) ln weights of a diary, `off` (D,) its calendar.
    """
    clear_memory(memory)
    D, here, before, recent = len(off), -1, -1, np.zeros((len(FADES), 2))
    open_phases(recent, mix[off[0], 0])
    diary.state[0] = 0
    for d in range(D):
        first_piece, begin, limit, until = -1, 0, DAY, DAY
        inner = 0 < d < D - 1
        if d == D - 1:
            limit, until = (law.hi, DAY) if law.hi >= 0 else (DAY, DAY - law.border)
        if d == 0 and law.lo >= 0:
            begin = law.lo
            first_piece, kind = draw_first(law, habit, off[0], begin, stream)
        if first_piece < 0:
            kind = draw_kind(law, mix[off[d]], recent, memory.cls[here] if here >= 0 else len(law.role), inner, stream)
        if inner:
            fade(recent, 1.0 if kind == 0 else 0.0)
        for a in range(len(days)):
            draw_day(
                law, memory, habit, kind, off[d], here, before, first_piece, begin, limit, stream, days[a]
            )  # fmt: skip
        day = days[choose_day(law, memory, off[d], tastes, days, stream)]
        remember_day(law, memory, off[d], day)
        append_day(day, d * DAY, limit, until, here, diary)
        m = day.state[0]
        if m > 1:
            before = day.own[m - 2]
        here = day.own[m - 1] if m > 0 and day.state[2] == 1 else -1
        if m > 0 and here < 0:
            before = day.own[m - 1]
    return diary.state[0]


@njit
def likely_kinds(mix, phases, recent, out):
    """
    Fill in how likely each kind of day is: `mix` (Q,) of a person, but kind 0, no record, as recent days go too.

    `recent` (FADES, 2): fading counts of days so far, and of those without a record; `phases` (1 + FADES,): how much of
    having a record at all follows the mix, and recent days.
    """
    empty = phases[0] * mix[0]
    for w in range(len(recent)):
        empty += phases[1 + w] * recent[w, 1] / recent[w, 0]
    rest = 1.0 - mix[0]
    for k in range(len(mix)):
        out[k] = empty if k == 0 else (1.0 - empty) * mix[k] / max(rest, 1e-300)


@njit
def open_phases(recent, empty):
    """Begin as if all days before had been empty as often."""
    for w in range(len(recent)):
        recent[w, 0] = 1.0 / (1.0 - math.exp(-1.0 / FADES[w]))
        recent[w, 1] = empty * recent[w, 0]


@njit
def fade(recent, empty):
    """Count one day more; those before count less."""
    for w in range(len(recent)):
        recent[w] *= math.exp(-1.0 / FADES[w])
        recent[w, 0] += 1.0
        recent[w, 1] += empty


@njit
def replay_records(first, empty, own, out):
    """Fill in `out` (days, 1 + FADES): how likely the other days, and recent ones, make it what each day has."""
    for i in range(len(first) - 1):
        recent = np.zeros((len(FADES), 2))
        open_phases(recent, own[first[i]])
        for d in range(first[i], first[i + 1]):
            out[d, 0] = own[d]
            for w in range(len(FADES)):
                out[d, 1 + w] = recent[w, 1] / recent[w, 0]
            if not empty[d]:
                out[d] = 1.0 - out[d]
            fade(recent, 1.0 * empty[d])


@njit
def normal(stream):
    """Draw from the standard normal law."""
    return math.sqrt(-2.0 * math.log(1.0 - uniform(stream))) * math.cos(2.0 * math.pi * uniform(stream))


@njit
def gamma(shape, stream):
    """Draw from the gamma law (Marsaglia and Tsang 2000)."""
    boost = 1.0
    if shape < 1.0:
        boost = (1.0 - uniform(stream)) ** (1.0 / max(shape, 1e-6))
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(1.0 - uniform(stream)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v * boost
