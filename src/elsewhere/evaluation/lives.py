"""
Lives over several days: what people measure of them, and whether fake lives are told from real ones.

A life is all rows of one user, by date. A measure of a life is one number per person, NaN where the days cannot tell it
(one day has no neighbour, a file without dates no weekend). Lives are compared by how far fakes are off real people:

- measures of a person: |mean of the fakes - mean of half A| / mean of half A;
- curves (places against days, hours of the week), trips, flows and busiest places: a distance in [0, 1] or, for the
  growth of places, the mean relative difference.

The real people are split into halves A and B at random, again and again; the same figure between A and B is what chance
gives. Fakes are *as other people* in a measure where they are off by at most 10 points more than that. That is no word
on what they are good for (`uses`): where halves hardly match, fakes that match as little are as other people.
"""

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.data.slots import Traces, hold_places, is_weekend
from elsewhere.data.visits import Floats, Ints, Locations
from elsewhere.errors import InvalidParameter, NotEnoughUsers
from elsewhere.evaluation.attack_base import Rate, auc, plain
from elsewhere.evaluation.attacks.realism import CROSS, JOINT, best_of, score_by_classifiers, wider
from elsewhere.evaluation.publishing.tables import on_one_map
from elsewhere.evaluation.uses import MEASURES as USES
from elsewhere.evaluation.uses import Days, Plan, largest_gap, missing_input
from elsewhere.pool import put_on_map

NIGHT, OFFICE = (0, 360), (540, 1020)  # minutes of the day: midnight to six, nine to five
GROWTH = (1, 2, 3, 7, 14, 28)
PARTS = ((0, 360), (360, 600), (600, 960), (960, 1200), (1200, 1440))


class Named(NamedTuple):
    """What a measure is called, and in which unit its means are told; "" where it has none."""

    title: str
    unit: str = ""


MEASURES = {
    "radius_of_gyration": Named("Radius of gyration", "km"),
    **{f"places_after_{d}_days": Named(f"Places seen within {d} day{'s' * (d > 1)}", "places") for d in GROWTH},
    "home_share": Named("Time at home", "%"),
    "night_share": Named("Nights at home, midnight to six", "%"),
    "main_share": Named("Weekdays, nine to five, at the main place beside home", "%"),
    "main_days": Named("Weekdays with a visit to the main place", "%"),
    "regularity": Named("Regularity: at the usual place of that hour of the week", "%"),
    "entropy": Named("Spread of the time over places (entropy)", "nats"),
    "jaccard": Named("Places that one day shares with the next (Jaccard)", "%"),
    "trip_length": Named("Mean length of a move", "km"),
    "moves_weekday": Named("Moves on a weekday", "moves"),
    "moves_weekend": Named("Moves on a day of the weekend", "moves"),
    "moves_spread": Named("How much moves differ from day to day", "moves"),
    "still_days": Named("Days without a move", "%"),
    "seen_one_day": Named("Places seen on one day only", "%"),
    "farthest": Named("Farthest from home", "km"),
    "ends_where_it_began": Named("Days that end where they began", "%"),
}
CURVES = {
    "growth": Named("Distinct places against days"),
    "week_home": Named("Who is at home, by hour of the week"),
    "week_main": Named("Who is at the main place, by hour of the week"),
}
# distances of sets of days, as the uses take them
OF_DAYS = {
    "trips": Named("Lengths of trips, the whole distribution"),
    "flows_quarters": Named("Flows between quarters"),
    "flows_neighbourhoods": Named("Flows between neighbourhoods"),
    "flows_places": Named("Flows between single places"),
    "places": Named("Busiest places"),
}
# what people ask first; the rest stands beside
FIRST = (
    "radius_of_gyration", "growth", "home_share", "night_share", "main_share", "main_days", "week_home", "week_main",
    "regularity", "entropy", "jaccard", "trip_length", *OF_DAYS,
)  # fmt: skip
HALF = 0.5  # who is off by more is said to be, even where other real people are
NEAR = 0.10  # of the real figure: how much more than two halves of the real people fakes may be off
SPLITS = 20
FEWEST_PEOPLE = 10  # with several days, on either side: five in each half
MOST_PEOPLE = 1_000  # of either side; more are sampled


