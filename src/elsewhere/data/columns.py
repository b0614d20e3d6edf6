"""
Find what the columns of a table mean, by the caller's word, by their names, by their values; and read the local clock.

Roles: user (household beside it), time or date and clock, utc and local, offset, end, duration, day and slot; lat and
lon, point, place; end_lat, end_lon, end_point, end_place of a trip; points (a line of them, every `interval` seconds);
kind, trip, occupied. A table in which a role is missing is refused with one error that says which columns
there are, what was found and what to type. Messages show names of columns, never a value.
"""

import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from elsewhere.data.formats import FILE, KNOWN, NUMBER, Table
from elsewhere.data.visits import Codes, Floats, Ints, zone_of
from elsewhere.errors import InvalidParameter, InvalidTraces

# names of columns without accents and punctuation; names of people and things may have one of NUMBERED behind
WORDS = {
    "user": "u user person pers individual agent device participant subject respondent customer client subscriber "
    "msisdn imsi imei caller phone account card badge employee student passenger rider clientmac macaddress mac "
    "visitor maid caid adid advertiser individuallocal taglocal nutzer teilnehmer proband gerat geraet kunde kunden "
    "usuario idusuario utilisateur idutilisateur identifiant who handle memberid perno animalid tagid moid objectid "
    "trackerid deviceaid",
    "vehicle": "taxi cab vehicle driver car bus truck medallion plate licenseplate numberplate kennzeichen fahrzeug "
    "mmsi",
    "household": "house household hh samp haushalt idmenage idhogar",
    "time": "datetime timestamp time trackedat t ts tst when dateandtime datetimestamp timestampms unixtimestamp "
    "unixtime unix epochtime epoch gpstime gpsdatetime fixtime recordedat createdat eventtime checkintime calltime "
    "callstart basedatetime loctime zeitstempel zeitpunkt uhrzeit zeit fechahora hora horodatage heure clock hhmm "
    "transactiontime tapintime arrivaltime",
    "date": "date localdate calldate eventdate traveldate tripdate surveydate datum fecha jour day",
    "offset": "timezoneoffset offset offsetminutes tzoffset utcoffset timezoneoffsetminutes",
    "slot": "slot timeslot slotid slotindex timeindex hour hours hourofday",
    "day": "day dayno daynumber d",
    "duration": "duration tripduration rideduration durationsec durations durationseconds durationmin durationminutes "
    "triptimeinsecs triptime dauer duree duracion calldurationsec callduration tripdurationseconds",
    "lat": "lat latitude latdeg latitudedeg gpslat gpslatitude locationlat venuelat venuelatitude decimallatitude "
    "positionlat y breitengrad breite latitud latitudine northing",
    "lon": "lng lon long longitude londeg longitudedeg gpslon gpslng gpslong gpslongitude locationlong locationlon "
    "venuelng venuelon venuelongitude decimallongitude positionlon x laengengrad laenge lange langengrad longitud "
    "longitudine easting",
    "point": "geometry geom thegeom wkt point latlng latlon latlong coordinates coordinate coords position lonlat "
    "location gpscoordinates",
    "points": "polyline linestring path trajectory points route geometry",
    "place": "place venue poi location loc cell tower antenna bts site zone station stop taz celltower celltoweroid "
    "geohash h3 cgi ecgi accesspoint ap door gate room reader building beacon area district ort standort lugar lieu "
    "haltestelle",
    "kind": "category venuecategory venuecategoryname categoryname poicategory placecategory poitype placetype "
    "purpose activity activitytype amenity kind type locationtype",
    "trip": "tripid rideid tid trjid traj trajid trajectoryid trackid segmentid tripno journeyid orderid trip ride",
    "count": "count counts n trips flow flows volume persons people passengers",
    "occupied": "occupied occupancy hired loaded passengerflag load",
}
NUMBERED = ("id", "", "no", "nr", "num", "number", "index", "code", "key", "hash", "identifier", "name")
OF_THINGS = ("user", "vehicle", "household", "place")  # roles whose words may have one of NUMBERED behind
LAST_WORDS = ("time", "date", "lat", "lon")  # roles that the last word of a name tells: stop_lat, TXN_DATE
# the two ends of a trip or a visit, as words within names of columns; a visit begins with an arrival
ARRIVAL, DEPARTURE = ("arrival", "arr", "arrive", "arrived"), ("departure", "dep", "depart", "departed")
BEGINS = "start started strt begin origin orig o from pickup pu source boarding entry checkin tapin connect"
FINISHES = (
    "end ended stop finish finished destination dest d to dropoff do alighting exit checkout tapout disconnect left"
)
SIDED = {
    "time": "time datetime timestamp at ts t hour clock utc local gmt",
    "date": "date day",
    "lat": "lat latitude y",
    "lon": "lon lng long longitude x",
    "point": "point geometry geom coordinates",
    "place": "id zone taz location locationid station stationid place placeid stop stopid cell cellid tower zoneid "
    "name stationname community area district city",
}
MEASURED = {"battery", "charge", "odometer", "fuel", "soc", "km", "miles", "speed", "count"}  # at both ends of a trip
FILLERS = frozenset(["tpep", "lpep", "trip", "centroid", "ride", "call"])
JOINED = (
    r"(?i)\b(start|strt|end|stop|orig|dest|pickup|dropoff|dep|arr)(?=(time|date|lat|lon|lng|zone|taz|station)\b)|"
    r"\b(pu|do)(?=location)|\bwhy(?=(from|to)\b)"
)
SIMPLE = ("household", "utc", "local", "time", "date", "offset", "slot", "day", "duration", "lat", "lon", "points",
          "point", "place", "kind", "trip", "occupied")  # fmt: skip
