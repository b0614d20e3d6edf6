"""
Find what columns mean: which one is the user, the time, the place, by their names and by their values.

Known names are those of scikit-mobility and trackintel and their synonyms. They are compared without case and
punctuation; where several columns have a known name, the first in the list of synonyms counts.
"""

import re
import shlex
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.traces.model import Floats, clock_minutes, zones_at

FILE = "the file's name"  # name of a column that holds the user of the file in every row
SYNONYMS = {
    "user": "uid userid user userindex personid person personno personnumber perno persno persid perid "
    "individualid individual agentid agent deviceid device "
    "participantid participant subjectid subject respondentid respondent memberid member customerid customer clientid "
    "client subscriberid subscriber msisdn imsi imei callerid caller callingnumber calling phoneid phonenumber phone "
    "mobileid accountid account cardid card cardnumber cardno badgeid badge badgenumber employeeid employee "
    "studentid student passengerid passenger riderid rider clientmac macaddress mac moid "
    "taxiid taxi cabid cab vehicleid vehicle driverid driver carid car busid "
    "bikeid mmsi medallion individuallocalidentifier taglocalidentifier animalid objectid trajid advertiserid "
    "deviceaid maid caid cuebiqid adid aaid idfa trajectoryid trackid "
    "trackerid tracker collarid truckid truckno bikenumber bikeno probeid "
    "personoid vehiclelabel vehiclenumber vehicleno cardserial cardserialnumber smartcardid visitorid visitor "
    "nutzer nutzerid benutzer benutzerid teilnehmer teilnehmerid personnr personennr personenid proband probandid "
    "gerat geraet geratid geraetid gerateid geraeteid geratenummer geraetenummer geratenr geraetenr kennung "
    "fahrzeug fahrzeugid fahrer fahrerid kunde kundenid kundennummer "
    "usuario idusuario usuarioid participante utilisateur idutilisateur identifiant handle hashid numero id",
    "household": "houseid householdid household householdnumber householdno hhid hhno hhnr hhnumber sampno haushaltid "
    "haushaltsid haushaltsnummer haushalt idmenage menage idhogar hogar",
    "time": "datetime timestamp time trackedat t ts when dateandtime datetimestamp timestamps timestampms timestampsec "
    "unixtimestamp unixtime unix epochtime epochseconds epochms epoch posixtime posix gpstime gpsdatetime fixtime "
    "recordedat recordtime createdat eventtime eventdatetime checkintime checkinat calltime calldatetime samplingtime "
    "callstart callstarttime basedatetime loctime tsms hour clock timeofday zeitstempel zeitpunkt uhrzeit zeit "
    "fechahora fechayhora hora horodatage heure hhmm hhmmss transactiontime transactiondatetime feedtimestamp",
    "utc": "timestamputc utctimestamp datetimeutc utcdatetime timeutc utctime utc timegmt gmttime gmt",
    "local": "timestamplocal localtimestamp datetimelocal localdatetime timelocal localtime",
    "date": "date localdate dateutc gpsdate calldate eventdate traveldate travdate tripdate surveydate datum fecha",
    "slot": "slot timeslot slotid slotindex timeindex instant",
    "trace": "day piece traceno trace traceid trajectory",
    "lat": "lat latitude latitudedeg latdeg latitudedegrees latdd gpslat gpslatitude locationlat "
    "venuelat venuelatitude placelat decimallatitude positionlat positionlatitude fixlat fixlatitude "
    "stoplat latwgs84 latitudewgs84 wgs84lat breitengrad breite latitud latitudine",
    "lon": "lng lon long longitude longitudedeg londeg lngdeg longdeg longitudedegrees londd gpslon gpslng gpslong "
    "gpslongitude locationlong locationlon "
    "venuelng venuelon venuelong venuelongitude placelng placelon "
    "positionlon positionlng positionlong positionlongitude fixlon fixlng fixlongitude "
    "stoplon decimallongitude lonwgs84 longitudewgs84 wgs84lon "
    "langengrad laengengrad lange laenge longitud longitudine",
    "geometry": "geometry geom thegeom wkt point latlng latlon latlong latitudelongitude coordinates coordinate coords "
    "gpscoordinates position lonlat lnglat longlat polyline",
    "accuracy": "accuracy acc horizontalaccuracy accuracymeters",
    "arrived": "arrived arrivedat arrival arrivaltime arrivaldatetime startedat starttime strttime startdatetime "
    "starttimestamp "
    "entrydate entrytime entrydatetime",
    "left": "left leftat leavingdatetime leavingtime departed departedat departure departuretime departuredatetime "
    "finishedat endedat endtime enddatetime endtimestamp stoptime exitdate exittime exitdatetime",
    "place": "loc location locationid place placeid cell cellid poi poiid poiindex venue venueid antennaid antenna "
    "btsid bts towerid tower celltower celltoweroid siteid site zoneid zone taz stationid station stopid stopcode "
    "geohash h3 cgi ecgi ort standort lugar lieu",
    "category": "category venuecategory venuecategoryname categoryname poicategory placecategory poitype placetype "
    "type purpose activity amenity aktivitat aktivitaet actividad activite",
}
# arrivals and departures under ambiguous names: both columns must be there, and hold times
SPANS = (
    "from to|von bis|start end|start stop|start ende|begin end|begin ende|beginn ende|anfang ende|startzeit endzeit|"
    "ankunft abfahrt|checkin checkout|checkintime checkouttime|timein timeout|debut fin|inicio fin|desde hasta|de a"
)
# the two ends of a trip, as words in the names of columns, and words that say nothing beside them
BEGINS = "start started origin orig o from pickup pu departure dep depart source entry boarding tapin"
FINISHES = "end ended stop destination dest d to dropoff do arrival arr arrive target exit alighting tapout"
ONE_WORD = (
    re.compile(r"(?i)(pick|drop|tap)[ _-](up|off|in|out)"),
    re.compile(r"(?i)(?<![a-z])((t|x|y|lat|lon)(?=start|end)|(orig|dest)(?=zone|taz)|(dep|arr)(?=time))"),
)
FILLERS = frozenset(["station", "stop", "trip", "tpep", "lpep", "point", "centroid", "community"])
AT_ITS_END = {"time": "end_time", "lat": "end_lat", "lon": "end_lon", "place": "end_place"}
# names of columns that hold how long a trip lasts; the seconds of the unit at the end of such a name
DURATION = re.compile(r"(?:trip|ride)?(?:duration|dauer|duree|duracion)(?:in)?([a-z]*)")
UNITS = {"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "sekunden": 1, "ms": 0.001, "milliseconds": 0.001}
UNITS |= {"min": 60, "mins": 60, "minute": 60, "minutes": 60, "minuten": 60, "h": 3600, "hours": 3600, "": 0}
SHORT = 60  # a trip is longer than so many seconds: a lower median of lengths without a unit is one of minutes
MOVEBANK = {"timestamp", "locationlong", "locationlat", "individuallocalidentifier"}  # its times are UTC
# ambiguous names of people and vehicles, used where no other column could be the user
WEAK_USER_NAMES = (
    "licenseplate licenceplate licenseplatenumber numberplate platenumber plateno plate kennzeichen kfzkennzeichen "
    "matricula placa immatriculation ident tagid assetid unitid unitno unitnumber"
)
# ambiguous names of places, used where no other column tells where somebody is
WEAK_PLACE_NAMES = (
    "accesspoint accesspointid accesspointname ap apid apname door doorid gate gateid room roomid reader readerid area "
    "areaid district districtid stadtteil bezirk stopname stationname sitename zonename building buildingid beacon "
    "beaconid haltestelle detector detectorid sensorid camera cameraid checkpoint"
)
# metres of a projection, by name or by size
PROJECTED = frozenset(["easting", "northing", "eastings", "northings", "utmx", "utmy", "rechtswert", "hochwert"])
LARGE = "numbers too large for degrees"
INSTANTS = ("clock times", "dates with times", "times since 1970")  # kinds of columns that hold times
CELL = ("x", "y")  # columns of whole numbers that number the cells of a grid
ROLES = (*SYNONYMS, *CELL, *AT_ITS_END.values())
KNOWN = {word for words in (*SYNONYMS.values(), WEAK_USER_NAMES) for word in words.split()}
WHOSE = ("user", "household", "date", "trace")  # roles that tell whose day it is
MOSTLY = 0.95  # share of the values of a column that must be of one kind
A_FEW = 3  # different values of a column of people, at least; fewer are categories, such as in and out
MOST_SHOWN = 40
WIDE = "slot "  # and a number: the role of a column that is one slot of a day
MOST_SLOTS = 1440  # of a day
FEWEST_WIDE = 12  # columns that can be the slots of a day, at least
WHOLE_DAYS = (24, 48, 72, 96, 144, 288, 1440)  # numbers of slots that are a whole day
TIME_ROLES, PLACE_ROLES = ("time", "utc", "local", "date", "arrived"), ("lat", "geometry", "place", "x")
NAME = re.compile(r"(?=.{1,40}$)[^\W\d][\w .:/()#%°\-]*")
COORDINATE = re.compile(r"\d\.\d\d")  # a name with one is part of a row of data
SEPARATED = re.compile(r"[,;|\t]")
PAIR_OF_NUMBERS = r"^\s*[\[(]?\s*(?P<a>[+-]?\d{1,3}\.\d+)\s*(?:,|;|\s)\s*(?P<b>[+-]?\d{1,3}\.\d+)\s*[\])]?\s*$"
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"  # as Arrow and `re` have it
A_NUMBER = re.compile(NUMBER, re.ASCII)
COMMA_NUMBER = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)
NUMERIC = re.compile(f"{NUMBER}|{COMMA_NUMBER.pattern}", re.ASCII)  # with a point or a comma
CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
COMPACT = r"^([01]\d|2[0-3])[0-5]\d([0-5]\d)?$"  # 0740 and 074000
TIMELY = re.compile(r"time|clock|zeit|hora|heure")  # words in names of columns that may hold such times
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d)|\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{4}", re.ASCII
)
DATE_TIME = re.compile(
    rf"({DATE.pattern})[T ,]+\d{{1,2}}(:\d\d(:\d\d([.,]\d+)?)?)?( ?[AaPp]\.?[Mm]\.?)?( ?(Z|z|UTC|[+-]\d\d(:?\d\d)?))?"
    r"|([A-Za-z]{3,9},? +){1,2}\d{1,2},? .*\d:\d\d.*|[A-Za-z]{3}, \d{1,2} [A-Za-z]{3} \d{4} .*\d:\d\d.*",
    re.ASCII,
)
TIME = re.compile(f"{DATE.pattern}|{CLOCK.pattern}|{DATE_TIME.pattern}", re.ASCII)  # a date, a clock time, or both
# kinds of columns, by most of their values: the first that fits counts
KINDS = (
    ("0 or 1", re.compile(r"0|1|true|false|yes|no|t|f|y|n", re.IGNORECASE).fullmatch),
    ("numbers", NUMERIC.fullmatch),
    ("clock times", CLOCK.fullmatch),
    ("dates", DATE.fullmatch),
    ("dates with times", DATE_TIME.fullmatch),
    ("pairs of numbers", re.compile(PAIR_OF_NUMBERS).match),
    ("pairs of numbers", re.compile(r"\s*POINT\s*\(", re.IGNORECASE).match),
)
NOTHING = ["", "NA", "N/A", "NULL", "null", "NaN", "nan", "None"]