def days_of(traces: Traces) -> list[Ints]:
    """Return the rows of each user, by date, in their order where there are no dates."""
    when = np.zeros(len(traces), dtype=np.int64) if traces.dates is None else traces.dates.astype(np.int64)
    order = np.lexsort((np.arange(len(traces)), when, traces.user))
    return np.split(order, np.searchsorted(traces.user[order], np.arange(1, traces.U)))


def anchors(r: Ints, weekend: NDArray[np.bool_], minutes: Floats) -> tuple[int, int]:
    """
    Return home and the main weekday place of one life.

    Home is the most usual place at night, or of all time where no slot is at night; the main place the most usual
    other one on weekdays between nine and five, else of all time; -1 where there is no other. The first of equals by
    number counts.
    """
    night, office = ((minutes >= a) & (minutes < b) for a, b in (NIGHT, OFFICE))
    home = _usual(r[:, night] if night.any() else r)
    for there in (r[~weekend][:, office], r):
        rest = there[there != home]
        if len(rest):
            return home, _usual(rest)
    return home, -1


def _usual(places: Ints) -> int:
    number, count = np.unique(places, return_counts=True)
    return int(number[count.argmax()])


def life_measures(
    r: Ints, day: Ints, weekend: NDArray[np.bool_], minutes: Floats, locations: Locations
) -> dict[str, float]:
    """
    Return every measure of `MEASURES` of one life.

    Parameters
    ----------
    r
        (D, L) places, one row a day, in order, without gaps.
    day, weekend
        (D,) number of each day (neighbours differ by 1), and whether it is a Saturday or Sunday.
    minutes
        (L,) minute of the day of each slot.
    locations
        The places; without coordinates there is no radius, and no length of a move or way from home.

    """
    home, main = anchors(r, weekend, minutes)
    places_of = [set(row.tolist()) for row in r]
    place, count = np.unique(r, return_counts=True)
    share = count / count.sum()
    moved = r[:, 1:] != r[:, :-1]
    moves = moved.sum(axis=1).astype(np.float64)
    so_far: set[int] = set()
    numbers = [len(so_far := so_far | places) for places in places_of]
    next_to = [a for a, gap in enumerate(np.diff(day)) if gap == 1]
    alike = [len(places_of[a] & places_of[a + 1]) / len(places_of[a] | places_of[a + 1]) for a in next_to]
    often = np.array([sum(p in places for places in places_of) for p in place.tolist()])
    night, office = ((minutes >= a) & (minutes < b) for a, b in (NIGHT, OFFICE))
    workdays = r[~weekend]
    radius = trip_length = farthest = np.nan
    if locations.has_coordinates:
        xy = locations.planar()[place]
        radius = float(np.sqrt((share * ((xy - share @ xy) ** 2).sum(axis=1)).sum()))
        trip_length = _mean(locations.distance(r[:, :-1][moved], r[:, 1:][moved]))
        farthest = float(locations.distance(np.full(len(place), home), place).max())
    return {
        "radius_of_gyration": radius,
        **{f"places_after_{d}_days": float(numbers[d - 1]) if len(r) >= d else np.nan for d in GROWTH},
        "home_share": float((r == home).mean()),
        "night_share": _mean(r[:, night] == home),
        "main_share": _mean(workdays[:, office] == main),
        "main_days": _mean((workdays == main).any(axis=1)),
        "regularity": regularity(r, day, weekend, minutes),
        "entropy": float(-(share * np.log(share)).sum()),
        "jaccard": _mean(np.array(alike)),
        "trip_length": trip_length,
        "moves_weekday": _mean(moves[~weekend]),
        "moves_weekend": _mean(moves[weekend]),
        "moves_spread": float(moves.std()) if len(r) > 1 else np.nan,
        "still_days": float((moves == 0).mean()),
        "seen_one_day": float((often == 1).mean()) if len(r) > 1 else np.nan,
        "farthest": farthest,
        "ends_where_it_began": float((r[:, 0] == r[:, -1]).mean()),
    }


