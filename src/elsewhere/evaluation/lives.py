"""
Lives over several days: what people measure of them, person by person, and whether fake lives are told from real ones.

A life is all rows of one user, by date. Every measure is one number per person, NaN where the days cannot tell it (one
day has no neighbour, a file without dates no weekend). Real people of one half against those of the other stand beside
every comparison: what they differ by is chance.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import NotEnoughUsers
from elsewhere.evaluation.attacks.ground import filled, on_one_map
from elsewhere.evaluation.attacks.intervals import Rate, auc
from elsewhere.evaluation.attacks.realism import CROSS, JOINT, best_of, scored, wider
from elsewhere.traces.model import Floats, Ints, Locations, Traces

NIGHT, OFFICE = (0, 360), (540, 1020)  # minutes of the day: midnight to six, nine to five
GROWTH = (1, 2, 3, 7, 14, 28)
PARTS = ((0, 360), (360, 600), (600, 960), (960, 1200), (1200, 1440))
MEASURES = {
    "radius_of_gyration": "km",
    **{f"places_after_{d}_days": "places" for d in GROWTH},
    "home_share": "share of all instants",
    "night_share": "share of instants between midnight and six at home",
    "main_share": "share of weekday instants between nine and five at the main place beside home",
    "main_days": "share of weekdays on which the main place is visited",
    "regularity": "share of instants at the usual place of that hour of the week",
    "entropy": "nats, of all time by place",
    "jaccard": "places that neighbouring days share",
    "trip_length": "km per move",
    "moves_weekday": "per day",
    "moves_weekend": "per day",
    "moves_spread": "deviation over days",
    "still_days": "share of days without a move",
    "seen_one_day": "share of places seen on one day only",
    "farthest": "km from home",
    "ends_where_it_began": "share of days",
}


def days_of(traces: Traces) -> list[Ints]:
    """Rows of each user, by date; in their order where there are no dates."""
    when = np.zeros(len(traces), dtype=np.int64) if traces.dates is None else traces.dates.astype(np.int64)
    order = np.lexsort((np.arange(len(traces)), when, traces.user))
    return np.split(order, np.searchsorted(traces.user[order], np.arange(1, traces.U)))


def anchors(r: Ints, weekend: NDArray[np.bool_], minutes: Floats) -> tuple[int, int]:
    """
    Home and the main weekday place of one life.

    Home is the most usual place at night, or of all time where no instant is at night; the main place the most usual
    other one on weekdays between nine and five, else of all time; -1 where there is no other. The first of equals by
    number counts.
    """
    night, office = (_between(minutes, ends) for ends in (NIGHT, OFFICE))
    home = _usual(r[:, night] if night.any() else r)
    for there in (r[~weekend][:, office], r):
        rest = there[there != home]
        if len(rest):
            return home, _usual(rest)
    return home, -1


def _between(minutes: Floats, ends: tuple[int, int]) -> NDArray[np.bool_]:
    return (minutes >= ends[0]) & (minutes < ends[1])


def _usual(places: Ints) -> int:
    number, count = np.unique(places, return_counts=True)
    return int(number[count.argmax()])


def life_measures(
    r: Ints, day: Ints, weekend: NDArray[np.bool_], minutes: Floats, locations: Locations
) -> dict[str, float]:
    """
    Every measure of `MEASURES` of one life.

    Parameters
    ----------
    r
        (D, L) places, one row a day, in order, without gaps.
    day, weekend
        (D,) number of each day (neighbours differ by 1), and whether it is a Saturday or Sunday.
    minutes
        (L,) minute of the day of each instant.
    locations
        The places; without coordinates a step to another place is 1 long and there is no radius.

    """
    home, main = anchors(r, weekend, minutes)
    visited = [set(row.tolist()) for row in r]
    place, count = np.unique(r, return_counts=True)
    share = count / count.sum()
    moved = r[:, 1:] != r[:, :-1]
    moves = moved.sum(axis=1).astype(np.float64)
    seen: set[int] = set()
    grown = [len(seen := seen | places) for places in visited]
    next_to = [a for a, gap in enumerate(np.diff(day)) if gap == 1]
    alike = [len(visited[a] & visited[a + 1]) / len(visited[a] | visited[a + 1]) for a in next_to]
    often = np.array([sum(p in places for places in visited) for p in place.tolist()])
    night, office = (_between(minutes, ends) for ends in (NIGHT, OFFICE))
    workdays = r[~weekend]
    steps = locations.distance(r[:, :-1][moved], r[:, 1:][moved])
    radius = np.nan
    if locations.has_coordinates:
        xy = locations.planar()[place]
        radius = float(np.sqrt((share * ((xy - share @ xy) ** 2).sum(axis=1)).sum()))
    return {
        "radius_of_gyration": radius,
        **{f"places_after_{d}_days": float(grown[d - 1]) if len(r) >= d else np.nan for d in GROWTH},
        "home_share": float((r == home).mean()),
        "night_share": _mean(r[:, night] == home),
        "main_share": _mean(workdays[:, office] == main),
        "main_days": _mean((workdays == main).any(axis=1)),
        "regularity": regularity(r, day, weekend, minutes),
        "entropy": float(-(share * np.log(share)).sum()),
        "jaccard": _mean(np.array(alike)),
        "trip_length": _mean(steps),
        "moves_weekday": _mean(moves[~weekend]),
        "moves_weekend": _mean(moves[weekend]),
        "moves_spread": float(moves.std()) if len(r) > 1 else np.nan,
        "still_days": float((moves == 0).mean()),
        "seen_one_day": float((often == 1).mean()) if len(r) > 1 else np.nan,
        "farthest": float(locations.distance(np.full(len(place), home), place).max()),
        "ends_where_it_began": float((r[:, 0] == r[:, -1]).mean()),
    }


def _mean(values: NDArray[np.generic]) -> float:
    return float(values.mean()) if values.size else np.nan


def regularity(r: Ints, day: Ints, weekend: NDArray[np.bool_], minutes: Floats) -> float:
    """
    Share of instants at the most usual place of their hour of the week, over hours seen on two days or more.

    With less than two weeks the week is two days long: a weekday and a day of the weekend.
    """
    long = len(r) > 1 and int(day[-1] - day[0]) >= 13
    kind = day % 7 if long else weekend.astype(np.int64)
    hour = (minutes // 60).astype(np.int64)
    key = (kind[:, None] * 24 + hour).ravel()
    slot = np.repeat(np.arange(len(r)), r.shape[1])
    usual = total = 0
    for number in np.unique(key):
        mine = key == number
        if len(np.unique(slot[mine])) > 1:
            _, count = np.unique(r.ravel()[mine], return_counts=True)
            usual, total = usual + int(count.max()), total + int(count.sum())
    return usual / total if total else np.nan


def described(traces: Traces) -> tuple[dict[str, Floats], Floats]:
    """Every measure of every person, (U,) each; and (U, features) the description that lives are told by."""
    r, minutes = filled(traces.r), traces.minutes()
    days = days_of(traces)
    if traces.dates is None:
        ordinal, weekend = np.concatenate([np.arange(len(rows)) for rows in days]), np.zeros(len(r), dtype=bool)
        ordinal = ordinal[np.argsort(np.concatenate(days))]
    else:
        ordinal = traces.dates.astype("datetime64[D]").astype(np.int64)
        weekend = (ordinal + 3) % 7 >= 5  # day 0, 1970-01-01, was a Thursday
    found, more = [], []
    parts = [_between(minutes, ends) for ends in PARTS]
    for rows in days:
        mine, off = r[rows], weekend[rows]
        found.append(life_measures(mine, ordinal[rows], off, minutes, traces.locations))
        home, _ = anchors(mine, off, minutes)
        _, count = np.unique(mine, return_counts=True)
        share = np.sort(count / count.sum())[::-1]
        per_day = np.array([len(np.unique(row)) for row in mine])
        more.append(
            [
                *(_mean(mine[~off][:, part] == home) for part in parts),
                *(_mean(mine[off][:, part] == home) for part in parts),
                *(float(share[k]) if len(share) > k else 0.0 for k in range(4)),
                float(per_day.mean()),
                float(per_day.std()) if len(rows) > 1 else np.nan,
            ]
        )
    measures = {name: np.array([life[name] for life in found]) for name in MEASURES}
    # every measure is at least 0: what is not known is a value of its own
    return measures, np.nan_to_num(np.column_stack([*measures.values(), np.array(more)]), nan=-1.0)


def growth_curve(traces: Traces) -> Floats:
    """Mean number of distinct places after 1, 2, ... days, over the people who have so many."""
    r, lives = filled(traces.r), days_of(traces)
    most = max(len(rows) for rows in lives)
    total, people = np.zeros(most), np.zeros(most)
    for rows in lives:
        _, first = np.unique(r[rows], return_index=True)
        new = np.bincount(first // r.shape[1], minlength=len(rows))
        total[: len(rows)] += np.cumsum(new)
        people[: len(rows)] += 1
    return np.asarray(total / people)


@dataclass(frozen=True, eq=False)
class LivesResult:
    """
    Fake lives against real ones, and beside it other real ones.

    `mean` holds for each measure the mean over people of the held-out, the other real and the fake lives, NaN where
    nobody's days tell it; `told` and `told_real` the AUC of a classifier that tells fake lives, and other real ones,
    from the held-out; `growth` the three curves of distinct places against days.
    """

    mean: dict[str, tuple[float, float, float]]
    told: Rate
    told_real: Rate
    growth: tuple[Floats, Floats, Floats]

    def gap(self, name: str) -> tuple[float, float]:
        """How far fake, and other real, lives are from the held-out ones, as a share of these."""
        held, real, fake = self.mean[name]
        return abs(fake - held) / abs(held), abs(real - held) / abs(held)


def compare_lives(held: Traces, real: Traces, fakes: Traces, *, rng: np.random.Generator) -> LivesResult:
    """
    Every measure of fake lives beside those of real people whom the generator has not met, and whether they are told.

    Parameters
    ----------
    held, real, fakes
        Lives on one map: held-out people, other real people, fakes; rows of one user are one life.
    rng
        Folds of the classifiers.

    """
    sides = on_one_map({"held": held, "real": real, "fakes": fakes})
    for name, side in sides.items():
        if side.U < 2:
            raise NotEnoughUsers(f"`{name}` must hold at least 2 users, got {side.U}.")
    (mine, x), (theirs, y), (made, z) = (described(side) for side in sides.values())
    mean = {name: tuple(_known(values[name]) for values in (mine, theirs, made)) for name in MEASURES}
    curves = tuple(growth_curve(side) for side in sides.values())
    return LivesResult(mean, _told(x, z, rng), _told(x, y, rng), curves)  # type: ignore[arg-type]


def _known(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _told(held: Floats, other: Floats, rng: np.random.Generator) -> Rate:
    n, m = len(held), len(other)
    scores = scored(held, other, np.arange(n), np.arange(m), rng)
    return best_of([wider(auc(score[:n], score[n:], level=JOINT), CROSS) for score in scores.values()])