ENDS = ("end", "end_date", "end_lat", "end_lon", "end_point", "end_place")
ROLES = ("user", *SIMPLE, *ENDS)
TIMES = ("datetime", "epoch", "date", "clock")  # kinds of columns that hold times
CLOCK = r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?"
LOOSE = r"\d{1,2}[:.h]\d\d([:.m]\d\d([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?"  # 7.40, 7h40, beside a date
DATE = (
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d)|\d{1,2}[- ][A-Za-z]{3,9}[- ,]+\d{4}|"
    r"(19|20)\d{6})"
)
WORDED = r"([A-Za-z]{3,9},? +)?[A-Za-z]{3,9} +\d{1,2},? .*\d:\d\d.*|[A-Za-z]{3}, +\d{1,2} [A-Za-z]{3} .*\d:\d\d.*"
ZONED = r" ?(Z|z|UTC|GMT|[+-]\d\d(:?\d\d)?)"
PAIR = r"[\[(]?\s*(?P<a>[+-]?\d{1,3}\.\d+)\s*[,; ]\s*(?P<b>[+-]?\d{1,3}\.\d+)\s*[\])]?"
WKT = r"\s*(?:SRID=4326;)?\s*(?:POINT|Point|point)\s*Z?\s*\(\s*(?P<a>[+-]?\d+\.?\d*)\s+(?P<b>[+-]?\d+\.?\d*)[^)]*\)"
KINDS = (
    ("flag", r"0|1|true|false|yes|no|t|f|y|n"),
    ("date", DATE),
    ("clock", CLOCK + rf"({ZONED})?"),
    (
        "datetime",
        rf"{DATE}[T ,]+{LOOSE}({ZONED})?|{DATE}[T ]\d\d({ZONED})?|{WORDED}|(19|20)\d{{10}}(\d\d)?|\d{{8}}T\d{{4,6}}Z?",
    ),
    ("point", PAIR),
    ("point", WKT),
    ("points", r"\s*\[\s*(\[.*\])?\s*\]|\s*(LINESTRING|linestring).*|[^,;|]+[,; ][^,;|]+([;|].*){2,}"),
)
ISO = r"^\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"
AWARE = r"(?:[T ]\d\d|:\d\d(?:\.\d+)?)(?P<offset>Z|[+-]\d\d(?::?\d\d)?)$"
TIDY = (
    (r"^(\d{4})[/.](\d\d?)[/.]", r"\1-\2-"),
    (r" ?(z|UTC|GMT)$", "Z"),
    (r" ([+-]\d)", r"\1"),
    (r"-(\d)([-T ])", r"-0\1\2"),
    (r"-(\d)([-T ]|$)", r"-0\1\2"),
    (r"([T ])(\d):", r"\10\2:"),
    (r":60($|[.Z+-])", r":59\1"),
    (r"[.,](\d{1,6})\d*", r".\1"),
    (r"^(.{10})[T ]+", r"\1T"),
)
DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%d/%m/%y",
        "%m/%d/%y", "%d.%m.%y", "%Y%m%d", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%b %d %Y")  # fmt: skip
HOURS = ("", " %H:%M:%S", " %H:%M", " %I:%M:%S %p", " %I:%M %p", "T%H:%M:%S", ", %H:%M", ", %H:%M:%S", ", %I:%M %p")
WHOLE = ("%a %b %d %H:%M:%S %z %Y", "%a, %d %b %Y %H:%M:%S %z", "%a %b %d %H:%M:%S %Y", "%Y%m%d%H%M%S", "%Y%m%d%H%M",
         "%Y%m%dT%H%M%S", "%d/%b/%Y:%H:%M:%S %z")  # fmt: skip
FORMATS = (*(day + hour for day, hour in product(DAYS, HOURS)), *WHOLE)
UNITS = {"s": 1e11, "ms": 1e14, "us": 1e17, "ns": 1e20}  # of times since 1970: below which size each is
EARLIEST, LATEST = -2_208_988_800, 7_258_118_400  # 1900 and 2200: other times are damage
NO_DAY = 978_307_200  # Monday 1 January 2001, for clocks without dates
MISSING = np.iinfo(np.int64).min
MOSTLY = 0.95
A_FEW = 3
ASKED = 1_000  # points whose zone is looked up


# --- which column is what ---------------------------------------------------------------------------------------------


@dataclass
class Columns:
    """The meaning of a table's columns: role -> name, what each column holds, and what was assumed."""

    roles: dict[str, str]
    kinds: dict[str, str]
    requested: frozenset[str] = frozenset()
    samples: Mapping[str, list[str]] = field(default_factory=dict)
    vehicle: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def trips(self) -> bool:
        """Tell whether a row is a trip with two ends."""
        return bool({"end_lat", "end_point", "end_place"} & self.roles.keys())


class AmbiguousDates(InvalidTraces):
    """Dates whose day cannot be told from their month (B32)."""

    code = "E_DATE"


def parse_columns(columns: Any) -> dict[str, str]:
    """
    Return the caller's columns as role -> name; text may say the same.

    Examples
    --------
    >>> parse_columns("user=id,time=#4")
    {'user': 'id', 'time': '#4'}

    """
    if columns is None:
        return {}
    if isinstance(columns, str):
        pairs = [part.partition("=") for part in columns.split(",") if part.strip()]
        if any(not name or not sign for _, sign, name in pairs):
            raise InvalidParameter('`columns` must be like "user=id,time=#4".', code="E_COLUMNS")
        columns = {role.strip(): name.strip() for role, _, name in pairs}
    if not isinstance(columns, Mapping) or not all(isinstance(v, str) for v in columns.values()):
        raise InvalidParameter("`columns` must map roles to names of columns.", code="E_COLUMNS")
    synonyms = {"start": "time", "lng": "lon", "category": "kind", "start_lat": "lat", "start_lon": "lon",
                "end_time": "end", "start_place": "place", "origin": "place", "destination": "end_place"}  # fmt: skip
    requested = {synonyms.get(str(role), str(role)): name for role, name in columns.items()}
    unknown = sorted(str(role) for role in requested.keys() - set(ROLES))
    if unknown:
        raise InvalidParameter(
            f"`columns` knows the roles {', '.join(ROLES)}, got {', '.join(map(repr, unknown))}.", code="E_COLUMNS"
        )
    return requested


def normalize(name: str) -> str:
    """Return a name in lower case, without accents and punctuation."""
    return re.sub(r"[^a-z0-9]", "", unicodedata.normalize("NFKD", name.casefold()))


