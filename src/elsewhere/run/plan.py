"""
What so many people could be promised, before anything is spent.

From public figures and the number of people alone: planning costs nobody any privacy while the plan stays with the
owner of the file. A plan that others may see is made from a count with noise, which is a small release of its own.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from elsewhere.data.visits import UNITS
from elsewhere.errors import require_choice, require_whole
from elsewhere.run.certified import read_rows, require_map
from elsewhere.run.generate import SEED_SHARE
from elsewhere.settings import Certified, Life, Reading
from elsewhere.synthesis.certificate import (
    ENOUGH,
    Certificate,
    certificate_of,
    eps_for,
    from_the_system,
    gaussian_mu,
    noise_of,
    noisy_sum,
    on_grid,
    people_needed,
)

MOST_PEOPLE = 10**10
COUNT_EPS = 0.1  # of a count with noise
FROM_PEOPLE = ("people", "eps_runs", "eps_good", "words")  # fields of a plan that tell the number of people
GOOD = 15_000.0  # people x mu above which the loss of TP-TV is .02 at most (docs/decisions.md)


@dataclass(frozen=True)
class Plan:
    """What a test, and a certificate, would promise so many people, and how many people each needs."""

    people: int
    k: int
    people_tested: int  # that the test of lives needs
    certificate: Certificate
    people_certified: int  # that a certificate needs
    people_good: int  # that it needs to be nearly as without noise
    eps_runs: float | None  # least eps with which a certified run of these people is not refused; None: no such eps
    eps_good: float | None
    unit: str = "person"  # that is protected: a person, a trip, a shift

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "certificate": self.certificate.to_dict(), "words": list(self.words)}

    @property
    def units(self) -> str:
        """Return what the unit is called, in the plural."""
        return UNITS[self.unit][1]

    @property
    def words(self) -> tuple[str, ...]:
        """Return the plan in sentences."""
        one, units = UNITS[self.unit]
        tested = (
            f"tested: at least {self.k - 1} other {units} are as similar to each fake as the {one} it was made of; "
            "what attacks learn is measured after the run. "
        )
        enough = self.people >= self.people_tested
        tested += f"There are enough {units}." if enough else f"It needs {self.people_tested:,} {units}."
        c = self.certificate
        certified = f"certified (eps {c.eps:g}, delta {c.delta:g}): no membership attack has an AUC above {c.auc:.3f}. "
        if self.people >= self.people_good:
            certified += "Nearly as useful as without noise."
        elif self.people >= self.people_certified:
            certified += f"Rougher than without noise; {self.people_good:,} {units} would be nearly as good."
        else:
            certified += f"It needs {self.people_certified:,} {units}."
            certified += f" With these, eps = {self.eps_runs:g} would do." if self.eps_runs is not None else ""
        return tested, certified


def plan(people: int, *, eps: float = 4.0, delta: float = 1e-6, k: int = 10, unit: str = "person") -> Plan:
    """
    Return what the test and a certificate would promise so many people, or trips or shifts (`unit`).

    Examples
    --------
    >>> plan(300).people_tested, plan(300).people_certified
    (30, 597)

    """
    require_whole("people", people, 0, MOST_PEOPLE)
    require_choice("unit", unit, tuple(UNITS))
    Certified(eps=eps, delta=delta)  # which refuse what a run would refuse
    Life(k=k)
    return Plan(
        people,
        k,
        math.ceil((k - 1) / (1 - SEED_SHARE)),
        certificate_of(eps, delta, cells=1),
        people_needed(eps, delta),
        math.ceil(GOOD / gaussian_mu(eps, delta)),
        eps_for(people, ENOUGH, delta),
        eps_for(people, GOOD, delta),
        unit,
    )


def count_with_noise(source: Any, reading: Reading, delta: float = 1e-6) -> int:
    """
    Return about how many people a table has on the given map, under (COUNT_EPS, delta), each row read by itself.

    Every call is a release with noise of its own: releases of the same people add up.
    """
    require_map(reading)
    mu = noise_of(COUNT_EPS, delta, cells=1)
    counted = noisy_sum(read_rows(source, reading).U * on_grid(np.ones(1), mu), mu, from_the_system)
    return max(0, round(float(counted[0])))
