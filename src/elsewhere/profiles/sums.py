"""
What the aggregate model adds up over users: visits, and the rows of p(u), as sparse sums.

Nothing here belongs to one user, and the sums of two sets of users add.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidModel, InvalidTraces
from elsewhere.profiles.markov import MobilityProfile, Profiles
from elsewhere.traces.model import Floats, Ints

# name -> kind of dtype, shape; M moves
ARRAYS: dict[str, tuple[str, str]] = {
    "visitors": ("i", "R"),
    "pi": ("f", "R"),
    "pi_tau": ("f", "TR"),
    "lived": ("i", "T"),
    "key": ("i", "M"),
    "mass": ("f", "M"),
    "count": ("f", "M"),
    "movers": ("i", "M"),
}


@dataclass(frozen=True, eq=False)
class Sums:
    """
    All that the model adds up over users; two sets of users add by `plus`.

    Move m, coded `key[m]` = (pair R + r) R + r', carries `mass[m]` = sum over users of p_r^{r'}(u), `count[m]`
    departures, and `movers[m]` distinct users. The pair is tau T + tau'; number T^2 stands for the moves of all pairs
    pooled. With T = 1 the only pair is the pool.
    """

    R: int
    T: int
    n_users: int
    visitors: Ints
    pi: Floats
    pi_tau: Floats
    lived: Ints
    key: Ints
    mass: Floats
    count: Floats
    movers: Ints

    def __post_init__(self) -> None:
        for name in ARRAYS:
            getattr(self, name).setflags(write=False)

    @staticmethod
    def of(profiles: Iterable[MobilityProfile]) -> "Sums":
        """Add up the profiles, column by column."""
        u = Profiles.of(profiles)
        U, R, T = len(u), u.R, u.T
        # position in `u.support` of the place of each visit, of each departure and of each arrival
        seen = np.repeat(u.support_start[:-1], np.diff(u.visit_start)) + u.visit_k
        leaving = np.repeat(u.support_start[:-1], np.diff(u.move_start)) + u.move_origin
        arriving = np.repeat(u.support_start[:-1], np.diff(u.move_start)) + u.move_target

        who = np.repeat(np.arange(U), np.diff(u.visit_start))
        place, period = u.support[seen].astype(np.int64), u.visit_tau.astype(np.int64)
        lived = _total(who * T + period, u.visit_count, U * T).reshape(U, T)
        visited = np.zeros(len(u.support), dtype=bool)
        visited[seen[u.visit_count > 0]] = True

        number = u.move_count.astype(np.float64)
        happened = number > 0
        number, leaving, arriving = number[happened], leaving[happened], arriving[happened]
        move = u.support[leaving].astype(np.int64) * R + u.support[arriving]
        pair = (u.move_tau.astype(np.int64) * T + u.move_tau_next)[happened]
        departures = _total(leaving, number, len(u.support))
        # a user counts once for a move, in however many period pairs it was made
        once = np.zeros(len(number))
        once[np.unique(leaving.astype(np.int64) * len(u.support) + arriving, return_index=True)[1]] = 1
        key, mass, count, movers = _gather(move, number / departures[leaving], number, once)
        if T > 1:
            _, row = np.unique(leaving * (T * T) + pair, return_inverse=True)
            by_pair = _gather(pair * (R * R) + move, number / _total(row, number)[row], number, np.ones(len(number)))
            pooled = (T * T * R * R + key, mass, count, movers)
            key, mass, count, movers = (np.concatenate(both) for both in zip(by_pair, pooled, strict=True))
        return Sums(
            R,
            T,
            U,
            np.bincount(u.support[visited], minlength=R),
            _total(place, u.visit_count / lived.sum(axis=1)[who], R),
            _total(period * R + place, u.visit_count / lived[who, period], T * R).reshape(T, R),
            np.count_nonzero(lived, axis=0),
            key,
            mass,
            count,
            movers.astype(np.int64),
        )

    def plus(self, other: "Sums") -> "Sums":
        """The sums of both sets of users together."""
        if (self.R, self.T) != (other.R, other.T):
            raise InvalidTraces(
                f"profiles must share places and periods: the model has (R, T) = {(self.R, self.T)}, "
                f"the new profiles {(other.R, other.T)}.",
                code="E_MISMATCH",
            )
        names = ("key", "mass", "count", "movers")
        key, mass, count, movers = _gather(*(np.concatenate([getattr(s, n) for s in (self, other)]) for n in names))
        return Sums(
            self.R,
            self.T,
            self.n_users + other.n_users,
            self.visitors + other.visitors,
            self.pi + other.pi,
            self.pi_tau + other.pi_tau,
            self.lived + other.lived,
            key,
            mass,
            count,
            movers.astype(np.int64),
        )

    def suppressed(self, m_min: int) -> "Sums":
        """Without the moves that fewer than `m_min` users have made."""
        keep = self.movers >= m_min
        return replace(self, **{name: getattr(self, name)[keep] for name in ("key", "mass", "count", "movers")})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, for a model file."""
        return {name: getattr(self, name) for name in ARRAYS}

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]], *, R: int, T: int, n_users: int) -> "Sums":
        """The sums of `arrays`; `InvalidModel` where these cannot be sums over `n_users` users (F32)."""
        for name, (kind, shape) in ARRAYS.items():
            array = arrays[name]
            expected = tuple({"R": R, "T": T, "M": len(np.atleast_1d(arrays["key"]))}[size] for size in shape)
            if array.shape != expected or array.dtype.kind != kind:
                raise InvalidModel(f"`{name}` must be an array of shape {expected} of kind {kind}.")
            if not np.all(np.isfinite(array)) or np.any(array < 0):
                raise InvalidModel(f"`{name}` must be finite and at least 0.")
        wide: dict[str, Any] = {"i": np.int64, "f": np.float64}
        sums = Sums(R, T, n_users, **{name: arrays[name].astype(wide[kind]) for name, (kind, _) in ARRAYS.items()})
        pairs = 1 if T == 1 else T * T + 1
        if len(sums.key) and (np.any(np.diff(sums.key) <= 0) or sums.key[-1] >= pairs * R * R):
            raise InvalidModel(f"`key` must rise and stay below {pairs * R * R}.")
        rows = _total(np.unique(sums.key // R, return_inverse=True)[1], sums.mass)
        if np.any(sums.mass <= 0) or np.any(sums.count <= 0) or np.any(rows > n_users * (1 + 1e-9)):
            raise InvalidModel(f"`mass` and `count` must be above 0, a row of `mass` at most {n_users}.")
        if np.any(sums.visitors > n_users) or np.any(sums.lived > n_users):
            raise InvalidModel(f"`visitors` and `lived` must be at most {n_users}.")
        if not np.isclose(sums.pi.sum(), n_users, rtol=1e-9) or not np.allclose(
            sums.pi_tau.sum(axis=1), sums.lived, rtol=1e-9
        ):
            raise InvalidModel("visiting probabilities must sum to 1 per user.")
        return sums


def _gather(key: Ints, *columns: NDArray[Any]) -> tuple[Ints, Floats, Floats, Floats]:
    unique, group = np.unique(key, return_inverse=True)
    mass, count, movers = (_total(group, column, len(unique)) for column in columns)
    return unique, mass, count, movers


def _total(group: Ints, amount: NDArray[Any], groups: int = 0) -> Floats:
    # bincount of nothing forgets its weights, and answers with whole numbers
    return np.bincount(group, amount, groups).astype(np.float64)
