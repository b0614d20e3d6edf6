"""
Find what the columns of a table mean, by the caller's word, by their names, by their values.

`ROLES` is the table of all roles: the names that columns have for it, and what such a column may hold. A role may take
several columns joined by +. A table in which a role is missing is refused with one error that says which columns there
are, what was found and what to type. Messages show names of columns, never a value.
"""

import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np

from elsewhere.data.tables import FILE, Table
from elsewhere.data.times import MOSTLY, TIMES, find_kind, is_clock, share_on_land
from elsewhere.data.values import as_text, numbers_of, sample_text
from elsewhere.data.visits import Floats
from elsewhere.errors import InvalidParameter, InvalidTraces

NUMBERED = ("id", "", "no", "nr", "num", "number", "index", "code", "key", "hash", "identifier", "name")
NUMERIC = ("decimal", "whole")
COUNTED = ("whole", "flag")


class Role(NamedTuple):
    """
    What a column can be for.

    `words` are its names without accents and punctuation; `holds` is what it may hold, anything where empty;
    `numbered`: a word for a number may follow; `last`: the last word of a name may be one of them; `sided` are names
    beside a word for one end of a trip or visit.
    """

    words: str
    holds: tuple[str, ...] = ()
    numbered: bool = False
    last: bool = False
    sided: str = ""


