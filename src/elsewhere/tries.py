"""The loop of fig:alg: attempt after attempt at each fake of a seed, until one passes the test (E63)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from elsewhere.privacy.tests import PrivacyTest
from elsewhere.privacy.verdict import RULES, Verdicts
from elsewhere.synthesis.attempt import OK, FakeMaker
from elsewhere.synthesis.realism.filter import RealismFilter, coins
from elsewhere.synthesis.tempo.tempo import TempoMaker
from elsewhere.traces.model import Ints, Traces

CHUNK = 256  # fakes per piece of work
WIDEST = 32  # tries of one fake at a time
NOT_MADE, UNREAL, FAILED, PASSED = range(4)  # what comes of an attempt


@dataclass(frozen=True, eq=False)
class Made:
    """What came of one piece of work: accepted fakes by unit, tries per unit, outcomes of all attempts."""

    r: Any
    unit: Ints
    verdicts: Verdicts
    tries: Ints
    tally: dict[str, int]


@dataclass(frozen=True, eq=False)
class Attempts:
    """Attempts at each (seed, fake) of a piece, until one passes the test or `max_tries` have failed (E63)."""

    maker: FakeMaker | TempoMaker = field(repr=False)
    realism: "Realism | None" = field(repr=False)
    test: PrivacyTest = field(repr=False)
    seeds: Traces = field(repr=False)
    max_tries: int

    def __call__(self, units: Ints) -> Made:
        """What comes of the units, rows (seed, number of the fake)."""
        pending = np.arange(len(units))
        tries = np.zeros(len(units), dtype=np.int64)
        kept: list[tuple[Any, Ints, Verdicts]] = []
        tally: dict[str, int] = dict.fromkeys(("tested", "passed", "not_made", "realism", *RULES), 0)
        while len(pending) and tries[pending[0]] < self.max_tries:
            # several tries of each at a time where few are pending; those after the first that passes never were
            done = tries[pending[0]]
            width = int(min(max(1, CHUNK // len(pending)), WIDEST, self.max_tries - done))
            row, fake = np.repeat(units[pending], width, axis=0).T
            # attempt number a of fake j is stream j * max_tries + a of its seed: nothing else moves it
            number = fake * self.max_tries + done + np.tile(np.arange(width), len(pending))
            outcome, made, verdicts = self._tried(row, number)
            passed = (outcome == PASSED).reshape(len(pending), width)
            used = np.where(passed.any(axis=1), passed.argmax(axis=1) + 1, width)
            tries[pending] += used
            counted = (np.arange(width) < used[:, None]).ravel()
            tally["not_made"] += int(np.count_nonzero(counted & (outcome == NOT_MADE)))
            tally["realism"] += int(np.count_nonzero(counted & (outcome == UNREAL)))
            tested = outcome >= FAILED
            for name, count in verdicts.select(counted[tested]).counts().items():
                tally[name] += count
            first = counted & (outcome == PASSED)
            kept.append((made[first], pending[passed.any(axis=1)], verdicts.select(first[tested])))
            pending = pending[~passed.any(axis=1)]
        return Made(
            np.concatenate([k[0] for k in kept]),
            np.concatenate([k[1] for k in kept]),
            Verdicts.joined([k[2] for k in kept]),
            tries,
            tally,
        )

    def _tried(self, row: Ints, number: Ints) -> tuple[Ints, Any, Verdicts]:
        """One attempt each: what came of it, the trace, and the verdicts on those that were tested."""
        made = self.maker.attempt(self.seeds.r[row], rows=row, tries=number)
        outcome = np.where(made.status == OK, FAILED, NOT_MADE)
        if self.realism is not None:
            good = np.flatnonzero(made.status == OK)
            real = self.realism.keeps(made.r[good], row[good], number[good])
            outcome[good[~real]] = UNREAL
        tested = np.flatnonzero(outcome == FAILED)
        verdicts = self.test(made.r[tested], row[tested])
        outcome[tested[verdicts.passed]] = PASSED
        return outcome, made.r, verdicts


@dataclass(frozen=True, eq=False)
class Realism:
    """The realism filter and the key of its coins: attempt by attempt, whatever the order of work."""

    filter: RealismFilter
    key: Any = field(repr=False)  # a secret (R3)

    def keeps(self, fakes: Any, rows: Ints, tries: Ints) -> Any:
        """Which of these attempts the filter lets through."""
        return coins(self.key, rows, tries) < self.filter.keep_probability(fakes)