class Meaning(NamedTuple):
    """
    What columns mean: role -> name, notes on what was assumed, and the kind of values of each column.

    `varied` has the number of different values of columns that repeat their values, as columns of people and places do.
    `sglt` says that these are the three columns of SGLT, counted from 1. `labels` are the names of columns in messages:
    their number where the name could be somebody's data. `wide` are the columns that were the slots of a day.
    """

    roles: Mapping[str, str]
    notes: tuple[str, ...] = ()
    kinds: Mapping[str, str] = {}
    sglt: bool = False
    labels: tuple[str, ...] = ()
    varied: Mapping[str, int] = {}
    wide: tuple[str, ...] = ()


class AbsentColumn(InvalidTraces):
    """A table has not the columns that a caller names; what opened the table adds its name."""


# a function from names of columns, whether the file has a line of names, and some rows, to the meaning of the columns
Roles = Callable[[Sequence[str], bool, Sequence[Sequence[str]]], Meaning]


def normalize_name(name: str) -> str:
    """Return a name in lower case, without accents and punctuation."""
    letters = name.casefold() if name.isascii() else unicodedata.normalize("NFKD", name.casefold())
    return re.sub(r"[^a-z0-9]", "", letters)


def is_known(name: str) -> bool:
    """Tell whether a column of this name has a role."""
    return normalize_name(name) in KNOWN


