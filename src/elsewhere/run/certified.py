"""
Certified fakes: what may decide what is published is the caller's options and noisy sums, and nothing else.

So a certified run reads its file in a way of its own: which column is what follows from the names in the header or from
`columns`, times are ISO 8601 or as `date_format` says, the map, the clock and its zone are given. Each row is read by
itself: what cannot be read, or lies off the map, is left out in silence, and changes nothing for anybody else.
"""

import os
import re
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.checkpoint import Stages
from elsewhere.data.columns import find_named, parse_columns
from elsewhere.data.place_table import PlaceTable
from elsewhere.data.places import grid_of
from elsewhere.data.stays import find_stays
from elsewhere.data.times import find_zone, to_local
from elsewhere.data.visits import DAY, Floats, Form, Ints, Locations, Mask, Records, Visits, to_xyz
from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.run.publish import Fakes
from elsewhere.settings import Certified, Making, Reading
from elsewhere.synthesis.certified import Observed, release_certified

ROLES = ("user", "time", "end", "lat", "lon", "place")
BEGINS, ENDS = ("start", "started_at", "start_time", "begin"), ("end", "ended_at", "end_time", "finish", "stop")
MOMENT = re.compile(
    r"\s*(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?)?\s*(?:(Z)|([+-])(\d\d):?(\d\d))?\s*",
    re.ASCII,
)
YEARS = (1970, 2100)
MISSING = np.iinfo(np.int64).min
BEYOND = 0.75  # usual distances of neighbours from the nearest place, beyond which a record lies off the map
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq")


def make_certified(
    seen: Observed,
    locations: Locations,
    *,
    tz: str,
    settings: Certified,
    making: Making,
    entropy: int,
    laboratory: bool,
    stages: Stages,
    executor: Executor | None,
    progress: Callable[[int, int], None] | None,
) -> Fakes:
    """Make fakes by noisy sums over everybody: nobody is a seed, and nothing is tested."""
    release = release_certified(
        seen,
        locations,
        eps=settings.eps,
        delta=settings.delta,
        days=settings.days,
        n=making.n,
        in_laboratory=laboratory,
        entropy=entropy,
        stages=stages,
        executor=executor,
        progress=progress,
    )
    visits = Visits(
        release.user, release.start, release.end, release.place, locations, users=range(release.lives), tz=tz,
        form=Form("events" if release.events else "visits"),
    )  # fmt: skip
    return Fakes(
        visits=visits,
        seed_of_life=np.full(visits.U, -1),
        method="certified",
        parameters=dict(settings),
        seeds=np.zeros(0, dtype=np.int64),
        certificate=release.certificate,
        laboratory=laboratory,
        notes=release.notes,
        mechanism=release.mechanism,
    )


def read_rows(source: Any, reading: Reading) -> tuple[Observed, Locations, str]:
    """
    Return what the rows of a table say, each read by itself, on the given map; the map; and the zone of the clock.

    Refused is only what no row decides: options, a file that cannot be opened, a header without the columns needed.
    """
    where, ids = given_map(reading)
    zone = reading.tz or (find_zone(where.lat, where.lon)[0] if where.lat is not None else None) or "UTC"
    columns = read_table(source, reading)
    user, keep = number_users(columns["user"])
    start = read_moments(columns["time"], reading.date_format, zone)
    end = start if "end" not in columns else read_moments(columns["end"], reading.date_format, zone)
    keep &= (start != MISSING) & (end != MISSING) & (end >= start)
    if "place" in columns and (ids or "lat" not in columns):
        number = {name: i for i, name in enumerate(where.ids or map(str, range(len(where))))}
        place = np.array([number.get(name.strip(), -1) for name in columns["place"]], dtype=np.int64)
    else:
        lat, lon = (read_degrees(columns[axis], most) for axis, most in (("lat", 90.0), ("lon", 180.0)))
        keep &= np.isfinite(lat) & np.isfinite(lon)
        user, start, end, lat, lon = user[keep], start[keep], end[keep], lat[keep], lon[keep]
        keep = keep[keep]
        if "end" not in columns:  # fixes, of which stays are found person by person
            user, start, end, lat, lon = stays_of(user, start, lat, lon)
            keep = np.ones(len(user), dtype=bool)
        place = place_on(where, lat, lon)
    keep &= place >= 0
    user, start, end, place = user[keep], start[keep], end[keep], place[keep]
    order = np.lexsort((place, end, start, user))
    who, user = np.unique(user[order], return_inverse=True)
    return Observed(user, start[order], end[order], place[order], len(who)), where, zone


