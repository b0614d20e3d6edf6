"""
Tell what columns mean: which one is the user, the time, the place, by their names and by what they hold.

Names are those of scikit-mobility and trackintel and their obvious synonyms, compared without case and
punctuation, the first of a list winning.
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

FILE = "the file's name"  # the column that says so in every row
SYNONYMS = {
    "user": "uid userid user userindex personid person personno personnumber perno persno individualid individual "
    "agentid agent deviceid device "
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
    "btsid bts towerid tower celltower celltoweroid siteid site zoneid zone stationid station stopid stopcode "
    "geohash h3 cgi ecgi ort standort lugar lieu",
    "category": "category venuecategory venuecategoryname categoryname poicategory placecategory poitype placetype "
    "type purpose activity amenity aktivitat aktivitaet actividad activite",
}
# arrivals and departures under names that mean other things too: both must be there, and hold times
SPANS = (
    "from to|von bis|start end|start stop|start ende|begin end|begin ende|beginn ende|anfang ende|startzeit endzeit|"
    "ankunft abfahrt|checkin checkout|checkintime checkouttime|timein timeout|debut fin|inicio fin|desde hasta|de a"
)
# the two ends of a trip, as words in the names of columns, and words that say nothing beside them
BEGINS = "start started origin orig o from pickup pu departure dep depart source entry boarding tapin"
FINISHES = "end ended stop destination dest d to dropoff do arrival arr arrive target exit alighting tapout"
ONE_WORD = (
    re.compile(r"(?i)(pick|drop|tap)[ _-](up|off|in|out)"),
    re.compile(r"(?i)(?<![a-z])(t|x|y|lat|lon)(start|end)"),
)
BESIDE = frozenset(["station", "stop", "trip", "tpep", "lpep", "point", "centroid", "community"])
AT_ITS_END = {"time": "end_time", "lat": "end_lat", "lon": "end_lon", "place": "end_place"}
# how long a trip lasts, where no column tells when it ends; what its last letters say, in seconds
LASTS = re.compile(r"(?:trip|ride)?(?:duration|dauer|duree|duracion)(?:in)?([a-z]*)")
UNITS = {"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "sekunden": 1, "ms": 0.001, "milliseconds": 0.001}
UNITS |= {"min": 60, "mins": 60, "minute": 60, "minutes": 60, "minuten": 60, "h": 3600, "hours": 3600, "": 0}
SHORT = 60  # a trip is longer than so many seconds: a lower median of lengths without a unit is one of minutes
# people, and their vehicles, under names that mean other things too: where nothing else could tell who somebody is
PEOPLE_ALONE = (
    "licenseplate licenceplate licenseplatenumber numberplate platenumber plateno plate kennzeichen kfzkennzeichen "
    "matricula placa immatriculation ident tagid assetid unitid unitno unitnumber"
)
# places under names that mean other things too: where nothing else tells where somebody is
PLACES_ALONE = (
    "accesspoint accesspointid accesspointname ap apid apname door doorid gate gateid room roomid reader readerid area "
    "areaid district districtid stadtteil bezirk stopname stationname sitename zonename building buildingid beacon "
    "beaconid haltestelle detector detectorid sensorid camera cameraid checkpoint"
)
# metres of a projection, by name or by size
PROJECTED = frozenset(["easting", "northing", "eastings", "northings", "utmx", "utmy", "rechtswert", "hochwert"])
LARGE = "numbers too large for degrees"
INSTANTS = ("clock times", "dates with times", "times since 1970")  # kinds of columns that can tell when
CELL = ("x", "y")  # whole numbers that count the cells of a grid, where a table calls them so, both of them
ROLES = (*SYNONYMS, *CELL, *AT_ITS_END.values())
KNOWN = {word for words in (*SYNONYMS.values(), PEOPLE_ALONE) for word in words.split()}
WHOSE = ("user", "household", "date", "trace")  # roles that tell whose day it is
MOSTLY = 0.95  # share of the values of a column that tell what it holds
A_FEW = 3  # values that a column of people has at least; fewer are a kind, such as in and out
MOST_SHOWN = 40
WIDE = "slot "  # and a number: the role of a column that is one slot of a day
MOST_SLOTS = 1440  # of a day
FEWEST_WIDE = 12  # columns that are believed to be the slots of a day
WHOLE_DAYS = (24, 48, 72, 96, 144, 288, 1440)  # numbers of slots that are a whole day
TIME_ROLES, PLACE_ROLES = ("time", "utc", "local", "date", "arrived"), ("lat", "geometry", "place", "x")
NAME = re.compile(r"(?=.{1,40}$)[^\W\d][\w .:/()#%°\-]*")
COORDINATE = re.compile(r"\d\.\d\d")  # in a name: part of a row
SEPARATED = re.compile(r"[,;|\t]")
PAIR_OF_NUMBERS = r"^\s*[\[(]?\s*(?P<a>[+-]?\d{1,3}\.\d+)\s*(?:,|;|\s)\s*(?P<b>[+-]?\d{1,3}\.\d+)\s*[\])]?\s*$"
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"  # as Arrow and `re` have it
A_NUMBER = re.compile(NUMBER, re.ASCII)
COMMA_NUMBER = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)
NUMERIC = re.compile(f"{NUMBER}|{COMMA_NUMBER.pattern}", re.ASCII)  # with a point or a comma
CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
COMPACT = r"^([01]\d|2[0-3])[0-5]\d([0-5]\d)?$"  # 0740 and 074000
TIMELY = re.compile(r"time|clock|zeit|hora|heure")  # in the name of a column that may hold such
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d)|\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{4}", re.ASCII
)
DATE_TIME = re.compile(
    rf"({DATE.pattern})[T ,]+\d{{1,2}}(:\d\d(:\d\d([.,]\d+)?)?)?( ?[AaPp]\.?[Mm]\.?)?( ?(Z|z|UTC|[+-]\d\d(:?\d\d)?))?"
    r"|([A-Za-z]{3,9},? +){1,2}\d{1,2},? .*\d:\d\d.*|[A-Za-z]{3}, \d{1,2} [A-Za-z]{3} \d{4} .*\d:\d\d.*",
    re.ASCII,
)
TIME = re.compile(f"{DATE.pattern}|{CLOCK.pattern}|{DATE_TIME.pattern}", re.ASCII)  # a date, a clock time, or both
# what a column holds, by most of its values: the first that fits
HELD = (
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
    What columns mean: role -> name, what was assumed to find that out, and the kind of values of each column.

    `varied` counts the different values of columns whose values recur, as people and places do, and are a few or more.
    `sglt` says that these are the three columns of SGLT, counted from 1. `labels` is how messages call the columns: by
    number where a name could be somebody's data. `wide` are the columns that were the slots of a day.
    """

    roles: Mapping[str, str]
    notes: tuple[str, ...] = ()
    kinds: Mapping[str, str] = {}
    sglt: bool = False
    labels: tuple[str, ...] = ()
    varied: Mapping[str, int] = {}
    wide: tuple[str, ...] = ()