ROLES = {
    "user": Role(
        "u user person pers per individual agent athlete device participant subject respondent customer client "
        "subscriber msisdn imsi imei caller phone account card badge employee student passenger rider clientmac "
        "macaddress mac visitor maid caid adid advertiser individuallocal taglocal who handle memberid perno animalid "
        "tagid moid objectid trackerid deviceaid pid member traveller traveler anumber aparty", numbered=True),
    "vehicle": Role("taxi cab vehicle driver car bus truck medallion plate licenseplate numberplate mmsi",
                    numbered=True),
    "household": Role("house household hh samp", numbered=True),
    "utc": Role("", TIMES),
    "time": Role(
        "datetime timestamp time trackedat t ts tst when dateandtime datetimestamp timestampms unixtimestamp unixtime "
        "unix epochtime epoch gpstime gpsdatetime fixtime recordedat createdat eventtime checkintime calltime "
        "callstart basedatetime loctime clock hhmm transactiontime tapintime arrivaltime", TIMES, last=True,
        sided="time timems datetime timestamp at ts t hour clock utc local gmt min minute minutes sec second seconds"),
    "date": Role("date localdate calldate eventdate traveldate tripdate surveydate day yearmonthday",
                 ("date", "datetime"), last=True, sided="date day"),
    "offset": Role("timezoneoffset offset offsetminutes tzoffset utcoffset timezoneoffsetminutes", COUNTED),
    "day": Role("day d", COUNTED, numbered=True, last=True),
    "slot": Role(
        "slot timeslot slotid slotindex timeindex hour hours hourofday minute minutes minuteofday minutesaftermidnight "
        "second seconds secondofday secondsaftermidnight timeofday tod time t", COUNTED),
    "duration": Role(
        "duration tripduration rideduration durationsec durations durationseconds durationmin durationminutes "
        "triptimeinsecs triptime calldurationsec callduration tripdurationseconds dwell dwelltime dwellminutes stay "
        "staytime stayhours stayminutes stayduration durationhours durationms", (*NUMERIC, "flag")),
    "lat": Role(
        "lat latitude latdeg latitudedeg gpslat gpslatitude locationlat venuelat venuelatitude decimallatitude "
        "positionlat y northing", NUMERIC, last=True, sided="lat latitude y"),
    "lon": Role(
        "lng lon long longitude londeg longitudedeg gpslon gpslng gpslong gpslongitude locationlong locationlon "
        "venuelng venuelon venuelongitude decimallongitude positionlon x easting", NUMERIC, last=True,
        sided="lon lng long longitude x"),
    "points": Role("polyline linestring path trajectory points route geometry", ("points",)),
    "point": Role(
        "geometry geom thegeom wkt point latlng latlon latlong coordinates coordinate coords position lonlat location "
        "gpscoordinates", ("point",), sided="point geometry geom coordinates"),
    "place": Role(
        "place venue business merchant where poi location loc cell tower antenna bts site zone station stop stn taz "
        "celltower celltoweroid h3 cgi ecgi accesspoint ap door gate room reader building beacon area district "
        "tract block",
        ("words", "whole", "flag", "decimal", "point", "points", "nothing"), numbered=True,
        sided="id zone taz location locationid station stationid place placeid stop stopid cell cellid tower zoneid "
        "name stationname stopname pointid pointname community area district city tract block"),
    "kind": Role(
        "category categories venuecategory venuecategoryname categoryname poicategory placecategory poitype placetype "
        "purpose activity activitytype amenity kind type locationtype", ("words", "whole", "flag")),
    "trip": Role("tripid rideid tid trjid traj trajid trajectoryid trackid segmentid tripno journeyid orderid trip "
                 "ride", ("words", "whole", "epoch", "decimal", "flag", "nothing")),
    "occupied": Role("occupied occupancy hired loaded passengerflag load passenger", ("flag",)),
    "count": Role("count counts n trips flow flows volume persons people passengers", ("whole",)),
}  # fmt: skip
ENDS = ("end", "end_date", "end_lat", "end_lon", "end_point", "end_place")
ASKED_FOR = tuple(role for role in ROLES if role not in ("vehicle", "household", "count")) + ENDS
SYNONYMS = {
    "start": "time", "lng": "lon", "category": "kind", "start_lat": "lat", "start_lon": "lon", "end_time": "end",
    "start_place": "place", "origin": "place", "destination": "end_place", "venue": "place", "location": "place",
    "offset_minutes": "offset", "end_utc": "end", "local": "time",
}  # fmt: skip
# the two ends of a trip or a visit, as words within names of columns; a visit begins with an arrival
ARRIVAL, DEPARTURE = {"arrival", "arr", "arrive", "arrived"}, {"departure", "dep", "depart", "departed"}
BEGINS = frozenset(
    "start started strt begin origin orig o from pickup pu source boarding entry checkin tapin connect".split()  # noqa: SIM905
)
FINISHES = frozenset(
    "end ended stop finish finished destination dest d to dropoff do alighting exit checkout tapout disconnect "  # noqa: SIM905
    "left".split()
)
TIMED = ARRIVAL | DEPARTURE | {"start", "started", "begin", "end", "ended"}  # alone, of a time as of a place
FILLERS = {"trip", "ride", "call", "session", "visit", "stay", "activity", "event", "connection", "association"}
JOINED = (
    r"(?i)\b(start|strt|end|stop|orig|dest|pickup|dropoff|dep|arr)(?=(time|date|lat|lon|lng|zone|taz)(ms)?\b|station)|"
    r"\bstation(?=(lat|lon|name|id))|\b(pu|do)(?=location)|\b[od](?=(taz|zone)\b)|time(?=ms\b)"
)
WORDS_OF_KINDS = {
    "nothing": "empty", "flag": "0 or 1", "date": "dates", "clock": "clock times", "datetime": "dates with times",
    "epoch": "times since 1970", "point": "points", "points": "lists of points", "whole": "whole numbers",
    "decimal": "decimal numbers", "words": "words",
}  # fmt: skip
WORDS = frozenset(" ".join([*NUMBERED, *FINISHES, *BEGINS, *(f"{r.words} {r.sided}" for r in ROLES.values())]).split())
RUN = 5  # letters in common that make a name look like a value
SURELY = ("id", "zone", "taz")  # ends of names of places
A_FEW = 3
HINTS = {  # for a role that is missing
    "user": 'user=file if each file is one person, `unit` "trip" if nobody has two rows',
    "time": "and `date_format`, as in strptime, for times of no known form",
    "lat": "positions must be degrees (EPSG:4326), no metres of a projection; or place=NAME",
    "place": "or lat=NAME,lon=NAME, in degrees (EPSG:4326), no metres of a projection",
}
TWO_ENDS = "if a row is a trip with two ends, also end=NAME,{}"


