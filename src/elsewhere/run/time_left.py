"""
How long a whole job will still take: what its stages usually take, and how fast this run has been so far.

What a stage takes follows from what is known once the input is read: people, days, slots, places. The rates were
measured on simulated towns (`bench/time_left.py`), and none is right for every town and machine: the run corrects them.
The seconds of a stage are its usual ones, times how slow the machine is, times how far off the rate of this stage is;
both factors are log-normal. Finished stages tell the first, the finished part of a stage in pieces the second, each
by how sure it is (docs/decisions/0055-time-left.md).
"""

import math
from collections.abc import Callable, Mapping
from time import monotonic
from typing import NamedTuple

from elsewhere.run.attempts import MOST_PLACES
from elsewhere.synthesis.walk.fit import MOST_ROWS

LEARN, MAKE, JUDGE = "learning", "making fakes", "judging the fakes"
ATTACK, WRITE = "attacking the fakes", "writing the reports"
KEPT_AS = {"attacks": ATTACK}  # where a stage is kept by another name than its own
# parts of learning and of judging, by the names under which they are kept, and what comes between making and judging
MODEL, WALK, PUBLISH = "model", "walk", "writing the fakes"
SEEDS = 0.7  # of the people, as a rule
# at most: MOST_PEOPLE and MOST_DAYS of evaluation/judge.py, MOST_PEOPLE of evaluation/lives.py, not to import here
ATTACKED, DAYS_ATTACKED, COMPARED = 2_000, 4_000, 1_000
# seconds of the attacks on few people, and on ATTACKED of them with a day each, in the order in which they run
FEW = (0.1, 0.0, 0.1, 0.0, 1.5, 0.2, 0.3, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 1.6, 0.0, 5.8, 1.5, 6.0, 0.0, 0.0)
MANY = (1.6, 0.7, 0.7, 0.4, 11.5, 1.1, 2.2, 0.0, 0.0, 1.7, 0.0, 0.6, 0.0, 0.0, 4.1, 0.2, 7.0, 1.5, 7.7, 0.0, 0.0)
BY_PEOPLE = {0, 1, 2, 16, 18}  # attacks that take longer with more people; the others do with more days
BY_ALL_DAYS = {3, 4}  # and these with more than ATTACKED of them
BY_SLOTS = {16, 18}  # decoys for every slot of a day
WEEK = 7  # days, over which one more attack (A18) can be run

# standard deviations of logarithms: of how slow a machine is, and of how far off the rates of the stages are
MACHINE = 0.7
SPREAD = {MODEL: 0.4}
OTHERS = 0.3
# usual seconds of which what is finished tells the speed with a deviation of 1: alike pieces, and unequal ones
SHORT, UNEQUAL = 0.5, 4.0
# a stage that takes less than this share of its usual time was done in an earlier, stopped run: it tells no speed
KEPT = 0.05
SOON = 1.0  # second: what lasts less does not tell how busy the machine is
REST = 0.3  # of the time that a piece has taken: no less is said to come, since what is long may be longer
NINE_OF_TEN = 1.645  # standard deviations on either side
# times as long, by which the time left in one number may be off; where more must be feared, both ends are told
NEAR = 1.5


Seconds = float | tuple[float, ...]  # of a stage, or of each of its pieces, in order


def expected_seconds(
    days: int, slots: int, people: int, places: int, *, per_seed: int, report: bool, product: bool = True
) -> dict[str, Seconds]:
    """
    Return the seconds of each stage after reading, on the machine that was measured; of attacks those of each.

    `days` of `people` with so many `slots`; `places` that enough of them share. Presets other than the `product` learn
    in other parts, and all of it is one stage.

    Examples
    --------
    >>> [(stage, round(s)) for stage, s in expected_seconds(5000, 72, 5000, 400, per_seed=1, report=False).items()]
    [('model', 4), ('walk', 6), ('making fakes', 1), ('writing the fakes', 0)]

    """
    thousands, mapped, several = days * slots / 72_000, places / 1000, days > people
    taught = min(MOST_ROWS / 1000, thousands)  # laws are fitted to so many; sums are over everybody
    lives = several or places <= MOST_PLACES
    model = 0.2 + 4.8 * min(20.0, mapped) ** 0.5 + 0.13 * thousands
    walk = 2.0 + 0.25 * taught
    if not several:
        walk = 2.3 + 0.55 * taught + 0.06 * thousands + (0.8 if lives else 0.5) * mapped
    seconds: dict[str, Seconds] = {MODEL: model, WALK: walk} if product else {LEARN: model + walk}
    seconds |= {
        MAKE: 0.1 + (0.25 if several else 0.16 + (0.025 if lives else 0.01) * mapped) * thousands * per_seed,
        PUBLISH: 0.1 + 0.08 * thousands * per_seed,
    }
    if report:
        seconds["publishing"] = 0.1 + 0.16 * thousands + min(0.7, 0.2 * thousands)
        seconds["uses"] = 0.1 + 0.4 * min(10.5, thousands)  # of samples
        if several:
            seconds["lives"] = 0.2 + 0.7 * thousands * min(COMPARED / people, SEEDS)
        seconds[ATTACK] = attacks(days, slots, people, places)
        seconds[WRITE] = 0.6 + 0.065 * thousands
    return seconds


