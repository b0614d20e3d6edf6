"""
The intersection attack over many days (A18): which home, and which main place, shines through the decoys?

Every day the service is sent K lines, the user's day and K - 1 decoys, and sees all of them whole. Decoys are either
*personas*, the same fake people every day, so that lines are linked over days; or *fresh*, other fakes every day, so
that no line of today can be told to go on from one of yesterday.

- *what recurs*: the place that is sent at most night hours is the home, of the others the one that is sent at most
  office hours of weekdays the main place. Fresh decoys come from somewhere else every night; the home comes back.
- *who lives like a person* (personas only): the line whose days together are most like other people's is the user.

The figure is that of the stronger attack. Ties are shared.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.slots import Traces, hold_places, is_weekend
from elsewhere.data.visits import Floats, Ints
from elsewhere.evaluation.attack_base import Rate, user_rate
from elsewhere.evaluation.lives import NIGHT, OFFICE, anchors, days_of

DAYS = (1, 7, 28)
PLACES = ("home", "main")
DECOYS = ("persona", "fresh")
ENOUGH = 5  # users with so many days, for a figure
MOST_USERS = 200
REPEATS = 2


@dataclass(frozen=True, eq=False)
class Company:
    """Lives to hide among: rows of each, whether each row is at a weekend, and from which user each life descends."""

    r: Ints = field(repr=False)
    rows: list[Ints] = field(repr=False)
    weekend: NDArray[np.bool_] = field(repr=False)
    maker: Ints = field(repr=False)

    @staticmethod
    def of(lives: Traces, maker: Ints | None = None) -> "Company":
        """Group the lives by user; `maker` (lives,) is the number of the user each descends from, -1 for nobody."""
        nobody = np.full(lives.U, -1)
        return Company(hold_places(lives.r), days_of(lives), _weekend(lives), nobody if maker is None else maker)

    def beside(self, user: int, n: int, weekend: NDArray[np.bool_], persona: bool, rng: np.random.Generator) -> Ints:
        """
        Draw (days, n, L) decoys for the days of a user, none of which descends from her.

        A persona lives days in a row with weekends where the user has them; if she has no such days, her weekdays and
        weekends one after the other, again and again. Fresh decoys are days of the same kind of any lives, every day.
        """
        strangers = np.flatnonzero(self.maker != user)
        rows = np.empty((len(weekend), n), dtype=np.int64)
        if persona:
            for k, life in enumerate(rng.choice(strangers, n, replace=False).tolist()):
                rows[:, k] = self._choose_days(self.rows[life], weekend, rng)
        else:
            for d, off in enumerate(weekend.tolist()):
                for k, life in enumerate(rng.choice(strangers, n, replace=False).tolist()):
                    rows[d, k] = rng.choice(self._same_kind(self.rows[life], off))
        return self.r[rows]

    def _same_kind(self, rows: Ints, off: bool) -> Ints:
        same = rows[self.weekend[rows] == off]
        return same if len(same) else rows

    def _choose_days(self, rows: Ints, weekend: NDArray[np.bool_], rng: np.random.Generator) -> Ints:
        """
        Return the row for each day: days in a row with the same weekends if she has them, else of each kind in
        order.
        """
        D, off = len(weekend), self.weekend[rows]
        starts = [s for s in range(len(rows) - D + 1) if (off[s : s + D] == weekend).all()]
        if starts:
            start = int(rng.choice(starts))
            return rows[start : start + D]
        out = np.empty(D, dtype=np.int64)
        for kind in (False, True):
            mine, at = self._same_kind(rows, kind), np.flatnonzero(weekend == kind)
            out[at] = mine[np.arange(len(at)) % len(mine)]
        return out


def _weekend(traces: Traces) -> NDArray[np.bool_]:
    if traces.dates is None:
        return np.zeros(len(traces), dtype=bool)
    return is_weekend(traces.dates)


def recurring(queries: Ints, weekend: NDArray[np.bool_], minutes: Floats, R: int) -> tuple[Floats, Floats]:
    """
    Return the chance of each place to be guessed as home, and as main place, by what recurs; ties shared, (R,) each.

    `queries` (D, K, L) are all lines of each day. The home is the place sent at most night hours of all days (at most
    hours where there is no night); the main place the other one sent at most office hours of weekdays (or hours).
    """
    night, office = ((minutes >= a) & (minutes < b) for a, b in (NIGHT, OFFICE))
    home = _top(_hours(queries, night if night.any() else np.ones(len(minutes), dtype=bool), minutes, R))
    for days, when in ((queries[~weekend], office), (queries, np.ones(len(minutes), dtype=bool))):
        score = _hours(days, when, minutes, R)
        score[home > 0] = 0
        if score.any():
            return home, _top(score)
    return home, np.zeros(R)


def _hours(queries: Ints, when: NDArray[np.bool_], minutes: Floats, R: int) -> Floats:
    """Return (R,) at how many hours, of all days together, each place was sent."""
    D = len(queries)
    hour = (minutes[when] // 60).astype(np.int64)
    if D == 0 or len(hour) == 0:
        return np.zeros(R)
    key = ((np.arange(D)[:, None] * 24 + hour)[:, None, :] * R + queries[:, :, when]).reshape(-1)
    return np.bincount(np.unique(key) % R, minlength=R).astype(np.float64)


def _top(score: Floats) -> Floats:
    best = score == score.max()
    return np.asarray(best / best.sum())


def portrait(days: Ints, weekend: NDArray[np.bool_], minutes: Floats) -> tuple[int, int, Floats]:
    """
    Return home and main place of a life, and its features.

    That is: time at home, nights at home, weekday office hours at the main place, moves and places a day, how much
    moves differ from day to day, places in all, and places that a day shares with the next; NaN where days do not tell.
    """
    home, main = anchors(days, weekend, minutes)
    night, office = ((minutes >= a) & (minutes < b) for a, b in (NIGHT, OFFICE))
    moves = np.count_nonzero(np.diff(days, axis=1), axis=1)
    places_of_day = [set(row) for row in days.tolist()]
    alike = [len(a & b) / len(a | b) for a, b in pairwise(places_of_day)]
    work = days[~weekend][:, office]
    features = [
        float((days == home).mean()),
        float((days[:, night] == home).mean()) if night.any() else np.nan,
        float((work == main).mean()) if work.size else np.nan,
        float(moves.mean()),
        float(np.mean([len(places) for places in places_of_day])),
        float(moves.std()) if len(days) > 1 else np.nan,
        float(len(set().union(*places_of_day))),
        float(np.mean(alike)) if alike else np.nan,
    ]
    return home, main, np.array(features)


def likeness(lines: Floats, others: Floats) -> Floats:
    """
    Return how like other people's lives each line is: minus the sum of squared deviations, in the spread of the
    others.
    """
    known = ~(np.isnan(lines).any(axis=0) | np.isnan(others).all(axis=0))
    x, y = lines[:, known], others[:, known]
    spread = np.nanstd(y, axis=0)
    deviation = (x - np.nanmean(y, axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.asarray(-np.round((deviation**2).sum(axis=1), 9))


@dataclass(frozen=True, eq=False)
class OverDays:
    """
    How often home and main place are found behind decoys, by number of days.

    `found[decoys][place][days]` is the success of the stronger attack, `attacks[decoys][attack][place][days]` of any;
    `guess` is that of picking one of the K lines; `users` how many people have so many days; `persona_days` how many
    days the longest persona lives before she begins again.
    """

    n: int
    found: dict[str, dict[str, dict[int, Rate]]]
    attacks: dict[str, dict[str, dict[str, dict[int, Rate]]]]
    users: dict[int, int]
    persona_days: int

    @property
    def guess(self) -> float:
        """Return one over K."""
        return 1 / (self.n + 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, rates as they are; `plain` makes JSON of it."""
        return {
            "decoys": self.n,
            "guess": self.guess,
            "found": self.found,
            "attacks": self.attacks,
            "users": self.users,
            "persona_days": self.persona_days,
            "in_words": self.in_words(),
        }

    def in_words(self) -> str:
        """Return what the longest watch finds with either kind of decoys, beside one day."""
        most = max(self.users)

        def said(decoys: str, days: int) -> str:
            home, main = (self.found[decoys][place].get(days) for place in PLACES)
            parts = [f"{100 * r.value:.0f} % of the {w}" for r, w in ((home, "homes"), (main, "main places")) if r]
            return " and ".join(parts)

        one = min(self.users)
        again = " (each lives one day, again and again)" * (self.persona_days == 1)
        return (
            f"with {self.n} decoy{'s' * (self.n > 1)}, a service that watches for {most} day{'s' * (most > 1)} names "
            f"{said('persona', most)} if decoys are the same personas every day{again}, "
            f"{said('fresh', most)} if they are drawn afresh; "
            f"on {one} day{'s' * (one > 1)} {said('persona', one)}; a guess {100 * self.guess:.0f} %."
        )


