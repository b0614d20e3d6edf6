"""The loops of fig:alg: attempts at each fake of a seed until one passes the test (E63), or walks paired with seeds."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.slots import People, Traces, hold_places
from elsewhere.data.visits import Codes, Floats, Ints
from elsewhere.paper._similarity_kernels import Seeds
from elsewhere.paper.generate_fake import OK, FakeMaker
from elsewhere.paper.privacy_test import RULES, PrivacyTest, Verdicts
from elsewhere.run.model import FittedModel
from elsewhere.settings import Preset
from elsewhere.synthesis.walk._draw_kernels import draw_walks
from elsewhere.synthesis.walk._walk_kernels import Tables
from elsewhere.synthesis.walk.fit import MOST_ROWS, learn_habits, pool_day_statistics
from elsewhere.synthesis.walk.life_ratio import LifeRatio
from elsewhere.synthesis.walk.lives import Lives, learn_lives
from elsewhere.synthesis.walk.pairing import BETA, Due, pair, pairing_kernel, rake_goal, sinkhorn_weights, skeletons
from elsewhere.synthesis.walk.ratio import Ratio, classifier_auc
from elsewhere.synthesis.walk.ways import Ways

CHUNK = 256  # fakes per piece of work
WIDEST = 32  # tries of one fake at a time
NOT_MADE, FAILED, PASSED = range(3)  # what comes of an attempt
BLOCK = 2048  # days of fakes that are paired at once
LEAST_BLOCK = 256  # fakes that are paired at once at least, however many days each has
WALKS = 8192  # drawn for a block of fakes of one day
LIVES_OF_A_DAY = 4096  # drawn for a block: twice as many are no better (docs/decisions.md)
LIVES = 8  # drawn for each fake of several days, and WALKS days at least
ROADS = 2.5  # power of how much likelier ways of three are that enough people take (docs/decisions.md)
COMPARED = 5000  # walks that people's days are compared with
COMPARED_DAYS = 100_000  # of lives that people's are compared with, COMPARED at most
MOST_PLACES = 4096  # above, days are learnt as walks, over places that enough people share


@dataclass(frozen=True, eq=False)
class Made:
    """What came of one piece of work: accepted fakes by unit, tries per unit, verdicts and outcomes of all attempts."""

    r: Any
    unit: Ints
    verdicts: Verdicts
    tries: Ints
    tally: dict[str, int]


@dataclass(frozen=True, eq=False)
class Attempts:
    """Attempts at each (seed, fake) of a piece, until one passes the test or `max_tries` have failed (E63)."""

    maker: FakeMaker = field(repr=False)
    test: PrivacyTest = field(repr=False)
    seeds: Traces = field(repr=False)
    max_tries: int
    size: ClassVar[int] = CHUNK

    def __call__(self, units: Ints) -> Made:
        """Generate the fakes of the units, rows (seed, number of the fake)."""
        pending = np.arange(len(units))
        tries = np.zeros(len(units), dtype=np.int64)
        parts: list[tuple[Any, Ints, Verdicts, Verdicts]] = []
        not_made = 0
        while len(pending) and tries[pending[0]] < self.max_tries:
            # several tries of each at a time where few are pending; those after the first that passes never were
            number_of_tries = tries[pending[0]]
            width = int(min(max(1, CHUNK // len(pending)), WIDEST, self.max_tries - number_of_tries))
            row, fake = np.repeat(units[pending], width, axis=0).T
            # attempt number a of fake j is stream j * max_tries + a of its seed: nothing else moves it
            number = fake * self.max_tries + number_of_tries + np.tile(np.arange(width), len(pending))
            outcome, traces, verdicts = self._try_once(row, number)
            passed = (outcome == PASSED).reshape(len(pending), width)
            tries_used = np.where(passed.any(axis=1), passed.argmax(axis=1) + 1, width)
            tries[pending] += tries_used
            in_count = (np.arange(width) < tries_used[:, None]).ravel()
            not_made += int(np.count_nonzero(in_count & (outcome == NOT_MADE)))
            tested = outcome >= FAILED
            failures = verdicts.select((in_count & (outcome == FAILED))[tested])
            first = in_count & (outcome == PASSED)
            passes = verdicts.select(first[tested])
            parts.append((traces[first], pending[passed.any(axis=1)], passes, failures))
            pending = pending[~passed.any(axis=1)]
        return Made(
            np.concatenate([k[0] for k in parts]),
            np.concatenate([k[1] for k in parts]),
            Verdicts.joined([k[2] for k in parts]),
            tries,
            _count_outcomes([v for k in parts for v in k[2:]], not_made),
        )

    def _try_once(self, row: Ints, number: Ints) -> tuple[Ints, Any, Verdicts]:
        """Make one attempt each; return what came of it, the trace, and the verdicts on those that were tested."""
        attempt = self.maker.attempt(self.seeds.r[row], rows=row, tries=number)
        outcome = np.where(attempt.status == OK, FAILED, NOT_MADE)
        testable = np.flatnonzero(outcome == FAILED)
        verdicts = self.test(attempt.r[testable], row[testable])
        outcome[testable[verdicts.passed]] = PASSED
        return outcome, attempt.r, verdicts


def _count_outcomes(verdicts: list[Verdicts], not_made: int) -> dict[str, int]:
    """Return how many attempts were tested, passed, were failed by each rule, and how many gave no trace."""
    tally = dict.fromkeys(("tested", "passed", "not_made", *RULES), 0) | {"not_made": not_made}
    for some in verdicts:
        for name, count in some.counts().items():
            tally[name] += count
    return tally


@dataclass(frozen=True, eq=False)
class WalkModel:
    """The law of a walk, over `places` of the map; every sum in it is one that `m_min` people share."""

    tables: Tables = field(repr=False)
    places: Ints = field(repr=False)
    ways: Ways | None = field(default=None, repr=False)

    @staticmethod
    def of(people: Traces, learnt: FittedModel, rng: np.random.Generator) -> "WalkModel":
        """Learn the walk of these people; on a large map they, and the walk, visit known places only."""
        known = learnt.known
        places = np.flatnonzero(known) if people.R > MOST_PLACES else np.arange(people.R)
        locations = people.locations if len(places) == people.R else people.locations.select(places)
        r = np.where(people.r >= 0, np.searchsorted(places, people.r), -1)
        habits = learn_habits(r, locations, known[places], user=people.user, m_min=learnt.preset.m_min, rng=rng)
        tables = habits.tables(locations, known[places])
        # weights that are right for one step spread over ways that nobody takes; people keep to those of others
        return WalkModel(tables._replace(onward_factor=tables.onward_factor**ROADS), places, learnt.ways)

    def pool_size(self, fakes: int) -> int:
        """Return how many walks are drawn for a block of so many fakes."""
        return WALKS

    def draw(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw `n` walks."""
        L = len(self.tables.slot)
        r = np.empty((n, L), dtype=np.int32)
        draw_walks(self.tables, rng.random((n, 2 * L - 1)), r)
        walks = self.places.astype(np.int32)[r]
        return walks if self.ways is None else self.ways.keep(walks)


