"""
What columns mean: which one is the user, the time, the place; and their text as labels, numbers and points.

Names are those of scikit-mobility and trackintel and their obvious synonyms, compared without case and
punctuation, the first of a list winning.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.traces.model import Floats, Ints
from elsewhere.traces.tables import Table

SYNONYMS = {
    "user": "uid userid user userindex personid person individual agentid agent deviceid device trajid id",
    "time": "datetime timestamp time trackedat t ts when",
    "utc": "timestamputc utctimestamp datetimeutc utcdatetime timeutc utctime utc",
    "local": "timestamplocal localtimestamp datetimelocal localdatetime timelocal localtime",
    "date": "date localdate",
    "slot": "slot timeslot slotid slotindex timeindex instant",
    "trace": "day piece traceno trace traceid trajectory",
    "lat": "lat latitude",
    "lon": "lng lon long longitude",
    "geometry": "geometry geom",
    "accuracy": "accuracy acc horizontalaccuracy accuracymeters",
    "arrived": "arrived arrivedat arrival arrivaltime arrivaldatetime startedat starttime startdatetime starttimestamp",
    "left": "left leftat leavingdatetime leavingtime departed departedat departure departuretime departuredatetime "
    "finishedat endedat endtime enddatetime endtimestamp",
    "place": "loc location locationid place placeid cell cellid poi poiid poiindex venue venueid",
    "category": "category venuecategory venuecategoryname categoryname poicategory placecategory poitype placetype "
    "type purpose activity amenity",
}
ROLES = tuple(SYNONYMS)
LONGEST_LABEL = 256
SAFE_WHOLE = 2.0**53

NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


def find_roles(table: Table, columns: Mapping[str, str | None] | None) -> dict[str, str]:
    """Role -> name of its column, see `roles_of`."""
    return roles_of(table.names or tuple(table.columns), columns, table.name)


def check_columns(columns: Any) -> dict[str, str | None]:
    """The caller's `columns` if they are role -> name (or None), else `InvalidParameter`."""
    if columns is None:
        return {}
    try:
        asked = dict(columns)
        unknown = sorted(str(role) for role in set(asked) - set(ROLES))
    except (TypeError, ValueError):
        raise InvalidParameter(f"`columns` must map roles to names of columns, got {type(columns).__name__}.") from None
    if unknown:
        raise InvalidParameter(f"`columns` knows the roles {', '.join(ROLES)}, got {', '.join(map(repr, unknown))}.")
    if any(name is not None and not isinstance(name, str) for name in asked.values()):
        raise InvalidParameter("`columns` must map roles to names of columns (text), or to None to leave one out.")
    return asked


def roles_of(
    names: Sequence[str], columns: Mapping[str, str | None] | None, source: str = "the input"
) -> dict[str, str]:
    """
    Role -> name of its column, by the caller's `columns` first, then by synonyms.

    `columns={"place": None}` leaves a role out.

    Examples
    --------
    >>> roles_of(("uid", "when", "Lat", "lng", "speed"), None)
    {'user': 'uid', 'time': 'when', 'lat': 'Lat', 'lon': 'lng'}

    """
    asked = check_columns(columns)
    absent = sorted(name for name in asked.values() if name is not None and name not in names)
    if absent:
        raise InvalidTraces(f"{source}: there is no column {', '.join(map(repr, absent))}.", code="E_COLUMN")
    if asked.get("time") is not None:
        asked = {"utc": None, "local": None, **asked}
    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(re.sub(r"[^a-z0-9]", "", name.lower()), name)
    roles = {}
    for role, words in SYNONYMS.items():
        chosen = asked[role] if role in asked else next((plain[w] for w in words.split() if w in plain), None)
        if chosen is not None:
            roles[role] = chosen
    if "geometry" in roles and {"lat", "lon"} <= roles.keys():
        del roles["geometry"]
    return _visits_or_fixes(roles)


def _visits_or_fixes(roles: dict[str, str]) -> dict[str, str]:
    """The same roles with `arrived` and `left` where they tell visits, or without: an arrival alone is a time."""
    when = {"time", "utc", "local", "date"}
    if "left" in roles and "arrived" not in roles and "time" in roles:
        roles = {"arrived" if role == "time" else role: name for role, name in roles.items()}
    if "slot" in roles or not {"arrived", "left"} <= roles.keys():
        roles.pop("left", None)
        start = roles.pop("arrived", None)
        return roles if start is None or when & roles.keys() or "slot" in roles else {**roles, "time": start}
    return {role: name for role, name in roles.items() if role not in when}