def attacks(days: int, slots: int, people: int, places: int) -> tuple[float, ...]:
    """
    Return the seconds of each attack of a report on these days of these people, in the order in which they run.

    Where only some days are attacked, those of the attacks over all days are last.
    """
    seeds = min(ATTACKED, SEEDS * people)
    lived = seeds * days / people
    attacked = min(lived, seeds * max(1, DAYS_ATTACKED // seeds))  # as many days of each
    by_people, by_days = seeds / ATTACKED, attacked / ATTACKED
    seconds = []
    for i, (few, many) in enumerate(zip(FEW, MANY, strict=True)):
        share = by_people if i in BY_PEOPLE else by_days if i in BY_ALL_DAYS else min(1.0, by_days)
        by_slots = 0.4 + 0.6 * slots / 72 if i in BY_SLOTS else 1.0
        seconds.append((few + (many - few) * min(share, share**1.5)) * by_slots)
    # on maps of more than 400 places: they learn what stands for what
    seconds[4] += 14 * by_people * max(0.0, (places / 1000) ** 0.4 - 0.4**0.4)
    seconds[5] += 1.15 * by_people * places / 1000
    over_days = 3 + 0.15 * lived / 1000 if days >= WEEK * people else 2.0
    if lived > DAYS_ATTACKED:
        seconds.append(over_days)
    elif days >= WEEK * people:
        seconds[17] += over_days
    return tuple(seconds)


class Slowness(NamedTuple):
    """How many times the usual seconds something takes, as the mean and the variance of the logarithm."""

    mean: float
    variance: float

    def beside(self, other: "Slowness") -> "Slowness":
        """Return what this and another, independent of it, tell together."""
        weight, others = 1 / self.variance, 1 / other.variance
        return Slowness((weight * self.mean + others * other.mean) / (weight + others), 1 / (weight + others))

    def off_by(self, spread: float) -> "Slowness":
        """Return the slowness of something that is off by a factor of its own."""
        return Slowness(self.mean, self.variance + spread**2)

    @property
    def times(self) -> float:
        """Return the factor in the middle."""
        return math.exp(self.mean)


class TimeLeft:
    """
    Seconds that a job in stages will still take: `left()`, None while nothing can be said, and `left.range()`.

    `left.expect(seconds)` says what each stage takes on a usual machine, or each of its unequal pieces;
    `left.at(stage, done, total)` where the job is. Stages that are not expected are passed over. What is given of the
    `processor` until something is expected tells how busy the machine is.

    Examples
    --------
    >>> now = 0.0
    >>> left = TimeLeft(lambda: now)
    >>> left.at("reading", 0, 0), left()
    (None, None)
    >>> left.expect({"making": 40.0, "judging": 20.0})
    >>> left.at("making", 0, 4), left()
    (None, 60.0)
    >>> now = 40.0  # of 10: a slow machine
    >>> left.at("making", 1, 4), round(left())
    (None, 166)
    >>> [round(seconds) for seconds in left.range()]
    [118, 235]

    """

    def __init__(self, clock: Callable[[], float] = monotonic, processor: Callable[[], float] | None = None) -> None:
        self._clock, self._processor = clock, processor
        self._start = clock(), processor() if processor is not None else 0.0
        self._burden = 0.0  # logarithm of how many times as long as its processor time this process has lasted
        self.expected: dict[str, float] = {}
        self.pieces: dict[str, tuple[float, ...]] = {}
        self._stage, self._done, self._next, self._since = "", 0.0, 0.0, clock()
        self._finished: dict[str, tuple[float, float]] = {}  # by stage: usual seconds of what is done, and those spent

    def expect(self, seconds: Mapping[str, Seconds]) -> None:
        """Say what each stage to come takes on a usual machine, in order; the first begins."""
        self.pieces = {stage: each for stage, each in seconds.items() if isinstance(each, tuple)}
        self.expected = {stage: sum(s) if isinstance(s, tuple) else s for stage, s in seconds.items()}
        lasted = self._clock() - self._start[0]
        if self._processor is not None and lasted > SOON:
            self._burden = max(0.0, math.log(lasted / max(0.01 * lasted, self._processor() - self._start[1])))
        self.at(next(iter(seconds)))

    def at(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Say that so many of the pieces of a stage are done; a `total` of 0 is not known."""
        stage = KEPT_AS.get(stage, stage)
        if stage not in self.expected:
            return
        weights = self.pieces.get(stage, ())
        if len(weights) not in (total, total + 1):  # the last may be what follows all that are counted
            weights = ()
        weights = weights or (1.0,) * max(1, total)
        share, following = (sum(some) / sum(weights) for some in (weights[:done], weights[done : done + 1]))
        now = self._clock()
        if self._stage:
            before = self.expected[self._stage] * ((share if stage == self._stage else 1.0) - self._done)
            elapsed = now - self._since
            if before > 0 and elapsed > KEPT * before:
                usually, spent = self._finished.get(self._stage, (0.0, 0.0))
                self._finished[self._stage] = usually + before, spent + elapsed
        self._stage, self._done, self._next, self._since = stage, share, following, now

    def __call__(self) -> float | None:
        """Return the seconds left, as likely too many as too few."""
        return None if not self._stage else self._left()[0]

    def range(self) -> tuple[float, float] | None:
        """Return the seconds between which the job ends in nine of ten cases, as far as such jobs were measured."""
        if not self._stage:
            return None
        seconds, deviation = self._left()
        return seconds * math.exp(-NINE_OF_TEN * deviation), seconds * math.exp(NINE_OF_TEN * deviation)

    def in_words(self) -> str:
        """Return the time left for people: "about 7 min left"; where less is known, "4 to 12 min left"."""
        bounds = self.range()
        if bounds is None:
            return ""
        seconds = self._left()[0]
        low, high = (max(1, math.ceil(bound / 60)) for bound in bounds)
        if bounds[1] <= NEAR * seconds or low == high:
            low = high = max(1, math.ceil(seconds / 60))
        unit, low, high = ("min", low, high) if low < 100 else ("h", round(low / 60), round(high / 60))
        return f"about {low} {unit} left" if low == high else f"{low} to {high} {unit} left"

    def _left(self) -> tuple[float, float]:
        """Return the seconds left, and the standard deviation of their logarithm."""
        elapsed, usually = self._clock() - self._since, self.expected[self._stage]
        piece, finished = usually * self._next, self._finished
        here = self._of_this(finished)
        if elapsed > here.times * piece:  # what lasts longer than it should has told so much already
            done, spent = finished.get(self._stage, (0.0, 0.0))
            finished = finished | {self._stage: (done + piece, spent + elapsed)}
            here = self._of_this(finished)
        others = self._machine(finished)
        names = list(self.expected)
        later = {name: others.times * self.expected[name] for name in names[names.index(self._stage) + 1 :]}
        rest = max(here.times * piece - elapsed, REST * elapsed) + here.times * usually * (1 - self._done - self._next)
        seconds = rest + sum(later.values())
        variance = rest**2 * here.variance + sum(later.values()) ** 2 * others.variance
        variance += sum((part * SPREAD.get(name, OTHERS)) ** 2 for name, part in later.items())
        return seconds, math.sqrt(variance) / max(seconds, 1e-9)

    def _machine(self, finished: Mapping[str, tuple[float, float]], without: str = "") -> Slowness:
        """Return how slow this machine is, by what is finished of all stages but one."""
        slow = Slowness(self._burden, MACHINE**2)
        for name, (usually, spent) in finished.items():
            if name != without:
                slow = slow.beside(self._measured(name, usually, spent).off_by(SPREAD.get(name, OTHERS)))
        return slow

    def _of_this(self, finished: Mapping[str, tuple[float, float]]) -> Slowness:
        """Return how slow this stage is, by what is finished of it and of others."""
        slow = self._machine(finished, self._stage).off_by(SPREAD.get(self._stage, OTHERS))
        if self._stage not in finished:
            return slow
        return slow.beside(self._measured(self._stage, *finished[self._stage]))

    def _measured(self, stage: str, usually: float, spent: float) -> Slowness:
        """Return what the seconds spent on a part of a stage tell of it."""
        return Slowness(math.log(spent / usually), (UNEQUAL if stage in self.pieces else SHORT) / usually)