def names_people(name: str) -> bool:
    """Tell whether a column of this name can hold people or vehicles; a mere id may be that of a row."""
    return normalize_name(name) in {*SYNONYMS["user"].split(), *WEAK_USER_NAMES.split()} - {"id"}


def check_columns(columns: Any) -> dict[str, str | None]:
    """Return the caller's `columns` as role -> name (or None); refuse anything else with `InvalidParameter`."""
    try:
        requested = dict(columns)
        unknown = sorted(str(role) for role in set(requested) - set(ROLES))
    except (TypeError, ValueError):
        raise InvalidParameter(f"`columns` must map roles to names of columns, got {type(columns).__name__}.") from None
    if unknown:
        raise InvalidParameter(f"`columns` knows the roles {', '.join(ROLES)}, got {', '.join(map(repr, unknown))}.")
    if any(name is not None and not isinstance(name, str) for name in requested.values()):
        raise InvalidParameter("`columns` must map roles to names of columns (text), or to None to leave one out.")
    ends = [role for role in AT_ITS_END.values() if requested.get(role) is not None]
    if ends and "end_time" not in ends:
        raise InvalidParameter(f"`columns` has {ends[0]}, and a trip needs an end time: end_time=NAME.")
    return requested


def find_roles(
    names: Sequence[str],
    columns: Mapping[str, str | None] | None,
    records: Sequence[Sequence[str]] = (),
) -> dict[str, str]:
    """
    Return role -> name of its column, by the caller's `columns` first, then by synonyms.

    `columns={"place": None}` leaves a role out. "#3" is the third column, unless a column has that name; "file", for
    the user, is the name of the file, unless a column has that name.

    Examples
    --------
    >>> find_roles(("uid", "when", "Lat", "lng", "speed"), None)
    {'user': 'uid', 'time': 'when', 'lat': 'Lat', 'lon': 'lng'}
    >>> find_roles(("uid", "when", "Lat", "lng", "speed"), {"user": "file", "time": "#5"})
    {'user': "the file's name", 'time': 'speed', 'lat': 'Lat', 'lon': 'lng'}

    """
    requested = {
        role: None if name is None else _resolve_column(role, name, names) for role, name in (columns or {}).items()
    }
    absent = sorted(name for name in requested.values() if name is not None and name not in (FILE, *names))
    if absent:
        message = (
            f"there is no column {', '.join(map(repr, absent))}; {_list_columns(label_columns(names, records), {})}"
        )
        raise AbsentColumn(f"{message}; {_hint_encoding(names)}".removesuffix("; ") + ".", code="E_COLUMN")
    if requested.get("time") is not None:
        requested = {"utc": None, "local": None, **requested}
    elif requested.get("utc") is not None or requested.get("local") is not None:
        requested = {"time": None, **requested}
    by_word: dict[str, str] = {}
    for name in names:
        by_word.setdefault(normalize_name(name), name)
    # position.lat counts as lat if no other column does. Of several such columns, lat.lat counts. An id does not count:
    # it may be that of anything.
    inner = [(normalize_name(name.rpartition(".")[2]), name) for name in names if "." in name]
    for word, name in inner:
        if word != "id" and (sum(word == other for other, _ in inner) == 1 or normalize_name(name) == 2 * word):
            by_word.setdefault(word, name)
    roles = {}
    for role in ROLES:
        words = SYNONYMS.get(role, "").split()
        column = requested[role] if role in requested else next((by_word[w] for w in words if w in by_word), None)
        if column is not None:
            roles[role] = column
    if "geometry" in roles and {"lat", "lon"} <= roles.keys():
        del roles["geometry"]
    if "end_time" in roles and "category" not in requested:  # the purpose of a trip is no kind of place
        roles.pop("category", None)
    if roles.get("user", FILE) == FILE:  # a household is no person
        roles.pop("household", None)
    return _settle_visits(roles) if {"arrived", "left"} & roles.keys() else roles


def _settle_visits(roles: dict[str, str]) -> dict[str, str]:
    """
    Return the roles of visits where both `arrived` and `left` are there, else those of fixes: an arrival is a time.

    Visits keep a date, because arrivals may be clock times.
    """
    when = {"time", "utc", "local"}
    if "left" in roles and "arrived" not in roles and "time" in roles:
        roles = {"arrived" if role == "time" else role: name for role, name in roles.items()}
    if "slot" in roles or not {"arrived", "left"} <= roles.keys():
        roles.pop("left", None)
        start = roles.pop("arrived", None)
        return roles if start is None or when & roles.keys() or "slot" in roles else {**roles, "time": start}
    return {role: name for role, name in roles.items() if role not in when}


def _resolve_column(role: str, name: str, names: Sequence[str]) -> str:
    """Return the column that a caller's `name` means: a name, "#3" (the third column), or "file" for the user."""
    number = re.fullmatch(r"#(\d{1,6})", name)
    if name in names or (number is None and not (name == "file" and role == "user")):
        return name
    if number is None:
        return FILE
    return names[int(number[1]) - 1] if 1 <= int(number[1]) <= len(names) else name


def interpret_columns(
    names: Sequence[str],
    headed: bool,
    records: Sequence[Sequence[str]],
    columns: Mapping[str, str | None],
) -> Meaning:
    """
    Return what columns of traces mean: by the caller's `columns`, by their names, and by the values in some `records`.

    Without a line of names (`headed` is False), a column has a role only if its values leave no doubt. Every role that
    values gave has a note.
    """
    values = {name: [record[i] for record in records] for i, name in enumerate(names)}
    kinds = {name: find_kind(column) for name, column in values.items()} if records else {}
    if "dates" in kinds.values():
        kinds |= {name: "clock times" for name, column in values.items() if _are_compact_times(name, column)}
    filled = {name: [value for value in column if value] for name, column in values.items()}
    counts = {name: len({*column}) for name, column in filled.items()}
    varied = {name: n for name, n in counts.items() if A_FEW <= n < len(filled[name]) / 2}
    roles, labels = find_roles(names, columns, records=records), label_columns(names, records)
    notes: tuple[str, ...] = ()
    if "household" in roles:
        home, person = (labels[list(names).index(roles[role])] for role in ("household", "user"))
        notes = (f"people are numbered within their household: {home!r} and {person!r} together tell who it is",)
    meaning = Meaning(roles, notes, kinds, labels=labels, varied=varied)
    if not headed:
        return _interpret_unnamed(meaning, names, records, columns)
    meaning = _interpret_named(meaning, names, records, columns)
    if "user" not in columns and normalize_name(meaning.roles.get("user", "id")) == "id":
        meaning = _use_weak_user(meaning, names, filled)
    if missing_roles(meaning.roles) in (["lat", "lon"], ["time"]):
        meaning = _use_last_column(meaning, names, records, columns)
    return meaning