def find_columns(table: Table, columns: Any = None, *, alone: bool = False) -> Columns:
    """
    Return what the columns of a table mean; refuse a table that has no user, time or place (E_COLUMNS).

    `alone` says that each row stands for itself, so that nobody needs to be found.
    """
    requested = parse_columns(columns)
    names = [name for name in table.names if name != FILE]
    for role, name in requested.items():
        number = re.fullmatch(r"#(\d+)", name)
        if name not in names and number and 1 <= int(number[1]) <= len(names):
            requested[role] = names[int(number[1]) - 1]
        elif name == "file" and name not in names:
            requested[role] = FILE
        elif name not in names:
            raise InvalidTraces(
                f"{table.name}: `columns` names {name!r} for {role}; {_list(table, {})}.", code="E_COLUMNS"
            )
    values = {name: sample_text(table.sample.column(name)) for name in names}
    kinds = {name: find_kind(values[name]) for name in names}
    free = [name for name in names if name not in requested.values()]
    roles = dict(requested)
    found = Columns(roles, kinds, frozenset(requested), values)
    if table.kind in KNOWN or table.kind in ("geolife", "gpx", "google"):
        for name in free:
            role = {"venue": "place", "location": "place", "category": "kind", "offset_minutes": "offset",
                    "end_utc": "end"}.get(name, name)  # fmt: skip
            roles |= {role: name} if role in ROLES and role not in roles else {}
        roles |= {"date": "date", "time": "clock"} if table.kind == "geolife" else {}
        roles.setdefault("user", "user" if "user" in names else FILE)
        return found
    _by_ends(found, free)
    _by_name(found, [name for name in free if name not in roles.values()], values)
    if "end" in roles and not {"time", "utc", "local"} & roles.keys() and "end" not in requested:
        del roles["end"]
    _by_value(found, table, [name for name in names if name not in roles.values()], values)
    if alone:
        roles.pop("user", None)
    elif "user" not in roles and (table.owners > 1 or not found.trips) and not {"trip", "points"} & roles.keys():
        candidates = [
            n for n in names if n not in roles.values() and kinds[n] in ("words", "whole") and _repeats(values[n])
        ]
        if table.owners > 1 or not candidates:
            roles["user"] = FILE
            whole = "no column tells who: all of it is one person"
            found.notes.append(f"each of {table.owners} files or folders is one person" if table.owners > 1 else whole)
    if ("lat" in roles) != ("lon" in roles) and {"place", "point", "points"} & roles.keys():
        roles.pop("lat", roles.pop("lon", None))
    _refuse_missing(found, table, alone)
    return found


def sample_text(column: Any) -> list[str]:
    """Return the values of a sample that are there, as text; typed times as ISO 8601."""
    return [text.strip() for text in as_text(column).to_pylist() if text is not None and text.strip()]