def _mean(values: NDArray[np.generic]) -> float:
    return float(values.mean()) if values.size else np.nan


def regularity(r: Ints, day: Ints, weekend: NDArray[np.bool_], minutes: Floats) -> float:
    """
    Return the share of slots at the most usual place of their hour of the week, over hours seen on two days or more.

    With less than two weeks the week is two days long: a weekday and a day of the weekend.
    """
    long = len(r) > 1 and int(day[-1] - day[0]) >= 13
    kind = day % 7 if long else weekend.astype(np.int64)
    hour = (minutes // 60).astype(np.int64)
    key = (kind[:, None] * 24 + hour).ravel()
    row = np.repeat(np.arange(len(r)), r.shape[1])
    hours, at = np.unique(key, return_inverse=True)
    days = np.bincount(np.unique(at * len(r) + row) // len(r), minlength=len(hours))
    places, where = np.unique(r, return_inverse=True)
    count = np.bincount(at * len(places) + where.ravel(), minlength=len(hours) * len(places)).reshape(len(hours), -1)
    counts = count[days > 1]
    return float(counts.max(axis=1).sum() / counts.sum()) if len(counts) else np.nan


def _calendar(traces: Traces) -> tuple[list[Ints], Ints, NDArray[np.bool_]]:
    """Return the rows of each user by date, the number of each row's day, and whether it is at a weekend."""
    days = days_of(traces)
    if traces.dates is None:
        ordinal = np.empty(len(traces), dtype=np.int64)
        ordinal[np.concatenate(days)] = np.concatenate([np.arange(len(rows)) for rows in days])
        return days, ordinal, np.zeros(len(traces), dtype=bool)
    ordinal = traces.dates.astype("datetime64[D]").astype(np.int64)
    return days, ordinal, is_weekend(traces.dates)


def describe_lives(traces: Traces) -> tuple[dict[str, Floats], Floats]:
    """Return every measure of every person, (U,) each; and (U, features) the description that lives are told by."""
    r, minutes = hold_places(traces.r), traces.minutes()
    days, ordinal, weekend = _calendar(traces)
    values, more = [], []
    parts = [(minutes >= a) & (minutes < b) for a, b in PARTS]
    for rows in days:
        mine, off = r[rows], weekend[rows]
        values.append(life_measures(mine, ordinal[rows], off, minutes, traces.locations))
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
    measures = {name: np.array([life[name] for life in values]) for name in MEASURES}
    # every measure is at least 0: what is not known is a value of its own
    return measures, np.nan_to_num(np.column_stack([*measures.values(), np.array(more)]), nan=-1.0)


def growth(traces: Traces) -> Floats:
    """Return (U, most days) distinct places of each person after 1, 2, ... days, NaN beyond her last day."""
    r, lives = hold_places(traces.r), days_of(traces)
    numbers = np.full((len(lives), max(map(len, lives))), np.nan)
    for person, rows in enumerate(lives):
        _, first = np.unique(r[rows], return_index=True)
        numbers[person, : len(rows)] = np.cumsum(np.bincount(first // r.shape[1], minlength=len(rows)))
    return numbers


def week(traces: Traces, kinds: int) -> Floats:
    """
    Return (U, 2, 24 kinds) share of the slots of each hour that a person is at home, and at the main place.

    `kinds` is 7 for the days of the week, Monday first, 2 for weekdays and weekends, 1 for any day. NaN where a person
    has no such hour, and at the main place where there is none.
    """
    r, minutes = hold_places(traces.r), traces.minutes()
    days, ordinal, weekend = _calendar(traces)
    kind = {7: (ordinal + 3) % 7, 2: weekend.astype(np.int64), 1: np.zeros(len(r), dtype=np.int64)}[kinds]
    hour = (minutes // 60).astype(np.int64)
    shares = np.full((len(days), 2, 24 * kinds), np.nan)
    for person, rows in enumerate(days):
        key = (kind[rows][:, None] * 24 + hour).ravel()
        total = np.bincount(key, minlength=24 * kinds)
        for i, place in enumerate(anchors(r[rows], weekend[rows], minutes)):
            if place >= 0:
                there = np.bincount(key, (r[rows] == place).ravel(), minlength=24 * kinds)
                np.divide(there, total, out=shares[person, i], where=total > 0)
    return shares


def by_hours(traces: Traces, kinds: int) -> Floats:
    """Return (U, 48 kinds) the numbers of `week`, -1 where they are not known: what lives are told by, by hours."""
    return np.nan_to_num(week(traces, kinds).reshape(traces.U, -1), nan=-1.0)


def _mean_known(values: Floats) -> Floats:
    """Return the mean over the first axis of what is known, NaN where nobody knows."""
    known = ~np.isnan(values)
    number = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, number, out=np.full(np.shape(number), np.nan), where=number > 0))


def relative_error(value: ArrayLike, real: ArrayLike) -> Floats:
    """
    Return how far a figure is off the real one, as a share of it; 1 where the real one is 0 and it is not.

    Examples
    --------
    >>> relative_error([5.0, 0.0, 1.0], [4.0, 0.0, 0.0]).tolist()
    [0.25, 0.0, 1.0]

    """
    a, b = np.asarray(value, dtype=np.float64), np.asarray(real, dtype=np.float64)
    away = np.abs(a - b)
    return np.where(b != 0, away / np.where(b != 0, np.abs(b), 1.0), np.where(away > 0, 1.0, away))


@dataclass(frozen=True)
class Compared:
    """
    One measure of fake lives beside those of real people.

    Parameters
    ----------
    id, title, unit
        "home_share", "Time at home" and "%"; distances have no unit.
    first
        Whether it is one of those that people ask first.
    fakes, real
        Means over people; None for distances, and where nobody's days tell it.
    off, halves
        How far fakes are off one half of the real people, and how far the other half is: means over the splits.
    people_off, people_halves
        The same as the share of people who have another value (Kolmogorov-Smirnov); None for distances.

    """

    id: str
    title: str
    unit: str
    first: bool
    fakes: float | None
    real: float | None
    off: float | None
    halves: float | None
    people_off: float | None = None
    people_halves: float | None = None

    @property
    def within(self) -> bool | None:
        """
        Tell whether fakes are off by at most 10 points more than two halves of the real people; None if not
        known.
        """
        if self.off is None or self.halves is None:
            return None
        return self.off <= self.halves + NEAR + 1e-9

    @property
    def far(self) -> bool:
        """Tell whether fakes are as other people, and yet off by more than half."""
        return self.within is True and (self.off or 0) > HALF

    @property
    def word(self) -> str:
        """Return the verdict in a word or two."""
        return {True: "as other people", False: f"{100 * (self.off or 0):.0f} % off", None: "not measured"}[self.within]

    @property
    def words(self) -> str:
        """Return the figures in a sentence."""
        if self.off is None or self.halves is None:
            return f"{self.title}: these days do not tell it."
        off, halves = f"{100 * self.off:.0f} %", f"{100 * self.halves:.0f} %"
        if self.fakes is None or self.real is None:
            return f"{self.title}: {off} do not match; between two halves of the real people {halves}"
        fakes, real = (
            f"{100 * v:.0f} %" if self.unit == "%" else f"{v:.{1 if v >= 1 else 2}f} {self.unit}"
            for v in (self.fakes, self.real)
        )
        return f"{self.title}: {fakes}, real people {real}; off by {off}, two halves of the real people by {halves}"


@dataclass(frozen=True, eq=False)
class LivesResult:
    """
    Fake lives against real ones, with two halves of the real people beside every measure.

    Parameters
    ----------
    measures
        Every measure; `[id]` gives one. Where places have no coordinates, those that need them are left out.
    told, told_real
        AUC of a classifier that tells fake lives, and other real ones, from one half of the people: .5 is guessing.
    told_by_hours, told_by_hours_real
        The same of a classifier that knows nothing but which share of each hour, on weekdays and at weekends, a person
        is at home and at the main place.
    growth
        Mean number of distinct places after each number of `days`: `fakes`, `real`, and `low` and `high`, the least and
        most that a half of the real people has.
    week
        The same by hour of the week (or of two kinds of day, or of one: `kinds`) for `home` and `main`: the share of
        people who are there.
    sizes, notes
        People and days of either side; what a reader should know.

    """

    measures: tuple[Compared, ...]
    told: Rate
    told_real: Rate
    told_by_hours: Rate
    told_by_hours_real: Rate
    growth: dict[str, Any] = field(repr=False)
    week: dict[str, Any] = field(repr=False)
    sizes: dict[str, int]
    notes: tuple[str, ...] = ()

    def __getitem__(self, measure: str) -> Compared:
        return {m.id: m for m in self.measures}[measure]

    def to_dict(self) -> dict[str, Any]:
        """Return `measures` by name, what is `told`, `growth`, `week`, `sizes`, `notes`, `in_words`, ready for JSON."""
        fields = [name for name in Compared.__dataclass_fields__ if name != "id"] + ["within", "far", "word", "words"]
        figures: dict[str, Any] = plain(
            {
                "measures": {m.id: {name: getattr(m, name) for name in fields} for m in self.measures},
                "told": self.told,
                "told_real": self.told_real,
                "told_by_hours": self.told_by_hours,
                "told_by_hours_real": self.told_by_hours_real,
                "growth": self.growth,
                "week": self.week,
                "sizes": self.sizes,
                "notes": self.notes,
            }
        )
        return {**figures, "in_words": self.summary()}

    def summary(self) -> str:
        """Say in how many of the first measures fakes are as other people, in which not, whether lives are told."""
        judged = [m for m in self.measures if m.first and m.within is not None]
        # the title up to its first remark
        name = {m.id: re.split("[,:(]", m.title[:1].lower() + m.title[1:])[0].strip() for m in judged}
        far = [name[m.id] for m in judged if m.far]
        off = [f"{name[m.id]} ({m.word})" for m in judged if not m.within]
        sentence = (
            f"in {len(judged) - len(off)} of {len(judged)} measures of lives over days, fakes are as near to real "
            "people as other real people are (off by at most 10 points more)"
        )
        sentence += f"; not in {', '.join(off)}" if off else ""
        sentence += f"; off by more than half, and other real people hardly less, in {', '.join(far)}" if far else ""
        return (
            f"{sentence}. A classifier tells fake lives from real ones with AUC {self.told.value:.2f} "
            f"({self.told.low:.2f} to {self.told.high:.2f}), other real lives with {self.told_real.value:.2f}; by the "
            f"hours of the day alone with {self.told_by_hours.value:.2f}, other real lives with "
            f"{self.told_by_hours_real.value:.2f}."
        )

    def in_words(self) -> list[str]:
        """Return one line per measure that people ask first, then the summary."""
        return [*(f"{m.word:<15}  {m.words}" for m in self.measures if m.first), self.summary()]


def missing_days(real: Traces, fakes: Traces) -> str:
    """Return why lives cannot be compared, in a sentence; "" where enough people and fakes have several days."""
    for side, who in ((real, "real people"), (fakes, "fakes")):
        several = int(np.count_nonzero(np.bincount(side.user) > 1))
        if several < FEWEST_PEOPLE:
            have = "has" if several == 1 else "have"
            single = f"all {who} have" if several == 0 else f"only {several} of the {who} {have} more than"
            return f"lives over several days are not compared: {single} one day ({FEWEST_PEOPLE} must have more)."
    return ""


def judge_lives(real: Traces, fakes: Any, *, rng: np.random.Generator) -> LivesResult:
    """
    Compare fake lives with real ones, beside what one half of the real people is to the other.

    Parameters
    ----------
    real
        The real people's days; rows of one user are one life. People with a single day are left out.
    fakes
        `Traces` or a `Pool` whose rows of one life share a user; or what `generate_fakes` returns, with `life`.
    rng
        Draws samples, splits and the folds of the classifiers.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> town = ew.simulate_town(users=60, days=5, locations=60, rng=np.random.default_rng(1)).traces
    >>> found = judge_lives(town, town, rng=np.random.default_rng(2))
    >>> found["home_share"].within, found.sizes["people"]
    (True, 60)

    """
    fake_lives = put_on_map(fakes, real)
    if not isinstance(fake_lives, Traces):
        r, life, days = (getattr(fake_lives, name, None) for name in ("r", "life", "days"))
        fake_lives = Traces(fake_lives if r is None else r, real.locations, users=life, dates=days)
        fake_lives = _on_clock_of(real, fake_lives)
    why = missing_days(real, fake_lives)
    if why:
        raise NotEnoughUsers(why)
    people = rng.permutation(np.flatnonzero(np.bincount(real.user) > 1))
    half = len(people) // 2
    return compare_lives(real.of_users(people[:half]), real.of_users(people[half:]), fake_lives, rng=rng)


def _on_clock_of(real: Traces, fakes: Traces) -> Traces:
    return Traces(
        fakes.r,
        fakes.locations,
        users=fakes.users,
        dates=fakes.dates,
        step_minutes=real.step_minutes,
        start=real.start,
        tz=real.tz,
    )


def compare_lives(held: Traces, real: Traces, fakes: Traces, *, rng: np.random.Generator) -> LivesResult:
    """
    Compare every measure of fake lives with those of real people, and whether they are told from the held-out.

    Parameters
    ----------
    held, real, fakes
        Lives on one map: held-out people, other real people, fakes; rows of one user are one life. The classifiers tell
        fakes, and `real`, from `held`; measures are taken over random halves of both together.
    rng
        Samples, splits, folds of the classifiers.

    """
    sides = on_one_map({"held": held, "real": real, "fakes": fakes})
    for name, side in sides.items():
        if side.U < 2:
            raise NotEnoughUsers(f"`{name}` must hold at least 2 users, got {side.U}.")
    if (fakes.step_minutes, fakes.start) != (real.step_minutes, real.start):
        raise InvalidParameter(
            f"`fakes` have slots of {fakes.step_minutes:g} minutes from {fakes.start}, `real` of {real.step_minutes:g} "
            f"from {real.start}: they must be on one clock.",
            code="E_MISMATCH",
            parameter="fakes",
        )
    sides = {
        name: side if side.U <= MOST_PEOPLE else side.of_users(rng.permutation(side.U)[:MOST_PEOPLE])
        for name, side in sides.items()
    }
    sides, notes = _equalise(sides)
    descriptions = {name: describe_lives(side) for name, side in sides.items()}
    table = {name: features for name, (_, features) in descriptions.items()}
    kinds = _kinds_of_day(list(sides.values()))
    hours = {name: by_hours(side, min(kinds, 2)) for name, side in sides.items()}
    lives = [_Lives.of(side, descriptions[name][0], kinds) for name, side in sides.items()]
    everybody, fake_lives = _Lives.joined(lives[0], lives[1]), lives[2]
    figures, growths, weeks = _compare_splits(everybody, fake_lives, rng)
    measures = tuple(
        _compare(name, everybody, fake_lives, figures[name]) for name in (*FIRST, *MEASURES) if name in figures
    )
    return LivesResult(
        tuple({m.id: m for m in measures}.values()),
        _tell_apart(table["held"], table["fakes"], rng),
        _tell_apart(table["held"], table["real"], rng),
        _tell_apart(hours["held"], hours["fakes"], rng),
        _tell_apart(hours["held"], hours["real"], rng),
        _mean_curves({"days": np.arange(1, growths.shape[1] + 1)}, everybody.growth, fake_lives.growth, growths),
        {
            "kinds": kinds,
            **{
                place: _mean_curves(
                    {"hour": np.arange(24 * kinds)}, everybody.week[:, i], fake_lives.week[:, i], weeks[:, i]
                )
                for i, place in enumerate(("home", "main"))
            },
        },
        {
            "people": len(everybody.rows),
            "days": len(everybody.days.r),
            "fakes": len(fake_lives.rows),
            "fake_days": len(fake_lives.days.r),
            "splits": SPLITS,
        },
        notes,
    )


def _equalise(sides: dict[str, Traces]) -> tuple[dict[str, Traces], tuple[str, ...]]:
    """Return the lives with as many days on either side, and with dates only if all have them; what was done."""
    notes: tuple[str, ...] = ()
    if len({side.dates is None for side in sides.values()}) > 1:
        who = "the fakes" if sides["fakes"].dates is None else "the real days"
        notes = (f"{who} carry no dates: days are compared in their order, weekdays and weekends alike.",)
        sides = {name: _undated(side) for name, side in sides.items()}
    real = np.concatenate([np.bincount(sides[name].user) for name in ("held", "real")])
    usual = {"real people": int(np.median(real)), "fakes": int(np.median(np.bincount(sides["fakes"].user)))}
    if len(set(usual.values())) > 1:
        most = min(usual.values())
        notes += (
            f"real people have {usual['real people']} days, fakes {usual['fakes']} (medians): of everybody at most the "
            f"first {most} {'is' if most == 1 else 'are'} compared.",
        )
        sides = {
            name: side.select(np.sort(np.concatenate([rows[:most] for rows in days_of(side)])))
            for name, side in sides.items()
        }
    return sides, notes


def _undated(side: Traces) -> Traces:
    ordered = side.select(np.concatenate(days_of(side)))
    return _on_clock_of(side, Traces(ordered.r, ordered.locations, users=ordered.users))


def _kinds_of_day(sides: list[Traces]) -> int:
    """
    Return how finely the week can be told: 7 days, 2 kinds of day, or 1, by the people who have each, on every
    side.
    """
    for kinds in (7, 2):
        there: list[int] = []
        for side in sides:
            _, ordinal, weekend = _calendar(side)
            kind = (ordinal + 3) % 7 if kinds == 7 else weekend.astype(np.int64)
            pairs = np.unique(kind * side.U + side.user)
            there += [0] if side.dates is None else np.bincount(pairs // side.U, minlength=kinds).tolist()
        if min(there) >= FEWEST_PEOPLE // 2:
            return kinds
    return 1


@dataclass(frozen=True, eq=False)
class _Lives:
    """What is measured of each life of one side, ready to be averaged over any of them."""

    rows: list[Ints]
    days: Days
    measures: dict[str, Floats]
    growth: Floats
    week: Floats

    @staticmethod
    def of(side: Traces, measures: dict[str, Floats], kinds: int) -> "_Lives":
        return _Lives(
            days_of(side),
            Days(hold_places(side.r).astype(np.int32), None, Plan.of(side)),
            measures,
            growth(side),
            week(side, kinds),
        )

    @staticmethod
    def joined(a: "_Lives", b: "_Lives") -> "_Lives":
        r = np.concatenate([a.days.r, b.days.r])
        plan = a.days.plan
        whole = Plan.of(Traces(r, plan.locations, step_minutes=plan.step_minutes))
        most = max(a.growth.shape[1], b.growth.shape[1])
        wide = [np.pad(x.growth, ((0, 0), (0, most - x.growth.shape[1])), constant_values=np.nan) for x in (a, b)]
        return _Lives(
            [*a.rows, *(rows + len(a.days.r) for rows in b.rows)],
            Days(r, None, whole),
            {name: np.concatenate([a.measures[name], b.measures[name]]) for name in MEASURES},
            np.concatenate(wide),
            np.concatenate([a.week, b.week]),
        )

    def some(self, people: Ints, plan: Plan) -> Days:
        """Return all days of some people, on one plan."""
        return Days(self.days.r[np.concatenate([self.rows[p] for p in people.tolist()])], None, plan)


def _compare_splits(real: _Lives, fakes: _Lives, rng: np.random.Generator) -> tuple[dict[str, Floats], Floats, Floats]:
    """
    Return each measure's figures over the splits, and the curves of all halves, of places against days and of the week.

    Figures (splits, 4) are off by, halves, and for measures of a person the same of the distribution over people.
    """
    U, n = len(real.rows), min(len(real.rows) // 2, len(fakes.rows))
    plan = real.days.plan
    uses = {
        m.id: m
        for m in USES
        if m.id in OF_DAYS and not missing_input(m, real.days, fakes.days, np.zeros(0, dtype=np.int64))
    }
    of_people = [name for name, m in MEASURES.items() if m.unit != "km" or plan.locations.has_coordinates]
    # as many days as the curves of both sides reach with enough people
    people = [(~np.isnan(side.growth)).sum(axis=0) >= min(FEWEST_PEOPLE, len(side.growth)) for side in (real, fakes)]
    days = max(1, min(int(np.count_nonzero(enough)) for enough in people))
    figures: dict[str, list[list[float]]] = {name: [] for name in (*of_people, *CURVES, *uses)}
    growths, weeks = [], []
    for child in rng.spawn(SPLITS):
        order = child.permutation(U)
        a, b, f = order[:n], order[n : 2 * n], child.permutation(len(fakes.rows))[:n]
        for name in of_people:
            x, y, z = (side.measures[name][who] for side, who in ((real, a), (real, b), (fakes, f)))
            mean = [float(_mean_known(v)) for v in (x, y, z)]
            apart = [largest_gap(x[~np.isnan(x)], v[~np.isnan(v)]) for v in (z, y)]
            figures[name].append(
                [float(relative_error(mean[2], mean[0])), float(relative_error(mean[1], mean[0])), *apart]
            )
        curves = [_mean_known(side.growth[who][:, :days]) for side, who in ((real, a), (real, b), (fakes, f))]
        hours = [_mean_known(side.week[who]) for side, who in ((real, a), (real, b), (fakes, f))]
        growths += curves[:2]
        weeks += hours[:2]
        figures["growth"].append([float(_mean_known(relative_error(curves[k], curves[0]))) for k in (2, 1)])
        for i, name in enumerate(("week_home", "week_main")):
            figures[name].append([float(_mean_known(np.abs(hours[k][i] - hours[0][i]))) for k in (2, 1)])
        if uses:
            half, other, sample = real.some(a, plan), real.some(b, plan), fakes.some(f, plan)
            for name, m in uses.items():
                figures[name].append([m.d(half, sample), m.d(half, other)])
    return {name: np.array(values) for name, values in figures.items()}, np.array(growths), np.array(weeks)


def _compare(name: str, real: _Lives, fake_lives: _Lives, figures: Floats) -> Compared:
    measure = MEASURES.get(name) or CURVES.get(name) or OF_DAYS[name]
    means = [np.nan, np.nan]
    if name in MEASURES:
        means = [float(_mean_known(side.measures[name])) for side in (fake_lives, real)]
    fakes, people = (None if np.isnan(m) else m for m in means)
    over = [None if np.isnan(v) else float(v) for v in _mean_known(figures)]
    off, halves, apart, apart_halves = over if len(over) == 4 else [*over, None, None]
    if off is None or halves is None:
        off = halves = apart = apart_halves = None
    return Compared(name, measure.title, measure.unit, name in FIRST, fakes, people, off, halves, apart, apart_halves)


def _mean_curves(along: dict[str, Ints], real: Floats, fakes: Floats, halves: Floats) -> dict[str, Any]:
    """Return means over all people of either side, and the least and the most over halves of the real people."""
    n = halves.shape[1]
    low, high = (getattr(np, f"f{end}").reduce(halves, axis=0) for end in ("min", "max"))
    return {**along, "fakes": _mean_known(fakes)[:n], "real": _mean_known(real)[:n], "low": low, "high": high}


def _tell_apart(held: Floats, other: Floats, rng: np.random.Generator) -> Rate:
    n, m = len(held), len(other)
    scores = score_by_classifiers(held, other, np.arange(n), np.arange(m), rng)
    return best_of([wider(auc(score[:n], score[n:], level=JOINT), CROSS) for score in scores.values()])
