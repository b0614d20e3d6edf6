"""
What a day looks like, in some seventy numbers: stays, returns, hours, ways, and what other people do.

This is the judge's own description. No generator may be taught it: what a generator is taught, it is no longer judged
by. Numbers that compare with other people take a reference of people who are not described by it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.evaluation.attacks.grams import Grams
from elsewhere.traces.model import Floats, Ints, Locations

STAYS = (1, 2, 4, 8, 16, 32)  # instants: a stay is at most as long, and longer than the one before
PARTS = 6
LAGS = (8, 4, 2)  # one eighth, one quarter, one half of the day
NAMES = (
    *(f"stays_up_to_{n}" for n in STAYS),
    "stays_longer",
    *("stay_mean", "stay_spread", "stay_longest", "stay_second"),
    *("back_at_once", "back_by_another", "passed_through", "seen_once", "seen_thrice"),
    *("gap_mean", "gap_shortest", "gap_longest"),
    *(f"time_at_place_{k}" for k in range(1, 6)),
    *(f"moves_in_part_{k}" for k in range(1, PARTS + 1)),
    *(f"places_in_part_{k}" for k in range(1, PARTS + 1)),
    *("first_move", "last_move", "middle_move", "spread_of_moves"),
    *("at_first_place", "at_first_place_late", "at_last_place_early", "top_place_late"),
    *("trips", "longest_trip", "move_after_move"),
    *(f"same_place_after_1_{n}" for n in LAGS),
    *("way", "step_mean", "step_median", "step_longest", "step_spread", "net", "straightness", "farthest"),
    *("turn_mean", "turned_back", "straight_on", "around_top_place", "trip_straightness"),
    *("move_likelihood", "move_likelihood_least", "stay_likelihood", "moves_unseen", "ways_unseen"),
    *("hour_likelihood", "hour_likelihood_least", "hours_unseen"),
    *("popularity_spread", "popularity_least", "popularity_of_top", "popularity_of_passed"),
)


class Stays(NamedTuple):
    """Maximal runs of one place, trace by trace: row, place, first instant, length."""

    row: Ints
    place: Ints
    first: Ints
    length: Ints


def stays_of(r: Ints) -> Stays:
    """All stays, in order."""
    N, L = r.shape
    begins = np.ones((N, L), dtype=bool)
    begins[:, 1:] = r[:, 1:] != r[:, :-1]
    start = np.flatnonzero(begins)
    return Stays(start // L, r.ravel()[start], start % L, np.diff(start, append=N * L))


def mean_of(values: NDArray[Any], row: Ints, N: int, *, empty: float = 0.0) -> Floats:
    """Mean of the values of each row."""
    count = np.bincount(row, minlength=N)
    return np.asarray(np.divide(np.bincount(row, values, N), count, out=np.full(N, empty), where=count > 0))


def _extreme(values: Floats, row: Ints, N: int, kind: np.ufunc, empty: float) -> Floats:
    out = np.full(N, -np.inf if kind is np.maximum else np.inf)
    kind.at(out, row, values)
    return np.where(np.isfinite(out), out, empty)


def day_features(r: Ints, locations: Locations, reference: Grams) -> Floats:
    """(N, len(NAMES)) the description of each trace, in the order of `NAMES`."""
    stays = stays_of(r)
    found = {
        **_stays(r, stays),
        **_hours(r, stays),
        **_ways(r, locations),
        **_beside_others(r, stays, reference),
    }
    return np.column_stack([found[name] for name in NAMES]).astype(np.float64)


def _stays(r: Ints, stays: Stays) -> dict[str, Floats]:
    """How long, how often again, after how long, and how the time is shared out."""
    N, L = r.shape
    row, place, first, length = stays
    number = np.bincount(row, minlength=N)
    out: dict[str, Floats] = {}
    for name, low, high in zip(NAMES, (0, *STAYS), (*STAYS, np.inf), strict=False):
        out[name] = np.bincount(row, (length > low) & (length <= high), N) / number
    mean = mean_of(length, row, N)
    by_length = np.lexsort((-length, row))
    start = np.searchsorted(row, np.arange(N))
    second = length[by_length[np.minimum(start + 1, len(row) - 1)]]
    out |= {
        "stay_mean": mean / L,
        "stay_spread": np.sqrt(mean_of((length - mean[row]) ** 2.0, row, N)) / L,
        "stay_longest": length[by_length[start]] / L,
        "stay_second": np.where(number > 1, second, 0) / L,
    }
    same2 = (row[2:] == row[:-2]) & (place[2:] == place[:-2])
    same3 = (row[3:] == row[:-3]) & (place[3:] == place[:-3])
    moves = np.maximum(number - 1, 1)
    inner = np.zeros(len(row), dtype=bool)  # neither the first nor the last stay
    inner[1:-1] = (row[1:-1] == row[:-2]) & (row[1:-1] == row[2:])
    out |= {
        "back_at_once": np.bincount(row[2:][same2], minlength=N) / moves,
        "back_by_another": np.bincount(row[3:][same3], minlength=N) / moves,
        "passed_through": np.bincount(row[inner & (length == 1)], minlength=N) / number,
    }
    order = np.lexsort((first, place, row))
    a, b = order[:-1], order[1:]
    again = (row[a] == row[b]) & (place[a] == place[b])
    gap, who = (first[b] - first[a] - length[a])[again].astype(np.float64), row[a][again]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = ~again
    group = np.cumsum(fresh) - 1
    times, of = np.bincount(group), row[order][fresh]
    places = np.bincount(of, minlength=N)
    spent = np.bincount(group, length[order])
    ranked = np.lexsort((-spent, of))
    begin, end = np.searchsorted(of[ranked], np.arange(N)), np.searchsorted(of[ranked], np.arange(N), "right")
    out |= {
        "seen_once": np.bincount(of[times == 1], minlength=N) / places,
        "seen_thrice": np.bincount(of[times >= 3], minlength=N) / places,
        "gap_mean": mean_of(gap, who, N) / L,
        "gap_shortest": _extreme(gap, who, N, np.minimum, 0.0) / L,
        "gap_longest": _extreme(gap, who, N, np.maximum, 0.0) / L,
    }
    for k in range(5):
        at = np.minimum(begin + k, len(ranked) - 1)
        out[f"time_at_place_{k + 1}"] = np.where(begin + k < end, spent[ranked[at]], 0) / L
    return out


def _hours(r: Ints, stays: Stays) -> dict[str, Floats]:
    """When moves are made, how many places each part of the day sees, where the day begins and ends."""
    N, L = r.shape
    moved = r[:, 1:] != r[:, :-1]
    row, at = np.nonzero(moved)
    moves = np.bincount(row, minlength=N)
    when = (at + 1) / L
    part = np.arange(L) * PARTS // L
    out: dict[str, Floats] = {}
    for k in range(PARTS):
        mine = np.flatnonzero(part == k)
        out[f"moves_in_part_{k + 1}"] = np.bincount(row[part[at + 1] == k], minlength=N) / np.maximum(moves, 1)
        seen = np.sort(r[:, mine], axis=1)
        out[f"places_in_part_{k + 1}"] = (seen[:, 1:] != seen[:, :-1]).sum(axis=1) + float(len(mine) > 0)
    middle = mean_of(when, row, N, empty=0.5)
    late = np.arange(L) >= L // 2
    top = _top_place(stays, N)
    after = np.zeros((N, L), dtype=np.int64)  # moves in a row, up to this instant
    for t in range(1, L):
        after[:, t] = np.where(moved[:, t - 1], after[:, t - 1] + 1, 0)
    out |= {
        "first_move": _extreme(when, row, N, np.minimum, 1.0),
        "last_move": _extreme(when, row, N, np.maximum, 0.0),
        "middle_move": middle,
        "spread_of_moves": np.sqrt(mean_of((when - middle[row]) ** 2, row, N)),
        "at_first_place": (r == r[:, :1]).mean(axis=1),
        "at_first_place_late": (r[:, late] == r[:, :1]).mean(axis=1),
        "at_last_place_early": (r[:, ~late] == r[:, -1:]).mean(axis=1) if L > 1 else np.ones(N),
        "top_place_late": (r[:, late] == top[:, None]).mean(axis=1),
        "trips": (after == 1).sum(axis=1).astype(np.float64),
        "longest_trip": after.max(axis=1) / L,
        "move_after_move": (after > 1).sum(axis=1) / np.maximum(moves, 1),
    }
    for n in LAGS:
        lag = max(1, L // n)
        out[f"same_place_after_1_{n}"] = (r[:, lag:] == r[:, :-lag]).mean(axis=1) if lag < L else np.zeros(N)
    return out


def _top_place(stays: Stays, N: int) -> Ints:
    """The place of each trace's longest stay, the first of equals."""
    order = np.lexsort((stays.first, -stays.length, stays.row))
    return np.asarray(stays.place[order][np.searchsorted(stays.row[order], np.arange(N))])


