"""What every similarity asks of its arguments."""

from collections.abc import Iterable

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.profiles.markov import MobilityProfile, Profiles, check_comparable

ORDERS = (0, 1)
MAPPINGS = ("per-period", "common")


def check_pair(u: MobilityProfile, v: MobilityProfile) -> None:
    """Both are profiles, over the same places and periods."""
    for name, profile in (("u", u), ("v", v)):
        if not isinstance(profile, MobilityProfile):
            raise InvalidParameter(f"`{name}` must be a `MobilityProfile`, got {type(profile).__name__}.")
    check_comparable(u, v)


def check_order(order: int) -> None:
    """The order is 0 or 1."""
    if isinstance(order, bool) or order not in ORDERS:
        raise InvalidParameter(f"`order` must be 0 (visits) or 1 (moves), got {order!r}.")


def check_departures(*profiles: MobilityProfile) -> None:
    """Order 1 is an expectation over the first argument's departures: without any it has no meaning (E3)."""
    still = sum(1 for u in profiles if u.count.sum() == 0)
    if still:
        raise InvalidTraces(
            f"order 1 compares moves, and {still} of {len(profiles)} profiles have no transition; use order 0.",
            code="E_NO_MOVES",
        )


def gathered(profiles: Iterable[MobilityProfile]) -> Profiles:
    """`Profiles.of`, refusing what is not a collection."""
    if not isinstance(profiles, Iterable):
        raise InvalidParameter(f"`profiles` must be a sequence of profiles, got {type(profiles).__name__}.")
    return Profiles.of(profiles)


def check_rng(rng: np.random.Generator | None) -> None:
    """A generator, or none."""
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise InvalidParameter(f"`rng` must be a `numpy.random.Generator` or None, got {type(rng).__name__}.")
