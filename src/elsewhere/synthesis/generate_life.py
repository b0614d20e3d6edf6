"""
GenerateFake over a life: type, diary, mapping, ways, privacy test; what fails is tried again.

    type      the seed gives its type (at least k people alike), its span of days and its kind of record
    diary     a diary of classes, drawn from the law of the type (diaries.py)
    mapping   places for its own places, drawn jointly (mapping.py)
    ways      what is seen on the way (ways.py)
    test      the privacy test of a life (E75 to E78); what fails is drawn again, `attempts` times

Only seeds teach; alternates are compared with, and leave no trace in the fakes.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.checkpoint import Stages, at_once
from elsewhere.data.visits import DAY, Floats, Ints, Mask, Visits
from elsewhere.errors import InvalidParameter, require_whole
from elsewhere.paper._generate_kernels import open_stream, uniform
from elsewhere.scale import map_over
from elsewhere.sorting import number_parts
from elsewhere.synthesis import _life_kernels as kernels
from elsewhere.synthesis._diary_kernels import Law
from elsewhere.synthesis._way_kernels import Passages
from elsewhere.synthesis.choose import Choice, learn_choice, portray
from elsewhere.synthesis.diaries import learn_diaries
from elsewhere.synthesis.groups import (
    ARRIVES,
    HOUR,
    LEAVES,
    Groups,
    Stays,
    class_of,
    classify,
    find_groups,
    find_stays,
    profiles,
    weekend_of,
)
from elsewhere.synthesis.mapping import learn_mapping
from elsewhere.synthesis.ways import learn_ways

BLOCK = 64  # lives drawn by one call
MOST_ATTEMPTS = 12
CHOICES, PORTRAYED = 4, 1_000  # lives of which one is taken, where records are few; of how many it is learnt how
COMPARED, MOST_COMPARED = 300, 10_000  # alternates that a fake is compared with at first, and if too few are found
PARTS = 8  # of the week, for sim_G: four of the day, weekdays and weekends apart
STRANGERS, USUAL = 2_000, 0.95  # pairs of people of one type; what this share of them reach sets the limits
FASTEST = 0.99  # of the steps between places that follow each other at once, the longest in one interval
AS_FAR, WINDOWS, NEARLY = 60, 50, (0.05, 0.95)  # trips about as far; of how many distances; what nearly all take
RULES = ("similar", "shared", "alternates", "timing")


@dataclass(frozen=True)
class LifeVerdict:
    """What the privacy test of a life measured, and which rules rejected it."""

    rejected_by: tuple[str, ...]
    sim: float  # sim_G(fake, seed) over parts of the week (E75)
    shared: int  # places that both visit (E76)
    alternates: int  # people at least as similar to the fake as the seed is, within par_d (E77)
    alone: int  # runs of three records with a pattern that the seed alone has (E78)

    @property
    def passed(self) -> bool:
        """Tell whether no rule rejected."""
        return not self.rejected_by


@dataclass(frozen=True, eq=False)
class Lives:
    """Fakes of lives: `visits` (user = number of the life; None where nothing passed) and what made them."""

    visits: Visits | None
    seed_of_life: Ints = field(repr=False)
    verdicts: tuple[LifeVerdict, ...] = field(repr=False)
    attempts: Ints = field(repr=False)  # (seeds,)
    tally: dict[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LifeModel:
    """Everything that is learnt from the seeds."""

    stays: Stays = field(repr=False)
    groups: Groups = field(repr=False)
    law: Law = field(repr=False)
    where: kernels.Where = field(repr=False)
    ways: Passages = field(repr=False)
    choice: Choice | None = None  # of several lives, where records are few


class Traits(NamedTuple):
    """What the rules look at, of some lives: shares of time, places, runs of three records."""

    key: Ints  # (life, part of the week, place), sorted
    share: Floats  # of the time in that part
    parts: Floats  # (lives, PARTS) shares of the time
    visited: Ints  # (life, place), sorted
    owner: Ints  # of each run
    run: Ints  # class and hour of each of its records


@dataclass(frozen=True, eq=False)
class LifeTest:
    """The privacy test of a life: what is known of seeds and alternates, and the limits that strangers set."""

    groups: Groups = field(repr=False)
    events: bool
    seeds: Traits = field(repr=False)
    runs: Ints = field(repr=False)  # of all seeds and alternates, sorted
    rare: tuple[Ints, Ints] = field(repr=False)  # (seed, run) of the runs that one person has, and that two have
    others: Floats = field(repr=False)  # ((K + 1) x 48, alternates)
    par_s: float
    par_d: float
    limits: Floats  # (types, 3) the largest sim_G, shared places and runs of the seed's alone
    k: int


def learn_lives(seeds: Visits, *, k: int = 10, rng: np.random.Generator) -> LifeModel:
    """Learn types, the law of diaries, the mapping and the ways from these people."""
    stays = find_stays(seeds)
    groups = find_groups(stays, k=k, rng=rng)
    law = learn_diaries(stays, groups, k=k, rng=rng)
    where = learn_mapping(stays, groups, seeds.locations, rng)
    ways = learn_ways(stays, groups, where.ground, where.passed, rng)
    model = LifeModel(stays, groups, law, where, ways)
    if not stays.events or not seeds.locations.has_coordinates:
        return model
    numbers, key = np.arange(PORTRAYED), rng.integers(0, 2**63, 2).astype(np.uint64)
    life, start, end, place, _, _, good = draw_lives(
        model, rng.permutation(numbers) % seeds.U, np.full(len(numbers), -1.0), numbers, 0 * numbers, key
    )
    xy = where.ground.xy
    lives = portray(life, start, end, place, len(numbers), xy)[good]
    people = portray(stays.user, stays.start, stays.end, stays.place, seeds.U, xy)
    return replace(model, choice=learn_choice(people, lives))


def generate_lives(
    seeds: Visits,
    *,
    alternates: Visits,
    per_seed: int = 1,
    entropy: int,
    executor: Executor | None = None,
    stages: Stages = at_once,
    progress: Callable[[int, int], None] | None = None,
    k: int = 10,
    par_s: float = 0.1,
    par_d: float = 0.1,
    attempts: int = MOST_ATTEMPTS,
) -> Lives:
    """
    Generate `per_seed` lives of each seed that pass the privacy test of a life.

    Parameters
    ----------
    seeds, alternates
        People fakes are made from, and people who are only compared with; on one map.
    per_seed
        Lives of each seed.
    entropy
        128 random bits: everything random follows from them, whatever the number of workers.
    executor, stages, progress
        As `elsewhere.scale.map_over` takes them.
    k
        People of a type at least, and one more than the alternates that a fake needs.
    par_s, par_d
        Largest sim_G to the seed, unless strangers are more similar (E75); by how much a fake may be more similar to
        its seed than to alternates (E77).
    attempts
        Lives drawn per fake until one passes.

    """
    require_whole("k", k, 1)
    require_whole("attempts", attempts, 1)
    require_whole("per_seed", per_seed, 1)
    if alternates.locations != seeds.locations:
        raise InvalidParameter("`alternates` must be on the map of `seeds`.")
    notes = []
    if seeds.U < 2 * k:
        notes.append(f"{seeds.U} seeds are one type: types need {k} people each.")
    if seeds.form.unit != "person":
        notes.append(f"a life is a {seeds.form.unit}: nobody is protected beyond it.")
    # a stream for each stage: a resumed run does not draw again what a finished one drew
    of_lives, of_test, of_homes = np.random.Generator(np.random.Philox(entropy)).spawn(3)
    like, unit = seeds, seeds.form.unit
    if like.form.record == "trips":
        seeds, alternates = stays_of_trips(seeds), stays_of_trips(alternates)
    model = stages("learn lives", lambda: learn_lives(seeds, k=k, rng=of_lives))
    test = stages("learn test", lambda: learn_test(model, alternates, k=k, par_s=par_s, par_d=par_d, rng=of_test))
    key = np.random.SeedSequence(entropy).generate_state(2, np.uint64).astype(np.uint64)
    seed = np.repeat(np.arange(seeds.U), per_seed)
    blocks = [np.arange(a, min(a + BLOCK, len(seed))) for a in range(0, len(seed), BLOCK)]
    least = 2 if unit == "trip" else 1
    # homes spread evenly over town, dealt out at random: no order of lives shows in them
    points = (of_homes.permutation(len(seed)) + of_homes.random(len(seed))) / len(seed)
    work = partial(generate_block, model, test, seed, points, key, attempts, least)
    done = map_over(work, blocks, executor=executor, progress=progress, stages=stages, name="lives")
    return collect_lives(done, like, seed, attempts, notes, model)


def collect_lives(
    done: Sequence[tuple[list[Ints], list[LifeVerdict], Ints, Ints]], like: Visits, seed: Ints, attempts: int,
    notes: list[str], model: LifeModel,
) -> Lives:  # fmt: skip
    """Return the lives of all blocks that passed, numbered anew, as records like those of `like`; count the others."""
    rows = [np.concatenate([d[0][j] for d in done]) for j in range(5)]
    verdicts = [v for d in done for v in d[1]]
    tries = np.concatenate([d[2] for d in done])
    rejected = sum((d[3] for d in done), start=np.zeros(len(RULES), dtype=np.int64))
    passed = np.array([v.passed for v in verdicts], dtype=bool)
    number = np.cumsum(passed) - 1
    failed = int(len(seed) - passed.sum())
    if failed:
        notes.append(f"{failed} of {len(seed)} lives did not pass the test in {attempts} attempts and were left out.")
    keep = passed[rows[0]]
    life, start, end, place, cls = (column[keep] for column in rows)
    stays = model.stays
    trip = None if like.trip is None else number_trips(life, cls, model.groups.ways)
    row = np.arange(len(life))
    if stays.beat:  # fixes again, at the pace of people's
        row, nth = number_parts(np.maximum((end - start) // stays.beat, 1))
        start = end = start[row] + nth * stays.beat
    elif stays.cut >= 0:  # records end at this second of the day, as people's do
        first = (start - stays.cut) // DAY
        row, nth = number_parts(np.maximum((end - 1 - stays.cut) // DAY - first, 0) + 1)
        border = (first[row] + nth) * DAY + stays.cut
        start, end = np.maximum(start[row], border), np.minimum(end[row], border + DAY)
    elif stays.trail:
        end = end_trail(life, start, end, place, stays, model.where.ground.xy)
    life, place, trip = life[row], place[row], trip if trip is None else trip[row]
    visits, users = None, range(int(passed.sum()))
    if passed.any() and like.form.record != "trips":
        visits = like.replace(user=number[life], start=start, end=end, place=place, users=users, trip=trip)
    elif passed.any():
        visits = trips_of_stays(like, number[life], start, end, place, users)
    tally = {"tested": int(tries.sum()), "passed": int(passed.sum())}
    tally |= {rule: int(n) for rule, n in zip(RULES, rejected, strict=True)}
    return Lives(
        visits,
        seed[passed],
        tuple(v for v in verdicts if v.passed),
        np.bincount(seed, tries, like.U).astype(np.int64),
        tally,
        tuple(notes),
    )


def end_trail(life: Ints, start: Ints, end: Ints, place: Ints, stays: Stays, xy: Floats) -> Ints:
    """
    Return the last fix of each record of a trail, some time before the next: one interval.

    Where that would be faster than nearly all people are, nothing was seen for as long as it takes.
    """

    def steps(place: Ints) -> Floats:
        return np.asarray(np.hypot(*(xy[place[1:]] - xy[place[:-1]]).T))

    taken = steps(stays.place)[stays.joined[1:]]
    usual = np.quantile(taken, FASTEST) if len(taken) else 0.0
    intervals = np.append(np.ceil(steps(place) / max(usual, 1e-9)), 0).astype(np.int64)
    followed = np.append((life[1:] == life[:-1]) & (start[1:] - end[:-1] < stays.trail), False)
    last = np.append(start[1:], 0) - stays.trail * np.maximum(intervals, 1)
    return np.where(followed, np.maximum(start, last), end)


def number_trips(life: Ints, cls: Ints, ways: Ints) -> Ints:
    """Return the trip of each record, -1 for none; `ways` (K,): which of the ways to and from a class are trips."""
    stay = np.flatnonzero(cls >= 0)
    way, last = ways[cls[stay]], np.append(life[stay][1:] != life[stay][:-1], True)
    leaves = (way & LEAVES > 0) & ~last  # until the next stay
    on = np.append(False, leaves[:-1])  # a trip leads to it
    new = leaves & ~(on & (way & ARRIVES > 0))
    trip = np.where(leaves | on, np.cumsum(new) - 1, -1)
    leg = np.searchsorted(stay, np.arange(len(cls)), side="right") - 1
    return np.asarray(np.where((cls >= 0) | leaves[leg], trip[leg], -1))


def stays_of_trips(visits: Visits) -> Visits:
    """Return the stays between trips: from the end of one to the beginning of the next, where both are at one place."""
    trip = np.asarray(visits.trip)
    between = np.append(False, (visits.user[1:] == visits.user[:-1]) & (trip[1:] != trip[:-1]))
    between &= visits.place == np.append(-1, visits.place[:-1])
    first = np.flatnonzero(~between)
    end = np.maximum.reduceat(visits.end, first)
    return visits.replace(
        user=visits.user[first], start=visits.start[first], end=end, place=visits.place[first], trip=None
    )


def trips_of_stays(like: Visits, life: Ints, start: Ints, end: Ints, place: Ints, users: range) -> Visits:
    """
    Return the trips between the stays of each life, two records each: where and when it begins and ends.

    Between stays further apart than nearly all trips take somebody was not seen: who is at one place was there all the
    time, others leave as long before they arrive as trips usually take. None takes less or more time than nearly all
    that go as far.
    """
    order = np.argsort(np.asarray(like.trip), kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(np.asarray(like.trip)[order]) != 0))
    took = np.maximum.reduceat(like.end[order], first) - np.minimum.reduceat(like.start[order], first)
    usual, longest = (int(np.quantile(took, q, method="higher")) for q in (0.5, 0.99))
    pair = np.flatnonzero(life[1:] == life[:-1])
    if like.form.unit == "trip":  # a life is one trip
        pair = pair[np.append(True, life[pair][1:] != life[pair][:-1])]
    far = start[pair + 1] - end[pair] > longest
    stayed = far & (place[pair] == place[pair + 1])
    stayed &= np.bincount(life[pair], ~stayed)[life[pair]] > 0  # a life has a trip at least
    pair, far = pair[~stayed], far[~stayed]
    leave = np.where(far, start[pair + 1] - usual, end[pair])
    arrive = np.maximum(start[pair + 1], leave)
    if like.locations.has_coordinates:
        apart = like.locations.distance(
            *like.place[order][np.column_stack([first, np.append(first[1:], len(order)) - 1])].T
        )
        low, high = usual_times(apart, took, like.locations.distance(place[pair], place[pair + 1]))
        last = np.where(np.append(life[pair][1:] == life[pair][:-1], False), np.append(leave[1:], 0), arrive + DAY)
        arrive = np.clip(np.clip(arrive, leave + low, leave + high), leave, np.maximum(last, leave))
    both = np.column_stack([pair, pair + 1]).ravel()
    when = np.column_stack([leave, arrive]).ravel()
    trip = np.repeat(np.arange(len(pair)), 2)
    return like.replace(user=life[both], start=when, end=when, place=place[both], users=users, trip=trip)


def usual_times(apart: Floats, took: Ints, wanted: Floats) -> tuple[Ints, Ints]:
    """Return the seconds between which nearly all trips are that go as far as `wanted`."""
    order = np.argsort(apart, kind="stable")
    size = min(AS_FAR, len(order))
    windows = [order[a : a + size] for a in np.linspace(0, len(order) - size, WINDOWS).astype(int)]
    far = [np.median(apart[w]) for w in windows]
    low, high = (np.interp(wanted, far, [np.quantile(took[w], q) for w in windows]) for q in NEARLY)
    return low.astype(np.int64), high.astype(np.int64)


def generate_block(
    model: LifeModel,
    test: LifeTest,
    seed: Ints,
    points: Floats,
    key: NDArray[np.uint64],
    attempts: int,
    least: int,
    numbers: Ints,
) -> tuple[list[Ints], list[LifeVerdict], Ints, Ints]:
    """Draw the lives with these numbers until they pass: rows, verdict and attempts of each, rejections by rule."""
    kept: dict[int, list[Ints]] = {}
    verdicts: dict[int, LifeVerdict] = {}
    tries, rejected = np.zeros(len(numbers), dtype=np.int64), np.zeros(len(RULES), dtype=np.int64)
    pending = numbers
    for attempt in range(attempts):
        homes = points[pending] if attempt == 0 else np.full(len(pending), -1.0)
        *columns, first, good = choose_lives(model, seed[pending], homes, pending, attempt, key)
        tries[np.isin(numbers, pending)] += 1
        found = privacy_test_lives(test, seed[pending], columns, first)
        left = []
        for i, number in enumerate(pending.tolist()):
            enough = good[i] and first[i + 1] - first[i] >= least
            verdicts[number] = found[i] if enough else LifeVerdict(("infeasible",), 0.0, 0, 0, 0)
            rejected += [rule in found[i].rejected_by for rule in RULES]
            if verdicts[number].passed:
                kept[number] = [column[first[i] : first[i + 1]] for column in columns]
            else:
                left.append(number)
        pending = np.array(left, dtype=np.int64)
        if not left:
            break
    empty = [np.zeros(0, dtype=np.int64)] * 5
    rows = [np.concatenate([kept.get(n, empty)[j] for n in numbers.tolist()]) for j in range(5)]
    return rows, [verdicts[n] for n in numbers.tolist()], tries, rejected


def choose_lives(
    model: LifeModel, seeds: Ints, points: Floats, numbers: Ints, attempt: int, key: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], ...]:
    """Draw a life per seed as `draw_lives` does, each one of several."""
    if model.choice is None:
        return draw_lives(model, seeds, points, numbers, np.full(len(numbers), attempt), key)
    which, of = np.arange(CHOICES), np.repeat(np.arange(len(seeds)), CHOICES)
    homes = np.where(points < 0, points, (points + which[:, None] / CHOICES) % 1).T.ravel()
    draws = attempt * CHOICES + np.tile(which, len(seeds))
    life, start, end, place, cls, first, good = draw_lives(model, seeds[of], homes, numbers[of], draws, key)
    drawn = np.repeat(np.arange(len(of)), np.diff(first))
    odds = model.choice.odds(portray(drawn, start, end, place, len(of), model.where.ground.xy))
    odds = np.where(good, odds, -np.inf).reshape(-1, CHOICES)
    # a number of each life's own, of a stream that no attempt draws from
    spare = (1 << 32) + attempt
    point = np.array([uniform(open_stream(key, spare, number)) for number in numbers])
    chance = np.cumsum(np.exp(odds - np.maximum(odds.max(1, keepdims=True), -1e9)), axis=1)
    taken = np.minimum((chance <= (point * chance[:, -1])[:, None]).sum(1), CHOICES - 1)
    kept = (which == taken[:, None]).ravel()
    columns = (column[kept[drawn]] for column in (life, start, end, place, cls))
    return (*columns, np.append(0, np.cumsum(np.diff(first)[kept])), good[kept])


def draw_lives(
    model: LifeModel, seeds: Ints, points: Floats, numbers: Ints, attempts: Ints, key: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], ...]:
    """Draw a life per seed: life, start, end, place, class of every record; first rows; which are good."""
    law, ground = model.law, model.where.ground
    # the kernel leaves a seed's own contribution out by changing weights for a moment: on a copy, for threads
    where = model.where._replace(ground=ground._replace(weight=ground.weight.copy()))
    room = 1_000 + 2 * law.most_day * int((law.last_day - law.first_day + 1)[seeds].sum())
    while True:
        rows = kernels.Rows(*(np.zeros(room, dtype=np.int64) for _ in range(5)))
        first, good = np.zeros(len(seeds) + 1, dtype=np.int64), np.zeros(len(seeds), dtype=bool)
        n = kernels.draw_lives(law, where, model.ways, seeds, points, attempts, numbers, key, rows, first, good)
        if n >= 0:
            return (*(column[:n] for column in rows), first, good)
        room *= 2


def learn_test(
    model: LifeModel, alternates: Visits, *, k: int, par_s: float, par_d: float, rng: np.random.Generator
) -> LifeTest:
    """Return the privacy test of a life, with the limits that strangers set (E75 to E78)."""
    stays, groups = model.stays, model.groups
    others = find_stays(alternates)
    cls = class_of(others, classify(others, groups.means))
    profile = profiles(
        others.user, others.start, others.end, cls, people=others.people, K=groups.K, events=others.events
    )  # fmt: skip
    chosen = rng.permutation(others.people)[:MOST_COMPARED]
    theirs, cls = _patterns(others.user, others.start, cls), class_of(stays, groups.use_class)
    seeds = describe(stays.user, stays.start, stays.end, stays.place, cls, stays.people)
    pairs = np.unique(np.column_stack([seeds.owner, seeds.run]), axis=0)
    runs, people = np.unique(
        np.append(pairs[:, 1], np.unique(np.column_stack(theirs), axis=0)[:, 1]), return_counts=True
    )
    at = np.searchsorted(runs, pairs[:, 1])
    one, two = (np.sort((pairs[:, 0] * len(runs) + at)[people[at] == n]) for n in (1, 2))
    test = LifeTest(
        groups, stays.events, seeds, runs, (one, two), profile[chosen].T.copy(), par_s, par_d, np.zeros((0, 3)), k
    )  # fmt: skip
    return replace(test, limits=_limits(test, rng))


def _limits(test: LifeTest, rng: np.random.Generator) -> Floats:
    """Return what USUAL of the strangers of each type reach, of sim_G at least par_s; nothing where there are none."""
    type_of, people = test.groups.type_of, len(test.groups.type_of)
    order, size = np.argsort(type_of, kind="stable"), np.bincount(type_of)
    first, rank = (np.cumsum(size) - size)[type_of], np.empty(people, dtype=np.int64)
    rank[order] = np.arange(people)
    out = np.zeros((len(size), 3))
    some = size[type_of] > 1
    if some.any():
        reached = []
        for _ in range(STRANGERS // people + 1):  # each beside somebody else of the type
            step = rng.integers(1, np.maximum(size[type_of], 2))
            stranger = order[first + (rank - first + step) % size[type_of]]
            reached.append(compare(test, test.seeds, stranger, 2))
        table, types = np.concatenate(reached), np.tile(np.where(some, type_of, -1), len(reached))
        for t in np.flatnonzero(size > 1):
            out[t] = np.quantile(table[types == t], USUAL, axis=0)
    out[:, 0] = np.maximum(out[:, 0], test.par_s)
    return out


def describe(user: Ints, start: Ints, end: Ints, place: Ints, cls: Ints, people: int) -> Traits:
    """Return what the rules look at, of these lives."""
    clock = start // HOUR
    part = (clock % 24) // 6 + 4 * weekend_of(clock // 24)
    key, inverse = np.unique((user * PARTS + part) << 32 | place, return_inverse=True)
    time = np.bincount(inverse, np.maximum(end - start, 60))  # a record without length counts a minute
    total = np.bincount(key >> 32, time, people * PARTS)
    parts = total.reshape(people, PARTS) / np.maximum(total.reshape(people, PARTS).sum(1, keepdims=True), 1e-9)
    share = time / np.maximum(total[key >> 32], 1e-9)
    return Traits(key, share, parts, np.unique(user << 32 | place), *_patterns(user, start, cls))


def compare(test: LifeTest, lives: Traits, seed: Ints, holders: int) -> Floats:
    """
    Return (lives, 3): sim_G to these seeds, shared places, and shared runs that so few people have as `holders`.

    A run of a fake that one person has (1 holder) points at its seed; one of another seed that two have (2 holders) is
    as telling, as the other seed is one of them.
    """
    n, known = len(seed), test.seeds
    owner, part = (lives.key >> 32) // PARTS, (lives.key >> 32) % PARTS
    both, at = _find(known.key, (seed[owner] * PARTS + part) << 32 | (lives.key & 0xFFFFFFFF))
    overlap = np.where(both, np.minimum(lives.share, known.share[at]), 0.0)
    sim = np.bincount(owner, overlap * np.maximum(lives.parts[owner, part], known.parts[seed[owner], part]), n)
    who = lives.visited >> 32
    shared = np.bincount(who[_find(known.visited, seed[who] << 32 | (lives.visited & 0xFFFFFFFF))[0]], minlength=n)
    is_known, at = _find(test.runs, lives.run)
    alone = is_known & _find(test.rare[holders - 1], seed[lives.owner] * len(test.runs) + at)[0]
    return np.column_stack([sim, shared, np.bincount(lives.owner[alone], minlength=n)])


def _find(known: Ints, wanted: Ints) -> tuple[Mask, Ints]:
    """Return which are among the sorted `known`, and where."""
    at = np.searchsorted(known, wanted)
    return np.append(known, -1)[at] == wanted, np.minimum(at, max(len(known) - 1, 0))


def _patterns(user: Ints, start: Ints, cls: Ints) -> tuple[Ints, Ints]:
    """Return (person, pattern) of every run of three records of a person, passes left out: class and hour of each."""
    stay = cls >= 0
    user, code = user[stay], cls[stay] * 24 + start[stay] % DAY // HOUR
    if len(user) < 3:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    run = (code[:-2] << 40) | (code[1:-1] << 20) | code[2:]
    same = user[:-2] == user[2:]
    return user[:-2][same], run[same]


def privacy_test_lives(test: LifeTest, seed: Ints, columns: Sequence[Ints], first: Ints) -> list[LifeVerdict]:
    """
    Return the verdicts on fakes of these seeds; `columns` are life, start, end, place and class of records.

    sim_G(fake, seed), shared places and runs of three records that the seed alone has: no more than 95 % of strangers
    of the type reach, of sim_G par_s at least; at least k - 1 alternates at least as similar to the fake as the seed
    is, within par_d.
    """
    _, start, end, place, cls = columns
    n = len(seed)
    fake = np.repeat(np.arange(n), np.diff(first))
    near = compare(test, describe(fake, start, end, place, cls, n), seed, 1)
    # alternates at least as similar, by class and hour of the week
    profile = profiles(fake, start, end, cls, people=n, K=test.groups.K, events=test.events)
    out = []
    for i in range(n):
        some = np.flatnonzero(profile[i])
        mine = profile[i, some, None]
        to_seed = np.minimum(mine[:, 0], test.groups.profile[seed[i], some]).sum()
        for most in (COMPARED, MOST_COMPARED):
            to_others = np.minimum(mine, test.others[some, :most]).sum(0)
            enough = int((to_others > to_seed - test.par_d).sum())
            if enough >= test.k - 1:
                break
        similar, shared, alone = near[i] > test.limits[test.groups.type_of[seed[i]]]
        failed = (similar, shared, enough < test.k - 1, alone)
        rules = tuple(rule for rule, bad in zip(RULES, failed, strict=True) if bad)
        out.append(LifeVerdict(rules, float(near[i, 0]), int(near[i, 1]), enough, int(near[i, 2])))
    return out