def labels(table: Table, name: str) -> tuple[Ints, tuple[str, ...]]:
    """
    A column of ids as (number of each row's label, labels), -1 where there is none.

    Labels are text, compared exactly (B45-B47), in numerical order if all are whole numbers, else in that of their
    characters, so that the order of rows in the file does not matter (B28).
    """
    import pyarrow as pa

    column = table.encoded(name)
    if pa.types.is_dictionary(column.type) and not is_text(column.type.value_type):
        column = table.column(name)
    if pa.types.is_dictionary(column.type):
        pass
    elif not (is_text(column.type) or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        try:
            column = column.cast(pa.string())
        except pa.ArrowException:
            raise table.refuse(f"column {name!r} holds no ids.", "E_USER") from None
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    encoded = encoded.unify_dictionaries().combine_chunks()
    values = encoded.dictionary.to_pylist()
    if pa.types.is_floating(encoded.dictionary.type):
        # whole numbers that met a missing value on their way through a frame
        if any(v == v and abs(v) >= SAFE_WHOLE for v in values):
            raise table.refuse(f"column {name!r} holds whole numbers that have lost digits; give text.", "E_USER")
        values = ["" if v != v else str(int(v)) if v == int(v) else repr(v) for v in values]
    text = ["" if v is None else str(v) for v in values]
    codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    too_long = [i for i, v in enumerate(text) if len(v) > LONGEST_LABEL]
    if too_long:
        row = int(np.flatnonzero(np.isin(codes, too_long))[0])
        raise table.refuse(f"an id of more than {LONGEST_LABEL} characters.", "E_USER", row)
    known = [v for v in dict.fromkeys(text) if v]
    whole = all(re.fullmatch(r"0|-?[1-9]\d*", v, re.ASCII) for v in known)
    known.sort(key=int if whole else None)
    number = {v: i for i, v in enumerate(known)}
    rank = np.array([*(number.get(v, -1) for v in text), -1], dtype=np.int64)
    return rank[codes], tuple(known)


def words(table: Table, name: str | None) -> tuple[Ints | None, tuple[str, ...]]:
    """
    A column of categories as (number of each row's word, words), -1 where there is none.

    None for a column that holds anything else, such as long texts or lists: nobody's file is refused for it.
    """
    if name is None:
        return None, ()
    try:
        code, known = labels(table, name)
    except InvalidTraces:
        return None, ()
    return (code, known) if known else (None, ())


def numbers(table: Table, name: str) -> Floats:
    """A column of decimal numbers, NaN where there is none: no "1_000", no full-width digits, no words (B22)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    if is_text(column.type):
        good = pc.match_substring_regex(column, NUMBER)
        column = pc.ascii_trim_whitespace(pc.if_else(good, column, pa.scalar(None, column.type)))
    try:
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        raise table.refuse(f"column {name!r} holds no numbers.", "E_NUMBER") from None
    values = np.array(values, dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def points(table: Table, name: str) -> tuple[Floats, Floats]:
    """Latitude and longitude of a column of points, as text "POINT (lon lat)" or well-known binary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    if is_text(column.type):
        parts = pc.extract_regex(column, r"^\s*(?i:POINT)\s*(?i:Z\s*)?\((?P<lon>[^ ()]+) +(?P<lat>[^ ()]+)")
        sides = {side: pc.struct_field(parts, side) for side in ("lat", "lon")}
        text = Table(table.name, sides, table.rows)
        return numbers(text, "lat"), numbers(text, "lon")
    if not pa.types.is_binary(column.type) and not pa.types.is_large_binary(column.type):
        raise table.refuse(f"column {name!r} holds no points.", "E_COLUMN")
    lat, lon = np.full(table.rows, np.nan), np.full(table.rows, np.nan)
    for row, value in enumerate(column.to_pylist()):
        if value is not None and len(value) >= 21 and value[0] in (0, 1):
            order = "<" if value[0] else ">"
            if int(np.frombuffer(value, f"{order}u4", 1, 1)[0]) % 1000 == 1:
                lon[row], lat[row] = np.frombuffer(value, f"{order}f8", 2, 5)
    return lat, lon


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of its types of text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