@dataclass
class Columns:
    """The meaning of a table's columns: role -> name, what each column holds, and what was assumed."""

    table: Table
    roles: dict[str, str]
    requested: frozenset[str] = frozenset()
    vehicle: bool = False
    notes: list[str] = field(default_factory=list)
    samples: dict[str, list[str]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.table.names:
            if name != FILE:
                self.samples[name] = values = sample_text(self.table.sample.column(name))
                self.kinds[name] = find_kind(values)

    @cached_property
    def labels(self) -> dict[str, str]:
        """
        Return the name of each column that a message may show: a number where a name could be somebody's data.

        Damage may glue a value to a name: one that is not of the words of roles shares no run of letters with a value.
        """
        values = {value for sample in self.samples.values() for value in sample}
        text, shown = "\n".join(values), {FILE: "file"}
        for i, name in enumerate([name for name in self.table.names if name != FILE], 1):
            plain = re.fullmatch(r"[^\W\d][\w .:/()#%°+-]{0,40}", name) and not re.search(
                r"\d[.,:]\d|\d{5}|\d[a-zA-Z]", name
            )
            runs = (name[at : at + RUN] for at in range(len(name) - RUN + 1))
            sound = WORDS.issuperset(words_of(name)) or not (name in values or any(run in text for run in runs))
            shown[name] = name if self.table.headed and plain and sound else f"#{i}"
        return shown

    @property
    def trips(self) -> bool:
        """Tell whether a row is a trip with two ends."""
        return self.has("end_lat", "end_point", "end_place")

    def has(self, *roles: str) -> bool:
        """Tell whether one of these roles is found."""
        return not self.roles.keys().isdisjoint(roles)

    def free(self, *kinds: str) -> list[str]:
        """Return the columns without a role, of these kinds."""
        taken = set(self.roles.values())
        return [name for name, kind in self.kinds.items() if name not in taken and (not kinds or kind in kinds)]

    @property
    def unused(self) -> list[str]:
        """Return the columns that stand for nothing, not even as a part of several that are joined."""
        parts = {part for name in self.table.joined for part in name.split("+")}
        return [name for name in self.free() if name not in parts]

    def take(self, role: str, name: str, said: str = "") -> None:
        """Give a role to a column; `said` is what a note calls it, where values alone told."""
        self.roles[role] = name
        if said:
            self.notes.append(f"{said}: column {self.labels[name]}, by its values")

    def repeats(self, name: str) -> bool:
        """Tell whether values occur twice on average, or all are equal."""
        values = self.samples[name]
        return 0 < len(set(values)) <= max(1, len(values) / 2)

    def alike(self, one: str, others: Sequence[str]) -> bool:
        """Tell whether a column and others together divide the rows of the sample alike, into fewer parts than rows."""
        table = self.table.sample
        values = [as_text(table.column(name)).to_pylist() for name in (one, *others)]
        sizes = [len(set(zip(*each, strict=True))) for each in (values[:1], values[1:], values)]
        return 1 < sizes[0] < MOSTLY * len(table) and MOSTLY * sizes[2] <= min(sizes)

    def join(self, role: str, names: Sequence[str]) -> None:
        """Give a role to several columns, joined."""
        self.table = self.table.join(names, ":" if role in ("time", "end") else "-")
        self.roles[role] = name = self.table.names[-1]
        self.samples[name] = sample_text(self.table.sample.column(name))
        self.kinds[name] = find_kind(self.samples[name])


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
    requested = {SYNONYMS.get(str(role), str(role)): name for role, name in columns.items()}
    unknown = sorted(requested.keys() - set(ASKED_FOR))
    if unknown:
        raise InvalidParameter(
            f"`columns` knows the roles {', '.join((*ASKED_FOR, *SYNONYMS))}, got {', '.join(map(repr, unknown))}.",
            code="E_COLUMNS",
            parameter="columns",
        )
    return requested


def normalize(name: str) -> str:
    """Return a name in lower case, without accents and punctuation."""
    return re.sub(r"[^a-z0-9]", "", unicodedata.normalize("NFKD", name.casefold()))


def seconds_of_unit(name: str) -> float:
    """Return the seconds of the unit that the name of a column tells: minutes, hours; 0 where it tells none."""
    name = normalize(name)
    units = {"min": 60, "hour": 3600, "sec": 1}
    unit = next((unit for word, unit in units.items() if word in name), 0)
    return unit or (3600 if name.endswith("durationh") else 0.001 if name.endswith("ms") else 0)


def words_of(name: str) -> list[str]:
    """Return the words of a name: "pickUpTime", "pick_up_time" and "Pickup time" are pickup and time."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", re.sub(JOINED, r"\g<0> ", name))
    text = re.sub(r"(?i)(pick|drop|tap)[ _-](up|off|in|out)", r"\1\2", re.sub(JOINED, r"\g<0> ", text))
    return [word for word in re.split(r"[^a-z0-9]+", text.casefold()) if word]


def find_named(role: str, names: Sequence[str]) -> str | None:
    """Return the column that is named as a role is, the likeliest name first; None where there is none."""
    known = {normalize(name): name for name in reversed(names)}
    rule = ROLES[role]
    words = rule.words.split()
    for behind in NUMBERED if rule.numbered else ("",):
        for word in words:
            if word + behind in known:
                return known[word + behind]
    last = [name for name in names if len(parts := words_of(name)) > 1 and parts[-1] in words]
    return last[0] if rule.last and len(last) == 1 else None


def is_called_time(name: str) -> bool:
    """Tell whether the name of a column says that it has the time of day, or the time at which something begins."""
    words = words_of(name)
    return "time" in words and {*words} <= {"time", "of", "day", "local", *BEGINS, *ARRIVAL, *DEPARTURE}


def find_columns(table: Table, columns: Any = None, *, alone: bool = False) -> Columns:
    """
    Return what the columns of a table mean; refuse a table that has no user, time or place (E_COLUMNS).

    `alone` says that each row stands for itself, so that nobody needs to be found.
    """
    requested = parse_columns(columns)
    found = Columns(table, {}, frozenset(requested))
    _by_request(found, requested)
    for step in (_by_ends, _by_name, _by_values_of_times, find_positions, _by_values_of_labels):
        step(found)
    if alone:
        found.roles.pop("user", None)
    elif "user" not in found.roles and (table.owners > 1 or not found.trips) and not found.has("trip", "points"):
        alike = any(map(found.repeats, found.free("words", "whole")))
        same = [name for name in found.free("words", "whole") if table.owners > 1 and found.alike(name, [FILE])]
        if same:
            found.take("user", same[0], "who")
        elif table.owners > 1 or not alike:
            found.roles["user"] = FILE
        if table.owners > 1:
            found.notes.append(f"each of {table.owners} files or folders is one person")
        elif not alike:
            found.notes.append("no column tells who: all of it is one person")
    if ("lat" in found.roles) != ("lon" in found.roles) and found.has("place", "point", "points"):
        found.roles.pop("lat", found.roles.pop("lon", None))
    _doubt_places(found)
    _refuse_missing(found, alone)
    return found


def _by_request(found: Columns, requested: Mapping[str, str]) -> None:
    """Give the roles that the caller asks for."""
    table = found.table
    names = [name for name in table.names if name != FILE]
    for role, asked in requested.items():
        parts = []
        for part in [asked] if asked in names else asked.split("+"):
            number = re.fullmatch(r"#(\d+)", part)
            if part not in names and number and 1 <= int(number[1]) <= len(names):
                part = names[int(number[1]) - 1]
            elif part == "file" and part not in names:
                part = FILE
            elif part not in names:
                raise InvalidTraces(
                    f"{table.name}: `columns` names {part!r} for {role}; {_list(found, kinds=False)}.", code="E_COLUMNS"
                )
            parts.append(part)
        if len(parts) > 1:
            found.join(role, parts)
        else:
            found.take(role, parts[0])


def _by_name(found: Columns) -> None:
    """Give roles by the names of columns, where the values can be what the name says."""
    roles, kinds, known = found.roles, found.kinds, {normalize(name): name for name in reversed(found.free())}
    for role, parts in (("date", ("year", "month", "day")), ("time", ("hour", "minute", "second")),
                        ("time", ("hour", "minute"))):  # fmt: skip
        if role not in roles and set(parts) <= known.keys() and all(kinds[known[p]] in COUNTED for p in parts):
            found.join(role, [known[part] for part in parts])
    dated = found.has("date", "day") or any(kinds[name] == "date" for name in found.free())
    numbered = dated or find_named("day", found.free(*COUNTED)) is not None

    def can_be(role: str, name: str) -> bool:
        if role == "user" and kinds[name] == "flag":  # one of two, unless nothing else is called so
            others = [other for other in found.free() if kinds[other] != "flag"]
            return not any(find_named(who, others) for who in ("user", "vehicle"))
        if role == "place" and len(set(found.samples[name])) < 2:  # a place that never changes is none
            return False
        if role == "place" and kinds[name] in ("point", "points") and not found.has("lat"):  # no name
            return False
        if role in ("lat", "lon") and normalize(name) in "xy" and kinds[name] == "whole":
            return False  # numbers of cells
        if role == "slot" and "slot" not in normalize(name):
            return numbered and kinds[name] == "whole"
        if role == "time" and dated and kinds[name] == "whole":
            return is_clock(found.samples[name])
        return kinds[name] in (ROLES[role].holds or WORDS_OF_KINDS)

    for clock, marks in (("utc", {"utc", "gmt"}), ("time", {"local"})):
        named = [n for n in found.free(*TIMES) if marks & {*words_of(n), *re.findall("utc|gmt", n.casefold())}]
        if len(named) == 1 and clock not in roles:
            found.take(clock, named[0])
    for role in ROLES:
        target = "user" if role == "vehicle" else role
        clocked = role in ("time", "slot") and found.has("time", "utc")
        if target in roles or clocked or role in ("utc", "count") or (role == "day" and "date" in roles):
            continue
        name = find_named(role, [name for name in found.free() if can_be(role, name)])
        if name is not None:
            found.take(target, name)
            found.vehicle |= role == "vehicle"
    if "household" in roles:
        house = roles.pop("household")
        if "user" in roles and "user" not in found.requested and not found.vehicle:
            found.join("user", [house, roles["user"]])
    if "time" in roles and kinds[roles["time"]] not in ("clock", "whole") and "day" not in found.requested:
        roles.pop("day", None)
    if "user" not in roles and "id" in known and found.repeats(known["id"]):
        found.take("user", known["id"])  # an id that differs in every row is that of the row
    if (
        {"x", "y"} <= known.keys()
        and kinds[known["x"]] == kinds[known["y"]] == "whole"
        and not found.has("lat", "place")
    ):
        found.join("place", [known["x"], known["y"]])
    if "lat" in roles and "lon" in roles:
        roles.pop("point", None)
    diary = "kind" in roles.keys() - found.requested and not found.has("place", "lat", "point", "points")
    if diary and len(set(found.samples[roles["kind"]])) > 1:
        roles["place"] = roles.pop("kind")  # a diary of activities
    elif found.has("place") and "kind" not in found.requested and normalize(roles.get("kind", "")) == "type":
        of = [as_text(found.table.sample.column(roles[role])).to_pylist() for role in ("place", "kind")]
        if MOSTLY * len(set(zip(*of, strict=True))) > len(set(of[0])):
            del roles["kind"]  # of what type the call is, not its place


def _is_hhmm(found: Columns, name: str) -> bool:
    """Tell whether whole numbers are hhmm of several hours, most of four digits: numbers of places hardly are."""
    values = found.samples[name] if found.kinds[name] == "whole" else []
    hours = {value[:-2].zfill(2) for value in values}
    return is_clock(values) and len(hours) >= A_FEW and sum(len(v) == 4 for v in values) > len(values) / 2


def _by_ends(found: Columns) -> None:
    """Give roles to columns that say where and when a trip begins and ends, or when a visit does."""
    for visits in (False, True)[: 1 if found.trips else 2]:
        ends: dict[str, str] = {}
        parts: dict[str, list[str]] = {}  # "start_hour" and "start_minute"
        for name in found.free():
            side, words = _side_of(name, visits)
            if not words and {*words_of(name)} & TIMED and _is_hhmm(found, name):
                found.kinds[name] = "clock"
            role = _role_at_end(words, found.kinds[name]) if side is not None else None
            if role is not None:
                whole = f"{side}{role}"
                if role == "time" and found.kinds[name] in COUNTED:
                    parts.setdefault(whole, []).append(name)
                if whole not in ends or (role == "place" and normalize(name).endswith(SURELY)):
                    ends[whole] = name  # the id or zone of a place rather than its name
        both = [role for role in ("lat", "lon", "point", "place") if role in ends and f"end_{role}" in ends]
        if both and both not in (["lat"], ["lon"]):
            break
    for whole, names in parts.items():
        role = whole.replace("end_time", "end")
        if role not in found.roles and [seconds_of_unit(name) for name in names][:2] == [3600, 60]:
            found.join(role, names)
    for role in (*both, *(f"end_{role}" for role in both), "time", "date", "end_time", "end_date"):
        if role in ends:
            found.roles.setdefault(role.replace("end_time", "end"), ends[role])


def _side_of(name: str, visits: bool) -> tuple[str | None, list[str]]:
    """Return the end of a trip or visit that a name tells ("", "end_", None for none), and its other words."""
    words = [word.rstrip("0123456789") or word for word in words_of(name) if word not in FILLERS]
    for side, marks in (("", BEGINS | DEPARTURE), ("end_", FINISHES | ARRIVAL)):
        for mark in (*words[:1], *words[:0:-1]):
            if mark in marks:
                words.remove(mark)
                if visits and mark in ARRIVAL | DEPARTURE:
                    side = "" if mark in ARRIVAL else "end_"
                return side, words
    return None, words


def _role_at_end(words: list[str], kind: str) -> str | None:
    """Return the role that a column has at one end of a trip or visit, by the other words of its name."""
    stem = "".join(words)
    role = next((r for r, rule in ROLES.items() if stem in rule.sided.split()), None)
    if role is None and words and kind in (*NUMERIC, *TIMES):  # what stands before is what it is of
        role = next((r for r in ("time", "date", "lat", "lon") if words[-1] in ROLES[r].sided.split()), None)
    if kind in TIMES and (not stem or role in ("time", "date") or stem.endswith(("time", "at", "date"))):
        return "date" if role == "date" and kind == "date" else "time"
    if role == "time" and kind == "whole":
        return "time"  # 0730
    noun = bool(words) and words[-1] in ROLES["place"].words.split()  # "boarding_stop_stn"
    if kind in ("words", "whole", "flag") and (not stem or role == "place" or noun):
        return "place"
    if (role in ("lat", "lon") and kind in NUMERIC) or (kind == "point" and (not stem or role == "point")):
        return role or "point"
    return None


def _by_values_of_times(found: Columns) -> None:
    """Find dates and clock times by what columns hold, as far as that leaves no doubt."""
    dates, clocks = found.free("date"), found.free("clock")
    if not found.has("time", "utc", "slot"):
        times = [name for name in _free_times(found) if name not in clocks]
        if len(times) == 1:
            found.take("time", times[0])
        elif not times and len(clocks) == 1 and (found.has("date", "day") or len(dates) == 1):
            found.take("time", clocks[0])
        if times:
            return
    clocked = "time" not in found.roles or found.kinds[found.roles["time"]] == "clock"
    if "date" not in found.roles and len(dates) == 1 and clocked and not found.has("utc", "slot"):
        found.take("date", dates[0])
    if "end" in found.roles.keys() - found.requested and not found.has("time", "utc"):
        found.roles["time"] = found.roles.pop("end")


def find_positions(found: Columns) -> None:
    """Find positions, by the names of columns or by what they hold, as far as that leaves no doubt."""
    for role in ("point", "points"):
        alike = found.free(role)
        if not found.has("lat", "point", "points", "place") and len(alike) == 1:
            found.take(role, alike[0])
    named = {axis: find_named(axis, found.free(*NUMERIC)) for axis in ("lat", "lon")}
    if not found.has("lat", "lon", "place") and None not in named.values():
        found.roles |= {axis: str(name) for axis, name in named.items()}
    degrees = _free_degrees(found)
    if found.has("lat", "lon", "point", "points") or len(degrees) != 2:
        return
    a, b = (numbers_of(found.samples[name]) for name in degrees)
    first = is_latitude_first(a, b) if len(a) == len(b) else None
    if first is not None:
        found.roles |= dict(zip(("lat", "lon") if first else ("lon", "lat"), degrees, strict=True))
        shown = [found.labels[found.roles[axis]] for axis in ("lat", "lon")]
        found.notes.append(f"latitude is {shown[0]}, longitude {shown[1]}, by their values")


def _by_values_of_labels(found: Columns) -> None:
    """Find who, where and whether occupied by what columns hold, as far as that leaves no doubt."""
    table, roles = found.table, found.roles
    numbered = ("words", "whole", *(["epoch"] if "time" in roles else []))  # numbers of phones look like times

    def alike() -> list[str]:
        return [name for name in found.free(*numbered) if found.repeats(name)]

    if not table.headed and {"lat", "lon"} <= roles.keys() and not found.has("place"):
        venues = [n for n in found.free(*numbered) if found.alike(n, [roles["lat"], roles["lon"]])]
        if venues:
            found.take("place", venues[0], "where")
    if "user" not in roles and not found.trips and table.owners == 1:
        people = _people(found) if table.headed else alike()
        several = [n for n in people if len(set(found.samples[n])) > 1]
        people = [n for i, n in enumerate(several or people) if not any(found.alike(n, [m]) for m in several[:i])]
        lead = next((n for n in table.names if n not in (FILE, roles.get("place"))), "")
        if lead in people or len(people) == 1:
            found.take("user", lead if lead in people else people[0], "who")
    rest, unknown = [n for n in alike() if not table.headed or found.kinds[n] == "words"], _free_degrees(found)
    if not found.has("lat", "point", "points", "place") and len(rest) == 1 and len(unknown) < 2:
        found.take("place", rest[0], "where")
    flags = found.free("flag")
    if not table.headed and len(flags) == 1 and {"lat", "lon"} <= roles.keys() and "occupied" not in roles:
        found.take("occupied", flags[0], "occupied")


def _doubt_places(found: Columns) -> None:
    """Take no column for the place, unasked, where columns of degrees without a role tell more places apart."""
    place, degrees = found.roles.get("place"), _free_degrees(found)
    if place is None or "place" in found.requested or found.has("lat", "point", "points") or len(degrees) < 2:
        return
    if all(len(set(found.samples[name])) > len(set(found.samples[place])) for name in degrees):
        found.roles = {role: name for role, name in found.roles.items() if role not in ("place", "end_place")}


def _free_degrees(found: Columns) -> list[str]:
    """Return the columns without a role that hold degrees."""
    return [name for name in found.free("decimal") if are_degrees(found.samples[name])]


def _people(found: Columns) -> list[str]:
    """
    Return the columns of a table with names that may tell who: words of more than a few people, each more than once.

    A number may be a count of anything; but where one tells more apart, words may be weekdays or categories.
    """
    many = {n: len(set(found.samples[n])) for n in found.free("words", "whole") if found.repeats(n)}
    words = [n for n, size in many.items() if found.kinds[n] == "words" and size > A_FEW]
    return words if words and max(many.values()) == max(many[n] for n in words) else []


def are_degrees(values: Sequence[str]) -> bool:
    """Tell whether numbers are within 180 and have three decimals or more, as positions have."""
    fine = sum(len(re.split("[.,]", v)[-1]) >= 3 for v in values if re.search("[.,]", v))
    return fine > len(values) / 2 and int(np.sum(np.abs(numbers_of(values)) <= 180)) >= MOSTLY * len(values)


def is_latitude_first(a: Floats, b: Floats) -> bool | None:
    """Tell whether the first of two columns of degrees is the latitude: beyond 90, or the order that is on land."""
    high = [float(np.mean(np.abs(side) > 90)) for side in (a, b)]
    if max(high) > 1 - MOSTLY:
        return None if min(high) > 1 - MOSTLY else high[0] < high[1]
    land = [share_on_land(lat, lon) for lat, lon in ((a, b), (b, a))]
    return land[0] > land[1] if max(land) > MOSTLY and min(land) < 0.5 else None


def _list(found: Columns, *, kinds: bool = True) -> str:
    """Return the columns of a table for a message: names, and what each holds."""
    labels = {name: found.labels[name] for name in found.kinds}
    shown = [f"{labels[n]} ({WORDS_OF_KINDS[kind]})" if kinds else labels[n] for n, kind in found.kinds.items()]
    return f"its columns are {', '.join(shown[:40])}{' ...' if len(shown) > 40 else ''}"


def _refuse_missing(found: Columns, alone: bool) -> None:
    """Refuse a table without a user, a time or a place, with what there is and what to type."""
    table, roles, labels = found.table, found.roles, found.labels
    many = find_named("count", found.free("whole"))
    if many is not None and not alone and not found.has("user", "trip"):
        raise InvalidTraces(
            f"{table.name}: column {labels[many]} counts people or trips, and a row tells of none of them: give a "
            "table with a row for each trip or record, or `columns` user=NAME if a column tells who.",
            code="E_COLUMNS",
        )
    clocked = found.has("time", "utc", "slot")
    missing = ["user"] if not (alone or found.trips or found.has("user", "trip", "points")) else []
    if not (clocked or found.has("date")):
        missing += ["time", "end"] if len(_free_times(found)) == 2 and not found.has("end") else ["time"]
    if not found.has("place", "point", "points"):
        axes = [axis for axis in ("lat", "lon") if axis not in roles]
        missing += axes if _free_degrees(found) or len(axes) == 1 else ["place"] if axes else []
    if not clocked and found.kinds.get(roles.get("date", "")) == "date" and found.free("clock"):
        missing.append("start")  # all of it would be at 0:00
    if missing:
        refuse(found, missing)


def refuse(found: Columns, missing: Sequence[str]) -> NoReturn:
    """Refuse a table without columns for these roles: say what there is, what was found, and what to type."""
    table, roles, labels = found.table, found.roles, found.labels
    typed, free = [], found.free()
    for role in missing:
        choice = _likely(found, role, free)
        free = [name for name in free if name != choice]
        typed.append(f"{role}={labels[choice] if choice else 'NAME'}")
    example = ",".join(typed)
    example = example if re.fullmatch(r"[\w=,#.:/%+-]*", example) else shlex.quote(example)
    known = ", ".join(f"{role}={labels.get(name, 'file')}" for role, name in roles.items()) or "nothing"
    hints = [*table.notes]
    hints += [HINTS[meant] for role in missing if (meant := SYNONYMS.get(role, role)) in HINTS]
    if "place" in missing:
        hints.append(TWO_ENDS.format("end_place=NAME"))
    elif "lat" in missing and len(_free_degrees(found)) >= 4:
        hints.append(TWO_ENDS.format("end_lat=NAME,end_lon=NAME"))
    raise InvalidTraces(
        f"{table.name}: no column for {', '.join(missing)}; {_list(found)}; found: {known}; give `columns` {example}"
        f"{''.join(f'; {hint}' for hint in hints)}.",
        code="E_COLUMNS",
        parameter="columns",
    )


def _free_times(found: Columns) -> list[str]:
    """Return the columns without a role that hold times, with their dates where there are such; none is an id."""
    kinds = (found.free(kind) for kind in ("datetime", "epoch", "clock"))
    return next((some for names in kinds if (some := [n for n in names if not normalize(n).endswith("id")])), [])


def _likely(found: Columns, role: str, free: list[str]) -> str | None:
    """Return the column that is likely meant for a missing role, by its name or as the only one that can be."""
    if role == "user":
        fits = [name for name in _people(found) if name in free]
    elif role in ("time", "start", "end"):
        fits = [name for name in _free_times(found) if name in free]
    else:
        fits = [name for name in free if found.kinds[name] == "decimal" and are_degrees(found.samples[name])]
    certain = len(fits) == 1 or role in ("lat", "lon", "start") or (role == "time" and len(fits) == 2)
    named = find_named(SYNONYMS.get(role, role), free) if role != "end" else None
    return named or (fits[0] if fits and certain else None)