# names of columns, whether they stand in the file, and some rows -> what the columns mean
Roles = Callable[[Sequence[str], bool, Sequence[Sequence[str]]], Meaning]


def normalize_name(name: str) -> str:
    """Return a name without case, accents and punctuation."""
    letters = name.casefold() if name.isascii() else unicodedata.normalize("NFKD", name.casefold())
    return re.sub(r"[^a-z0-9]", "", letters)


def is_known(name: str) -> bool:
    """Tell whether a column of this name has a role."""
    return normalize_name(name) in KNOWN


def check_columns(columns: Any) -> dict[str, str | None]:
    """Return the caller's `columns` if they are role -> name (or None), else `InvalidParameter`."""
    if columns is None:
        return {}
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
    source: str = "the input",
    records: Sequence[Sequence[str]] = (),
) -> dict[str, str]:
    """
    Return role -> name of its column, by the caller's `columns` first, then by synonyms.

    `columns={"place": None}` leaves a role out. "#3" is the third column, and "file", for the user, the name of the
    file; a column that is really called so goes first.

    Examples
    --------
    >>> find_roles(("uid", "when", "Lat", "lng", "speed"), None)
    {'user': 'uid', 'time': 'when', 'lat': 'Lat', 'lon': 'lng'}
    >>> find_roles(("uid", "when", "Lat", "lng", "speed"), {"user": "file", "time": "#5"})
    {'user': "the file's name", 'time': 'speed', 'lat': 'Lat', 'lon': 'lng'}

    """
    requested = {
        role: name if name is None else _meant(role, name, names) for role, name in check_columns(columns).items()
    }
    absent = sorted(name for name in requested.values() if name is not None and name not in (FILE, *names))
    if absent:
        message = f"there is no column {', '.join(map(repr, absent))}; {_seen(label_columns(names, records), {})}"
        raise InvalidTraces(f"{source}: {message}; {_decoded(names)}".removesuffix("; ") + ".", code="E_COLUMN")
    if requested.get("time") is not None:
        requested = {"utc": None, "local": None, **requested}
    by_word: dict[str, str] = {}
    for name in names:
        by_word.setdefault(normalize_name(name), name)
    # position.lat is lat, where no other column is; of several coordinates, those of an object that is called so; whose
    # id an id is, its last word does not say
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
    if "end_time" in roles and "category" not in requested:  # why somebody travels is no kind of place
        roles.pop("category", None)
    if roles.get("user", FILE) == FILE:  # a household is nobody
        roles.pop("household", None)
    return _visits_or_fixes(roles) if {"arrived", "left"} & roles.keys() else roles


