"""
What each preset would promise so many people, and about how useful it would be, before anything is spent.

From public figures and the number of people alone (docs/promise.md): planning costs nobody any privacy.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from elsewhere.errors import counted, require_whole
from elsewhere.privacy.certificate import Certificate
from elsewhere.privacy.private import release as private
from elsewhere.privacy.private.sums import MOST_EPS, eps_of, gaussian_mu
from elsewhere.run.roles import USUAL_USERS, least_users
from elsewhere.settings import PRESETS, NoisySums

MOST_PEOPLE = 10**10
GOOD = 4500.0  # people x mu above which the loss of TP-TV is .02 at most (docs/decisions.md)


@dataclass(frozen=True)
class Planned:
    """What one preset would promise, whether there are enough people for it, and about how useful it would be."""

    preset: str
    enough: bool
    people_needed: int
    certificate: Certificate
    useful: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "certificate": self.certificate.to_dict()}


def plan(people: int, *, eps: float = 4.0, delta: float = 1e-6) -> tuple[Planned, ...]:
    """
    Return what each preset would promise so many people, in order of what it promises.

    Parameters
    ----------
    people
        How many there are in the file.
    eps, delta
        Of the private preset.

    Examples
    --------
    >>> [(p.preset, p.certificate.protects, p.enough) for p in plan(300)][1:]
    [('product', 'nobody', True), ('private', 'everybody', False)]

    """
    require_whole("people", people, 0, MOST_PEOPLE)
    NoisySums(eps=eps, delta=delta)  # which refuses what the preset would refuse
    product = (
        "the most useful: each fake follows one seed; what attacks learn is measured after the run, and is all that is "
        "known about privacy."
    )
    if people < USUAL_USERS:
        product += f" Fewer than about {USUAL_USERS} people often share too few places: it may be refused for that."
    paper = "to reproduce the paper; not for publishing."
    least = [least_users(PRESETS["paper"]), least_users(PRESETS["product"])]
    return (
        Planned("paper", people >= least[0], least[0], Certificate.none(), paper),
        Planned("product", people >= least[1], least[1], Certificate.none(), product),
        plan_private(people, eps, delta),
    )


def plan_private(people: int, eps: float = 4.0, delta: float = 1e-6) -> Planned:
    """Return what the private preset would promise so many people; where they are few, with which eps it would run."""
    mu = gaussian_mu(eps, delta)
    least, good = private.people_needed(eps, delta), math.ceil(GOOD / mu)
    certificate = private.certificate_of(eps, delta, cells=1)
    if people >= good:
        words = f"visits as without noise, up to .02 of TP-TV: {good:,} people are enough for that."
    elif people >= least:
        words = f"rougher than without noise; {good:,} people would bring visits within .02 of TP-TV."
    else:
        words = f"refuses: it needs {least:,} people; with fewer the fakes are no better than a uniform map."
    if 0 < people < good:
        there, most = counted(people, "person", "people"), gaussian_mu(MOST_EPS, delta)
        thresholds = [
            f"{what} from eps = {math.ceil(10 * eps_of(need / people, delta)) / 10:g}"
            for what, need in (("it runs", private.ENOUGH), ("it is within .02", GOOD))
            if need / people <= most
        ]
        if thresholds:
            words += f" With {there} {' and '.join(thresholds)}."
        else:
            too_few = f"{there} {'is' if people == 1 else 'are'} too few"
            words += f" {too_few} for any eps that promises something (at most {MOST_EPS:g})."
    return Planned("private", people >= least, least, certificate, words)
