"""
What each preset would promise so many people, and about how useful it would be, before anything is spent.

From public figures and the number of people alone (docs/decisions/0026, 0028): planning costs nobody any privacy.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from elsewhere.errors import counted, require_whole
from elsewhere.privacy.certificate import Certificate
from elsewhere.privacy.deniable import release as deniable
from elsewhere.privacy.deniable.carried import number_of_archetypes
from elsewhere.privacy.deniable.count import margin
from elsewhere.privacy.private import release as private
from elsewhere.privacy.private.sums import MOST_EPS, eps_of, gaussian_mu
from elsewhere.run.presets import PRESETS, NoisyCount, NoisySums
from elsewhere.run.roles import USUAL_USERS, least_users

MOST_PEOPLE = 10**10
GOOD = 4500.0  # people x mu above which the loss of TP-TV is .02 at most (docs/decisions/0050-parts-and-pools.md)


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


def plan(
    people: int, *, eps0: float = 0.5, eps: float = 4.0, delta: float = 1e-6, k: int | None = None
) -> tuple[Planned, ...]:
    """
    Return what each preset would promise so many people, in order of what it promises.

    Parameters
    ----------
    people
        How many there are in the file.
    eps0, k
        Of the deniable preset.
    eps, delta
        Of the private preset.

    Examples
    --------
    >>> [(p.preset, p.certificate.protects, p.enough) for p in plan(300)][2:]
    [('deniable', 'seeds', True), ('private', 'everybody', False)]

    """
    require_whole("people", people, 0, MOST_PEOPLE)
    NoisyCount(eps0=eps0, k=k or 0)  # which refuse what the presets would refuse
    NoisySums(eps=eps, delta=delta)
    if k is not None:
        require_whole("k", k, 1)
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
        _deniable(people, eps0, k),
        plan_private(people, eps, delta),
    )


def _deniable(people: int, eps0: float, k: int | None) -> Planned:
    seeds = people // 2
    archetypes = number_of_archetypes(max(1, people - seeds), eps0)
    # E|Z| of two-sided geometric noise is 2 e^-eps0 / (1 - e^-2 eps0); half of it is what moves from one to another
    noise = 2 * math.exp(-eps0) / -math.expm1(-2 * eps0)
    share_moved = min(1.0, archetypes * noise / 2 / max(1, seeds))
    kinds = f"{archetypes} archetype{'s' * (archetypes > 1)}"
    words = (
        f"about {seeds:,} seeds of {kinds}; the noise moves about {share_moved:.1%} of the fakes from one archetype to "
        "another. A fake follows an archetype, not a person."
    )
    if k is not None:
        fewest = archetypes * (k + margin(archetypes, eps0))
        words += (
            f" k = {k} keeps archetypes of {k + margin(archetypes, eps0):,} seeds and more"
            + (f": some {2 * fewest:,} people would keep all of them" if seeds < fewest else "")
            + "; the others' fakes follow the town as a whole."
        )
    least = least_users(PRESETS["deniable"])
    return Planned("deniable", people >= least, least, deniable.certificate_of(eps0, k, given=False), words)


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
