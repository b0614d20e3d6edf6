"""What the privacy test measured, and which rules rejected: on one fake, and on many in columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.privacy import _kernels
from elsewhere.traces.model import Floats, Ints

RULES = {
    "similarity": _kernels.SIMILARITY,
    "intersection": _kernels.INTERSECTION,
    "differential": _kernels.DIFFERENTIAL,
    "others": _kernels.OTHERS,
    "min_sim": _kernels.MIN_SIM,
}


@dataclass(frozen=True)
class Verdict:
    """
    What the privacy test measured on one fake, and which rules rejected it.

    Parameters
    ----------
    rejected_by
        Names of the rules that rejected, empty if the fake passed.
    sim
        sim_G(fake, seed).
    shared, aligned
        Places that fake and seed both visit; instants at which they are at the same place (E41).
    alternates
        Distinct alternate users found; 0 where the rule was not run.
    sim_s
        sim_S(seed, fake).
    closest, quantile
        Largest sim_G to another seed, and the 95 % quantile of the same for strangers; None unless `against="all"`.
    not_run
        Names of the rules that were switched off: "differential" if k = 1, "others", "min_sim".

    """

    rejected_by: tuple[str, ...]
    sim: float
    shared: int
    aligned: int
    alternates: int
    sim_s: float
    closest: float | None = None
    quantile: float | None = None
    not_run: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no rule rejected."""
        return not self.rejected_by

    def __bool__(self) -> bool:
        # `if privacy_test(...)` must not let everything through
        return self.passed


@dataclass(frozen=True, eq=False)
class Verdicts(Sequence[Verdict]):
    """The verdicts on many fakes in columns; item i is a `Verdict`. `rejected` holds the bits of `RULES`."""

    rejected: NDArray[np.uint8] = field(repr=False)
    sim: Floats = field(repr=False)
    shared: Ints = field(repr=False)
    aligned: Ints = field(repr=False)
    alternates: Ints = field(repr=False)
    sim_s: Floats = field(repr=False)
    closest: Floats = field(repr=False)
    quantile: float | None = None
    not_run: tuple[str, ...] = ()

    @property
    def passed(self) -> NDArray[np.bool_]:
        """Which fakes no rule rejected, (F,)."""
        return np.asarray(self.rejected == 0)

    def counts(self) -> dict[str, int]:
        """Of how many fakes: all, passed, and rejected by each rule that was run (a fake may be by several)."""
        by_rule = {
            name: int(np.count_nonzero(self.rejected & bit)) for name, bit in RULES.items() if name not in self.not_run
        }
        return {"tested": len(self), "passed": int(self.passed.sum()), **by_rule}

    def __len__(self) -> int:
        return len(self.rejected)

    @overload
    def __getitem__(self, i: int) -> Verdict: ...
    @overload
    def __getitem__(self, i: slice) -> list[Verdict]: ...
    def __getitem__(self, i: int | slice) -> Verdict | list[Verdict]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        return Verdict(
            tuple(name for name, bit in RULES.items() if self.rejected[i] & bit),
            float(self.sim[i]),
            int(self.shared[i]),
            int(self.aligned[i]),
            int(self.alternates[i]),
            float(self.sim_s[i]),
            None if self.quantile is None else float(self.closest[i]),
            self.quantile,
            self.not_run,
        )

    def select(self, fakes: ArrayLike) -> "Verdicts":
        """The verdicts on these fakes (numbers or a mask), in the given order."""
        keep = np.asarray(fakes)
        return replace(
            self,
            rejected=self.rejected[keep],
            sim=self.sim[keep],
            shared=self.shared[keep],
            aligned=self.aligned[keep],
            alternates=self.alternates[keep],
            sim_s=self.sim_s[keep],
            closest=self.closest[keep],
        )

    @staticmethod
    def joined(parts: "Sequence[Verdicts]") -> "Verdicts":
        """The verdicts of several batches of one test, one after the other."""

        def column(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in parts])

        return replace(
            parts[0],
            rejected=column("rejected"),
            sim=column("sim"),
            shared=column("shared"),
            aligned=column("aligned"),
            alternates=column("alternates"),
            sim_s=column("sim_s"),
            closest=column("closest"),
        )

    def __iter__(self) -> Iterator[Verdict]:
        return (self[i] for i in range(len(self)))
