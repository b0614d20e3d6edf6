"""How similar people are to each other: sim_G and sim_S of all pairs, the numbers of fig:real-gs-similarity."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from elsewhere.data.visits import Floats
from elsewhere.errors import InvalidParameter, NotEnoughUsers
from elsewhere.evaluation.attack_base import plain
from elsewhere.evaluation.publishing.scenario import BIN_EDGES, describe
from elsewhere.paper.geographic_similarity import pairwise_geographic_similarity
from elsewhere.paper.profiles import MobilityProfile
from elsewhere.paper.semantic_similarity import pairwise_semantic_similarity

MAX_USERS = 5_000  # two dense U x U tables: .4 GB


@dataclass(frozen=True, eq=False)
class PairSimilarity:
    """
    sim_G and sim_S of all distinct pairs of users, zeroth order; a user with herself is left out, as in the paper.

    With one period both are symmetric and each pair counts once; with more, each ordered pair counts (E11, E23).
    """

    users: int
    periods: int
    geographic: Floats = field(repr=False)
    semantic: Floats = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the mean, quantiles and normalised histogram of both, as plain numbers."""
        figures: dict[str, Any] = {
            "users": self.users,
            "pairs": len(self.geographic),
            "periods": self.periods,
            "order": 0,
            "geographic": describe(self.geographic),
            "semantic": describe(self.semantic),
            "bin_edges": BIN_EDGES.round(2),
        }
        return dict(plain(figures))


def pair_similarity(profiles: Sequence[MobilityProfile]) -> PairSimilarity:
    """
    Compare every user with every other, geographically and semantically.

    Examples
    --------
    >>> import elsewhere as ew
    >>> town = ew.Traces([[0, 0, 1, 1, 0], [2, 2, 3, 3, 2]], ew.Locations(n=4))
    >>> pairs = pair_similarity(ew.fit_profiles(town))
    >>> pairs.geographic.tolist(), pairs.semantic.tolist()
    ([0.0], [1.0])

    """
    U = len(profiles)
    if U < 2:
        raise NotEnoughUsers(f"similarity of pairs needs at least 2 users, got {U}.")
    if U > MAX_USERS:
        raise InvalidParameter(
            f"{U} users make two tables of {U} x {U} numbers, {U * U * 16 / 2**30:.1f} GiB; compare at most "
            f"{MAX_USERS} users.",
            code="E_TOO_LARGE",
        )
    T = profiles[0].T
    pair = np.triu_indices(U, 1) if T == 1 else np.nonzero(~np.eye(U, dtype=bool))
    return PairSimilarity(
        U, T, pairwise_geographic_similarity(profiles)[pair], pairwise_semantic_similarity(profiles)[pair]
    )