def over_days(
    people: Traces,
    company: Company,
    *,
    n: int,
    rng: np.random.Generator,
    days: Iterable[int] = DAYS,
) -> OverDays | None:
    """
    Return the success of a service that looks for home and main place behind `n` decoys a day, for as many days as
    people have.

    Truth is the home and the main place of all of a user's days; whoever has no main place has none to be found. None
    where fewer than 5 users have even the smallest number of days, or there are too few lives that are not their own.

    Parameters
    ----------
    people
        The users' real days; rows of one user are one life. Watched are days in a row, from a random one on.
    company
        The lives that decoys are taken from.
    n
        Decoys sent along every day.
    days
        For how many days the service watches.
    rng
        Draws users, days and decoys.

    """
    r, minutes, weekend, rows = hold_places(people.r), people.minutes(), _weekend(people), days_of(people)
    sample = np.sort(rng.permutation(people.U)[:MOST_USERS]).tolist()
    truth = {u: anchors(r[rows[u]], weekend[rows[u]], minutes) for u in sample}
    descendants = np.bincount(company.maker[company.maker >= 0], minlength=people.U)
    hits: dict[tuple[str, str, str, int], list[tuple[int, float]]] = {}
    users: dict[int, int] = {}
    for D in sorted(set(days)):
        able = [u for u in sample if len(rows[u]) >= D and len(company.rows) - descendants[u] >= n]
        if len(able) < ENOUGH:
            continue
        users[D] = len(able)
        windows = {
            u: [rows[u][(s := int(rng.integers(len(rows[u]) - D + 1))) : s + D] for _ in range(REPEATS)] for u in able
        }
        kind = np.array([portrait(r[windows[u][0]], weekend[windows[u][0]], minutes)[2] for u in able])
        for i, u in enumerate(able):
            others = np.delete(kind, i, axis=0)
            for mine in windows[u]:
                for decoys in DECOYS:
                    beside = company.beside(u, n, weekend[mine], decoys == "persona", rng)
                    queries = np.concatenate([r[mine][:, None, :], beside], axis=1)
                    for attack, guesses in _guesses(queries, weekend[mine], minutes, people.R, others, decoys).items():
                        for place, guess, true in zip(PLACES, guesses, truth[u], strict=True):
                            if true >= 0:
                                hits.setdefault((decoys, attack, place, D), []).append((u, float(guess[true])))
    if not users:
        return None
    rates: dict[tuple[str, str, str, int], Rate] = {}
    for key, chances in hits.items():
        user, chance = (np.array(column) for column in zip(*chances, strict=True))
        if len(np.unique(user)) >= ENOUGH:
            rates[key] = user_rate(chance, user, rng)[0]
    attacks: dict[str, dict[str, dict[str, dict[int, Rate]]]] = {d: {} for d in DECOYS}
    best: dict[str, dict[str, dict[int, Rate]]] = {d: {place: {} for place in PLACES} for d in DECOYS}
    for (decoys, attack, place, D), rate in rates.items():
        attacks[decoys].setdefault(attack, {}).setdefault(place, {})[D] = rate
        record = best[decoys][place].get(D)
        best[decoys][place][D] = rate if record is None or rate.value > record.value else record
    return OverDays(n, best, attacks, users, max(map(len, company.rows)))


def _guesses(
    queries: Ints, weekend: NDArray[np.bool_], minutes: Floats, R: int, others: Floats, decoys: str
) -> dict[str, tuple[Floats, Floats]]:
    """
    Return the chance of each place to be named as home and as main place, by every attack that these decoys
    allow.
    """
    guesses = {"what recurs": recurring(queries, weekend, minutes, R)}
    if decoys == "persona":
        lines = [portrait(queries[:, k], weekend, minutes) for k in range(queries.shape[1])]
        chance = _top(likeness(np.array([kind for _, _, kind in lines]), others))
        chances = [np.zeros(R), np.zeros(R)]
        for (home, main, _), share in zip(lines, chance.tolist(), strict=True):
            chances[0][home] += share
            if main >= 0:
                chances[1][main] += share
        guesses["who lives like a person"] = (chances[0], chances[1])
    return guesses
