"""
HOW: a law of diaries over classes of usages that many people share.

A person's day, from a border in the small hours on, is of a *kind*; within it one leaves a class given the hour and
the dwell, and something comes next after no gap or a gap (what is not recorded). Both are drawn as single pieces of
stays of people of the type: no sequence of anybody is followed for longer than one piece. Own places again or a new
one, and which, and which of several diaries for a day, are choices whose weights are learnt by conditional logit from
people's own choices. People differ in their mix of kinds and in tastes, drawn for each life, and days without a record
come in phases: whether there is one goes by recent days too. The same law serves filled weeks, single days, check-ins
and calls: a check-in is a stay without length, and a day without records is a kind of day.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import DAY, Floats, Ints, Mask
from elsewhere.sorting import number_parts
from elsewhere.synthesis import _diary_kernels as kernels
from elsewhere.synthesis.groups import (
    DAYS_PER_KIND,
    HOUR,
    LEAVES,
    MOST_KINDS,
    PEOPLE_PER_HABIT,
    Groups,
    Stays,
    _cluster,
    _merge_small,
    count_distinct,
    group_people,
    weekend_of,
)

BORDER = 4 * HOUR  # when a day begins, where people are seen for days on end
MOST_OWN, MOST_PIECES = 400, 250  # own places of a life; pieces of a day
CHOICES = 40_000  # to learn from
# one of TRIES diaries follows a taste about half as far as one of all diaries would, for hours less; a stronger taste
# takes the longest of them, and makes days longer: for stays, new places, home and hours
FOLLOWED, STRONGEST = np.repeat((2.0, 3.5), (3, 6)), np.repeat((0.5, 1.0, 0.5, 4.0), (1, 1, 1, 6))
COMPARED = 2_500  # days put beside what the law draws
CANDIDATES = 12  # own places of which one is chosen, in learning
WEEK = (0.7, 0.5)  # weight of kinds of day on weekdays and at weekends, where people are grouped by them
LEAN = 0.1  # how much a kind of day leans on all kinds for how far people keep to it
BUSY = 20 * 60  # seconds: records that follow each other sooner make a day busy
SPARE = 0.02  # share of days of a kind that begin in a class in which none was seen to


def _cut_stays(stays: Stays, groups: Groups, border: int) -> kernels.Pieces:
    """Return the stays of everybody in pieces of one day each."""
    rows = np.flatnonzero(stays.usage >= 0)
    user, cls = stays.user[rows], groups.use_class[stays.usage[rows]]
    begin, end = stays.start[rows] - border, stays.end[rows] - border
    chain = np.cumsum(~stays.joined)[rows]
    by_way = np.append((chain[1:] == chain[:-1]) & ((np.diff(rows) > 1) | (end[:-1] == begin[1:])), False)
    # a way over the border belongs to where it leads
    by_night = np.append(False, by_way[:-1]) & (begin // DAY > np.append(0, end[:-1]) // DAY)
    begin = np.where(by_night, np.append(0, end[:-1]), begin)

    # pieces: cut at the border of the day
    many = np.maximum((end - 1) // DAY - begin // DAY, 0) + 1
    stay, nth = number_parts(many)
    day = begin[stay] // DAY + nth
    s, e = np.maximum(begin[stay] - day * DAY, 0), np.minimum(end[stay] - day * DAY, DAY)
    carried, over = (nth > 0).astype(np.int64), (nth < many[stay] - 1).astype(np.int64)
    nxt = np.append(stay[1:], -1)
    alike = (over == 0) & (nxt >= 0) & (np.append(user[stay][1:], -1) == user[stay]) & (np.append(day[1:], -1) == day)
    after = np.where(alike, np.append(cls[stay][1:], -1), -1)
    again = np.where(alike, np.append(stays.usage[rows][stay][1:], -1) == stays.usage[rows][stay], False)
    gap = np.where(alike, np.append(s[1:], 0) - e, 0)
    usage = stays.usage[rows][stay]
    way = (alike & by_way[stay]).astype(np.int64)
    return kernels.Pieces(
        user[stay], usage, cls[stay], day, s, e, carried, over, after, again.astype(np.int64), gap, way
    )


def learn_diaries(stays: Stays, groups: Groups, *, k: int, rng: np.random.Generator) -> kernels.Law:
    """Learn the law of diaries from people's stays."""
    K, role = groups.K, groups.role
    first, last = _spans(stays.user, stays.start, stays.end, stays.people)
    border = BORDER if np.median((last - first) / DAY) > 2.5 else 0

    pieces = _cut_stays(stays, groups, border)
    s, e, over, after, carried = pieces.start, pieces.end, pieces.over, pieces.after, pieces.carried
    day, piece_cls, piece_user = pieces.day, pieces.cls, pieces.user

    # days of everybody from the first to the last, also those without a record
    first_day, last_day = (first - border) // DAY, np.maximum(last - border - 1, first - border) // DAY
    many_days = last_day - first_day + 1
    offset = np.append(0, np.cumsum(many_days))
    whose, date = number_parts(many_days)
    date += first_day[whose]
    off = weekend_of(date).astype(np.int64)
    at = offset[piece_user] + day - first_day[piece_user]
    day_first = np.searchsorted(at, np.arange(offset[-1] + 1))
    soon = stays.events & (after >= 0) & (pieces.gap < BUSY)
    kind, rare = _kinds_of_day(at, s, e, role[piece_cls], piece_cls, K, off, whose, day_first, soon, k, rng)
    Q = int(kind.max()) + 1
    use = np.zeros((stays.people, 2, Q))
    np.add.at(use, (whose[~rare], off[~rare], kind[~rare]), 1.0)
    type_of = _find_habits(use, groups, stays.events, k, rng)
    T = int(type_of.max()) + 1

    inner = np.flatnonzero((date > first_day[whose]) & (date < last_day[whose]) & ~rare)
    mix, spread, phases = _learn_mix(use, type_of, kind[inner] == 0, whose[inner], off[inner])
    begins, state, full = np.zeros((Q, K + 1)), np.full(len(kind), K), np.flatnonzero(np.diff(day_first) > 0)
    head = day_first[full]
    state[full] = np.where(carried[head] == 1, piece_cls[head], K)
    lo, hi = _usual_hours(first - border - first_day * DAY, last - border - last_day * DAY)
    # what is cut off because nobody is seen before or after tells nothing of how days begin; its stays go on
    early, late = (date == first_day[whose]) & (lo >= 0), (day == last_day[piece_user]) & (hi >= 0)
    ended = late & (over == 0) & (after < 0)
    over, e = np.where(ended, 1, over), np.where(ended, DAY, e)
    told = ~early & ~rare
    np.add.at(begins, (kind[told], state[told]), 1.0)
    begins = begins / np.maximum(begins.sum(1, keepdims=True), 1) + SPARE * begins.sum(0) / max(begins.sum(), 1)

    def sort_by(cell: Ints, cells: int, rows: Ints) -> tuple[Ints, Ints]:
        order = rows[np.lexsort((s[rows] if len(cell) == len(s) else rows, cell[rows]))]
        return order, np.searchsorted(cell[order], np.arange(cells + 1))

    piece_kind, piece_type = kind[at], type_of[piece_user]
    cell = ((piece_type * Q + piece_kind) * K + piece_cls) * 2 + carried
    # how long the first stay of a day has lasted is not known where records are trips
    whole = np.flatnonzero((s < e) | (np.arange(len(s)) != day_first[at])) if not stays.events else np.arange(len(s))
    whole, heads, full = whole[~rare[at[whole]]], head[(carried[head] == 0) & told[full]], full[~rare[full]]
    of_days = _tasted(pieces.usage, (role[piece_cls] == kernels.HOME) * (e - s), s, at, len(kind), stays.events)
    tastes = _tastes(of_days, type_of[whose] * Q + kind, whose, stays.people)
    if lo < 0:  # who is first seen in the small hours is seen on that date
        first_day = np.maximum(first_day, first // DAY)
    first_day, last_day = share_spans(first_day, np.maximum(last_day, first_day), k)
    habits = np.zeros((int(groups.type_of.max()) + 1, T))
    np.add.at(habits, (groups.type_of, type_of), 1.0)
    law = kernels.Law(
        pieces._replace(end=e, over=over),
        *sort_by(cell, T * Q * K * 2, whole), *sort_by(cell % (Q * K * 2), Q * K * 2, whole),
        *sort_by(off[at] * K * 2 + cell % (K * 2), K * 4, whole),
        *sort_by(piece_type * Q + piece_kind, T * Q, heads), *sort_by(piece_kind, Q, heads),
        day_first, kind, *sort_by(type_of[whose] * 2 + off, T * 2, full),
        begins, phases, habits, mix, spread, tastes, groups.type_of, first_day, last_day, role,
        (groups.ways & LEAVES) // LEAVES, np.zeros(2 * K + kernels.NEW), np.zeros(kernels.OWN),
        np.zeros(kernels.FEATURES), border, lo, hi, min(MOST_OWN, 3 * int(np.bincount(stays.use_user).max()) + 16),
        min(2 * int(np.diff(day_first).max(initial=1)) + 8, MOST_PIECES), stays.grain,
    )  # fmt: skip
    return _learn_choices(law, offset, type_of, kind, off, rng)


def _spans(user: Ints, start: Ints, end: Ints, people: int) -> tuple[Ints, Ints]:
    """Return the first start and last end of each person."""
    head = np.searchsorted(user, np.arange(people))
    return start[head], np.maximum.reduceat(end, head)


def share_spans(first: Ints, last: Ints, k: int) -> tuple[Ints, Ints]:
    """
    Return first and last days such that at least k people share each number of days, and each first day.

    Who would end after the day on or after which k people are last seen begins earlier by as many days.
    """
    days = _in_groups(last - first, k)
    start = np.minimum(_in_groups(first, k), np.sort(last)[-min(k, len(last))] - days)
    return start, start + days


def _in_groups(values: Ints, k: int) -> Ints:
    """Return the values with each group of k neighbours in size, or of equals, replaced by its median."""
    order = np.argsort(values, kind="stable")
    group = np.minimum(np.arange(len(values)) // k, max(len(values) // k - 1, 0))
    out = np.empty_like(values)
    for g in range(int(group.max(initial=0)) + 1):
        members = order[group == g]
        out[members] = values[members[len(members) // 2]]
    return out


def _tasted(usage: Ints, home: Ints, s: Ints, at: Ints, days: int, events: bool) -> NDArray[Any]:
    """Return what people have a taste for in each day: stays, new places, ten hours of home, hours of few records."""
    new = np.zeros(len(usage), dtype=bool)
    new[np.unique(usage, return_index=True)[1]] = True
    watch = np.where(events, np.minimum(s, DAY - 1) // kernels.WATCH, -1)
    hours = [(watch == w) / np.bincount(at)[at] for w in range(DAY // kernels.WATCH)]
    return np.column_stack([np.bincount(at, x, days) for x in (np.ones(len(usage)), new, home / 36_000, *hours)])


def _tastes(values: NDArray[Any], cell: Ints, whose: Ints, people: int) -> Floats:
    """Return how much people differ in values of days beyond type and kind, in ln weight, by the variance within."""
    out, days = np.zeros(values.shape[1]), np.bincount(whose, minlength=people)
    for j, value in enumerate(values.T):
        rest = value - (np.bincount(cell, value) / np.maximum(np.bincount(cell), 1))[cell]
        within = float((rest**2).mean())
        own = np.bincount(whose, rest, people) / np.maximum(days, 1)
        between = float((own**2).mean() - (within / np.maximum(days, 1)).mean())
        out[j] = np.sqrt(max(between, 0.0)) / max(within, 0.02)
    return np.asarray(np.minimum(FOLLOWED * out, STRONGEST))


def _usual_hours(first: Ints, last: Ints) -> tuple[int, int]:
    """Return the second of the day at which people are first and last seen, where half of them agree; else -1."""
    out = []
    for clock in (first, last):
        value, many = np.unique(clock, return_counts=True)
        out.append(int(value[many.argmax()]) if many.max() > len(clock) / 2 else -1)
    return out[0], out[1]


def _kinds_of_day(
    at: Ints, s: Ints, e: Ints, role: Ints, cls: Ints, K: int, off: Ints, whose: Ints, day_first: Ints, soon: Mask,
    k: int, rng: np.random.Generator,
) -> tuple[Ints, Mask]:  # fmt: skip
    """
    Cluster days by role and hour and by how busy they are, weekdays and weekends apart; kind 0 is no record.

    Returned too are the days of kinds that fewer than k people have: counted to the nearest one, they teach nothing.
    """
    n = len(off)
    table = np.zeros((n, 24, 3))
    for h in range(24):
        length = np.clip(np.minimum(e, (h + 1) * HOUR) - np.maximum(s, h * HOUR), 0, HOUR) / HOUR
        length += (s == e) & (s // HOUR == h)
        np.add.at(table[:, h], (at, role), length)
    number = np.diff(day_first)
    classes = np.zeros((n, K))
    np.add.at(classes, (at, cls), 1.0)
    busy = [np.minimum(number, 12) / 2.5, np.minimum(number, 3), np.minimum(np.bincount(at, soon, n), 4)]
    table = np.column_stack([np.minimum(table, 2).reshape(n, -1), *busy, 0.7 * np.minimum(classes, 2)])
    kind, rare = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    empty = number == 0
    used = 1
    for weekend in (0, 1):
        mine = np.flatnonzero((off == weekend) & ~empty)
        if len(mine) == 0:
            continue
        label, means = _cluster(table[mine], int(np.clip(len(mine) // DAYS_PER_KIND, 1, MOST_KINDS)), rng)
        few = count_distinct(label, whose[mine], len(means)) < k
        rare[mine] = few[label] & ~few.all()
        label = _merge_small(label, means, partial(count_distinct, value=whose[mine], n=len(means)), k)
        kind[mine] = used + label
        used += int(label.max()) + 1
    return kind, rare


def _find_habits(use: Floats, groups: Groups, events: bool, k: int, rng: np.random.Generator) -> Ints:
    """Return the habit of each person: people whose days are of the same kinds (`use` (people, 2, Q)), and as busy."""
    days, people = use.copy(), len(use)
    days[:, :, 0] = 0
    share = np.sqrt(days / np.maximum(days.sum(2, keepdims=True), 1)) * np.array(WEEK)[:, None]
    alike = [share.reshape(people, -1), groups.busy]
    if events:  # days of few records say little of who lives alike: hours of the week by class too
        alike.append(np.sqrt(groups.profile.reshape(people, -1, 2, 12, 2).sum(4)).reshape(people, -1))
    return group_people(np.column_stack(alike), PEOPLE_PER_HABIT, k, rng)


def _learn_spread(use: Floats, mean: Floats) -> Floats:
    """
    Return the concentration (Q,) of people's shares of each kind of day about `mean` (people, Q), by moments.

    What most people do now and then is one thing, what few people do often another: each kind has its own, which leans
    on that of all kinds. `use` (people, Q) counts days.
    """
    n = use.sum(1, keepdims=True)
    use, mean, n = (x[n[:, 0] > 1] for x in (use, mean, n))
    alone = mean * (1 - mean)
    excess = ((use / n - mean) ** 2 - alone / n).sum(0)
    room = (alone * (1 - 1 / n)).sum(0)
    if room.sum() == 0:
        return np.full(use.shape[1], 50.0)
    lean = LEAN * room.mean()
    ratio = (excess + lean * excess.sum() / room.sum()) / (room + lean)
    return np.asarray(1 / np.clip(ratio, 0.005, 0.9) - 1)


def _learn_mix(use: Floats, type_of: Ints, empty: Mask, whose: Ints, off: Ints) -> tuple[Floats, Floats, Floats]:
    """
    Return the kinds of day of each habit (T, 2, Q), how far people keep to them, and phases of days without a record.

    A span begins and ends with a record: how many days have none is a matter of the days between, which are `empty` or
    not, of people `whose`, and `off`. `use` (people, 2, Q) counts all days by kind.
    """
    T, Q = int(type_of.max()) + 1, use.shape[2]
    mix, none = np.full((T, 2, Q), 1e-9), np.zeros((2, T, 2))
    np.add.at(mix, type_of, use)
    mean = mix / mix.sum(2, keepdims=True)
    spread = np.stack([_learn_spread(use[:, o], mean[type_of, o]) for o in (0, 1)])
    np.add.at(none, (empty.astype(np.int64), type_of[whose], off), 1.0)
    none = none[1] / np.maximum(none.sum(0), 1)
    mix[:, :, 1:] *= ((1 - none) / mix[:, :, 1:].sum(2))[:, :, None]
    mix[:, :, 0] = none
    return mix, spread, _learn_phases(empty, whose, off, none[type_of], spread[:, 0])


def _learn_phases(empty: Mask, whose: Ints, off: Ints, usual: Floats, spread: Floats) -> Floats:
    """
    Return how much of having no record on a day follows all days of the person, and recent ones by each fading, by EM.

    `usual` (people, 2) is the share of empty days of people alike, `spread` how much it counts beside the person's own.
    """
    first, cell = np.searchsorted(whose, np.arange(len(usual) + 1)), whose * 2 + off
    days, none = np.bincount(cell)[cell], np.bincount(cell, empty)[cell]
    own = (none - empty + spread[off] * usual[whose, off]) / (days - 1 + spread[off])
    likely = np.zeros((len(empty), 1 + len(kernels.FADES)))
    kernels.replay_records(first, empty, own, likely)
    likely = likely[:: len(likely) // CHOICES + 1]
    share = np.full(likely.shape[1], 1 / likely.shape[1])
    for _ in range(500 if len(likely) else 0):
        mine = share * likely + 1e-12
        share = (mine / mine.sum(1, keepdims=True)).mean(0)
    return share


def _learn_choices(
    law: kernels.Law, offset: Ints, habit_of: Ints, kind: Ints, off: Ints, rng: np.random.Generator
) -> kernels.Law:
    """Return the law with the weights of new places, of own places and of diaries."""
    # own places of a person, numbered as they appear
    _, head, inverse = np.unique(law.pieces.usage, return_index=True, return_inverse=True)
    whose = law.pieces.user[head]
    order = np.lexsort((head, whose))
    rank = np.empty(len(head), dtype=np.int64)
    rank[order] = np.arange(len(head)) - np.searchsorted(whose[order], whose[order])
    own, half = rank[inverse], CHOICES // 2
    for compared in (0, COMPARED):
        rows = kernels.Choices(
            np.zeros((CHOICES, len(law.new))), np.zeros(CHOICES), np.zeros((half, CANDIDATES, kernels.OWN)),
            np.zeros(half, dtype=np.int64), np.zeros(half, dtype=np.int64),
            np.zeros((compared, 1 + kernels.TRIES, kernels.FEATURES)), np.zeros(3, dtype=np.int64),
        )  # fmt: skip
        key = rng.integers(0, 2**63, 2).astype(np.uint64)
        people = rng.permutation(len(habit_of))  # where choices are many, those of some people
        share = min(1.0, 1.2 * COMPARED / len(kind))
        kernels.replay(law, people, offset, habit_of, kind, off, own, share, key, rows)
        n, m, days = (int(size) for size in rows.size)
        if compared == 0:  # diaries are compared once their own places are drawn as people choose them
            law = law._replace(new=fit_logistic(rows.new[:n], rows.said[:n]))
            law = law._replace(own=fit_choices(rows.own[:m], rows.many[:m], rows.chosen[:m]))
    many = np.full(days, 1 + kernels.TRIES)
    return law._replace(like=fit_choices(rows.like[:days], many, np.zeros_like(many), 3.0))


def fit_logistic(x: Floats, said: Floats, ridge: float = 1.0) -> Floats:
    """Fit P(said) = logistic(x w) by Newton's method."""
    w = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        slope = x.T @ (p - said) + ridge * w
        step = np.linalg.solve((x * (p * (1 - p) + 1e-6)[:, None]).T @ x + ridge * np.eye(len(w)), slope)
        w -= step
        if np.abs(step).max(initial=0) < 1e-6:
            break
    return w


def fit_choices(rows: Floats, many: Ints, chosen: Ints, ridge: float = 1.0) -> Floats:
    """Fit weights w of P(chosen j) ~ exp(rows[j] w), the first `many` rows of each choice, by Newton's method."""
    w = np.zeros(rows.shape[2])
    if len(rows) == 0:
        return w
    open_: NDArray[np.bool_] = np.arange(rows.shape[1])[None] < many[:, None]
    took = rows[np.arange(len(rows)), chosen]
    for _ in range(30):
        v = np.where(open_, rows @ w, -np.inf)
        p = np.exp(v - v.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        mean = np.einsum("ij,ijk->ik", p, rows)
        slope = (mean - took).sum(0) + ridge * w
        second = np.einsum("ij,ijk,ijl->kl", p, rows, rows) - mean.T @ mean + ridge * np.eye(len(w))
        step = np.linalg.solve(second, slope)
        w -= np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-6:
            break
    return w
