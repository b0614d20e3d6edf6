"""
The certificate of a release: whom a theorem protects, by how much, and under which conditions (docs/promise.md).

A certificate holds for the whole release, however many fakes are in it. Where no theorem holds it says so, and the
attacks that were run are all there is.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from elsewhere.errors import InvalidParameter, require_between, require_choice

PROTECTS = ("nobody", "everybody")
STATES = ("met", "asserted", "not met")
UNIT = "one person, all their days"
LARGEST_EXP = 700.0
VACUOUS = 10.0  # eps above which odds may change by a factor of 22,000: a promise in name only


def largest_advantage(eps: float, delta: float = 0.0) -> float:
    """
    Return the most by which any attack's true positives can exceed its false positives under (eps, delta).

    (e^eps - 1 + 2 delta) / (e^eps + 1): where the two lines of the trade-off between the errors meet.

    Examples
    --------
    >>> round(largest_advantage(0.5), 3)
    0.245

    """
    require_between("eps", eps, 0, math.inf)
    require_between("delta", delta, 0, 1)
    return min(1.0, 1 - 2 * (1 - delta) * (math.exp(-eps) / (1 + math.exp(-eps))))


def largest_auc(eps: float, delta: float = 0.0) -> float:
    """
    Return the largest area under the ROC curve that any attack on membership can have under (eps, delta).

    1 - (1 - delta)^2 / (1 + e^eps): the area under the largest curve that the two inequalities leave.

    Examples
    --------
    >>> round(largest_auc(0.5), 3)
    0.622

    """
    require_between("eps", eps, 0, math.inf)
    require_between("delta", delta, 0, 1)
    return 1 - (1 - delta) ** 2 * (math.exp(-eps) / (1 + math.exp(-eps)))  # e^eps may be too large, e^-eps never is


@dataclass(frozen=True)
class Certificate:
    """
    What is proven of a whole release.

    Parameters
    ----------
    protects
        "nobody" or "everybody".
    unit
        What is protected as one: a person with all their days.
    eps, delta
        Neighbouring inputs give every set of outputs probabilities within a factor e^eps, but for delta; None where
        nothing is claimed.
    fakes_covered
        For how many fakes together this holds.
    neighbours
        What makes two inputs neighbours.
    conditions
        What the theorem needs, sentence by sentence, and whether it is "met" by construction, "asserted" by the caller
        or "not met".
    advantage, auc
        No attack on membership has more; None: what follows from eps and delta. A mechanism that is known more closely
        (the Gaussian) gives its own, smaller figures.
    why_not
        Where nobody is protected: why.

    Examples
    --------
    >>> Certificate("everybody", eps=0.5).words[0]
    'Odds that a given person is in the file change by at most a factor of 1.65, whatever is published.'

    """

    protects: str
    unit: str = UNIT
    eps: float | None = None
    delta: float | None = None
    fakes_covered: str = "any number"
    neighbours: str = "one person more or less"
    conditions: tuple[tuple[str, str], ...] = ()
    advantage: float | None = None
    auc: float | None = None
    why_not: str | None = None

    def __post_init__(self) -> None:
        require_choice("protects", self.protects, PROTECTS)
        object.__setattr__(
            self, "conditions", tuple((str(sentence), str(state)) for sentence, state in self.conditions)
        )
        for _, state in self.conditions:
            require_choice("conditions", state, STATES)
        if self.protects == "nobody":
            if self.eps is not None or self.delta is not None:
                raise InvalidParameter("a certificate that protects nobody has no `eps` and no `delta`.")
            return
        if self.eps is None:
            raise InvalidParameter(f'a certificate that protects "{self.protects}" must have an `eps`.')
        if self.delta is None:
            object.__setattr__(self, "delta", 0.0)
        bounds = {"advantage": largest_advantage, "auc": largest_auc}
        for name, bound in bounds.items():
            most = bound(self.eps, self.delta or 0.0)
            value = getattr(self, name)
            if value is not None and value > most + 1e-12:
                raise InvalidParameter(
                    f"`{name}` must be at most {most:.4g}, which eps and delta prove, got {value}.", parameter=name
                )
            object.__setattr__(self, name, most if value is None else value)

    @classmethod
    def none(cls, why: str | None = None) -> Self:
        """Return the certificate of fakes of which nothing is proven."""
        return cls("nobody", fakes_covered="none", neighbours="none", why_not=why)

    def in_laboratory(self) -> "Certificate":
        """Return the certificate of the same run with a given `rng`: nothing is claimed, and it says what could be."""
        if self.protects == "nobody":
            return self
        why = (
            "This is a laboratory run: whoever knows the `rng` it began with can repeat its noise, so nothing is "
            f"claimed. Of the same run without `rng` it could be said: {' '.join(self.words)}"
        )
        conditions = [(sentence, state) for sentence, state in self.conditions if sentence != ENTROPY]
        return replace(Certificate.none(why), conditions=(*conditions, (ENTROPY, "not met")))

    @property
    def holds(self) -> bool:
        """Tell whether somebody is protected and no condition is known to fail."""
        return self.protects != "nobody" and all(state != "not met" for _, state in self.conditions)

    @property
    def words(self) -> tuple[str, ...]:
        """Return what the certificate says, in sentences."""
        if self.protects == "nobody":
            no_theorem = ("There is no theorem for these fakes: what attacks on them find is all there is.",)
            return no_theorem if self.why_not is None else (self.why_not, *no_theorem)
        assert self.eps is not None  # noqa: S101 - checked at construction
        but = f", except with probability {self.delta:.2g}" if self.delta else ""
        sentences = [
            f"Odds that a given person is in the file change by at most a factor of {odds_factor(self.eps)}{but}, "
            "whatever is published.",
            f"Any attack that tells who is in the file, now or later, has an AUC of at most {self.auc:.3f} and an "
            f"advantage of at most {self.advantage:.3f}.",
        ]
        sentences.append(
            f"This protects everybody in the file ({self.unit}), for {self.fakes_covered} of fakes together; inputs "
            f"that differ by {self.neighbours} are compared (eps = {self.eps:g}, delta = {self.delta:g})."
        )
        if self.eps > VACUOUS:
            sentences.append(f"But eps = {self.eps:.4g} is above {VACUOUS:g}: in practice this promises nothing.")
        assertions, failures = (
            [s for s, outcome in self.conditions if outcome == state] for state in ("asserted", "not met")
        )
        if assertions:
            sentences.append(f"It holds if {'; '.join(assertions)}.")
        if failures:
            sentences.insert(
                0, f"The theorem does not hold here, because this is not met: {'; '.join(failures)}. If it were:"
            )
        return tuple(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a manifest or --json; `from_dict` reads them back."""
        fields = asdict(self)
        fields["conditions"] = [list(condition) for condition in self.conditions]
        return {**fields, "holds": self.holds, "words": list(self.words)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the certificate that `to_dict` wrote."""
        fields = {name: value for name, value in values.items() if name not in ("holds", "words")}
        return cls(**{**fields, "conditions": tuple(tuple(condition) for condition in fields["conditions"])})


NOTHING_PROVEN = Certificate.none()
ENTROPY = "noise comes from the operating system, draws from generators that it seeds, and nobody keeps them"


def odds_factor(eps: float) -> str:
    """Return exp(eps) for people: the factor by which odds can change, however large."""
    if eps >= LARGEST_EXP:
        return "inf"
    return f"{math.exp(eps):.2f}" if eps < VACUOUS else f"{math.exp(eps):.1e}"