def _ways(r: Ints, locations: Locations) -> dict[str, Floats]:
    """Lengths, turns and directness in km and radians; without coordinates every step to another place is 1 long."""
    N = len(r)
    moved = r[:, 1:] != r[:, :-1]
    row, at = np.nonzero(moved)
    step = np.where(moved, locations.distance(r[:, :-1], r[:, 1:]), 0.0)
    made = step[row, at]
    mean = mean_of(made, row, N)
    order = np.lexsort((made, row))
    count = np.bincount(row, minlength=N)
    begin = np.searchsorted(row, np.arange(N))
    middle = np.minimum(begin + count // 2, max(len(row) - 1, 0))
    way = step.sum(axis=1)
    net, far = locations.distance(r[:, 0], r[:, -1]), locations.distance(np.broadcast_to(r[:, :1], r.shape), r)
    reach = far.max(axis=1)
    top = _top_place(stays_of(r), N)
    zero = np.zeros(N)
    out: dict[str, Floats] = {
        "way": way,
        "step_mean": mean,
        "step_median": np.where(count > 0, made[order][middle], 0.0) if len(made) else zero,
        "step_longest": step.max(axis=1),
        "step_spread": np.sqrt(mean_of((made - mean[row]) ** 2, row, N)),
        "net": net,
        "straightness": np.divide(2 * reach, way, out=zero.copy(), where=way > 0),
        "farthest": reach,
        "around_top_place": locations.distance(np.broadcast_to(top[:, None], r.shape), r).mean(axis=1),
    }
    turn, who = np.empty(0), np.empty(0, dtype=np.int64)
    if locations.has_coordinates and len(row):
        xy = locations.planar()
        leg = xy[r[row, at + 1]] - xy[r[row, at]]
        next_to = row[1:] == row[:-1]
        heading = np.arctan2(leg[:, 1], leg[:, 0])
        turn = np.abs((np.diff(heading) + np.pi) % (2 * np.pi) - np.pi)[next_to]
        who = row[1:][next_to]
    out |= {
        "turn_mean": mean_of(turn, who, N),
        "turned_back": mean_of((turn > 5 * np.pi / 6).astype(np.float64), who, N),
        "straight_on": mean_of((turn < np.pi / 6).astype(np.float64), who, N),
    }
    # a trip is a run of moves at neighbouring instants: its net length over its way
    opens = np.ones(len(row), dtype=bool)
    opens[1:] = (row[1:] != row[:-1]) | (at[1:] != at[:-1] + 1)
    trip = np.cumsum(opens) - 1
    begins, ends = np.flatnonzero(opens), np.flatnonzero(np.append(opens[1:], True)[: len(row)])
    straight = locations.distance(r[row[begins], at[begins]], r[row[ends], at[ends] + 1])
    out["trip_straightness"] = mean_of(
        straight / np.maximum(np.bincount(trip, made, len(begins)), 1e-12), row[begins], N, empty=1.0
    )
    return out


def _beside_others(r: Ints, stays: Stays, reference: Grams) -> dict[str, Floats]:
    """How usual moves, ways of two moves, hours and places are among the people of the reference."""
    N, _ = r.shape
    moved = r[:, 1:] != r[:, :-1]
    row, _ = np.nonzero(moved)
    likely = np.log(reference.step(r))
    still, _ = np.nonzero(~moved)
    there = reference.at_hour(r)
    visits = np.log(reference.popularity(r))
    at_hour = np.log(
        (there + 1) / (np.bincount(reference.hour)[reference.hour] * len(reference.people.r) + reference.R)
    )
    first, second, third, of = _triples(stays)
    inner = np.zeros(len(stays.row), dtype=bool)
    inner[1:-1] = (stays.row[1:-1] == stays.row[:-2]) & (stays.row[1:-1] == stays.row[2:])
    passed = inner & (stays.length == 1)
    by_stay = visits[stays.row, stays.first]
    return {
        "move_likelihood": mean_of(likely[moved], row, N),
        "move_likelihood_least": _extreme(likely[moved], row, N, np.minimum, 0.0),
        "stay_likelihood": mean_of(likely[~moved], still, N),
        "moves_unseen": mean_of(reference.unseen(r)[moved], row, N),
        "ways_unseen": mean_of(~np.isin(_key(first, second, third, reference.R), _known_ways(reference)), of, N),
        "hour_likelihood": at_hour.mean(axis=1),
        "hour_likelihood_least": at_hour.min(axis=1),
        "hours_unseen": (there == 0).mean(axis=1),
        "popularity_spread": visits.std(axis=1),
        "popularity_least": visits.min(axis=1),
        "popularity_of_top": np.log(reference.popularity(_top_place(stays, N)[:, None])[:, 0]),
        "popularity_of_passed": mean_of(by_stay[passed], stays.row[passed], N),
    }


def _triples(stays: Stays) -> tuple[Ints, Ints, Ints, Ints]:
    """Three stays in a row: their places, and the trace."""
    mine = stays.row[2:] == stays.row[:-2]
    return stays.place[:-2][mine], stays.place[1:-1][mine], stays.place[2:][mine], stays.row[2:][mine]


def _key(a: Ints, b: Ints, c: Ints, R: int) -> Ints:
    return (a * R + b) * R + c


def _known_ways(reference: Grams) -> Ints:
    a, b, c, _ = _triples(stays_of(reference.people.r))
    return np.unique(_key(a, b, c, reference.R))