def find_kind(values: Sequence[str]) -> str:
    """Return what most values of a column are: one of WORDS_OF_KINDS."""
    if not values:
        return "nothing"
    few = values[:: max(1, len(values) // 600)]
    for kind, pattern in KINDS:
        rule = re.compile(pattern, re.ASCII | (re.IGNORECASE if kind == "flag" else 0))
        if sum(rule.fullmatch(v) is not None for v in few) >= MOSTLY * len(few):
            return kind
    numbers = [v for v in few if NUMBER.fullmatch(v)]
    if len(numbers) < MOSTLY * len(few):
        return "words"
    size = np.abs(np.array([float(v.replace(",", ".")) for v in numbers]))
    if np.mean(np.any([(size >= 6e8 * unit) & (size <= 3e9 * unit) for unit in (1, 1e3, 1e6, 1e9)], axis=0)) >= MOSTLY:
        return "epoch"
    return "decimal" if any(re.search("[.,]", v) for v in numbers) else "whole"


def words_of(name: str) -> list[str]:
    """Return the words of a name: "pickUpTime", "pick_up_time" and "Pickup time" are pickup and time."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", re.sub(JOINED, r"\g<0> ", name))
    text = re.sub(r"(?i)(pick|drop|tap)[ _-](up|off|in|out)", r"\1\2", re.sub(JOINED, r"\g<0> ", text))
    return [word for word in re.split(r"[^a-z0-9]+", text.casefold()) if word]


def find_named(role: str, names: Sequence[str]) -> str | None:
    """Return the column that is named as a role is, the likeliest name first; None where there is none."""
    known = {normalize(name): name for name in reversed(names)}
    words = WORDS[role].split()
    for behind in NUMBERED if role in OF_THINGS else ("",):
        for word in words:
            if word + behind in known:
                return known[word + behind]
    last = [name for name in names if len(parts := words_of(name)) > 1 and parts[-1] in words]
    return last[0] if role in LAST_WORDS and len(last) == 1 else None


def _by_name(found: Columns, free: list[str], values: Mapping[str, list[str]]) -> None:
    """Give roles by the names of columns, where the values can be what the name says."""
    roles, kinds = found.roles, found.kinds
    known = {normalize(name): name for name in reversed(free)}
    dated = any(kinds[name] == "date" for name in free)
    fits = {
        "time": TIMES, "date": ("date", "datetime"), "lat": ("decimal", "whole"), "lon": ("decimal", "whole"),
        "point": ("point",), "points": ("points",), "offset": ("whole", "flag"), "slot": ("whole", "flag"),
        "day": ("whole", "flag"), "occupied": ("flag",), "duration": ("decimal", "whole", "flag"),
        "kind": ("words", "whole", "flag"),
    }  # fmt: skip

    def can_be(role: str, name: str) -> bool:
        if name in roles.values():
            return False
        if role in ("place", "household"):  # a place that never changes is none
            return kinds[name] not in TIMES and (role != "place" or len(set(values[name])) > 1)
        if role in ("lat", "lon") and normalize(name) in "xy" and kinds[name] == "whole":
            return False  # numbers of cells
        if role == "slot" and normalize(name).startswith("hour") and not dated:
            return False
        if role == "time" and dated and kinds[name] == "whole":
            return is_clock(values[name])
        return kinds[name] in fits.get(role, (kinds[name],))

    for clock in ("utc", "local"):
        marks = {"utc", "gmt"} if clock == "utc" else {"local"}
        named = [n for n in free if kinds[n] in TIMES and marks & {*words_of(n), *re.findall("utc|gmt", n.casefold())}]
        if len(named) == 1 and named[0] not in roles.values() and clock not in roles:
            roles[clock] = named[0]
    for role in ("user", "vehicle", *SIMPLE):
        target = "user" if role == "vehicle" else role
        if role not in WORDS or target in roles or (role == "time" and {"utc", "local"} & roles.keys()):
            continue
        name = find_named(role, [name for name in free if can_be(role, name)])
        if name is not None:
            roles[target] = name
            found.vehicle |= role == "vehicle"
    if "time" in roles and "slot" not in roles and "day" in roles:
        del roles["day"]
    if "user" not in roles and "id" in known and _repeats(values[known["id"]]):
        roles.setdefault("user", known["id"])  # an id that differs in every row is that of the row
    if "day" in roles and "slot" not in roles and "time" not in roles and kinds.get(known.get("t", "")) == "whole":
        roles["slot"] = known["t"]
    cells = {"x", "y"} <= known.keys() and kinds[known["x"]] == kinds[known["y"]] == "whole"
    if cells and {"lat", "place"}.isdisjoint(roles):
        roles |= {"lat": known["y"], "lon": known["x"]}
    if "lat" in roles and "lon" in roles and "point" in roles:
        del roles["point"]
    if "kind" in roles.keys() - found.requested and not {"place", "lat", "point", "points"} & roles.keys():
        roles["place"] = roles.pop("kind")  # a diary of activities


def is_clock(values: Sequence[str]) -> bool:
    """Tell whether whole numbers are clock times, hhmm or hhmmss."""
    return (
        bool(values)
        and max(map(len, values)) > 2
        and all(re.fullmatch(r"([01]?\d|2[0-4])?[0-5]?\d([0-5]\d)?", v) for v in values)
    )


def _end_of(name: str, kind: str, visits: bool) -> tuple[str, str] | None:
    """Return ("" or "end_", role) of a column that belongs to one end of a trip or visit; None for any other."""
    words = [w for w in words_of(name) if w not in FILLERS]
    sides = [("", (*BEGINS.split(), *DEPARTURE)), ("end_", (*FINISHES.split(), *ARRIVAL))]
    if not words or not (found := [(w, side) for side, marks in sides for w in (words[0], words[-1]) if w in marks]):
        return None
    mark, side = found[0]
    if visits and mark in (*ARRIVAL, *DEPARTURE):
        side = "" if mark in ARRIVAL else "end_"
    words.remove(mark)
    stem = "".join(words)
    plain = "".join(words if len(words) < 2 else [w for w in words if w not in ("station", "stop", "point")])
    role = next((r for r, known in SIDED.items() if {stem, plain} & set(known.split())), None)
    if kind in TIMES and (not stem or role in ("time", "date") or stem.endswith(("time", "at", "date"))):
        return side, "date" if role == "date" and kind == "date" else "time"
    if role == "time" and kind == "whole":
        return side, "time"  # 0730
    if kind in ("words", "whole", "flag") and (not stem or role == "place"):
        return side, "place"
    if (role in ("lat", "lon") and kind in ("decimal", "whole")) or (kind == "point" and (not stem or role == "point")):
        return side, role or "point"
    return None


def _pair_of_places(found: Columns, free: list[str]) -> dict[str, str]:
    """Return two columns of names or codes that differ in from and to alone, as the places of a trip's ends."""
    sides: dict[str, dict[str, str]] = {}
    for name in free:
        words = words_of(name)
        ends = {*words[:1], *words[-1:]}
        side = "" if ends & {*BEGINS.split()} else "end_" if ends & {*FINISHES.split()} else None
        coded = found.kinds[name] in ("words", "whole") and len(words) > 1 and _repeats(found.samples[name])
        if side is not None and coded and _end_of(name, found.kinds[name], visits=False) is None:
            stem = " ".join(w for w in words if w not in (*BEGINS.split(), *FINISHES.split()))
            sides.setdefault(stem, {}).setdefault(f"{side}place", name)
    whole = [pair for stem, pair in sides.items() if len(pair) == 2 and not {*stem.split()} & MEASURED]
    return whole[0] if len(whole) == 1 else {}


def _by_ends(found: Columns, free: list[str]) -> None:
    """Give roles to columns that say where and when a trip begins and ends, or when a visit does."""
    for visits in (False, True):
        ends: dict[str, str] = {}
        for name in free:
            end = _end_of(name, found.kinds[name], visits)
            if end is not None and ("".join(end) not in ends or (end[1] == "place" and normalize(name).endswith("id"))):
                ends["".join(end)] = name  # the id of a place rather than its name
        if not {"lat", "point", "place"} & ends.keys():
            ends |= _pair_of_places(found, free)
        both = [role for role in ("lat", "lon", "point", "place") if role in ends and f"end_{role}" in ends]
        if both and both not in (["lat"], ["lon"]):
            break
    for role in (*both, *(f"end_{role}" for role in both), "time", "date", "end_time", "end_date"):
        if role in ends:
            found.roles.setdefault(role.replace("end_time", "end"), ends[role])


def _repeats(values: Sequence[str]) -> bool:
    """Tell whether values occur twice on average, or all are equal."""
    return 0 < len(set(values)) <= max(1, len(values) / 2)


def _by_value(found: Columns, table: Table, free: list[str], values: Mapping[str, list[str]]) -> None:
    """Give roles by what columns hold, as far as that leaves no doubt."""
    roles, kinds = found.roles, found.kinds
    of: dict[str, list[str]] = {}
    for name in free:
        of.setdefault(kinds[name], []).append(name)
    if not {"time", "utc", "local", "slot"} & roles.keys():
        times = of.get("datetime", []) or of.get("epoch", [])
        if len(times) == 1:
            roles["time"] = times[0]
        elif not times and len(of.get("clock", [])) == 1 and ("date" in roles or len(of.get("date", [])) == 1):
            roles |= {"time": of["clock"][0], "date": roles.get("date") or of["date"][0]}
        elif not times and "date" not in roles and len(of.get("date", [])) == 1:
            roles["date"] = of["date"][0]
    elif "time" in roles and kinds[roles["time"]] == "clock" and "date" not in roles and len(of.get("date", [])) == 1:
        roles["date"] = of["date"][0]
    where = {"lat", "point", "points", "place"} & roles.keys()
    if not where and len(of.get("point", [])) == 1:
        roles["point"] = of["point"][0]
    elif not where and len(of.get("points", [])) == 1:
        roles["points"] = of["points"][0]
    elif not {"lat", "lon", "point", "points"} & roles.keys():
        degrees = [name for name in of.get("decimal", []) if are_degrees(values[name])]
        if len(degrees) == 2 and len(values[degrees[0]]) == len(values[degrees[1]]):
            a, b = (np.array([_number(v) for v in values[name]]) for name in degrees)
            first = is_latitude_first(a, b)
            if first is not None:
                roles |= dict(zip(("lat", "lon") if first else ("lon", "lat"), degrees, strict=True))
                found.notes.append(
                    f"latitude is {table.labels[roles['lat']]}, longitude {table.labels[roles['lon']]}, by their values"
                )
    rest = [name for name in free if name not in roles.values()]
    numbered = ("words", "whole", *(["epoch"] if "time" in roles else []))  # numbers of phones look like times
    alike = [n for n in rest if kinds[n] in numbered and _repeats(values[n])]
    if "user" not in roles and not found.trips and table.owners == 1:
        # of a table with names a number may be a count of anything: it is nobody unless it is called so
        constant = [n for n in alike if not table.headed or kinds[n] == "words"]
        constant = [n for n in constant if len(set(values[n])) > 1] or constant
        lead = next((n for n in table.names if n != FILE), "")
        steady = kinds.get(lead) == "flag" and values[lead] == sorted(values[lead])
        words = [n for n in constant if kinds[n] == "words"]
        choice = lead if lead in constant or (steady and lead in rest) else ""
        choice = choice or (words[0] if len(words) == 1 else constant[0] if len(constant) == 1 else "")
        few = table.headed and len(set(values.get(choice, ()))) <= A_FEW  # categories rather than people
        if choice and not few and not (table.headed and len(constant) > 1 and choice not in words):
            roles["user"] = choice
            found.notes.append(f"who: column {table.labels[choice]}, by its values")
    rest = [name for name in alike if name not in roles.values()]
    unknown = [n for n in of.get("decimal", []) if n not in roles.values() and are_degrees(values[n])]
    if not {"lat", "point", "points", "place"} & roles.keys() and len(rest) == 1 and len(unknown) < 2:
        roles["place"] = rest[0]
        found.notes.append(f"where: column {table.labels[rest[0]]}, by its values")
    if "place" not in roles and {"lat", "lon"} <= roles.keys():
        sides = [as_text(table.sample.column(roles[axis])).to_pylist() for axis in ("lat", "lon")]
        positions = list(zip(*sides, strict=True))
        names = [n for n in rest if _tell_positions(as_text(table.sample.column(n)).to_pylist(), positions)]
        if len(names) == 1:
            roles["place"] = names[0]
            found.notes.append(f"places: column {table.labels[names[0]]}, by its values")
    flags = [n for n in of.get("flag", []) if n not in roles.values()]
    if not table.headed and len(flags) == 1 and {"lat", "lon"} <= roles.keys() and "occupied" not in roles:
        roles["occupied"] = flags[0]
        found.notes.append(f"occupied: column {table.labels[flags[0]]}, by its values")


def _tell_positions(ids: Sequence[str | None], where: Sequence[tuple[Any, ...]]) -> bool:
    """Tell whether each of many ids goes with one position: then these are ids of places."""
    seen: dict[str, set[Any]] = {}
    rows = [(i, at) for i, at in zip(ids, where, strict=True) if i is not None]
    for i, at in rows:
        seen.setdefault(i, set()).add(at)
    alone = sum(len(each) == 1 for each in seen.values())
    return len(seen) > A_FEW and len(rows) >= 2 * len(seen) and alone >= MOSTLY * len(seen)


def _number(text: str) -> float:
    return float(text.replace(",", ".")) if NUMBER.fullmatch(text) else np.nan


def are_degrees(values: Sequence[str]) -> bool:
    """Tell whether numbers are within 180 and have three decimals or more, as positions have."""
    fine = sum(len(re.split("[.,]", v)[-1]) >= 3 for v in values if re.search("[.,]", v))
    return fine > len(values) / 2 and sum(abs(_number(v)) <= 180 for v in values) >= MOSTLY * len(values)


def is_latitude_first(a: Floats, b: Floats) -> bool | None:
    """Tell whether the first of two columns of degrees is the latitude: beyond 90, or the order that is on land."""
    high = [float(np.mean(np.abs(side) > 90)) for side in (a, b)]
    if max(high) > 1 - MOSTLY:
        return None if min(high) > 1 - MOSTLY else high[0] < high[1]
    land = [share_on_land(lat, lon) for lat, lon in ((a, b), (b, a))]
    return land[0] > land[1] if max(land) > MOSTLY and min(land) < 0.5 else None


WORDS_OF_KINDS = {
    "nothing": "empty", "flag": "0 or 1", "date": "dates", "clock": "clock times", "datetime": "dates with times",
    "epoch": "times since 1970", "point": "points", "points": "lists of points", "whole": "whole numbers",
    "decimal": "decimal numbers", "words": "words",
}  # fmt: skip


def _list(table: Table, kinds: Mapping[str, str]) -> str:
    """Return the columns of a table for a message: names, and what each holds."""
    shown = [
        f"{table.labels[name]} ({WORDS_OF_KINDS[kinds[name]]})" if name in kinds else table.labels[name]
        for name in table.names
        if name != FILE
    ]
    return f"its columns are {', '.join(shown[:40])}{' ...' if len(shown) > 40 else ''}"


def _refuse_missing(found: Columns, table: Table, alone: bool) -> None:
    """Refuse a table without a user, a time or a place, with what there is and what to type."""
    roles, kinds, labels = found.roles, found.kinds, table.labels
    many = find_named("count", [n for n in kinds if kinds[n] == "whole" and n not in roles.values()])
    if many is not None and not alone and not {"user", "trip"} & roles.keys():
        raise InvalidTraces(
            f"{table.name}: column {labels[many]} counts people or trips, and a row tells of none of them: give a "
            "table with a row for each trip or record, or `columns` user=NAME if a column tells who.",
            code="E_COLUMNS",
        )
    missing = []
    if "user" not in roles and not alone and not found.trips and not {"trip", "points"} & roles.keys():
        missing.append("user")
    if not {"time", "utc", "local", "slot", "date"} & roles.keys():
        missing.append("time")
    if not {"place", "point", "points"} & roles.keys():
        missing += [role for role in ("lat", "lon") if role not in roles]
    if not missing:
        return
    taken = set(roles.values())
    want = {
        "user": ("words", "whole"),
        "time": ("datetime", "epoch", "clock"),
        "lat": ("decimal",),
        "lon": ("decimal",),
    }
    words, odd = [], []
    for role in missing:
        fits = [n for n in table.names if n in kinds and n not in taken and kinds[n] in want[role]]
        if role == "user" and table.headed:
            fits = [n for n in fits if kinds[n] == "words"]  # a number may be a count of anything
        if role != "time":
            likely = are_degrees if role != "user" else lambda values: _repeats(values) and len(set(values)) > A_FEW
            fits = [n for n in fits if likely(sample_text(table.sample.column(n)))]
        choice = fits[0] if fits and (len(fits) == 1 or role in ("lat", "lon")) else None
        called = find_named(role, [n for n in kinds if n not in taken])
        if called is not None and role != "user":  # the name says so, and the values do not
            odd.append(labels[called])
            choice = called
        taken |= {choice} if choice else set()
        words.append(f"{role}={labels[choice] if choice else 'NAME'}")
    example = ",".join(words)
    example = example if re.fullmatch(r"[\w=,#.:/%-]*", example) else shlex.quote(example)
    also = " or place=NAME" if "lat" in missing else ""
    known = ", ".join(f"{role}={labels.get(name, 'file')}" for role, name in roles.items()) or "nothing"
    hint = ""
    if odd and "time" in missing:
        hint = "; and say how its times are written (`date_format`, as in strptime)"
    elif odd:
        hint = f"; {' and '.join(odd)} must hold decimal degrees: convert degrees, minutes and seconds first"
    large = [n for n in kinds if kinds[n] == "decimal" and not are_degrees(sample_text(table.sample.column(n)))]
    if "lat" in missing and len(large) >= 2:
        hint = "; metres of a projection must be converted to degrees (EPSG:4326) first"
    if "user" in missing:
        hint += (
            "; user=file if each file is one person"
            if table.owners > 1
            else '; or `unit` "trip" if nobody has two rows'
        )
    raise InvalidTraces(
        f"{table.name}: no column for {', '.join(missing)}; {_list(table, kinds)}; found: {known}; "
        f"give `columns` {example}{also}{hint}.",
        code="E_COLUMNS",
    )


# --- values of columns ------------------------------------------------------------------------------------------------


def as_text(column: Any) -> Any:
    """Return an Arrow column as text; whole numbers without a point, times as ISO 8601, lists as JSON."""
    import json

    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_text(column.cast(kind.value_type))
    if pa.types.is_string(kind):
        return column
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
        whole = pc.all(pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), 2.0**53))).as_py()
        return (column.cast(pa.int64()) if whole else column).cast(pa.string())
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).cast(pa.string())
    if pa.types.is_timestamp(kind):
        text = pc.strftime(column.cast(pa.timestamp("s", kind.tz), safe=False), format="%Y-%m-%dT%H:%M:%S")
        return pc.binary_join_element_wise(text, "Z", "") if kind.tz == "UTC" else text
    if pa.types.is_nested(kind):
        return pa.array([None if v is None else json.dumps(v, default=str) for v in column.to_pylist()], pa.string())
    try:
        return column.cast(pa.string())
    except (pa.ArrowException, UnicodeDecodeError):
        return pa.array([None] * len(column), pa.string())