def _use_last_column(
    meaning: Meaning,
    names: Sequence[str],
    records: Sequence[Sequence[str]],
    columns: Mapping[str, str | None],
) -> Meaning:
    """Return the same with the place, or the time, in the only column without a role that could hold it."""
    role = "time" if missing_roles(meaning.roles) == ["time"] else "place"
    kinds = {name: meaning.kinds.get(name) for name in names if name not in meaning.roles.values()}
    if role == "place":
        numeric = {"decimal numbers", "pairs of numbers", LARGE} & {*kinds.values()}
        candidates = [n for n, kind in kinds.items() if n in meaning.varied and kind in ("words", "whole numbers")]
        if numeric or columns:
            return meaning
    else:
        candidates = [name for name, kind in kinds.items() if kind == "dates with times"]
        if {*TIME_ROLES} & {*columns} or not candidates:
            return meaning
        if not _differs_by_row(candidates[0], meaning.roles["user"], names, records):
            return meaning
    if len(candidates) != 1:
        return meaning
    return _add_role(meaning, names, role, candidates[0])


def _add_role(meaning: Meaning, names: Sequence[str], role: str, name: str) -> Meaning:
    """Return the same with one role more, and a note that says so."""
    label = meaning.labels[list(names).index(name)]
    note = f"column {label!r} was read as the {role} (`columns`)"
    return meaning._replace(roles={**meaning.roles, role: name}, notes=(*meaning.notes, note))


def _use_weak_user(meaning: Meaning, names: Sequence[str], values: Mapping[str, Sequence[str]]) -> Meaning:
    """
    Return the same with the only column of WEAK_USER_NAMES as the user, if there is no user, or every row its own id.

    Nothing changes where another column could be the user: one of words that repeat, or of whole numbers that repeat if
    the candidate has a single value (numbers that repeat may be speeds).
    """
    user = meaning.roles.get("user")
    own = user is not None and len({*values[user]}) == len(values[user])
    free = [name for name in names if name not in meaning.roles.values() and meaning.kinds.get(name) != "nothing"]
    candidates = [name for name in free if normalize_name(name) in WEAK_USER_NAMES.split()]
    if len(candidates) != 1 or not (user is None or own):
        return meaning
    others = ("words",) if len({*values[candidates[0]]}) > 1 else ("words", "whole numbers")
    if any(n in meaning.varied and meaning.kinds.get(n) in others for n in free if n != candidates[0]):
        return meaning
    return _add_role(meaning, names, "user", candidates[0])


