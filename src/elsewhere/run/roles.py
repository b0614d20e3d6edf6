"""
Who plays which role in a run: users, never rows, are seeds, alternates or model (E53, E60, E61).

Alternates of the product must not have contributed to the model. `Contributors` remembers who has, as keyed hashes of
user labels in a private file beside it.
"""

import hmac
import json
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.slots import Traces
from elsewhere.data.visits import Ints
from elsewhere.errors import InvalidModel, InvalidParameter, InvalidTraces, NotEnoughAlternates
from elsewhere.files import read_index
from elsewhere.settings import Preset

FILE = "contributors.json"


@dataclass(frozen=True, eq=False)
class Contributors:
    """The users whom a model was learnt from, as hashes under a random key: it is known who they are, not named."""

    key: bytes = field(repr=False)
    users: frozenset[str] = field(repr=False)

    @staticmethod
    def of(traces: Traces) -> "Contributors":
        """Return the users of these traces."""
        key = secrets.token_bytes(32)
        return Contributors(
            key, frozenset(hmac.digest(key, str(label).encode(), "sha256").hex() for label in traces.labels)
        )

    @staticmethod
    def read(folder: str | Path) -> "Contributors | None":
        """Read what `file` gave from beside a model; None if the model does not remember."""
        path = Path(folder) / FILE
        if not path.exists():
            return None
        try:
            index = read_index(path)
            return Contributors(bytes.fromhex(index["key"]), frozenset(index["users"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidModel(f"{FILE} beside the model cannot be read.") from None

    def file(self) -> dict[str, bytes]:
        """Return the private file to be kept beside a model, name -> content."""
        return {FILE: json.dumps({"key": self.key.hex(), "users": sorted(self.users)}).encode()}

    def met(self, traces: Traces) -> NDArray[np.bool_]:
        """Tell (U,) which users here are among them by name; nobody whose rows have no names, only numbers."""
        met = [
            isinstance(label, str) and hmac.digest(self.key, label.encode(), "sha256").hex() in self.users
            for label in traces.labels
        ]
        return np.array(met, dtype=bool)


SEED_SHARE = 0.7  # of the users in the product preset; the others are alternates
MOST_DAYS = 60  # of a person that a fake lives
USUAL_USERS = 60  # of the product: fewer often share too few places (docs/decisions.md)


@dataclass(frozen=True, eq=False)
class Roles:
    """The seeds (rows `seed_rows` of the given traces), the alternates, and those the model is learnt from."""

    seeds: Traces
    seed_rows: Ints
    alternates: Traces | str | None
    model: Traces
    notes: tuple[str, ...]


def least_users(settings: Preset) -> int:
    """
    Return how many users this preset needs at the very least (E60), where the model is learnt from them too.

    Fewer than USUAL_USERS often share too few places for the product, which is then refused for that.

    Examples
    --------
    >>> from elsewhere.settings import PRESETS
    >>> [least_users(preset) for preset in PRESETS.values()]
    [2, 14, 2]

    """
    if settings.name == "private":  # which counts people with noise, and says itself
        return 2
    # beside the alternates, as many to learn from as must share a place
    return int(settings.k - 1 + settings.m_min if settings.alternates == "split" else max(2, settings.k))


def split_users(
    traces: Traces,
    settings: Preset,
    alternates: Traces | None,
    rng: np.random.Generator,
    *,
    learnt: bool = False,
) -> Roles:
    """
    Return the roles of all users under this preset; `NotEnoughUsers` names the number needed.

    With `learnt`, model and classes come from elsewhere: a single seed is enough then.
    """
    if not isinstance(traces, Traces):
        raise InvalidParameter(f"`traces` must be a `Traces`, got {type(traces).__name__}.", parameter="traces")
    whole = np.all(traces.r >= 0, axis=1)
    if not whole.all():
        return _with_gaps(traces, whole, settings, alternates, rng, learnt=learnt)
    if len(np.unique(traces.r)) < 2:
        raise InvalidTraces(
            "all people stay at 1 place all day, and at least 2 are needed; give smaller places, or other people.",
            code="E_TOO_FEW_PLACES",
        )
    people, notes = np.arange(traces.U), tuple[str, ...]()
    others: Traces | str | None = alternates
    if alternates is not None:
        if not isinstance(alternates, Traces):
            raise InvalidParameter(
                f"`alternates` must be a `Traces`, got {type(alternates).__name__}.", parameter="alternates"
            )
    elif settings.alternates == "all":
        if max(2, settings.k) > traces.U:
            raise NotEnoughAlternates(
                f"need at least {max(2, settings.k)} users for `k` = {settings.k}, got {traces.U}."
            )
        others = "all" if settings.k > 1 or settings.against == "all" else None
    else:
        n_alternates = max(settings.k - 1, round((1 - SEED_SHARE) * traces.U), 1)
        least = 1 if learnt else settings.m_min
        if traces.U < n_alternates + least:
            rest = "a seed" if least == 1 else f"{least} to learn from (`m_min`)"
            raise NotEnoughAlternates(
                f"need at least {n_alternates + least} users for `k` = {settings.k}, {n_alternates} alternates and "
                f"{rest}; got {traces.U}."
            )
        drawn = rng.permutation(traces.U)
        people, others = np.sort(drawn[n_alternates:]), traces.of_users(np.sort(drawn[:n_alternates]))
        notes = (
            f"{len(people)} users are seeds, {n_alternates} are alternates of the differential test, chosen at random.",
        )
    rows = _seed_rows(traces, people, settings, rng)
    model, even = model_days(traces, people, settings, rng)
    left_out = int(np.isin(traces.user, people).sum()) - len(rows)
    days = _days_note(traces, rows, left_out) if left_out else ()
    return Roles(traces.select(rows), rows, others, model, (*notes, *days, *even))


def _with_gaps(
    traces: Traces,
    whole: NDArray[np.bool_],
    settings: Preset,
    alternates: Traces | None,
    rng: np.random.Generator,
    *,
    learnt: bool,
) -> Roles:
    """
    Return the roles where days have gaps: whole days alone are seeds and alternates.

    Days with gaps are learnt from: those of the people who are learnt from already, and of people who have no others.
    """
    if not whole.any():
        raise InvalidTraces(
            f"all {len(traces)} rows have missing slots (-1), and a seed must be complete: fill them first.",
            code="E_GAPS",
        )
    rows = np.flatnonzero(whole)
    roles = split_users(traces.select(rows), settings, alternates, rng, learnt=learnt)
    apart = {} if not isinstance(roles.alternates, Traces) else set(roles.alternates.labels)
    others = np.flatnonzero([label not in apart for label in traces.labels])
    model, even = model_days(traces, others, settings, rng)
    note = f"{public_count(len(traces) - len(rows))} rows with missing slots are learnt from, but are no seeds."
    return replace(roles, seed_rows=rows[roles.seed_rows], model=model, notes=(*roles.notes, note, *even))


FEWEST = 5  # a smaller count is shown to the owner alone


def public_count(count: int) -> str:
    """
    Return a count for a published note; below FEWEST the number is not shown.

    Examples
    --------
    >>> public_count(1), public_count(30)
    ('fewer than 5', '30')

    """
    return f"{count}" if count >= FEWEST else f"fewer than {FEWEST}"


def _seed_rows(traces: Traces, users: Ints, settings: Preset, rng: np.random.Generator) -> Ints:
    """
    Return the rows of these users that are seeds.

    Of the product, whose fakes live as many days as their seeds, the first 60 days of each; one day of each, drawn at
    random, where too few people have several to learn from how days follow each other.
    """
    rows = np.flatnonzero(np.isin(traces.user, users))
    if settings.name == "paper":
        return rows
    when = np.arange(len(rows)) if traces.dates is None else traces.dates[rows].astype(np.int64)
    order = np.lexsort((when, traces.user[rows]))
    # of several traces of one date one is a day
    again = np.append(False, (np.diff(traces.user[rows][order]) == 0) & (np.diff(when[order]) == 0))
    days = rows[order][~again]
    days_of = np.bincount(traces.user[days])
    several = int((days_of > 1).sum())
    if several < max(2, settings.m_min) or 2 * several < int((days_of > 0).sum()):
        return draw_days(traces, rows, 1, rng)
    return _first_of_each(traces, days, MOST_DAYS)


def draw_days(traces: Traces, rows: Ints, most: int, rng: np.random.Generator) -> Ints:
    """Return at most `most` of these rows of each user, drawn at random, in their order."""
    order = rng.permutation(rows)
    return _first_of_each(traces, order[np.argsort(traces.user[order], kind="stable")], most)


def _first_of_each(traces: Traces, order: Ints, most: int) -> Ints:
    """Return the first `most` rows of each user, sorted, of rows in the order of users."""
    number = np.arange(len(order)) - np.searchsorted(traces.user[order], traces.user[order])  # of a user's rows
    return np.sort(order[number < most])


def model_days(
    traces: Traces, users: Ints, settings: Preset, rng: np.random.Generator
) -> tuple[Traces, tuple[str, ...]]:
    """
    Return the days of these users that a model is learnt from, and a note: of nobody more than of the median user.

    A user counts once everywhere (E61), but moves, paces and groups are learnt from days: one person with a thousand
    days would dominate all fakes. Where the paper is reproduced, all days are taken.
    """
    if settings.name == "paper":
        return traces.of_users(users), ()
    rows = np.flatnonzero(np.isin(traces.user, users))
    days = np.bincount(traces.user[rows], minlength=traces.U)[users]
    most = int(np.ceil(np.median(days)))
    if days.max() <= most:
        return traces.select(rows), ()
    note = f"the model is learnt from at most {most} {'day' if most == 1 else 'days'} of each user, the median."
    return traces.select(draw_days(traces, rows, most, rng)), (note,)


def _days_note(traces: Traces, rows: Ints, left_out: int) -> tuple[str, ...]:
    """Return a note on so many days of the seed users that are no seeds."""
    if len(np.unique(traces.user[rows])) == len(rows):
        return (
            f"fakes live one day: too few people have several to learn from, so {left_out} further days of the seed "
            "users are no seeds.",
        )
    return (
        f"{left_out} traces of the seed users are no seeds: of each the first {MOST_DAYS} days are, one trace a day.",
    )