def require_map(reading: Reading) -> None:
    """Refuse to read without a map that is not the file's own."""
    if reading.grid is None and reading.locations is None:
        raise InvalidParameter(
            "a certificate protects everybody in the file, so the map must not come from the file: name its town, such "
            'as `grid="Tokyo"`, or give a box, or a table of public places as `locations`.',
            code="E_MAP",
            parameter="grid",
        )


def given_map(reading: Reading) -> tuple[Locations, bool]:
    """Return the map that the caller gives, and whether records may name its places."""
    if reading.grid is not None:
        return grid_of(reading.grid), False
    if isinstance(reading.locations, Locations):
        return reading.locations, reading.locations.ids is not None
    table = PlaceTable(reading.locations)
    names = [n for n in table.ids if None not in table.columns[n] and len(set(table.columns[n])) == len(table.lat)]
    ids = table.columns[names[0]] if names else [str(i) for i in range(len(table.lat))]
    good = np.isfinite(table.lat) & np.isfinite(table.lon)
    sides: dict[str, Any] = {"lat": table.lat[good], "lon": table.lon[good]}
    return Locations(**sides, ids=[name for name, here in zip(ids, good.tolist(), strict=True) if here]), True


def read_table(source: Any, reading: Reading) -> dict[str, list[str]]:
    """Return the columns of a table by role, every value as text; the header alone says which is which."""
    frame = source.to_pandas() if hasattr(source, "to_pandas") else source
    if hasattr(frame, "columns"):
        names, values = [str(name) for name in frame.columns], {str(n): frame[n].tolist() for n in frame.columns}
        roles = find_roles(names, reading)
        return {role: ["" if v is None else str(v) for v in values[name]] for role, name in roles.items()}
    if not isinstance(source, (str, os.PathLike)) or Path(source).suffix.lower() not in TABLES:
        raise InvalidTraces(
            "`eps` reads a table, each row by itself: a file .csv, .tsv or .parquet with a header and ISO times. "
            "`elsewhere prepare` writes other formats as such a table.",
            code="E_FORMAT",
        )
    path = Path(source)
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            import pyarrow.parquet

            table = pyarrow.parquet.read_table(path)
            roles = find_roles(table.column_names, reading)
            return {
                role: ["" if v is None else str(v) for v in table[name].to_pylist()] for role, name in roles.items()
            }
        with path.open(encoding="latin-1", newline="\n") as stream:  # no byte is wrong in it: names stay distinct
            separator = "\t" if path.suffix.lower() == ".tsv" else ","
            header = split_row(next(stream, "").removeprefix("\xef\xbb\xbf"), separator)
            roles = find_roles(header, reading)
            at = [header.index(name) for name in roles.values()]
            rows = [
                [cells[i] for i in at] for line in stream if len(cells := split_row(line, separator)) == len(header)
            ]
    except OSError as error:
        raise InvalidTraces("the input cannot be opened.", code="E_OPEN") from error
    return {role: [row[i] for row in rows] for i, role in enumerate(roles)}


def split_row(line: str, separator: str) -> list[str]:
    """Return the cells of one line; a quote ends with its line, whoever wrote it."""
    line = line.rstrip("\r\n")
    if '"' not in line:
        return line.split(separator)
    cells = re.findall(rf'(?:^|{separator})(?:"((?:[^"]|"")*)"|([^{separator}]*))', line)
    return [quoted.replace('""', '"') or plain for quoted, plain in cells]


def find_roles(names: list[str], reading: Reading) -> dict[str, str]:
    """Return role -> name of a column, as given or as the names of the header tell."""
    given = parse_columns(reading.columns)
    roles: dict[str, str] = {}
    plain = {name.strip().lower(): name for name in reversed(names)}
    for role in ROLES:
        usual = {"time": BEGINS, "end": ENDS}.get(role, ())
        named = next((plain[word] for word in usual if word in plain), None)
        if named is None and role != "end":
            named = find_named(role, names)
        named = given.get(role, given.get("start", named) if role == "time" else named)
        if named is not None:
            roles[role] = named
    missing = [role for role in ("user", "time") if role not in roles]
    if not ({"lat", "lon"} <= roles.keys() or "place" in roles):
        missing.append("lat,lon")
    wrong = [name for name in roles.values() if name not in names]
    if missing or wrong:
        raise InvalidTraces(
            f"the header names no column for {', '.join(missing) or ', '.join(wrong)}; its columns are "
            f"{', '.join(names[:40])}; say which is which (`columns` {(missing or ['user'])[0].split(',')[0]}=NAME).",
            code="E_COLUMNS",
        )
    if not {"lat", "lon"} <= roles.keys():
        roles = {role: name for role, name in roles.items() if role not in ("lat", "lon")}
    return roles


