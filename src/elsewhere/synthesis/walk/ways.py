"""
Walks that make no move which is not allowed (E36).

A walk that was drawn says where somebody wants to be. Whoever cannot go there in one slot goes as far as they can: one
allowed move a slot, on a way of the fewest slots, of several the shortest. Where there is no way they stay. So places
keep their visitors, and only the way takes longer.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import Codes, Ints, Locations
from elsewhere.errors import InvalidParameter
from elsewhere.synthesis.walk._draw_kernels import follow_ways

MOST_PLACES = 4096  # the table of ways is as large as its square


@dataclass(frozen=True, eq=False)
class Ways:
    """The next place on the way from each known place to each other, by allowed moves between known places."""

    at: Ints = field(repr=False)  # (R,) number of a place among the known ones, -1 for others
    places: Ints = field(repr=False)  # (P,) the known ones
    onward: NDArray[np.int32] = field(repr=False)  # (P, P)

    @staticmethod
    def of(feasible: Any, known: NDArray[np.bool_], locations: Locations) -> "Ways":
        """Find the ways between the `known` places by moves (start, target): those of r are target[start[r] : ...]."""
        from scipy import sparse
        from scipy.sparse.csgraph import dijkstra

        places = np.flatnonzero(known)
        P, (start, target) = len(places), feasible
        if P > MOST_PLACES:
            raise InvalidParameter(
                f"`feasible` keeps walks over at most {MOST_PLACES} places to allowed moves, got {P}: use larger ones.",
                code="E_TOO_LARGE",
                parameter="feasible",
            )
        at = np.full(len(known), -1, dtype=np.int64)
        at[places] = np.arange(P)
        here, there = np.repeat(np.arange(len(known)), np.diff(start)), target.astype(np.int64)
        inside = known[here] & known[there] & (here != there)
        here, there = here[inside], there[inside]
        if len(here) == 0:
            raise InvalidParameter(
                "`feasible` allows no move between two places that enough people visit (`m_min`), so nobody could "
                "leave theirs: allow more moves.",
                code="E_FEASIBLE",
                parameter="feasible",
            )
        length = locations.distance(here, there)
        # all lengths of a way together weigh less than a slot: they decide between ways of as many slots
        weight = 1 + length / (P * max(float(length.max()), 1e-12))
        # from each goal along the moves turned round: what comes before a place there comes after it on the way
        turned = sparse.csr_array((weight, (at[there], at[here])), shape=(P, P))
        after = dijkstra(turned, return_predecessors=True)[1].T
        if not np.any((after >= 0) & (after.T >= 0)):
            raise InvalidParameter(
                "`feasible` allows no way back: whoever leaves a place could never return to it, and days begin and "
                "end at home. A line of a table allows one direction; give the other too, or allow more moves.",
                code="E_FEASIBLE",
                parameter="feasible",
            )
        return Ways(at, places, np.where(after >= 0, after, np.arange(P)[:, None]).astype(np.int32))

    def keep(self, r: NDArray[np.integer]) -> Codes:
        """Return the same walks (n, L) by allowed moves alone, over midnight too."""
        out = np.empty(r.shape, dtype=np.int32)
        follow_ways(np.ascontiguousarray(r, dtype=np.int32), self.at, self.onward, out)
        return np.asarray(self.places[out], dtype=np.int32)

    @property
    def connected(self) -> bool:
        """Tell whether there is a way from every known place to every other."""
        return bool(((self.onward != np.arange(len(self.places))[:, None]).sum(axis=1) == len(self.places) - 1).all())