def _visits_or_fixes(roles: dict[str, str]) -> dict[str, str]:
    """
    Return the same roles with `arrived` and `left` where they tell visits, or without: an arrival alone is a time.

    A date stays beside them: they may be clock times.
    """
    when = {"time", "utc", "local"}
    if "left" in roles and "arrived" not in roles and "time" in roles:
        roles = {"arrived" if role == "time" else role: name for role, name in roles.items()}
    if "slot" in roles or not {"arrived", "left"} <= roles.keys():
        roles.pop("left", None)
        start = roles.pop("arrived", None)
        return roles if start is None or when & roles.keys() or "slot" in roles else {**roles, "time": start}
    return {role: name for role, name in roles.items() if role not in when}


def _meant(role: str, name: str, names: Sequence[str]) -> str:
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
    columns: Mapping[str, str | None] | None,
) -> Meaning:
    """Return what columns of traces mean, and which of them could be people or places, see `_told`."""
    values = {name: [r[i] for r in records if r[i]] for i, name in enumerate(names)}
    counts = {name: len({*column}) for name, column in values.items()}
    varied = {name: n for name, n in counts.items() if A_FEW <= n < len(values[name]) / 2}
    meaning = _told(names, headed, records, columns)._replace(varied=varied)
    if headed and "user" not in (columns or ()) and normalize_name(meaning.roles.get("user", "id")) == "id":
        meaning = _with_people_alone(meaning, names, values)
    free = [name for name in names if name not in meaning.roles.values() and meaning.kinds.get(name) != "nothing"]
    kinds = {meaning.kinds.get(name) for name in free}
    alone = [name for name in free if name in varied and meaning.kinds.get(name) in ("words", "whole numbers")]
    numeric = {"decimal numbers", "pairs of numbers", LARGE} & kinds
    role, missing = "", missing_roles(meaning.roles)
    if headed and missing == ["lat", "lon"] and len(alone) == 1 and not numeric and not columns:
        role = "place"  # who, when, and one thing more that recurs
    if headed and missing == ["time"] and not {*TIME_ROLES} & {*(columns or ())}:
        # who, where, and one thing more that tells when
        alone, role = [name for name in free if meaning.kinds.get(name) == "dates with times"], "time"
        alone = alone if len(alone) == 1 and _tells_when(alone[0], meaning.roles["user"], names, records) else []
    if role == "" or len(alone) != 1:
        return meaning
    note = f"column {dict(zip(names, meaning.labels, strict=True))[alone[0]]!r} was read as the {role} (`columns`)"
    return meaning._replace(roles={**meaning.roles, role: alone[0]}, notes=(*meaning.notes, note))


