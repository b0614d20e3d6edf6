"""
What so many people could be promised, before anything is spent.

From public figures and the number of people alone: planning costs nobody any privacy.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from elsewhere.errors import require_whole
from elsewhere.privacy.certificate import Certificate
from elsewhere.privacy.private import release as private
from elsewhere.privacy.private.sums import MOST_EPS, eps_of, gaussian_mu
from elsewhere.run.generate import SEED_SHARE
from elsewhere.settings import Certified, Life

MOST_PEOPLE = 10**10
GOOD = 4500.0  # people x mu above which the loss of TP-TV is .02 at most (docs/decisions.md)


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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "certificate": self.certificate.to_dict(), "words": list(self.words)}

    @property
    def words(self) -> tuple[str, ...]:
        """Return the plan in sentences."""
        tested = (
            f"tested: at least {self.k - 1} other people are as similar to each fake as the person it was made of; "
            "what attacks learn is measured after the run. "
        )
        enough = self.people >= self.people_tested
        tested += "There are enough people." if enough else f"It needs {self.people_tested:,} people."
        c = self.certificate
        certified = f"certified (eps {c.eps:g}, delta {c.delta:g}): no membership attack has an AUC above {c.auc:.3f}. "
        if self.people >= self.people_good:
            certified += "Nearly as useful as without noise."
        elif self.people >= self.people_certified:
            certified += f"Rougher than without noise; {self.people_good:,} people would be nearly as good."
        else:
            certified += f"It needs {self.people_certified:,} people."
            certified += f" With these, eps = {self.eps_runs:g} would do." if self.eps_runs is not None else ""
        return tested, certified


def plan(people: int, *, eps: float = 4.0, delta: float = 1e-6, k: int = 10) -> Plan:
    """
    Return what the test and a certificate would promise so many people.

    Examples
    --------
    >>> plan(300).people_tested, plan(300).people_certified
    (30, 604)

    """
    require_whole("people", people, 0, MOST_PEOPLE)
    Certified(eps=eps, delta=delta)  # which refuse what a run would refuse
    Life(k=k)
    mu, most = gaussian_mu(eps, delta), gaussian_mu(MOST_EPS, delta)
    runs, good = (
        math.ceil(10 * eps_of(need / people, delta)) / 10 if people and need / people <= most else None
        for need in (private.ENOUGH, GOOD)
    )
    return Plan(
        people,
        k,
        math.ceil((k - 1) / (1 - SEED_SHARE)),
        private.certificate_of(eps, delta, cells=1),
        private.people_needed(eps, delta),
        math.ceil(GOOD / mu),
        runs,
        good,
    )