@dataclass(frozen=True, eq=False)
class LifeModel:
    """The law of lives over the days of a calendar, over `places` of the map that enough people share."""

    lives: Lives = field(repr=False)
    places: Ints = field(repr=False)
    weekend: NDArray[np.bool_] = field(repr=False)  # (days of the calendar,)
    ways: Ways | None = field(default=None, repr=False)

    @staticmethod
    def of(people: Traces, weekend: NDArray[np.bool_], learnt: FittedModel, rng: np.random.Generator) -> "LifeModel":
        """Learn the lives of these people, whose rare places are replaced; no row of theirs is without a place."""
        places = np.unique(people.r[people.r >= 0]).astype(np.int64)
        calendar = People.of(people, m_min=learnt.preset.m_min)
        day = calendar.day if people.dates is None else people.dates.astype(np.int64)
        # weekday or weekend; a kind that fewer than `m_min` people have counts as the other
        of_kind = calendar.weekend[calendar.day] if len(weekend) > 1 else np.full(len(people), weekend[0])
        lives = learn_lives(
            np.searchsorted(places, hold_places(people.r)),
            people.user,
            day,
            of_kind,
            people.minutes(),
            people.step_minutes,
            people.locations.select(places),
            m_min=learnt.preset.m_min,
            rng=rng,
        )
        return LifeModel(lives, places, weekend, learnt.ways)

    def pool_size(self, fakes: int) -> int:
        """Return how many lives are drawn for a block of so many fakes."""
        if len(self.weekend) == 1:
            return LIVES_OF_A_DAY
        return max(WALKS // len(self.weekend), LIVES * fakes)

    def draw(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw `n` lives (n, days x L)."""
        r = self.lives.draw(n, self.weekend, rng).reshape(n, -1)
        walks = self.places.astype(np.int32)[r]
        return walks if self.ways is None else self.ways.keep(walks)


@dataclass(frozen=True, eq=False)
class Goal:
    """The share that each day of a pool is to have, so that the pool lives as people do (`Ratio`, `rake_goal`)."""

    ratio: Ratio = field(repr=False)
    share: Floats = field(repr=False)  # (L, C) of the people in each class at each slot
    day_statistics: Floats = field(repr=False)  # (4, L + 1), see `rake_goal`
    visits: Floats = field(repr=False)  # (R,) share of people's time at each place, of those that enough people share
    days: int  # of people, that taught it

    @property
    def moves(self) -> float:
        """Return the moves of people's days in the mean."""
        return float(self.day_statistics[0] @ np.arange(self.day_statistics.shape[1]))

    def __call__(self, walks: Codes, label: NDArray[np.integer]) -> Floats:
        """Return the share (n,) of each of these days."""
        ln = self.ratio.ln(walks)
        return rake_goal(walks, label, self.share, self.day_statistics, self.days, np.exp(ln - ln.max()))


def learn_weeks(
    people: Traces, weekend: NDArray[np.bool_], learnt: FittedModel, rng: np.random.Generator
) -> tuple[LifeModel, LifeRatio]:
    """Return the law of lives over the days of a calendar, from people with several days, and its ratio to people."""
    people, m_min = learnt.translate(people), learnt.preset.m_min
    people = people.select((np.bincount(people.user)[people.user] > 1) & (people.r >= 0).any(axis=1))
    law = LifeModel.of(people, weekend, learnt, rng)
    rows = People.of(people, m_min=m_min).rows[:, : len(weekend)]
    shown = np.zeros((len(rows), len(weekend)), dtype=bool)
    shown[:, : rows.shape[1]] = rows >= 0
    lives = np.zeros((*shown.shape, people.L), dtype=np.int32)
    lives[shown] = hold_places(people.r)[rows[rows >= 0]]
    n = int(np.clip(COMPARED_DAYS // len(weekend), LEAST_BLOCK, COMPARED))
    drawn = law.draw(n, rng).reshape(n, *shown.shape[1:], -1)
    return law, LifeRatio.learn(lives, shown, drawn, weekend, people.locations, m_min)


def learn_days(people: Traces, learnt: FittedModel, rng: np.random.Generator) -> tuple[WalkModel | LifeModel, Goal]:
    """
    Learn the law of single days that are hardest to tell from these people's, and the goal of its pool.

    A life of one day knows its home, hours and ways; a walk knows roads and pace. In simulated towns with nights lives
    are nearer to people, on ten hours of Tokyo walks (docs/decisions.md). Where more than `MOST_PLACES`
    places are shared, and for days of one slot, it is a walk.
    """
    m_min, translated = learnt.preset.m_min, learnt.translate(people)
    share = _classes_by_slot(translated, learnt.classes.label)
    visits = np.bincount(translated.r[translated.r >= 0], minlength=people.R)
    if people.R > MOST_PLACES:
        people = translated
    laws: list[WalkModel | LifeModel] = [WalkModel.of(people, learnt, rng)]
    if np.count_nonzero(learnt.known) <= MOST_PLACES and people.L > 1:
        somewhere = translated.select((translated.r >= 0).any(axis=1))
        laws.append(LifeModel.of(somewhere, np.zeros(1, dtype=bool), learnt, rng))
    some = np.sort(rng.permutation(np.flatnonzero((people.r >= 0).any(axis=1)))[:MOST_ROWS])
    days, user = hold_places(people.r[some]), people.user[some]
    walks = [law.draw(COMPARED, rng) for law in laws]
    auc = [classifier_auc(days, user, drawn, people.locations, m_min, rng) for drawn in walks]
    best = int(np.argmin(auc))
    goal = Goal(
        Ratio.learn(days, user, walks[best], people.locations, m_min),
        share,
        pool_day_statistics(days, user, walks[best].astype(np.int64), m_min),
        visits / max(1, visits.sum()),
        len(days),
    )
    return laws[best], goal


def _classes_by_slot(people: Traces, label: NDArray[np.integer]) -> Floats:
    """Return the share (L, C) of the people in each class at each slot, of those who are in any."""
    C = int(label.max(initial=0)) + 1
    kinds = np.where(people.r >= 0, label[people.r], -1)
    count = np.stack([np.bincount(row[row >= 0], minlength=C) for row in kinds.T]).astype(np.float64)
    return np.asarray(count / np.maximum(1, count.sum(axis=1, keepdims=True)))


@dataclass(frozen=True, eq=False)
class Block:
    """Fakes that are paired at once, and what only their seeds are needed for: it travels with them."""

    units: Ints = field(repr=False)  # rows (seed, number of the fake)
    seeds: Seeds = field(repr=False)
    shown: NDArray[np.bool_] = field(repr=False)  # (units, days) on which days each fake is somewhere


@dataclass(frozen=True, eq=False)
class Pairs:
    """
    Walks drawn for a block of fakes and paired with their seeds; a block depends on nothing but its own numbers.

    A seed is a person with all their days, over a calendar of `days`.
    """

    walk: WalkModel | LifeModel = field(repr=False)
    goal: Goal | LifeRatio = field(repr=False)
    label: NDArray[np.integer] = field(repr=False)
    test: PrivacyTest = field(repr=False)
    settings: Preset = field(repr=False)
    shift: int
    days: int
    size: int  # how many fakes are paired at once
    entropy: int = field(repr=False)  # a secret (R3)

    def _kernel_of_a_day(
        self, skeleton: NDArray[np.int16], own: Codes, walks: Codes, limit: Ints
    ) -> NDArray[np.float32]:
        """
        Return the weight of each walk of one day for each seed (`pairing_kernel`).

        A walk shares at most `par_i` places with its seed; where fewer than `max_tries` walks do, at most `limit`.
        """
        strict = np.minimum(limit, self.settings.par_i)
        K = pairing_kernel(skeleton, own, walks, self.label, BETA, len(self.label), limit=strict)
        crossed = np.flatnonzero(limit > strict)
        crossed = crossed[np.count_nonzero(K[crossed], axis=1) < self.settings.max_tries]
        if len(crossed):
            near = skeleton[crossed], own[crossed]
            K[crossed] = pairing_kernel(*near, walks, self.label, BETA, len(self.label), limit=limit[crossed])
        return K

    def __call__(self, block: Block) -> Made:
        """Generate the fakes of a block."""
        units, test = block.units, self.test.of(block.seeds)
        first = units[0].astype(np.uint32)
        rng = np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(5, int(first[0]), int(first[1]))))
        r = block.seeds.r
        own: Codes = hold_places(r.reshape(len(r) * self.days, -1)).reshape(len(r), -1).astype(r.dtype)
        walks = self.walk.draw(self.walk.pool_size(len(units)), rng)
        classes = np.where(own >= 0, self.label[own], -1)
        skeleton = skeletons(classes, rng.integers(-self.shift, self.shift + 1, len(units)), self.days)
        limit = block.seeds.limit if self.settings.intersection == "set" else None
        if limit is None or self.days > 1:
            K = pairing_kernel(skeleton, own, walks, self.label, BETA, len(self.label), limit=limit)
        else:
            K = self._kernel_of_a_day(skeleton, own, walks, limit)
        days = self.goal if isinstance(self.goal, Goal) else None
        share = self.goal.share(walks) if isinstance(self.goal, LifeRatio) else self.goal(walks, self.label)
        V = sinkhorn_weights(K, share, self.settings.balance)
        due = None if days is None else Due.of(walks, share, days.visits, days.moves)
        visible = np.repeat(block.shown, own.shape[1] // self.days, axis=1)
        pairs = pair(
            K,
            V,
            walks,
            lambda r, i: test(np.where(visible[i], r, -1), i),
            max_tries=self.settings.max_tries,
            rng=rng,
            due=due,
        )
        rows = [u[v.passed] for u, v in zip(pairs.tried, pairs.verdicts, strict=True)]
        unit = np.concatenate(rows or [np.empty(0, int)])
        passes = [v.select(v.passed) for v in pairs.verdicts]
        nothing = [test(walks[:0], units[:0, 0])]
        return Made(
            np.where(visible[unit], walks[pairs.walk[unit]], -1),
            unit,
            Verdicts.joined(passes or nothing),
            np.maximum(pairs.tries, 1),
            _count_outcomes(pairs.verdicts, int(np.count_nonzero(pairs.tries == 0))),
        )