def number_users(labels: list[str]) -> tuple[Ints, Mask]:
    """Return a number for each label, and which rows have one."""
    words = np.array([label.strip() for label in labels], dtype=object)
    known, number = np.unique(words.astype(str), return_inverse=True) if len(words) else (words, np.zeros(0, np.int64))
    return number.astype(np.int64), np.array([word != "" for word in known.tolist()], dtype=bool)[number]


def read_moments(texts: list[str], date_format: str | None, zone: str) -> Ints:
    """Return local seconds of ISO 8601, or of `date_format`; MISSING where a text is neither."""
    from datetime import datetime

    known: dict[str, tuple[int, bool]] = {}

    def moment(text: str) -> tuple[int, bool]:
        """Return seconds as written, or in UTC if they carry an offset, and whether they do."""
        try:
            if date_format is not None:
                when = datetime.strptime(text.strip(), date_format)
                offset = when.utcoffset()
                seconds = int((when.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds())
                shift = None if offset is None else int(offset.total_seconds())
            else:
                found = MOMENT.fullmatch(text)
                if found is None:
                    return MISSING, False
                parts = [int(part or 0) for part in found.groups()[:6]]
                seconds = int((datetime(*parts) - datetime(1970, 1, 1)).total_seconds())  # type: ignore[arg-type]
                hours, minutes = int(found[9] or 0), int(found[10] or 0)
                shift = (3600 * hours + 60 * minutes) * (-1 if found[8] == "-" else 1)
                if found[7] is None and found[8] is None:
                    shift = None
        except (ValueError, OverflowError):
            return MISSING, False
        if not YEARS[0] <= 1970 + seconds / (365.25 * DAY) < YEARS[1]:
            return MISSING, False
        return (seconds, False) if shift is None else (seconds - shift, True)

    for text in texts:
        if text not in known:
            known[text] = moment(text)
    found = np.array([known[text] for text in texts], dtype=np.int64).reshape(-1, 2)
    seconds, aware = found[:, 0].copy(), found[:, 1] == 1
    seconds[aware] = to_local(seconds[aware], zone)
    return seconds


def read_degrees(texts: list[str], most: float) -> Floats:
    """Return numbers, NaN where a text is none or beyond `most` degrees."""

    def degrees(text: str) -> float:
        try:
            return float(text)
        except ValueError:
            return np.nan

    out = np.array([degrees(text) for text in texts], dtype=np.float64)
    return np.where(np.abs(out) <= most, out, np.nan)


def stays_of(user: Ints, start: Ints, lat: Floats, lon: Floats) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Return fixes as stays and cells on the way, person by person."""
    order = np.lexsort((lon, lat, start, user))
    records = Records(
        user=user[order].astype(np.int32), start=start[order], end=start[order], lat=lat[order], lon=lon[order],
        users=tuple(map(str, range(int(user.max(initial=-1)) + 1))), form=Form("fixes"),
    )  # fmt: skip
    stays = find_stays(records)
    return stays.user.astype(np.int64), stays.start, stays.end, np.asarray(stays.lat), np.asarray(stays.lon)


def place_on(where: Locations, lat: Floats, lon: Floats) -> Ints:
    """Return the nearest place of the map, -1 off it."""
    from scipy.spatial import cKDTree

    if where.lat is None or where.lon is None:
        raise InvalidParameter("`locations` must have latitudes and longitudes.", code="E_MAP", parameter="locations")
    if len(lat) == 0:
        return np.zeros(0, dtype=np.int64)
    usual = float(np.median(np.asarray(cKDTree(where.points()).query(where.points(), k=2)[0])[:, 1]))
    place, km = where.nearest(to_xyz(lat, lon))
    return np.where(km <= BEYOND * usual, place, -1)


def visits_of(seen: Observed, locations: Locations, tz: str) -> Visits:
    """Return the same rows as visits, for the owner's report."""
    return Visits(seen.user, seen.start, seen.end, seen.place, locations, users=range(seen.people), tz=tz)