class Labels:
    """Numbers of labels, in the order in which they come, over all batches of a table."""

    def __init__(self, nothing: frozenset[str] = frozenset()) -> None:
        self.number: dict[str, int] = {}
        self.nothing = nothing  # labels, in small letters, that stand for none

    def codes(self, column: Any) -> Codes:
        """Return the number of each label, -1 where there is none."""
        text = as_text(column)
        text = text.combine_chunks() if hasattr(text, "combine_chunks") else text
        encoded = text.dictionary_encode()
        labels = [None if each.casefold() in self.nothing else each for each in encoded.dictionary.to_pylist()]
        numbers = [-1 if each is None else self.number.setdefault(each, len(self.number)) for each in labels]
        index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.asarray(np.array([*numbers, -1], dtype=np.int32)[index])

    @property
    def names(self) -> tuple[str, ...]:
        """Return all labels, by number."""
        return tuple(self.number)


def read_numbers(column: Any) -> tuple[Floats, int]:
    """Return a column as numbers, NaN where there is none, and how many values are no numbers (B22)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        text = as_text(column)
        try:
            column = text.cast(pa.float64())
        except pa.ArrowInvalid:
            text = pc.replace_substring(pc.utf8_trim_whitespace(text), ",", ".")
            text = pc.replace_substring_regex(text, r"^\+", "")
            good = pc.match_substring_regex(text, r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
            bad = pc.sum(pc.invert(good)).as_py() or 0
            column = pc.if_else(good, text, pa.scalar(None, pa.string())).cast(pa.float64())
            return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64), int(bad)
    values = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.where(np.isinf(values), np.nan, values), 0


def read_points(column: Any) -> tuple[Floats, Floats]:
    """Return the first and the second number of points: pairs of numbers, or well-known text."""
    import pyarrow.compute as pc

    text = as_text(column)
    pair, wkt = (pc.extract_regex(text, pattern) for pattern in (rf"^\s*{PAIR}\s*$", f"^{WKT}"))
    sides = [pc.coalesce(pc.struct_field(wkt, side), pc.struct_field(pair, side)) for side in "ab"]
    a, b = (read_numbers(side)[0] for side in sides)
    return a, b


def read_lines(column: Any) -> tuple[Floats, Floats, Ints]:
    """Return the first and the second number of all points of all lines, and the number of points of each line."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = as_text(column)
    text = (text.combine_chunks() if hasattr(text, "combine_chunks") else text).fill_null("")
    numbers = pc.replace_substring_regex(text, r"[^0-9eE.+-]+", " ")
    numbers = pc.replace_substring_regex(numbers, r"(?:^| )[eE]+(?: |$)|^\s+|\s+$", "")
    parts = pc.utf8_split_whitespace(numbers)
    size = np.asarray(pc.list_value_length(parts).to_numpy(zero_copy_only=False))
    flat = pc.list_flatten(parts)
    keep = np.repeat(size % 2 == 0, size)
    flat = pc.if_else(pc.equal(flat, ""), pa.scalar(None, pa.string()), flat).filter(pa.array(keep))
    values = read_numbers(flat)[0]
    size = np.where((size % 2 == 0), size // 2, 0)
    empty = np.asarray(pc.equal(numbers, "").to_numpy(zero_copy_only=False))
    full = np.repeat(~empty, size)
    return values[0::2][full], values[1::2][full], np.where(empty, 0, size).astype(np.int64)


# --- times ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TimeForm:
    """How times are written: "iso", "clock", "epoch" (in a unit), "excel", "typed" or "format"; with offsets or not."""

    kind: str
    format: str = ""
    aware: bool = False
    note: str = ""


def find_form(values: Sequence[str], label: str, name: str) -> TimeForm:
    """
    Return how times are written; refuse values that fit two formats in different ways (B32), or none.

    A column with the day first and one with the month first look alike as long as no number is above 12: with points
    the day is first, and otherwise the caller has to say which (`date_format`).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = sorted(set(values))
    few = values[:: max(1, len(values) // 2_000)]
    kind = find_kind(few)
    text = pa.array(few, pa.string())
    if kind == "epoch":
        size = np.abs(np.array([_number(v) for v in few]))
        units = np.searchsorted(list(UNITS.values()), size[np.isfinite(size) & (size >= 6e8)])
        if len(np.unique(units)) > 1:
            raise InvalidTraces(f"{name}: column {label} mixes seconds and milliseconds.", code="E_DATE")
        return TimeForm("epoch", list(UNITS)[int(units[0])], aware=True)
    if kind == "clock" or is_clock(few):
        return TimeForm("clock", "hhmmss" if kind != "clock" and max(map(len, few)) > 4 else "")
    size = np.array([_number(v) for v in few])
    if np.mean((size > 30_000) & (size < 60_000)) > MOSTLY:
        return TimeForm("excel")
    iso = pc.match_substring_regex(_tidy(text), ISO)
    if (pc.sum(iso).as_py() or 0) >= MOSTLY * len(few):
        aware = pc.sum(pc.match_substring_regex(_tidy(text), AWARE)).as_py() or 0
        if 0 < aware < (1 - MOSTLY) * len(few) or (1 - MOSTLY) * len(few) < aware < MOSTLY * len(few):
            raise InvalidTraces(
                f"{name}: column {label} mixes times with and without an offset from UTC; give all of them one.",
                code="E_TZ",
            )
        return TimeForm("iso", aware=aware > 0)
    text = _tidy_format(text)
    readings: dict[bytes, tuple[int, str]] = {}
    zoned = "%z" if any(re.search(r"\d ?[+-]\d{4}$", v) for v in few) else ""
    for each in (*FORMATS, *(f"{f} {zoned}" for f in FORMATS if zoned and "%z" not in f)):
        try:
            read = pc.strptime(text, format=each, unit="s", error_is_null=True)
        except pa.ArrowInvalid:
            continue
        if len(few) - read.null_count >= MOSTLY * len(few):
            seconds = np.asarray(read.cast(pa.int64()).fill_null(MISSING))
            if np.mean((seconds > EARLIEST) & (seconds < LATEST)) >= MOSTLY:
                readings.setdefault(seconds.tobytes(), (read.null_count, each))
    fewest = min((bad for bad, _ in readings.values()), default=0)  # one that fits all values goes before others
    readings = {raw: (bad, each) for raw, (bad, each) in readings.items() if bad == fewest or fewest > 0}
    if len(readings) == 2 and all("%d" in each and "%m" in each for _, each in readings.values()):
        first, second = sorted(each for _, each in readings.values())
        if first.startswith("%d."):
            return TimeForm(
                "format", first, note=f"dates of column {label} are read with the day first: 03.04 is 3 April"
            )
        days = _consecutive(readings)
        if days:
            return TimeForm(
                "format", days, note=f"dates of column {label} are read as {days}: so they follow each other"
            )
        raise AmbiguousDates(
            f"{name}: dates of column {label} are ambiguous, 03/04 may be 3 April or March 4, and no number above 12 "
            f'tells; give `date_format` "{first}" or "{second}".',
        )
    if not readings:
        raise InvalidTraces(f"{name}: column {label} holds no times that are known; give `date_format`, or write them "
                            "as YYYY-MM-DDThh:mm:ss.", code="E_DATE")  # fmt: skip
    chosen = min(readings.values())[1]
    return TimeForm("format", chosen, aware="%z" in chosen)


def _consecutive(readings: Mapping[bytes, tuple[int, str]]) -> str:
    """Return the format under which dates are three or more days that follow each other, "" where there is none."""
    for raw, (_, form) in readings.items():
        days = np.unique(np.frombuffer(raw, dtype=np.int64) // 86_400)
        if len(days) >= 3 and days[-1] - days[0] == len(days) - 1:
            return form
    return ""


def _tidy(text: Any) -> Any:
    """Return times as ISO 8601 has them, where they nearly are."""
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(text)
    for pattern, plain in TIDY:
        text = pc.replace_substring_regex(text, pattern, plain)
    return text


def _tidy_format(text: Any) -> Any:
    """Return times without fractions of seconds, and with AM and PM as `strptime` has them."""
    import pyarrow.compute as pc

    text = pc.replace_substring_regex(pc.utf8_trim_whitespace(text), r" (\d{1,2})[.h](\d\d)", r" \1:\2")
    text = pc.replace_substring_regex(text, r" (\d{1,2}:\d\d)[.m](\d\d)", r" \1:\2")
    text = pc.replace_substring_regex(text, r"(:\d\d)[.,]\d+", r"\1")
    text = pc.replace_substring_regex(text, r"(\d) ?([AaPp])\.?[Mm]\.?$", r"\1 \2M")
    return pc.replace_substring_regex(text, r" ?(Z|UTC|GMT)$", "")


def read_times(column: Any, form: TimeForm) -> tuple[Ints, Ints | None]:
    """Return seconds since 1970 (MISSING where a value is none), and the offset from UTC that each was written with."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        zone = getattr(column.type, "tz", None)
        seconds = _bounded(column.cast(pa.timestamp("s", zone), safe=False).cast(pa.int64()))
        return seconds, None if zone is None else to_local(seconds, zone) - seconds
    if form.kind in ("epoch", "excel"):
        values, _ = read_numbers(column)
        values = (
            values / 1000.0 ** list(UNITS).index(form.format)
            if form.kind == "epoch"
            else np.round((values - 25_569) * 86_400)
        )
        size = np.where(np.isfinite(values) & (np.abs(values) < LATEST) & (values != 0), values, np.nan)
        seconds = np.where(np.isnan(size), MISSING, np.floor(np.nan_to_num(size)).astype(np.int64))
        return seconds, (np.zeros(len(seconds), np.int64) if form.kind == "epoch" else None)
    text = as_text(column)
    if form.kind == "clock":
        return read_clock(text, len(form.format)), None
    if form.kind == "format":
        read = pc.strptime(_tidy_format(text), format=form.format, unit="s", error_is_null=True)
        seconds = _bounded(read.cast(pa.timestamp("s")).cast(pa.int64()))
        return seconds, (np.zeros(len(seconds), np.int64) if form.aware else None)
    stamp = pa.timestamp("us", "UTC" if form.aware else None)
    later: Any = 0
    try:
        read = text.cast(stamp)
    except pa.ArrowInvalid:
        text = _tidy(text)
        midnight = pc.match_substring_regex(text, r"T24:00(:00)?")
        later = 86_400 * np.asarray(midnight.fill_null(False)).astype(np.int64)
        text = pc.replace_substring_regex(text, r"T24:00", "T00:00")
        good = pc.match_substring_regex(text, ISO)
        aware = pc.match_substring_regex(text, AWARE)
        good = pc.and_(good, aware if form.aware else pc.invert(aware))
        good = pc.and_(
            good,
            pc.match_substring_regex(
                text, r"^.{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(T([01]\d|2[0-3])(:[0-5]\d)*|$)"
            ),
        )
        text = pc.if_else(good, text, pa.scalar(None, pa.string()))
        try:
            read = text.cast(stamp)
        except pa.ArrowInvalid:  # 31 February
            read = pc.strptime(
                pc.utf8_slice_codeunits(text, 0, 19), format="%Y-%m-%dT%H:%M:%S", unit="us", error_is_null=True
            )
    seconds = _bounded(pc.floor_temporal(read, unit="second").cast(pa.timestamp("s", read.type.tz)).cast(pa.int64()))
    seconds = np.where(seconds != MISSING, seconds + later, seconds)
    if not form.aware:
        return seconds, None
    if pc.all(pc.ends_with(text, "Z")).as_py():
        return seconds, np.zeros(len(seconds), np.int64)
    marks = pc.struct_field(pc.extract_regex(text, AWARE), "offset")
    marks = (marks.combine_chunks() if hasattr(marks, "combine_chunks") else marks).dictionary_encode()
    known = np.array([*map(offset_seconds, marks.dictionary.to_pylist()), 0], dtype=np.int64)
    return seconds, known[marks.indices.fill_null(-1).to_numpy(zero_copy_only=False)]


def _bounded(seconds: Any) -> Ints:
    values = np.asarray(seconds.fill_null(MISSING).to_numpy(zero_copy_only=False), dtype=np.int64)
    return np.where((values >= EARLIEST) & (values < LATEST), values, MISSING)


def read_clock(text: Any, digits: int = 0) -> Ints:
    """Return the seconds since midnight of clock times: 7:40, 07:40:00 AM, 0740, 24:00; of six `digits` 074000."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(text)
    text = pc.utf8_lpad(text, digits or 3, "0")
    text = pc.replace_substring_regex(text, r"^(\d{1,2})(\d\d)(\d\d)?$", r"\1:\2:\3")
    text = pc.replace_substring_regex(text, ":$", "")
    parts = pc.extract_regex(
        text, r"^(?P<h>\d{1,2}):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?(?:[.,]\d+)? ?(?P<half>[AaPp]?)\.?[Mm]?\.?.*$"
    )

    def part(key: str) -> Ints:
        digits = pc.struct_field(parts, key)
        digits = pc.if_else(pc.equal(digits, ""), "0", digits).cast(pa.int64()).fill_null(MISSING // 10_000)
        return np.asarray(digits.to_numpy(zero_copy_only=False), dtype=np.int64)

    half = np.asarray(pc.utf8_lower(pc.struct_field(parts, "half")).fill_null("").to_numpy(zero_copy_only=False))
    hour = part("h")
    hour = np.where(half == "", hour, hour % 12 + 12 * (half == "p"))
    seconds = 3600 * hour + 60 * part("m") + part("s")
    return np.where((seconds >= 0) & (seconds <= 30 * 3600), seconds, MISSING)


def offset_seconds(mark: str | None) -> int:
    """Return the seconds east of Greenwich of "Z", "+02", "+0200" or "+02:00"."""
    if mark in (None, "Z"):
        return 0
    digits = str(mark)[1:].replace(":", "").ljust(4, "0")
    seconds = 3600 * int(digits[:2]) + 60 * int(digits[2:])
    return -seconds if str(mark)[0] == "-" else seconds


# --- the local clock --------------------------------------------------------------------------------------------------


def zones_at(lat: Floats, lon: Floats) -> list[str]:
    """Return the IANA zones of points, "" at sea, looked up offline."""
    from tzfpy import get_tz

    names = [get_tz(float(x), float(y)) or "" for y, x in zip(lat, lon, strict=True)]
    return ["" if name.startswith("Etc/") else name for name in names]


def _some(lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
    valid = np.flatnonzero((np.abs(lat) <= 90) & (np.abs(lon) <= 180))
    some = valid[np.linspace(0, len(valid) - 1, min(ASKED, len(valid))).astype(np.int64)] if len(valid) else valid
    return lat[some], lon[some]


def share_on_land(lat: Floats, lon: Floats) -> float:
    """Return the share of some points that lie in the zone of a country, the Antarctic left out."""
    zones = zones_at(*_some(lat, lon))
    return sum(bool(zone) and not zone.startswith("Antarctica") for zone in zones) / max(1, len(zones))


def find_zone(lat: Floats | None, lon: Floats | None) -> tuple[str | None, float]:
    """Return the zone in which most points lie, None where there is none, and the share of points in it."""
    if lat is None or lon is None:
        return None, 0.0
    zones = zones_at(*_some(lat, lon))
    counts = {name: zones.count(name) for name in sorted(set(zones)) if name}
    if not counts:
        return None, 0.0
    best = max(counts, key=lambda name: counts[name])
    try:
        zone_of(best)
    except InvalidParameter:
        return None, 0.0
    return best, counts[best] / sum(counts.values())


def to_local(utc: Ints, zone: str) -> Ints:
    """Return the local seconds of UTC seconds in a zone; MISSING stays."""
    import pandas as pd

    result = utc.copy()
    for at in range(0, len(utc), 1 << 21):
        part = result[at : at + (1 << 21)]
        there = part != MISSING
        # offsets change at quarters of an hour: look each quarter up once
        quarters, place = np.unique(part[there] // 900, return_inverse=True)
        stamps = pd.DatetimeIndex((quarters * 900).astype("datetime64[s]")).tz_localize("UTC")
        local = np.asarray(stamps.tz_convert(zone_of(zone)).tz_localize(None)).astype("datetime64[s]").astype(np.int64)
        part[there] += (local - quarters * 900)[place]
    return result


def to_local_by_place(utc: Ints, lat: Floats, lon: Floats, fallback: str) -> tuple[Ints, int]:
    """Return the local seconds of UTC seconds by the zone of each position, and the number of zones."""
    valid = (np.abs(lat) <= 90) & (np.abs(lon) <= 180) & (utc != MISSING)
    cell = np.where(
        valid,
        np.floor(np.nan_to_num(lat) * 4).astype(np.int64) * 4096 + np.floor(np.nan_to_num(lon) * 4).astype(np.int64),
        MISSING,
    )
    cells, first, inverse = np.unique(cell, return_index=True, return_inverse=True)
    names = np.array(
        [z or fallback for z in zones_at(np.nan_to_num(lat[first]), np.nan_to_num(lon[first]))], dtype=object
    )
    names[cells == MISSING] = fallback
    zone = names[inverse]
    result = utc.copy()
    for name in sorted(set(names)):
        rows = zone == name
        result[rows] = to_local(utc[rows], name)
    return result, len(set(names))
