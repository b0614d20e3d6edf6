"""
How long a whole job will still take: what its stages usually take, and how fast this machine has been so far.

What a stage takes follows from what is known once the input is read: people, days, slots, places. The rates were
measured on simulated towns (`bench/time_left.py`); a machine that is slow in the stages it has finished is taken to be
as slow in those to come.
"""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from elsewhere.semantics.classes import TEACHING
from elsewhere.synthesis.walk.fit import MOST_ROWS

LEARN, MAKE, JUDGE = "learning", "making fakes", "judging the fakes"
ATTACK, WRITE = "attacking the fakes", "writing the reports"
ATTACKED = 2.0  # thousands of people at most: MOST_PEOPLE of evaluation/judge.py, which this room may not import
SEEDS = 0.7  # of the people, as a rule
# seconds of the attacks on so many people, in the order in which they run; most go to A5, A15, A17 and A19
ATTACKS = (3.6, 0.7, 0.7, 0.4, 9.3, 1.6, 2.3, 0.1, 0.1, 1.3, 0.1, 0.4, 0.1, 0.1, 5.2, 0.2, 11.4, 2.1, 12.4, 0.1, 0.1)
# seconds more of A5 and A6, for a thousand places and for each further day of a life: they learn what stands for what
FURTHER = {4: (1.25, 1.1), 5: (1.15, 0.0)}

PRIOR = 10.0  # seconds of a usual machine that weigh beside what was measured on this one
# a stage that takes less than this share of its usual time was done in an earlier, stopped run: it tells no speed
KEPT = 0.05
REST = 0.3  # of the time that a piece has taken: no less is said to come, since what is long may be longer


def usual(days: int, slots: int, people: int, places: int, *, per_seed: int, report: bool) -> dict[str, float]:
    """
    Return the seconds of each stage after reading, of a run of the product preset on the machine that was measured.

    `days` of `people` with so many `slots`; `places` that enough of them share.

    Examples
    --------
    >>> {stage: round(s) for stage, s in usual(5000, 72, 5000, 400, per_seed=1, report=True).items()}
    {'learning': 14, 'making fakes': 1, 'judging the fakes': 4, 'attacking the fakes': 53, 'writing the reports': 1}

    """
    thousands, mapped = days * slots / 72_000, places / 1000
    # the more people a place has, the more classes are tried, up to one for some places; most are learnt from TEACHING
    tried = max(1.0, min(thousands / max(mapped, 0.001) / 5, 1.5 * mapped))
    classes = 4 + 5 * min(TEACHING / 1000, mapped) * tried
    # the law of a walk is fitted to MOST_ROWS days at most; sums are over everybody
    learning = 3.5 + 0.25 * thousands + 0.5 * min(MOST_ROWS / 1000, thousands) + classes + 0.7 * mapped
    seconds = {LEARN: learning, MAKE: 0.1 + (0.22 + 0.01 * mapped) * thousands * per_seed}
    if report:
        judging = 0.5 + 0.27 * thousands + min(5.0, 0.45 * thousands)
        seconds |= {JUDGE: judging, ATTACK: sum(attacks(days, people, places)), WRITE: 1 + 0.05 * thousands}
    return seconds


def attacks(days: int, people: int, places: int) -> tuple[float, ...]:
    """Return the seconds of each attack of a report on these days of these people, in the order in which they run."""
    share = min(1.0, SEEDS * people / 1000 / ATTACKED)
    seconds = list(ATTACKS)
    for attack, (by_places, by_days) in FURTHER.items():
        seconds[attack] += by_places * places / 1000 + by_days * (days / people - 1)
    return tuple((19 + 33 * share**1.5) / 52 * took for took in seconds)


class TimeLeft:
    """
    Seconds that a job in stages will still take: `left()`, None while nothing can be said.

    `left.expect(seconds, pieces)` says what each stage takes on a usual machine, and for stages of unequal pieces their
    weights; `left.at(stage, done, total)` where the job is.

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
    >>> left.at("making", 1, 4), left()
    (None, 125.0)

    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self.expected: dict[str, float] = {}
        self.pieces: dict[str, Sequence[float]] = {}
        self._stage, self._done, self._next, self._since = "", 0.0, 0.0, clock()
        self._spent = self._usual = PRIOR

    def expect(self, seconds: Mapping[str, float], pieces: Mapping[str, Sequence[float]] | None = None) -> None:
        """Say what each stage to come takes on a usual machine, in order, and weights of the pieces of some."""
        self.expected, self.pieces = dict(seconds), dict(pieces or {})

    def at(self, stage: str, done: int, total: int) -> None:
        """Say that so many of the pieces of a stage are done; a `total` of 0 is not known."""
        now, before = self._clock(), self._ahead()
        self._stage, (self._done, self._next) = stage, self._shares(stage, done, total)
        seconds, elapsed = before - self._ahead(), now - self._since
        if seconds > 0 and elapsed > KEPT * seconds:
            self._usual, self._spent = self._usual + seconds, self._spent + elapsed
        self._since = now

    def __call__(self) -> float | None:
        """Return the seconds left."""
        if self._stage not in self.expected:
            return None
        elapsed, ahead = self._clock() - self._since, self._ahead()
        piece = self.expected[self._stage] * self._next
        slow = self._spent / self._usual
        if elapsed > slow * piece:
            slow = (self._spent + elapsed) / (self._usual + piece)
        return (ahead - piece) * slow + max(slow * piece - elapsed, REST * elapsed)

    def _ahead(self) -> float:
        """Return the usual seconds of what is not done, that which is being done included."""
        if self._stage not in self.expected:
            return 0.0
        names = list(self.expected)
        later = names[names.index(self._stage) + 1 :]
        return self.expected[self._stage] * (1 - self._done) + sum(self.expected[name] for name in later)

    def _shares(self, stage: str, done: int, total: int) -> tuple[float, float]:
        """Return, of the time of a stage, the share of what is done, and of the piece that comes next."""
        weights = self.pieces.get(stage, ())
        if not weights or len(weights) != total:
            weights = (1.0,) * max(1, total)
        whole = sum(weights)
        return sum(weights[:done]) / whole, sum(weights[done : done + 1]) / whole
