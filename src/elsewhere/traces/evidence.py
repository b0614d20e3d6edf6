"""What is known of slots that are uncertain (E4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from elsewhere.errors import InvalidTraces
from elsewhere.traces.arrays import Floats, Ints, Places, frozen


@dataclass(frozen=True, eq=False)
class Evidence:
    """
    Weights over places at uncertain slots (E4): entry i says that slot `slot[i]` of row `row[i]` may be `place[i]`.

    Weights are likelihoods, not probabilities: they need not sum to one within a slot.
    """

    row: Ints
    slot: Ints
    place: Places
    weight: Floats

    def __repr__(self) -> str:
        return f"Evidence({len(self.row)} entries)"

    @staticmethod
    def of(evidence: "Evidence | Mapping[tuple[int, int], Any]") -> "Evidence":
        """From `{(row, slot): {place: weight}}` or `{(row, slot): (places, weights)}`."""
        if isinstance(evidence, Evidence):
            return evidence
        rows: list[tuple[int, int, int, float]] = []
        try:
            for (row, slot), likely in evidence.items():
                pairs = likely.items() if isinstance(likely, Mapping) else zip(*likely, strict=True)
                rows.extend((int(row), int(slot), int(place), float(weight)) for place, weight in pairs)
        except (AttributeError, TypeError, ValueError):
            raise InvalidTraces(
                "`evidence` must map (row, slot) to {place: weight} or to (places, weights).", code="E_EVIDENCE"
            ) from None
        columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
        return Evidence(
            frozen(np.array(columns[0], dtype=np.int64)),
            frozen(np.array(columns[1], dtype=np.int64)),
            frozen(np.array(columns[2], dtype=np.int32)),
            frozen(np.array(columns[3], dtype=np.float64)),
        )

    def check(self, N: int, L: int, R: int) -> None:
        """Every entry points into a dataset of N rows, L slots and R places, with a finite positive weight."""
        for name, index, size in (("row", self.row, N), ("slot", self.slot, L), ("place", self.place, R)):
            if np.any(index < 0) or np.any(index >= size):
                raise InvalidTraces(f"`evidence` names a {name} outside 0 .. {size - 1}.", code="E_INDEX")
        if not np.all(np.isfinite(self.weight)) or np.any(self.weight <= 0):
            raise InvalidTraces("`evidence` weights must be finite and above 0.", code="E_NUMBER")