def _differs_by_row(name: str, user: str, names: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Tell whether a time mostly differs between rows of a person; a date of birth, for example, does not."""
    when, who = names.index(name), names.index(user) if user in names else None
    people = [None if who is None else r[who] for r in records]
    more = len({*zip(people, (r[when] for r in records), strict=True)}) - len({*people})
    return 2 * more > len(people) - len({*people})


def _interpret_named(
    meaning: Meaning,
    names: Sequence[str],
    records: Sequence[Sequence[str]],
    columns: Mapping[str, str | None],
) -> Meaning:
    """Return the meaning of columns with names: of trips, of days with a column per slot, of fixes, visits or slots."""
    roles, kinds, label = dict(meaning.roles), meaning.kinds, dict(zip(names, meaning.labels, strict=True))
    by_word = {normalize_name(name): name for name in names}
    notes = list(meaning.notes)
    # trips, and days with a column per slot
    first, last = find_trip_ends(names)
    own_choice = {*columns} - {*WHOSE, "accuracy"}
    if first and last and not own_choice and (trip := find_trip_roles(names, roles, kinds)):
        notes.append("each row is a trip: it was read as where and when it begins, and where and when it ends")
        trip = _find_days_and_clocks(trip, kinds, columns, {}, label, notes)
        return meaning._replace(roles=trip, notes=tuple(notes))
    if {"lat", "lon"} <= first.keys() & last.keys():  # one end alone is no trip: nobody was there at that time
        ends = {first["lat"], first["lon"], last["lat"], last["lon"]} - {*columns.values()}
        roles = {role: name for role, name in roles.items() if name not in ends}
    if len(names) >= FEWEST_WIDE and (slots := find_wide_slots(names, roles)):
        notes.append(f"each row is a day: {len(slots)} columns were read as its slots")
        own_roles = {role: name for role, name in roles.items() if role in WHOSE}
        own_roles |= {f"{WIDE}{i}": name for i, name in enumerate(slots)}
        return meaning._replace(roles=own_roles, notes=tuple(notes))
    # when
    if by_word.keys() >= MOVEBANK and roles.get("time") == by_word["timestamp"] and "time" not in columns:
        roles["utc"] = roles.pop("time")
        notes.append(f"columns are those of Movebank, whose times are UTC (if not: `columns` time={roles['utc']})")
    if "slot" not in roles and sum(kind in (*INSTANTS, "dates") for kind in kinds.values()) > 1:
        roles = _find_days_and_clocks(roles, kinds, columns, by_word, label, notes)
    if "slot" not in roles and kinds.get(roles.get("time", "")) in ("whole numbers", "0 or 1"):
        roles = _find_numbered_slots(roles, kinds, columns, by_word, names, records, notes)
    # where
    unplaced = not {*PLACE_ROLES, "lon"} & roles.keys()
    if unplaced and {*CELL} <= by_word.keys() and not {*columns} & {*PLACE_ROLES}:
        x, y = (by_word[side] for side in CELL)
        values = [record[names.index(side)] for record in records for side in (x, y)]
        cells = {kinds.get(x), kinds.get(y)} == {"whole numbers"} and _are_cells(values)
        roles |= {"x": x, "y": y} if cells else {"lat": y, "lon": x}
        what = "numbers of cells of a grid, 1 km wide" if cells else "longitude and latitude"
        notes.append(f"columns {x!r} and {y!r} were read as {what}")
    weak_places = [by_word[word] for word in WEAK_PLACE_NAMES.split() if word in by_word]
    if weak_places and not {*PLACE_ROLES, "lon"} & {*roles, *columns}:
        roles["place"] = weak_places[0]
        notes.append(f"column {weak_places[0]!r} was read as the place (`columns`)")
    pairs = [name for name, kind in kinds.items() if kind == "pairs of numbers"]
    if len(pairs) == 1 and not {"lat", "geometry"} & roles.keys() and "geometry" not in columns:
        roles = {role: name for role, name in roles.items() if (role, name) != ("place", pairs[0])}
        roles["geometry"] = pairs[0]
        notes.append(f"column {label[pairs[0]]!r} was read as latitude and longitude")
    if "category" in roles and _is_diary(roles, kinds, columns):
        roles["place"] = roles.pop("category")
        notes.append(f"no column of places: {label[roles['place']]!r} was read as the place")
    return meaning._replace(roles=roles, notes=tuple(notes))


def _interpret_unnamed(
    meaning: Meaning,
    names: Sequence[str],
    records: Sequence[Sequence[str]],
    columns: Mapping[str, str | None],
) -> Meaning:
    """Return the meaning of columns without names, by what they hold; three columns of whole numbers are SGLT."""
    kinds = meaning.kinds
    if len(names) == 3 and not columns and {*kinds.values()} <= {"whole numbers", "0 or 1"} and kinds:
        return meaning._replace(roles=dict(zip(("user", "slot", "place"), names, strict=True)), sglt=True)
    if not columns and (slots := _find_unnamed_slots(names, kinds)):
        user = {"user": names[0]} if len(slots) < len(names) else {}
        note = f"each row is a day: {len(slots)} columns without names were read as its slots"
        note += "" if user else ", and each row as another person's"
        return meaning._replace(roles=user | {f"{WIDE}{i}": name for i, name in enumerate(slots)}, notes=(note,))
    guesses = guess_roles(names, records, kinds, columns)
    guesses = {role: name for role, name in guesses.items() if role not in columns}
    listing = ", ".join(f"{role}={name}" for role, name in guesses.items())
    note = f"the first line holds no names: columns were read as {listing} (`columns`)"
    notes = (*meaning.notes, note) if guesses else meaning.notes
    return meaning._replace(roles={**guesses, **meaning.roles}, notes=notes)


def _find_days_and_clocks(
    roles: Mapping[str, str],
    kinds: Mapping[str, str],
    requested: Mapping[str, str | None],
    by_word: Mapping[str, str],
    labels: Mapping[str, str],
    notes: list[str],
) -> dict[str, str]:
    """Return the roles with arrivals and departures under names of SPANS, and with dates and clock times by content."""
    roles = dict(roles)
    if not {"arrived", "left"} & {*roles, *requested}:
        for span in SPANS.split("|"):
            first, last = (by_word.get(word) for word in span.split())
            if first is None or last is None or kinds.get(first) != kinds.get(last):
                continue
            if kinds.get(first) in INSTANTS and requested.get("time") in (None, first):
                others = {role: n for role, n in roles.items() if role not in ("time", "utc", "local")}
                roles = others | {"arrived": first, "left": last}
                break
    columns_used = {name for role, name in roles.items() if role not in ("trace", "category", "accuracy")}
    free = [name for name in kinds if name not in columns_used and name not in requested.values()]
    days, clocks = ([n for n in free if kinds[n] == kind] for kind in ("dates", "clock times"))
    begins = roles.get("arrived") or roles.get("time")
    more: dict[str, str] = {}
    if begins is not None:
        if kinds.get(begins) == "clock times" and not {"date"} & {*roles, *requested} and len(days) == 1:
            more = {"date": days[0]}
    elif not {"utc", "local"} & roles.keys() and "time" not in requested and len(clocks) == 1:
        if "date" in roles and kinds.get(roles["date"]) == "dates":
            more = {"time": clocks[0]}
        elif not {"date"} & {*roles, *requested} and len(days) == 1:
            more = {"date": days[0], "time": clocks[0]}
    for role, name in more.items():
        what = "day" if role == "date" else "clock time"
        notes.append(f"column {labels.get(name, name)!r} was read as the {what}, by what it holds (`columns`)")
    return {role: name for role, name in roles.items() if name not in more.values()} | more


def _find_numbered_slots(
    roles: dict[str, str],
    kinds: Mapping[str, str],
    requested: Mapping[str, str | None],
    by_word: Mapping[str, str],
    names: Sequence[str],
    records: Sequence[Sequence[str]],
    notes: list[str],
) -> dict[str, str]:
    """Return the roles with the time as a slot, where it is a small whole number beside a column of day numbers."""
    count, day = roles.get("time"), roles.get("trace", by_word.get("d"))
    if count is None or day is None or {"time", "slot"} & requested.keys() or {"utc", "local", "date"} & roles.keys():
        return roles
    if kinds.get(day) not in ("whole numbers", "0 or 1"):
        return roles
    at = list(names).index(count)
    if not all(0 <= _to_float(r[at]) < MOST_SLOTS for r in records if NUMERIC.fullmatch(r[at])):
        return roles
    notes.append(f"column {count!r} was read as the slot of the day, {day!r} as the number of the day (`columns`)")
    return {role: name for role, name in roles.items() if role != "time"} | {"slot": count, "trace": day}


def _are_cells(values: Sequence[str]) -> bool:
    """Tell whether whole numbers can number cells of 1 km: there are 40,000 around the Earth."""
    return all(abs(_to_float(v)) <= 40_000 for v in values if NUMERIC.fullmatch(v))


def find_wide_slots(names: Sequence[str], roles: Mapping[str, str]) -> list[str]:
    """
    Return the columns that are the slots of a day, in order; none where the table has one line per slot or time.

    Their names are consecutive whole numbers, all after the same word or none, or clock times at equal distances.

    Examples
    --------
    >>> find_wide_slots(["uid", *(f"h{i}" for i in range(24))], {"user": "uid"})[:3]
    ['h0', 'h1', 'h2']

    """
    whose = {name for role, name in roles.items() if role in WHOSE}
    clocks = [name for name in names if re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d(:00)?", name) and name not in whose]
    minutes = [clock_minutes(name.removesuffix(":00") if name.count(":") == 2 else name) for name in clocks]
    by_word: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        if (numbered := re.fullmatch(r"(.*?)(\d{1,4})", name)) and name not in whose:
            by_word.setdefault(numbered[1], []).append((int(numbered[2]), name))
    most = max((len(columns) for columns in by_word.values()), default=0)
    in_order = sorted(next((columns for columns in by_word.values() if len(columns) == most), []))
    slots = [name for _, name in in_order]
    if len({b - a for a, b in pairwise(minutes)}) == 1 and minutes[0] < minutes[1]:
        slots = clocks
    elif not in_order or [number for number, _ in in_order] not in (list(range(most)), list(range(1, most + 1))):
        return []
    # any other column of times or places means one line per slot or time
    others = {name for role, name in roles.items() if role not in ("accuracy", "category")} - whose - {*slots}
    return slots if len(slots) >= FEWEST_WIDE and not others else []


def _find_unnamed_slots(names: Sequence[str], kinds: Mapping[str, str]) -> Sequence[str]:
    """Return the columns without names that are the slots of a whole day: all of one kind, perhaps after one of ids."""
    for slots in (names, names[1:]):
        held = {kinds.get(name) for name in slots}
        if len(slots) in WHOLE_DAYS and (held <= {"whole numbers", "0 or 1"} or held == {"words"}):
            return slots
    return ()


def find_trip_roles(names: Sequence[str], roles: Mapping[str, str], kinds: Mapping[str, str] = {}) -> dict[str, str]:
    """
    Return the roles of a table of trips: both ends have a time, and a position or a place; none for another table.

    A column of durations can stand for the time of the end (`find_duration_unit`); a column called date is the time of
    an end if it holds times.

    Examples
    --------
    >>> columns = "taxi", "pickup_datetime", "dropoff_datetime", "PULocationID", "DOLocationID"
    >>> find_trip_roles(columns, {"user": "taxi"})
    {'user': 'taxi', 'time': 'pickup_datetime', 'place': 'PULocationID', 'end_time': 'dropoff_datetime', \
'end_place': 'DOLocationID'}

    """
    ends = find_trip_ends(names)
    for end, role in zip(ends, ("arrived", "left"), strict=True):
        if "time" not in end and role in roles:
            end["time"] = roles[role]
        if "time" not in end and kinds.get(end.get("date", "")) == "dates with times":
            end["time"] = end["date"]
    lasting = [name for name in names if find_duration_unit(name) is not None]
    if lasting and "time" in ends[0]:
        ends[1].setdefault("time", lasting[0])
    both = ends[0].keys() & ends[1].keys()
    if "time" not in both or not ({"lat", "lon"} <= both or "place" in both):
        return {}
    others = {role: name for role, name in roles.items() if role in ("user", "household", "date", "accuracy")}
    first, last = ({role: end[role] for role in AT_ITS_END if role in both} for end in ends)
    return {**others, **first, **{AT_ITS_END[role]: name for role, name in last.items()}}


def find_duration_unit(name: str) -> float | None:
    """Return the seconds of the unit of a column of durations, 0 where its name has no unit; None for other columns."""
    match = DURATION.fullmatch(normalize_name(name))
    return None if match is None else UNITS.get(match[1])


def find_trip_ends(names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return role -> column of the start of a trip, and of its end, by words in names such as pickup and dropoff."""
    ends: tuple[dict[str, str], dict[str, str]] = ({}, {})
    begins, finishes = {*BEGINS.split()}, {*FINISHES.split()}
    for name in names:
        one = ONE_WORD[1].sub(r"\1_", ONE_WORD[0].sub(r"\1\2", name))
        words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", one)]
        # "stop" is the end of a trip, but a place where another word tells the end
        stop = "stop" in words and len({*words} & (begins | finishes)) > 1
        ends_of = [side_words - {"stop"} if stop else side_words for side_words in (begins, finishes)]
        sides = [side for side, side_words in enumerate(ends_of) if side_words & {*words}]
        if len(sides) != 1:
            continue
        rest = [word for word in words if word not in ends_of[sides[0]]]
        stems = ("".join(rest), "".join(word for word in rest if word not in FILLERS))
        role = next((r for r in AT_ITS_END for word in stems if word in SYNONYMS[r].split()), None)
        role = "time" if stems[0] == "at" else "place" if {*stems} & {*WEAK_PLACE_NAMES.split(), "stop"} else role
        role = {"x": "lon", "y": "lat", "date": "date"}.get(stems[0], role)
        if role is not None:
            ends[sides[0]].setdefault(role, name)
    return ends


def _is_diary(roles: Mapping[str, str], kinds: Mapping[str, str], requested: Mapping[str, str | None]) -> bool:
    """Tell whether the category can be the place: user and time are known, and no column could be a coordinate."""
    where = {*PLACE_ROLES, "lon", "category"}
    free = [kind for name, kind in kinds.items() if name not in roles.values()]
    return (
        missing_roles(roles) == ["lat", "lon"]
        and not where & requested.keys()
        and kinds.get(roles["category"]) == "words"
        and not {"decimal numbers", "pairs of numbers", LARGE} & {*free}
    )


def label_columns(names: Sequence[str], records: Sequence[Sequence[str]] = ()) -> tuple[str, ...]:
    """
    Return the names of columns for messages: their number where a name is among the values or looks like a value.

    Where the line of names is missing, the first row was taken for it, and that is somebody's data.
    """
    labels = []
    for i, name in enumerate(names):
        word = (NAME.fullmatch(name) is not None and not COORDINATE.search(name)) or is_known(name)
        valued = any(i < len(r) and name in SEPARATED.split(r[i]) for r in records)  # a value may be a whole row
        labels.append(name if word and not valued else f"#{i + 1}")
    # one name that looks like a value: the whole line may be a row
    numbers = tuple(f"#{i}" for i in range(1, len(names) + 1))
    odd = any(label == number for label, number in zip(labels, numbers, strict=True))
    return numbers if odd and not any(map(is_known, names)) else tuple(labels)


def find_kind(values: Sequence[str]) -> str:
    """Return the kind of some values of a column, in words."""
    filled = [v for v in values if v and v not in NOTHING]
    if not filled:
        return "nothing"
    most = MOSTLY * len(filled)
    kind = next((kind for kind, fits in KINDS if sum(map(bool, map(fits, filled))) >= most), "words")
    if kind != "numbers":
        return kind
    number = np.array([float(v.replace(",", ".")) for v in filled if NUMERIC.fullmatch(v)])
    number = number[np.isfinite(number)]
    for unit in (1, 1e3, 1e6, 1e9):
        if np.sum((number >= 9e8 * unit) & (number <= 2e9 * unit)) >= MOSTLY * len(number):
            return "times since 1970"
    if np.all(number == np.floor(number)) and not any("." in v or "," in v for v in filled):
        days = sum(re.fullmatch(r"(19|20)\d\d(0\d|1[0-2])([0-2]\d|3[01])", v) is not None for v in filled)
        return "dates" if days >= most else "whole numbers"
    return "decimal numbers" if np.sum(np.abs(number) <= 360) >= MOSTLY * len(number) else LARGE


def guess_roles(
    names: Sequence[str],
    records: Sequence[Sequence[str]],
    kinds: Mapping[str, str],
    requested: Mapping[str, str | None],
) -> dict[str, str]:
    """
    Return the roles of columns without names, as far as their values leave no doubt.

    - time: the only column of times, or one of dates and one of clock times;
    - position: two columns of degrees with at least three decimals, of which one cannot be the latitude, or would put
      everybody into the sea;
    - user: the first column, if its values repeat, else the only one of words; where no column could be the user, the
      file;
    - place: where there is no position, the only column left whose values repeat. Beside a time alone it is the place
      too, and the file is the user.
    """
    column = {name: [r[i] for r in records] for i, name in enumerate(names)}
    free = [name for name in names if name not in requested.values()]
    of: dict[str, list[str]] = {}
    for name in free:
        of.setdefault(kinds.get(name, "words"), []).append(name)
    roles: dict[str, str] = {}
    times = of.get("dates with times", []) or of.get("times since 1970", [])
    if len(times) == 1:
        roles["time"] = times[0]
    elif not times and len(of.get("dates", [])) == len(of.get("clock times", [])) == 1:
        roles |= {"date": of["dates"][0], "time": of["clock times"][0]}
    if len(of.get("pairs of numbers", [])) == 1:
        roles["geometry"] = of["pairs of numbers"][0]
    degrees = [name for name in of.get("decimal numbers", []) if _are_degrees(column[name])]
    where = None
    if len(degrees) == 2:
        a, b = (np.array([_to_float(v) for v in column[name]]) for name in degrees)
        first = is_latitude_first(a, b)
        if first is not None:
            roles |= dict(zip(("lat", "lon") if first else ("lon", "lat"), degrees, strict=True))
            where = (a, b) if first else (b, a)
    repeats = [n for n in (*of.get("words", []), *of.get("whole numbers", [])) if _repeats(column[n])]
    words = [name for name in of.get("words", []) if name in repeats]
    fixed = [name for name in repeats if where is not None and name != names[0] and _is_place(column[name], where)]
    sorted_flags = kinds.get(names[0]) == "0 or 1" and "".join(column[names[0]]).isdigit() and names[0] in free
    if names[0] in repeats or (sorted_flags and column[names[0]] == sorted(column[names[0]])):
        roles["user"] = names[0]
    elif len([w for w in words if w not in fixed]) == 1:
        roles["user"] = next(w for w in words if w not in fixed)
    elif not [name for name in repeats if name not in fixed]:
        roles["user"] = FILE
    if len(fixed) == 1 and roles.get("user") != fixed[0]:
        roles["place"] = fixed[0]
    rest = [name for name in free if name not in roles.values()]
    if {"user", "time"} <= roles.keys() and len(rest) == 1 and rest[0] in repeats and not {*PLACE_ROLES} & roles.keys():
        roles["place"] = rest[0]  # such as an antenna
    if len(names) == 2 and not requested and "time" in roles and len(repeats) == 1:
        roles |= {"user": FILE, "place": repeats[0]}  # only a time and a place
    return roles


def _are_compact_times(name: str, values: Sequence[str]) -> bool:
    """Tell whether the name of a column says time, and all its values are clock times of four or of six digits."""
    widths = {len(v) for v in values if v}
    timely = TIMELY.search(normalize_name(name)) is not None
    return timely and len(widths) == 1 and all(re.match(COMPACT, v) for v in values if v)


def _to_float(value: str) -> float:
    """Return a number with a decimal point or comma; NaN for any other text."""
    return float(value.replace(",", ".")) if NUMERIC.fullmatch(value) else np.nan


def _are_degrees(values: Sequence[str]) -> bool:
    """Tell whether numbers are within 180 and have three decimals or more, as positions have."""
    filled = [v for v in values if NUMERIC.fullmatch(v)]
    fine = sum(len(re.split("[.,]", v)[-1]) >= 3 for v in filled if re.search("[.,]", v))
    within = sum(abs(_to_float(v)) <= 180 for v in filled)
    return bool(filled) and fine > len(filled) / 2 and within >= MOSTLY * len(filled)


def _repeats(values: Sequence[str]) -> bool:
    """Tell whether values occur twice on average, or all are equal."""
    return len(set(values)) <= max(1, len(values) / 2)


def _is_place(values: Sequence[str], where: tuple[Floats, Floats]) -> bool:
    """Tell whether rows of one value have one position, and there are several values."""
    spots: dict[str, set[tuple[float, float]]] = {}
    for value, lat, lon in zip(values, *where, strict=True):
        spots.setdefault(value, set()).add((round(float(lat), 3), round(float(lon), 3)))
    return len(spots) > 1 and sum(len(s) for s in spots.values()) <= 1.05 * len(spots)


def is_latitude_first(a: Floats, b: Floats) -> bool | None:
    """Tell whether the first of two columns of degrees is the latitude; None where nothing tells."""
    high = [float(np.mean(np.abs(side[np.isfinite(side)]) > 90)) for side in (a, b)]
    if max(high) > 1 - MOSTLY:
        return None if min(high) > 1 - MOSTLY else high[0] < high[1]
    # both could be the latitude: the right order puts people on land, and not in Antarctica
    land = []
    for lat, lon in ((a, b), (b, a)):
        zones = zones_at(lat, lon)
        share = 1.0 if zones is None else sum(map(bool, zones)) / max(1, len(zones))
        land.append(share * float(np.mean(lat[np.isfinite(lat)] > -60)))
    return land[0] > land[1] if max(land) > MOSTLY and min(land) < 0.5 else None


def missing_roles(roles: Mapping[str, str]) -> list[str]:
    """Return the roles that traces need and that have no column; slots need no time."""
    missing = [] if "user" in roles else ["user"]
    missing += [] if {"slot", *TIME_ROLES} & roles.keys() else ["time"]
    if {"lat", "lon"} & roles.keys() and "geometry" not in roles:
        return missing + [role for role in ("lat", "lon") if role not in roles and "place" not in roles]
    return missing if {*PLACE_ROLES} & roles.keys() else [*missing, "lat", "lon"]


def describe_missing(missing: Sequence[str], names: Sequence[str], meaning: Meaning, headed: bool, files: bool) -> str:
    """Return one sentence: which roles have no column, which columns there are, and what to type."""
    free = [name for name in names if name not in meaning.roles.values()]
    # a single column of numbers is hardly half of a position
    lone = {"lat", "lon"} <= set(missing) and sum(meaning.kinds.get(n) == "decimal numbers" for n in free) == 1

    plates = any(normalize_name(name) in WEAK_USER_NAMES.split() for name in free)

    def propose_column(role: str) -> str:
        kinds = {
            "user": ("words",) if plates else ("words", "whole numbers"),  # beside a plate, numbers may be speeds
            "time": ("dates with times", "times since 1970", "clock times", "dates"),
        }.get(role, ("decimal numbers",))
        column = None
        for kind in kinds:
            alike = [n for n in free if meaning.kinds.get(n) == kind]
            if role == "user":  # a column without repeated values may be anything
                alike = [n for n in free if meaning.kinds.get(n) in kinds and n in meaning.varied]
            if alike:
                # one of several would be a guess; the first two numbers are proposed in both orders
                column = alike[0] if len(alike) == 1 or role in ("lat", "lon") else None
                break
        if role in ("lat", "lon") and lone:
            column = None
        if column is not None:
            free.remove(column)
        word = f"{role}={'NAME' if column is None else labels.get(column, column)}"
        if role == "time" and column is not None and meaning.kinds.get(column) == "clock times":
            day = next((n for n in free if meaning.kinds.get(n) == "dates"), None)
            word += f",date={'NAME' if day is None else labels.get(day, day)}" if "date" not in meaning.roles else ""
        return word

    labels = dict(zip(names, meaning.labels or label_columns(names), strict=False))
    if missing == ["user"] and "end_time" in meaning.roles:
        listing = _list_columns([labels.get(n, n) for n in names], {})
        return (
            "each row is a trip, and no column tells who made it; an id that every trip has of its own tells nobody's "
            f"day, and without people nothing can be learnt; {listing}; if one is the id of a person, a vehicle or a "
            "card, give `columns` user=NAME."
        )
    first, last = find_trip_ends(names)
    if "lat" in missing and {"lat", "lon"} <= first.keys() & last.keys():
        where = [f"{role}={labels.get(first[role], first[role])}" for role in ("lat", "lon")]
        where += [f"{AT_ITS_END[role]}={labels.get(last[role], last[role])}" for role in ("lat", "lon")]
        when = [f"time={labels.get(meaning.roles.get('time', ''), first.get('time', 'NAME'))}", "end_time=NAME"]
        whose = ["user=NAME"] if "user" in missing else []
        sight = _list_columns([labels.get(n, n) for n in names], {})
        absent = f"each row has two ends, and a trip needs an end time, or how long it lasts; {sight}"
        return f"{absent}; give `columns` {quote_columns(','.join([*whose, *when, *where]))}."
    words = [propose_column(role) for role in missing]
    example, projected = quote_columns(",".join(words)), ""
    if {"lat", "lon"} <= set(missing):
        a, b = (word.partition("=")[2] for word in words[-2:])
        example += f" (or {quote_columns(f'lat={b},lon={a}')})" if a != "NAME" and b != "NAME" else ""
        metres = [n for n in free if meaning.kinds.get(n) == LARGE or normalize_name(n) in PROJECTED]
        if len(metres) > 1:
            which = ", ".join(repr(labels.get(n, n)) for n in metres)
            projected = f"{which} are no degrees; metres of a map? Convert them to latitude and longitude (EPSG:4326); "
    also = ", or user=file if each file is one person" if "user" in missing and files else ""
    spoken = [n for n in free if meaning.kinds.get(n) == "words"]
    if "time" in missing and len(spoken) == 1 and headed:
        part = labels.get(spoken[0], spoken[0])
        also += f"; if {part!r} is a part of the day, number its parts from 0 and give it as slot"
    if "lat" in missing:
        kind = meaning.roles.get("category", "")
        also += f", or place={labels.get(kind, kind) if meaning.varied.get(kind, 0) > A_FEW else 'NAME'}"
    no_names = "" if headed else "the first line holds data, no names; "
    sight = _list_columns([labels.get(n, n) for n in names], {} if headed else meaning.kinds)
    absent = f"{no_names}no column for {', '.join(missing)}; {sight}; {_hint_encoding(names)}{projected}"
    return f"{absent}give `columns` {example}{also}."


def quote_columns(words: str) -> str:
    """Return a text quoted for a shell, where it needs quotes."""
    return words if re.fullmatch(r"[\w=,#.:/%-]*", words) else shlex.quote(words)


def _hint_encoding(names: Sequence[str]) -> str:
    """Return what to try where names of columns are no UTF-8, "" where they are."""
    return "some of these names are no UTF-8, try `encoding` cp1252; " if any("\ufffd" in n for n in names) else ""


def _list_columns(names: Sequence[str], kinds: Mapping[str, str]) -> str:
    """Return the columns in words, with their kinds; long runs of columns of one kind by the first and the last."""
    words: list[str] = []
    for kind, run in groupby((n for n in names if n != FILE), key=lambda n: kinds.get(n, "")):
        alike = list(run)
        if kind and len(alike) >= FEWEST_WIDE:
            words.append(f"{alike[0]} to {alike[-1]} {kind}")
        else:
            words += [f"{n} {kind}" if kind else repr(n) for n in alike]
    return f"columns seen: {', '.join(words[:MOST_SHOWN])}{' ...' if len(words) > MOST_SHOWN else ''}"
