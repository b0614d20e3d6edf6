"""
Clean the records of a file, and turn fixes into stays and cells on the way.

What cannot be is dropped and counted by reason; nothing is filled in. A stay is a time within a radius; a fix while
moving is a short observation of a cell. Check-ins, calls, visits and trips are what they are. Vehicles that are out all
day are no persons: each of their shifts is a unit of its own.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.data import _data_kernels as kernels
from elsewhere.data.visits import DAY, Codes, Mask, Preparation, Records, arc_km

FASTEST_KMH = 1200.0  # no airliner is faster over ground
LEAST_JUMP_KM = 10.0  # nearer, positions jitter: two networks place one phone differently within a second
FINEST = 17  # zoom of the finest tiles: 306 m wide at the equator, 200 m at 49 degrees
# Li, Zheng, Xie, Chen, Liu, Ma (2008): a stay is 20 minutes or more within 200 m of its first fix
STAY_KM = 0.2
STAY_SECONDS = 1200
SILENCE = 3600  # seconds without a fix after which nobody knows whether a stay goes on
MOVING = 0.5  # of the observed time: persons move a tenth of it, taxis most of it
HOURS_OUT = 6.0  # observed per day: less is a walk, a run, a ride of a person
SAMPLE = 1 << 20  # records that tell the usual time between two, and whether vehicles move all day
PAUSE = 7200  # seconds of standing or of silence that end a shift
ELSEWHERE = "at another place at the same time"
NEW_DAY = 4 * 3600  # second of the local day at which every shift ends


def clean(records: Records, preparation: Preparation) -> tuple[Records, Preparation]:
    """
    Return the records that can be, sorted by user and time, and the counts of the others by reason.

    Dropped are: exact doubles; of two fixes of one user at one time the second in the file; single fixes that are
    reached and left faster than any airliner. A trip goes as a whole.
    """
    records, dropped = records.sort(), Counter[str]()
    bad = np.zeros(len(records), dtype=bool)
    for reason, mask in _doubles(records).items():
        dropped[reason] += int(np.count_nonzero(mask & ~bad))
        bad |= mask
    records = records.select(~bad) if bad.any() else records
    if records.lat is not None and records.place is None and records.form.record in ("fixes", "events"):
        jump = find_jumps(records)
        dropped["reached and left faster than any airliner"] += int(np.count_nonzero(jump))
        records = records.select(~jump) if jump.any() else records
    return records, preparation.count(dropped=dropped)


def find_jumps(records: Records) -> Mask:
    """
    Tell which fixes are reached and left by impossible steps while the step past them is possible.

    Of several in a row that look like it, the first is one, and every other after it.
    """
    user, start, lat, lon = records.user, records.start, np.asarray(records.lat), np.asarray(records.lon)

    def impossible(a: Any, b: Any) -> Mask:
        km = arc_km(lat[a], lon[a], lat[b], lon[b])
        return np.asarray(
            (user[a] == user[b]) & (km > LEAST_JUMP_KM) & (km * 3600 > FASTEST_KMH * (start[b] - start[a]))
        )

    step, jump = impossible(slice(None, -1), slice(1, None)), np.zeros(len(records), dtype=bool)
    like = 1 + np.flatnonzero(step[:-1] & step[1:])
    like = like[~impossible(like - 1, like + 1)]
    nth = np.arange(len(like))
    nth -= np.maximum.accumulate(np.where(np.diff(like, prepend=-1) != 1, nth, 0))
    jump[like[nth % 2 == 0]] = True
    return jump


def whole_trips(trip: Codes, some: Mask) -> Mask:
    """Return all records of the trips of which `some` records are given; -1 is no trip."""
    chosen = np.zeros(int(trip.max(initial=-1)) + 2, dtype=bool)
    chosen[trip[some]] = True
    chosen[-1] = False
    return np.asarray(chosen[trip])


def _doubles(records: Records) -> dict[str, Mask]:
    """Return the second of records that are equal, and of fixes of one user at one time, by reason."""
    where = [column for column in (records.lat, records.lon, records.place, records.kind) if column is not None]
    user, start = records.user, records.start
    if records.form.record == "fixes":
        repeated = np.zeros(len(records), dtype=bool)
        repeated[1:] = (user[1:] == user[:-1]) & (start[1:] == start[:-1])
        again = np.flatnonzero(repeated)
        first = np.maximum.accumulate(np.where(repeated, 0, np.arange(len(records))))[again]
        moved = np.zeros(len(records), dtype=bool)
        for column in where:
            moved[again] |= column[again] != column[first]
        return {ELSEWHERE: moved, "repeated": repeated}
    if records.trip is not None and records.form.record == "trips":  # two records each
        order = np.argsort(records.trip, kind="stable")
        ends = (order[::2], order[1::2])
        table = [user[ends[0]], *(column[end] for end in ends for column in (start, *where))]
        return {"repeated": np.isin(records.trip, records.trip[ends[0]][_repeated_rows(table)])}
    return {"repeated": _repeated_rows([user, start, records.end, *where])}


def _repeated_rows(columns: list[NDArray[Any]]) -> Mask:
    """Tell which rows of a table are equal to an earlier one; missing values are equal."""
    import pandas as pd

    return np.asarray(pd.DataFrame(dict(enumerate(columns))).duplicated())


def find_stays(records: Records) -> Records:
    """
    Return clean fixes, and lines of points, as stays and cells on the way, one record each; other records as they are.

    A stay is 20 minutes or more within 200 m of its first fix, at the mean of its fixes. Fixes on the way that follow
    each other in one tile of the finest grid are one record. An hour without a fix ends either: nobody knows.
    """
    if records.form.record != "fixes" or records.lat is None or records.lon is None or not len(records):
        return records
    group: NDArray[np.integer] = records.user
    if records.trip is not None:
        if "points" in records.form.columns:
            records = records.select(np.lexsort((records.start, records.trip, records.user)))
        user, trip = records.user, np.asarray(records.trip)
        group = np.append(0, np.cumsum((user[1:] != user[:-1]) | (trip[1:] != trip[:-1]))).astype(np.int32)
    n, start, lat, lon = len(records), records.start, np.asarray(records.lat), np.asarray(records.lon)
    segment = np.empty(n, dtype=np.int32)
    count = kernels.find_segments(group, start, lat, lon, FINEST, STAY_KM, STAY_SECONDS, SILENCE, segment)
    new = np.ones(n + 1, dtype=bool)
    new[1:-1] = segment[1:] != segment[:-1]
    size, first = np.bincount(segment, minlength=count), np.flatnonzero(new[:-1])
    north, east = lat - lat[first][segment], (lon - lon[first][segment] + 180) % 360 - 180
    lat, lon = lat[first] + np.bincount(segment, north) / size, lon[first] + np.bincount(segment, east) / size
    some = slice(0, SAMPLE)
    step = np.diff(start[some])[group[some][1:] == group[some][:-1]]
    step = step[step <= SILENCE]
    form = replace(records.form, interval=int(np.median(step)) if len(step) else 0)
    names = ("user", "start", "place", "kind", "trip")
    columns: dict[str, Any] = {name: c[new[:-1]] for name in names if (c := getattr(records, name)) is not None}
    return replace(records, **columns, end=records.end[new[1:]], lat=lat, lon=(lon + 180) % 360 - 180, form=form,
                   fixes=size)  # fmt: skip


def split_vehicles(records: Records, *, known: bool = False) -> Records:
    """
    Return vehicles by shift, each a user of its own; persons as they are.

    A shift ends with two hours of standing or of silence, and at four in the morning; a trip is of one shift. `known`
    says that these are vehicles; else the records are those of `find_stays`, and tell.
    """
    if not (known or _are_vehicles(records)):
        return records
    records = records.sort()
    user, start, stands = records.user, records.start, records.end - records.start >= PAUSE
    new = (np.diff((start - NEW_DAY) // DAY) != 0) | (start[1:] - records.end[:-1] >= PAUSE) | stands[1:] | stands[:-1]
    if records.form.record == "trips" or "points" in records.form.columns:
        new &= np.diff(np.asarray(records.trip)) != 0
    new = np.append(True, new | (np.diff(user) != 0))
    owner = user[new]
    nth = np.arange(len(owner)) - np.searchsorted(owner, owner) + 1
    labels = tuple(f"{records.users[u]}/{k}" for u, k in zip(owner.tolist(), nth.tolist(), strict=True))
    shift = (np.cumsum(new) - 1).astype(np.int32)
    return replace(records, user=shift, users=labels, form=replace(records.form, unit="vehicle-day"))


def _are_vehicles(records: Records) -> bool:
    """Tell whether half of the users move for more than half of the time they are observed, six hours a day or more."""
    if records.form.record != "fixes" or records.form.unit != "person" or records.trip is not None or not len(records):
        return False
    user, start, end = (column[:SAMPLE] for column in (records.user, records.start, records.end))
    same, long, gap = user[1:] == user[:-1], end - start, start[1:] - end[:-1]
    known = same & (gap <= SILENCE)
    users = int(user[-1]) + 1
    observed = np.bincount(user, long) + np.bincount(user[1:][known], gap[known], users)
    stays = np.bincount(user, np.where(long >= STAY_SECONDS, long, 0))
    new = np.append(True, ~same | (np.diff((start - NEW_DAY) // DAY) != 0))
    seen, days = observed > 0, np.bincount(user[new])
    if not seen.any() or np.median(1 - stays[seen] / observed[seen]) <= MOVING:
        return False
    return bool(np.median(observed[seen] / days[seen]) >= 3600 * HOURS_OUT)