def _with_people_alone(meaning: Meaning, names: Sequence[str], values: Mapping[str, Sequence[str]]) -> Meaning:
    """
    Return the same with one of PEOPLE_ALONE as the user, if nobody is, or an `id`.

    An `id` that every row has of its own is nobody, and any other column that recurs could be somebody; numbers that
    recur may be speeds, and do not count where the name has several values.
    """
    user = meaning.roles.get("user")
    own = user is not None and len({*values[user]}) == len(values[user])
    free = [name for name in names if name not in meaning.roles.values() and meaning.kinds.get(name) != "nothing"]
    alone = [name for name in free if normalize_name(name) in PEOPLE_ALONE.split()]
    if len(alone) != 1 or not (user is None or own):
        return meaning
    others = ("words",) if len({*values[alone[0]]}) > 1 else ("words", "whole numbers")
    if any(n in meaning.varied and meaning.kinds.get(n) in others for n in free if n != alone[0]):
        return meaning
    note = f"column {dict(zip(names, meaning.labels, strict=True))[alone[0]]!r} was read as the user (`columns`)"
    return meaning._replace(roles={**meaning.roles, "user": alone[0]}, notes=(*meaning.notes, note))


def _tells_when(name: str, user: str, names: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Tell whether a time mostly differs from row to row of a person, as that of a birth, or an account, does not."""
    when, who = names.index(name), names.index(user) if user in names else None
    people = [None if who is None else r[who] for r in records]
    more = len({*zip(people, (r[when] for r in records), strict=True)}) - len({*people})
    return 2 * more > len(people) - len({*people})


def _told(
    names: Sequence[str],
    headed: bool,
    records: Sequence[Sequence[str]],
    columns: Mapping[str, str | None] | None,
) -> Meaning:
    """
    Return what columns of traces mean: by the caller's `columns`, by their names, and without names by what they hold.

    Where names say nothing, `kinds` tell what each column holds, so that a message can. Without names, nothing is taken
    that the values do not make certain, and all that is taken is said. Three columns of whole numbers are SGLT.
    """
    roles = find_roles(names, columns, records=records)
    requested = check_columns(columns)
    labels = label_columns(names, records)
    label = dict(zip(names, labels, strict=True))
    kinds = {name: find_kind([r[i] for r in records]) for i, name in enumerate(names)} if records else {}
    if "dates" in kinds.values():
        kinds |= {name: "clock times" for i, name in enumerate(names) if _are_compact(name, [r[i] for r in records])}
    notes: list[str] = []
    if "household" in roles:
        home, person = label[roles["household"]], label[roles["user"]]
        notes.append(f"people are numbered within their household: {home!r} and {person!r} together tell who it is")
    by_word = {normalize_name(name): name for name in names}
    if headed:
        first, last = find_trip_ends(names)
        own_choice = {*requested} - {*WHOSE, "accuracy"}
        if first and last and not own_choice and (trip := find_trip_roles(names, roles, kinds)):
            notes.append("each row is a trip: it was read as where and when it begins, and where and when it ends")
            trip = _with_clocks(trip, kinds, requested, {}, label, notes)
            return Meaning(trip, tuple(notes), kinds, labels=labels)
        if {"lat", "lon"} <= first.keys() & last.keys():  # one end alone is no trip: nobody was there at that time
            ends = {first["lat"], first["lon"], last["lat"], last["lon"]} - {*requested.values()}
            roles = {role: name for role, name in roles.items() if name not in ends}
        if len(names) >= FEWEST_WIDE and (slots := find_wide_slots(names, roles)):
            note = f"each row is a day: {len(slots)} columns were read as its slots"
            own_roles = {role: name for role, name in roles.items() if role in WHOSE}
            return Meaning(
                own_roles | {f"{WIDE}{i}": name for i, name in enumerate(slots)}, (*notes, note), kinds, labels=labels
            )
        if "slot" not in roles and sum(kind in (*INSTANTS, "dates") for kind in kinds.values()) > 1:
            roles = _with_clocks(roles, kinds, requested, by_word, label, notes)
        if "slot" not in roles and kinds.get(roles.get("time", "")) in ("whole numbers", "0 or 1"):
            roles = _with_numbered_slots(roles, kinds, requested, by_word, names, records, notes)
        if (
            not {*PLACE_ROLES, "lon"} & roles.keys()
            and set(CELL) <= by_word.keys()
            and not set(requested) & set(PLACE_ROLES)
        ):
            x, y = (by_word[side] for side in CELL)
            cells = {kinds.get(x), kinds.get(y)} == {"whole numbers"} and _are_cells(
                [r[names.index(side)] for r in records for side in (x, y)]
            )
            roles |= {"x": x, "y": y} if cells else {"lat": y, "lon": x}
            what = "numbers of cells of a grid, 1 km wide" if cells else "longitude and latitude"
            notes.append(f"columns {x!r} and {y!r} were read as {what}")
        alone = [by_word[word] for word in PLACES_ALONE.split() if word in by_word]
        if alone and not {*PLACE_ROLES, "lon"} & {*roles, *requested}:
            roles["place"] = alone[0]
            notes.append(f"column {alone[0]!r} was read as the place (`columns`)")
        if not {"lat", "geometry"} & roles.keys() and "geometry" not in requested:
            pairs = [name for name, kind in kinds.items() if kind == "pairs of numbers"]
            if len(pairs) == 1:
                roles["geometry"] = pairs[0]
                if roles.get("place") == pairs[0]:
                    del roles["place"]
                notes.append(f"column {label[pairs[0]]!r} was read as latitude and longitude")
        if "category" in roles and _is_diary(roles, kinds, requested):
            roles["place"] = roles.pop("category")
            notes.append(f"no column of places: {label[roles['place']]!r} was read as the place")
        return Meaning(roles, tuple(notes), kinds, labels=labels)
    if len(names) == 3 and not requested and set(kinds.values()) <= {"whole numbers", "0 or 1"} and kinds:
        return Meaning(dict(zip(("user", "slot", "place"), names, strict=True)), (), kinds, True, labels)
    if not requested and (unnamed := _unnamed_slots(names, kinds)):
        whose = {"user": names[0]} if len(unnamed) < len(names) else {}
        note = f"each row is a day: {len(unnamed)} columns without names were read as its slots"
        note += "" if whose else ", and each row as another person's"
        return Meaning(whose | {f"{WIDE}{i}": name for i, name in enumerate(unnamed)}, (note,), kinds, labels=labels)
    guesses = {
        role: name for role, name in guess_roles(names, records, kinds, requested).items() if role not in requested
    }
    if guesses:
        note = ", ".join(f"{role}={name}" for role, name in guesses.items())
        notes.append(f"the first line holds no names: columns were read as {note} (`columns`)")
    return Meaning({**guesses, **roles}, tuple(notes), kinds, labels=labels)


def _with_clocks(
    roles: Mapping[str, str],
    kinds: Mapping[str, str],
    requested: Mapping[str, str | None],
    by_word: Mapping[str, str],
    labels: Mapping[str, str],
    notes: list[str],
) -> dict[str, str]:
    """Return the roles, with arrivals and departures of other names (SPANS), and with days and clocks by content."""
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


def _with_numbered_slots(
    roles: dict[str, str],
    kinds: Mapping[str, str],
    requested: Mapping[str, str | None],
    by_word: Mapping[str, str],
    names: Sequence[str],
    records: Sequence[Sequence[str]],
    notes: list[str],
) -> dict[str, str]:
    """Return the roles with a slot for the time, where small whole numbers count it beside a column of day numbers."""
    count, day = roles.get("time"), roles.get("trace", by_word.get("d"))
    if count is None or day is None or {"time", "slot"} & requested.keys() or {"utc", "local", "date"} & roles.keys():
        return roles
    if kinds.get(day) not in ("whole numbers", "0 or 1"):
        return roles
    at = list(names).index(count)
    if not all(0 <= _float(r[at]) < MOST_SLOTS for r in records if NUMERIC.fullmatch(r[at])):
        return roles
    notes.append(f"column {count!r} was read as the slot of the day, {day!r} as the number of the day (`columns`)")
    return {role: name for role, name in roles.items() if role != "time"} | {"slot": count, "trace": day}


def _are_cells(values: Sequence[str]) -> bool:
    """Tell whether whole numbers can count cells of 1 km: there are 40,000 around the Earth."""
    return all(abs(_float(v)) <= 40_000 for v in values if NUMERIC.fullmatch(v))


def find_wide_slots(names: Sequence[str], roles: Mapping[str, str]) -> list[str]:
    """
    Return the columns that are the slots of a day, in order; empty where the table has one line per slot or time.

    They are called by whole numbers that follow each other, behind one word or none, or by clock times equally far
    apart.

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
    # a column that tells when or where by its own name: one line per slot or time
    others = {name for role, name in roles.items() if role not in ("accuracy", "category")} - whose - {*slots}
    return slots if len(slots) >= FEWEST_WIDE and not others else []


def _unnamed_slots(names: Sequence[str], kinds: Mapping[str, str]) -> Sequence[str]:
    """Return the columns without names that are the slots of a whole day: all alike, perhaps behind one of ids."""
    for slots in (names, names[1:]):
        held = {kinds.get(name) for name in slots}
        if len(slots) in WHOLE_DAYS and (held <= {"whole numbers", "0 or 1"} or held == {"words"}):
            return slots
    return ()


def find_trip_roles(names: Sequence[str], roles: Mapping[str, str], kinds: Mapping[str, str] = {}) -> dict[str, str]:
    """
    Return the roles of a table of trips, empty where it is none: both ends have a time, and a position or a place.

    The time of the end may be how long the trip lasts (`seconds_each`); a date of an end is its time if it holds one.

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
    lasting = [name for name in names if seconds_each(name) is not None]
    if lasting and "time" in ends[0]:
        ends[1].setdefault("time", lasting[0])
    both = ends[0].keys() & ends[1].keys()
    if "time" not in both or not ({"lat", "lon"} <= both or "place" in both):
        return {}
    others = {role: name for role, name in roles.items() if role in ("user", "household", "date", "accuracy")}
    first, last = ({role: end[role] for role in AT_ITS_END if role in both} for end in ends)
    return {**others, **first, **{AT_ITS_END[role]: name for role, name in last.items()}}


def seconds_each(name: str) -> float | None:
    """Return the unit of a column of lengths of trips, 0 where its name has none; None where it holds no lengths."""
    lasts = LASTS.fullmatch(normalize_name(name))
    return None if lasts is None else UNITS.get(lasts[1])


def find_trip_ends(names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the columns that tell when and where a trip begins, and those that tell when and where it ends."""
    ends: tuple[dict[str, str], dict[str, str]] = ({}, {})
    begins, finishes = {*BEGINS.split()}, {*FINISHES.split()}
    for name in names:
        one = ONE_WORD[1].sub(r"\1_\2", ONE_WORD[0].sub(r"\1\2", name))
        words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", one)]
        # beside another word of an end, a stop is a place
        stop = "stop" in words and len({*words} & (begins | finishes)) > 1
        ends_of = [side_words - {"stop"} if stop else side_words for side_words in (begins, finishes)]
        sides = [side for side, side_words in enumerate(ends_of) if side_words & {*words}]
        if len(sides) != 1:
            continue
        rest = [word for word in words if word not in ends_of[sides[0]]]
        stems = ("".join(rest), "".join(word for word in rest if word not in BESIDE))
        role = next((r for r in AT_ITS_END for word in stems if word in SYNONYMS[r].split()), None)
        role = "time" if stems[0] == "at" else "place" if {*stems} & {*PLACES_ALONE.split(), "stop"} else role
        role = {"x": "lon", "y": "lat", "date": "date"}.get(stems[0], role)
        if role is not None:
            ends[sides[0]].setdefault(role, name)
    return ends


def _is_diary(roles: Mapping[str, str], kinds: Mapping[str, str], requested: Mapping[str, str | None]) -> bool:
    """Tell whether what people do stands for where they are: who and when are known, and nothing is a coordinate."""
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
    Return how messages call columns: by name, or by number where it is among the values or does not look like a name.

    Where the line of names is missing, the first row stands for it, and that is somebody's data.
    """
    labels = []
    for i, name in enumerate(names):
        word = (NAME.fullmatch(name) is not None and not COORDINATE.search(name)) or is_known(name)
        valued = any(i < len(r) and name in SEPARATED.split(r[i]) for r in records)  # a row may have become one value
        labels.append(name if word and not valued else f"#{i + 1}")
    # one name that is none: the line may be a row
    numbers = tuple(f"#{i}" for i in range(1, len(names) + 1))
    odd = any(label == number for label, number in zip(labels, numbers, strict=True))
    return numbers if odd and not any(map(is_known, names)) else tuple(labels)


def find_kind(values: Sequence[str]) -> str:
    """Return what a column holds, by some of its values, in words."""
    filled = [v for v in values if v and v not in NOTHING]
    if not filled:
        return "nothing"
    most = MOSTLY * len(filled)
    kind = next((kind for kind, fits in HELD if sum(map(bool, map(fits, filled))) >= most), "words")
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
    Return the roles of columns without names, as far as what they hold makes them certain.

    One column of times, or one of dates and one of clock times; two columns of degrees of at least three decimals, of
    which one cannot be a latitude, or would put everybody into the sea; and as the user the first column, if its values
    repeat, or the only one of words. If none is left that could be the user, it is the file. Where nothing is a
    position and one column is left whose values repeat, it is the place; so is the only column beside the time, and the
    file is the user.
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
        a, b = (np.array([_float(v) for v in column[name]]) for name in degrees)
        first = lat_first(a, b)
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
        roles["place"] = rest[0]  # who, when, and one thing more that recurs, such as an antenna
    if len(names) == 2 and not requested and "time" in roles and len(repeats) == 1:
        roles |= {"user": FILE, "place": repeats[0]}  # when and where: nothing but the file is left to tell who
    return roles


def _are_compact(name: str, values: Sequence[str]) -> bool:
    """Tell whether a column is called a time, and all it holds are clock times of four or of six digits."""
    widths = {len(v) for v in values if v}
    timely = TIMELY.search(normalize_name(name)) is not None
    return timely and len(widths) == 1 and all(re.match(COMPACT, v) for v in values if v)


def _float(value: str) -> float:
    return float(value.replace(",", ".")) if NUMERIC.fullmatch(value) else np.nan


def _are_degrees(values: Sequence[str]) -> bool:
    """Tell whether numbers are within 180 and have three decimals or more, as positions have."""
    filled = [v for v in values if NUMERIC.fullmatch(v)]
    fine = sum(len(re.split("[.,]", v)[-1]) >= 3 for v in filled if re.search("[.,]", v))
    within = sum(abs(_float(v)) <= 180 for v in filled)
    return bool(filled) and fine > len(filled) / 2 and within >= MOSTLY * len(filled)


def _repeats(values: Sequence[str]) -> bool:
    return len(set(values)) <= max(1, len(values) / 2)


def _is_place(values: Sequence[str], where: tuple[Floats, Floats]) -> bool:
    """Tell whether every value stands for one spot, and there are several."""
    spots: dict[str, set[tuple[float, float]]] = {}
    for value, lat, lon in zip(values, *where, strict=True):
        spots.setdefault(value, set()).add((round(float(lat), 3), round(float(lon), 3)))
    return len(spots) > 1 and sum(len(s) for s in spots.values()) <= 1.05 * len(spots)


def lat_first(a: Floats, b: Floats) -> bool | None:
    """Tell whether of two columns of degrees the first is the latitude; None where that cannot be told."""
    high = [float(np.mean(np.abs(side[np.isfinite(side)]) > 90)) for side in (a, b)]
    if max(high) > 1 - MOSTLY:
        return None if min(high) > 1 - MOSTLY else high[0] < high[1]
    # both could be: nobody lives at sea, or in the Antarctic
    land = []
    for lat, lon in ((a, b), (b, a)):
        zones = zones_at(lat, lon)
        share = 1.0 if zones is None else sum(map(bool, zones)) / max(1, len(zones))
        land.append(share * float(np.mean(lat[np.isfinite(lat)] > -60)))
    return land[0] > land[1] if max(land) > MOSTLY and min(land) < 0.5 else None


def missing_roles(roles: Mapping[str, str]) -> list[str]:
    """Return the roles that traces need and have no column for; of a slot no time is needed."""
    missing = [] if "user" in roles else ["user"]
    missing += [] if {"slot", *TIME_ROLES} & roles.keys() else ["time"]
    if {"lat", "lon"} & roles.keys() and "geometry" not in roles:
        return missing + [role for role in ("lat", "lon") if role not in roles and "place" not in roles]
    return missing if {*PLACE_ROLES} & roles.keys() else [*missing, "lat", "lon"]


def describe_missing(missing: Sequence[str], names: Sequence[str], meaning: Meaning, headed: bool, files: bool) -> str:
    """Return one sentence: which roles have no column, all columns that there are, and what to type."""
    free = [name for name in names if name not in meaning.roles.values()]
    # one column of numbers alone is hardly half a position
    lone = {"lat", "lon"} <= set(missing) and sum(meaning.kinds.get(n) == "decimal numbers" for n in free) == 1

    plates = any(normalize_name(name) in PEOPLE_ALONE.split() for name in free)

    def likely(role: str) -> str:
        kinds = {
            "user": ("words",) if plates else ("words", "whole numbers"),  # beside a plate, numbers may be speeds
            "time": ("dates with times", "times since 1970", "clock times", "dates"),
        }.get(role, ("decimal numbers",))
        column = None
        for kind in kinds:
            alike = [n for n in free if meaning.kinds.get(n) == kind]
            if role == "user":  # what is merely left over may be anything
                alike = [n for n in free if meaning.kinds.get(n) in kinds and n in meaning.varied]
            if alike:
                # one of many would be a guess; of coordinates the first two are said in both orders
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
        return (
            "each row is a trip, and no column tells who made it; an id that every trip has of its own tells nobody's "
            f"day, and without people nothing can be learnt; {_seen([labels.get(n, n) for n in names], {})}; if one is "
            "the id of a person, a vehicle or a card, give `columns` user=NAME."
        )
    first, last = find_trip_ends(names)
    if "lat" in missing and {"lat", "lon"} <= first.keys() & last.keys():
        where = [f"{role}={labels.get(first[role], first[role])}" for role in ("lat", "lon")]
        where += [f"{AT_ITS_END[role]}={labels.get(last[role], last[role])}" for role in ("lat", "lon")]
        when = [f"time={labels.get(meaning.roles.get('time', ''), first.get('time', 'NAME'))}", "end_time=NAME"]
        whose = ["user=NAME"] if "user" in missing else []
        sight = _seen([labels.get(n, n) for n in names], {})
        absent = f"each row has two ends, and a trip needs an end time, or how long it lasts; {sight}"
        return f"{absent}; give `columns` {_quoted(','.join([*whose, *when, *where]))}."
    words = [likely(role) for role in missing]
    example, projected = _quoted(",".join(words)), ""
    if {"lat", "lon"} <= set(missing):
        a, b = (word.partition("=")[2] for word in words[-2:])
        example += f" (or {_quoted(f'lat={b},lon={a}')})" if a != "NAME" and b != "NAME" else ""
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
    sight = _seen([labels.get(n, n) for n in names], {} if headed else meaning.kinds)
    absent = f"{no_names}no column for {', '.join(missing)}; {sight}; {_decoded(names)}{projected}"
    return f"{absent}give `columns` {example}{also}."


def _quoted(words: str) -> str:
    """Return words as a shell takes them for one."""
    return words if re.fullmatch(r"[\w=,#.:/%-]*", words) else shlex.quote(words)


def _decoded(names: Sequence[str]) -> str:
    """Return what to try where names of columns are no UTF-8."""
    return "some of these names are no UTF-8, try `encoding` cp1252; " if any("\ufffd" in n for n in names) else ""


def _seen(names: Sequence[str], kinds: Mapping[str, str]) -> str:
    words: list[str] = []
    for kind, run in groupby((n for n in names if n != FILE), key=lambda n: kinds.get(n, "")):
        alike = list(run)
        if kind and len(alike) >= FEWEST_WIDE:
            words.append(f"{alike[0]} to {alike[-1]} {kind}")
        else:
            words += [f"{n} {kind}" if kind else repr(n) for n in alike]
    return f"columns seen: {', '.join(words[:MOST_SHOWN])}{' ...' if len(words) > MOST_SHOWN else ''}"
