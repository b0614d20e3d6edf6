"""
A stranger's first try: `synthesize FILE -o DIR`, no option, on a file of every awkward kind; and the page about it.

One simulated town, moved to a city, is written in each shape that strangers' data have. Whatever the shape, the fakes
must be of the right people, at the town's places, by the right clock and on the right kind of day.
"""

import csv
import io
import json
import re
import shlex
import zipfile
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from makefiles import gpx, plt

import elsewhere as ew

pytestmark = [pytest.mark.filterwarnings("ignore:.* classes instead of"), pytest.mark.usefixtures("few_draws")]

PEOPLE, STEP = 80, 20  # minutes
FIRST = np.datetime64("2024-03-15")  # a Friday
CITIES = {  # latitude, longitude, hours ahead of UTC in March
    "beijing": (39.92, 116.40, 8),
    "denver": (39.74, -104.99, -6),
    "new york": (40.74, -73.98, -4),
    "san francisco": (37.76, -122.43, -7),
}


class Town:
    """The people of a simulated town in a city: a fix every 20 minutes of a Friday, a Saturday ..., some 20 m off."""

    def __init__(self, city, days=2):
        town = simulated(days)
        self.lat0, self.lon0, self.hours = CITIES[city]
        self.zone = timezone(timedelta(hours=self.hours))
        at = town.locations
        self.lat = at.lat - at.lat.mean() + self.lat0
        self.lon = (at.lon - at.lon.mean()) * np.cos(np.radians(46)) / np.cos(np.radians(self.lat0)) + self.lon0
        ground = np.column_stack([self.lat, self.lon * np.cos(np.radians(self.lat0))]) * 111  # km
        between = np.linalg.norm(ground[:, None] - ground[None], axis=2) + np.diag(np.full(len(ground), np.inf))
        self.spacing = np.median(between.min(axis=1))
        self.r, self.user = town.r, town.user
        rng = np.random.default_rng(5)
        row, slot = np.divmod(np.arange(self.r.size), self.r.shape[1])
        self.who, self.place = self.user[row], self.r.ravel()
        first = np.flatnonzero(np.r_[True, np.diff(self.user) != 0])
        self.day = (np.arange(len(self.user)) - first[np.searchsorted(first, np.arange(len(self.user)), "right") - 1])[
            row
        ]
        self.minute = slot * STEP + rng.integers(2, 18, size=self.r.size)
        self.y = self.lat[self.place] + rng.normal(0, 0.0002, self.r.size)
        self.x = self.lon[self.place] + rng.normal(0, 0.0002, self.r.size)

    def local(self, i):
        """The local time of fix `i`, with its offset."""
        start = datetime.fromisoformat(str(FIRST + self.day[i])).replace(tzinfo=self.zone)
        return start + timedelta(minutes=int(self.minute[i]))

    def fixes(self, chosen=None):
        """(user, local time, lat, lon, place) of all fixes, or of those of a mask."""
        for i in np.flatnonzero(np.ones(len(self.who), bool) if chosen is None else chosen):
            yield f"p{self.who[i]:03d}", self.local(i), self.y[i], self.x[i], int(self.place[i])

    def tracks(self):
        """The fixes by person: (UTC, lat, lon)."""
        found = {}
        for user, time, lat, lon, _ in self.fixes():
            found.setdefault(user, []).append((time.astimezone(UTC), lat, lon))
        return found


WEEK = 7  # days: check-ins are few a day, and come of many


@cache
def simulated(days):
    return ew.simulate_town(users=PEOPLE, locations=80, days=days, rng=np.random.default_rng(11)).traces


def moves_by_hour(user, time, place):
    """(24,) how many changes of place of one person within a day fall into each hour of the clock."""
    order = np.lexsort((time, user))
    user, time, place = user[order], time[order], place[order]
    day, hour = time.astype("datetime64[D]"), (time - time.astype("datetime64[D]")) // np.timedelta64(1, "h")
    moved = (user[1:] == user[:-1]) & (day[1:] == day[:-1]) & (place[1:] != place[:-1])
    return np.bincount(hour[1:][moved].astype(int), minlength=24).astype(float)


def real_moves(town, known):
    """The same of the people, as far as it is `known`: who was seen elsewhere has moved when he was seen there."""
    at = np.flatnonzero(known)
    time = np.array([town.local(i).replace(tzinfo=None) for i in at], dtype="datetime64[s]")
    return moves_by_hour(town.who[at], time, town.place[at])


def told_shift(fakes, real):
    """By how many hours the fakes' clock is ahead of the people's: the shift at which the two days look most alike."""
    smooth = [np.convolve(np.r_[m[-2:], m, m[:2]], [1, 2, 3, 2, 1], "valid") for m in (fakes, real)]
    alike = [np.corrcoef(np.roll(smooth[0], -h), smooth[1])[0, 1] for h in range(24)]
    best = int(np.argmax(alike))
    return best - 24 if best > 12 else best


# --- what a shape looks like: write(town, folder) -> path, and read(DIR) -> rows (user, time, lat, lon or place) -----


def table(path, head, rows, sep=",", encoding="utf-8"):
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=sep, lineterminator="\n")
    writer.writerows([head, *rows] if head else rows)
    path.write_bytes(sink.getvalue().encode(encoding))
    return path


def rows_of(out, sep=",", name="fakes.csv"):
    with (out / name).open(newline="") as file:
        return list(csv.DictReader(file, delimiter=sep))


def naive(town, folder):
    return table(
        folder / "traces.csv",
        ["uid", "datetime", "lat", "lng"],
        [[u, f"{t:%Y-%m-%d %H:%M:%S}", f"{y:.6f}", f"{x:.6f}"] for u, t, y, x, _ in town.fixes()],
    )


def read_naive(out, town):
    for row in rows_of(out):
        time = datetime.fromisoformat(row["datetime"])
        assert time.tzinfo is None  # local came in, local goes out
        yield row["uid"], time, float(row["lat"]), float(row["lng"])


def utc(town, folder):
    return table(
        folder / "traces.csv",
        ["uid", "datetime", "lat", "lng"],
        [[u, f"{t.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}", y, x] for u, t, y, x, _ in town.fixes()],
    )


def read_utc(out, town):
    for row in rows_of(out):
        time = datetime.fromisoformat(row["datetime"].replace("Z", "+00:00"))
        assert time.utcoffset() == timedelta(0)  # UTC came in, UTC goes out
        yield row["uid"], time.astimezone(town.zone).replace(tzinfo=None), float(row["lat"]), float(row["lng"])


def some(town):
    """A fix, then nothing for 1 to 12 hours."""
    rng, keep = np.random.default_rng(7), np.zeros(len(town.who), bool)
    at = 0
    while at < len(keep):
        keep[at] = True
        at += int(rng.integers(60, 720) / STEP)
    return keep


def sparse(town, folder):
    return table(
        folder / "traces.csv",
        ["uid", "datetime", "lat", "lng"],
        [[u, f"{t:%Y-%m-%d %H:%M:%S}", y, x] for u, t, y, x, _ in town.fixes(some(town))],
    )


def abroad(town, folder):
    # four of a hundred fixes on other continents: travellers' days
    away, rows = set(np.random.default_rng(7).choice(PEOPLE * 2, PEOPLE * 2 // 12, replace=False).tolist()), []
    for i, (u, t, y, x, _) in enumerate(town.fixes()):
        row, slot = divmod(i, 72)
        far = row in away and slot >= 36
        y, x = ((51.5, -0.12), (40.7, -74.0), (-33.9, 151.2))[row % 3] if far else (y, x)
        rows.append([u, f"{t:%Y-%m-%d %H:%M:%S}", y, x])
    assert 0.035 < np.mean([abs(row[3] - town.lon0) > 1 for row in rows]) < 0.05
    return table(folder / "traces.csv", ["uid", "datetime", "lat", "lng"], rows)


def doubled(town, folder):
    # every tenth fix twice in one minute, at two places
    rows = []
    for i, (u, t, y, x, _) in enumerate(town.fixes()):
        rows.append([u, f"{t:%Y-%m-%d %H:%M}", y, x])
        if i % 10 == 0:
            rows.append([u, f"{t:%Y-%m-%d %H:%M}", y + 0.01, x])
    return table(folder / "traces.csv", ["uid", "datetime", "lat", "lng"], rows)


def control_byte(town, folder):
    rows = [
        [u, f"{t:%Y-%m-%d %H:%M:%S}", y, x, "a caf\x01" if i == 9 else "b"]
        for i, (u, t, y, x, _) in enumerate(town.fixes())
    ]
    return table(folder / "traces.csv", ["uid", "datetime", "lat", "lng", "note"], rows)


def taxis(town, folder):
    (folder / "cabs").mkdir()
    for user, track in town.tracks().items():
        # newest first, as Cabspotting has them
        lines = [f"{y:.5f} {x:.5f} {i % 2} {int(t.timestamp())}\n" for i, (t, y, x) in enumerate(track)][::-1]
        (folder / "cabs" / f"new_{user}.txt").write_text("".join(lines))
    return folder / "cabs"


def headerless(town, folder):
    rows = [[u, f"{y:.6f}", f"{x:.6f}", f"{t:%Y-%m-%d %H:%M:%S}"] for u, t, y, x, _ in town.fixes()]
    return table(folder / "traces.csv", None, rows)


def year_last(town, folder):
    rows = [[u, f"{t:%d/%m/%Y %H:%M}", y, x] for u, t, y, x, _ in town.fixes()]
    return table(folder / "traces.csv", ["uid", "datetime", "lat", "lng"], rows)


def semicolons(town, folder):
    rows = [
        [u, f"{t:%d.%m.%Y %H:%M}", f"{y:.6f}".replace(".", ","), f"{x:.6f}".replace(".", ",")]
        for u, t, y, x, _ in town.fixes()
    ]
    return table(folder / "traces.csv", ["uid", "datetime", "lat", "lng"], rows, sep=";")


def date_and_clock(town, folder):
    rows = [[u, f"{t:%Y-%m-%d}", f"{t:%H:%M:%S}", y, x] for u, t, y, x, _ in town.fixes()]
    return table(folder / "traces.csv", ["uid", "date", "time", "lat", "lng"], rows)


def xlsx(town, folder):
    """A workbook as small as can be: one sheet, texts inline."""
    rows = [["uid", "datetime", "lat", "lng"]]
    rows += [[u, f"{t:%Y-%m-%d %H:%M:%S}", float(y), float(x)] for u, t, y, x, _ in town.fixes()]

    def cell(value):
        if isinstance(value, float):
            return f"<c><v>{value!r}</v></c>"
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'

    lines = "".join(f'<row r="{i}">{"".join(map(cell, row))}</row>' for i, row in enumerate(rows, start=1))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    doc = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    kinds = "http://schemas.openxmlformats.org/package/2006/content-types"
    rels = "http://schemas.openxmlformats.org/package/2006/relationships"
    sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{kinds}"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType='
        f'"application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{sheet}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{sheet}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{rels}"><Relationship Id="rId1" Type="{doc}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{doc}"><sheets><sheet name="traces" sheetId="1" '
        'r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{rels}"><Relationship Id="rId1" '
        f'Type="{doc}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(folder / "traces.xlsx", "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in parts.items():
            book.writestr(name, '<?xml version="1.0" encoding="UTF-8"?>\n' + content)
    return folder / "traces.xlsx"


KINDS_OF_VENUE = ("Home (private)", "Office", "School", "Shop", "Bar", "Train Station")
FOURSQUARE = [
    "userId",
    "venueId",
    "venueCategoryId",
    "venueCategory",
    "latitude",
    "longitude",
    "timezoneOffset",
    "utcTimestamp",
]


def venue(place):
    return f"{place * 7919 + 4096:024x}"


def few(town):
    """Some five fixes a day."""
    return np.random.default_rng(7).random(len(town.who)) < 0.07


def check_ins(town, folder):
    """Check-ins of a week, in the columns of the published check-ins of New York."""
    rows = []
    for u, t, _, _, place in town.fixes(few(town)):
        kind = KINDS_OF_VENUE[place % len(KINDS_OF_VENUE)]
        stamp = f"{t.astimezone(UTC):%a %b %d %H:%M:%S +0000 %Y}"
        rows.append(
            [u[1:], venue(place), f"{place % 6:024x}", kind, town.lat[place], town.lon[place], town.hours * 60, stamp]
        )
    return table(folder / "checkins.csv", FOURSQUARE, rows)


def diary(town, folder):
    rows = [
        [u, f"{t:%Y-%m-%d}", f"{t.hour:02}:{t.minute // 20 * 20:02}", f"place {place}"]
        for u, t, _, _, place in town.fixes()
    ]
    return table(folder / "diary.csv", ["person", "date", "time", "place"], rows)


def diary_slots(town, folder):
    rows = [[u, i // 72 % 2 + 1, i % 72, f"place {p}"] for i, (u, _, _, _, p) in enumerate(town.fixes())]
    return table(folder / "diary.csv", ["person", "day", "slot", "place"], rows)


def geolife(town, folder):
    for i, track in enumerate(town.tracks().values()):
        below = folder / "Data" / f"{i:03d}" / "Trajectory"
        below.mkdir(parents=True)
        for day in sorted({t.date() for t, _, _ in track}):
            points = [p for p in track if p[0].date() == day]
            (below / f"{day:%Y%m%d}000000.plt").write_text(plt(points))
    return folder / "Data"


def gpx_folder(town, folder):
    (folder / "tracks").mkdir()
    for user, track in town.tracks().items():
        (folder / "tracks" / f"{user}.gpx").write_text(gpx(track).replace("<name>ann</name>", ""))
    return folder / "tracks"


def timeline(town, folder):
    (folder / "phones").mkdir()
    for user, track in town.tracks().items():
        here = [(t.astimezone(town.zone), y, x) for t, y, x in track]
        path = [{"point": f"{y:.7f}°, {x:.7f}°", "time": t.isoformat(timespec="milliseconds")} for t, y, x in here]
        first, last = path[0]["time"], path[-1]["time"]
        segments = [{"startTime": first, "endTime": last, "timelinePath": path}]
        (folder / "phones" / f"{user}.json").write_text(json.dumps({"semanticSegments": segments, "rawSignals": []}))
    return folder / "phones"


def trips(town, folder):
    """GeoJSON as kepler.gl animates it: longitude, latitude, altitude, seconds."""
    features = []
    for user, track in town.tracks().items():
        line = [[round(x, 6), round(y, 6), 0, int(t.timestamp())] for t, y, x in track]
        shape = {"type": "LineString", "coordinates": line}
        features.append({"type": "Feature", "properties": {"vendor": user, "id": user}, "geometry": shape})
    (folder / "trips.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return folder / "trips.geojson"


def few_dates(town, folder):
    """Everybody on two days of their own, a weekday and a Saturday: hardly any date is shared by five people."""
    rows = []
    for u, t, y, x, _ in town.fixes():
        t = t + timedelta(weeks=int(u[1:]) % 40)
        rows.append([u, f"{t:%Y-%m-%d %H:%M:%S}", y, x])
    return table(folder / "traces.csv", ["uid", "datetime", "lat", "lng"], rows)


def read_taxis(out, town):
    for row in rows_of(out):
        values = list(row.values())
        stamp = next(float(v) for v in values if re.fullmatch(r"1[67]\d{8}(\.0)?", v))
        lat, lon = (float(v) for v in values if re.fullmatch(r"-?\d+\.\d+", v) and abs(float(v)) <= 180)
        time = datetime.fromtimestamp(stamp, town.zone).replace(tzinfo=None)
        user = next(v for v in values if re.fullmatch(r"[0-9a-f]{32}", v))
        yield user, time, lat, lon


def read_headerless(out, town):
    with (out / "fakes.csv").open(newline="") as file:
        for line in csv.reader(file):
            if not re.fullmatch(r"[0-9a-f]{32}", line[0]):
                continue  # a header line, if there is one
            lat, lon = (float(v) for v in line if re.fullmatch(r"-?\d+\.\d+", v))
            time = next(datetime.fromisoformat(v) for v in line if re.match(r"\d{4}-\d\d-\d\d", v))
            yield line[0], time, lat, lon


def read_year_last(out, town):
    for row in rows_of(out):
        yield row["uid"], day_first(row["datetime"]), float(row["lat"]), float(row["lng"])


def day_first(text):
    found = re.fullmatch(r"(\d\d)[/.](\d\d)[/.](\d{4}) (\d\d):(\d\d)(?::(\d\d))?", text)
    if found is None:
        return datetime.fromisoformat(text)
    day, month, year, hour, minute = (int(found[i]) for i in range(1, 6))
    return datetime(year, month, day, hour, minute, int(found[6] or 0))


def read_semicolons(out, town):
    sep = ";" if ";" in (out / "fakes.csv").read_text().splitlines()[0] else ","
    for row in rows_of(out, sep):
        lat, lon = (float(row[n].replace(",", ".")) for n in ("lat", "lng"))
        yield row["uid"], day_first(row["datetime"]), lat, lon


def read_two(out, town):
    for row in rows_of(out):
        yield row["uid"], datetime.fromisoformat(f"{row['date']}T{row['time']}"), float(row["lat"]), float(row["lng"])


def read_check_ins(out, town):
    for row in rows_of(out):
        stamp = row["utcTimestamp"]
        try:
            time = datetime.strptime(stamp, "%a %b %d %H:%M:%S %z %Y")
        except ValueError:
            time = datetime.fromisoformat(stamp.replace("Z", "+00:00"))
        yield row["userId"], time.astimezone(town.zone).replace(tzinfo=None), row["venueId"], None


def read_diary(out, town):
    for row in rows_of(out):
        yield row["person"], datetime.fromisoformat(f"{row['date']}T{row['time']}"), row["place"], None


def read_diary_slots(out, town):
    for row in rows_of(out):
        time = datetime(2024, 3, 15) + timedelta(days=int(row["day"]), minutes=STEP * int(row["slot"]))
        yield row["person"], time, row["place"], None


def read_gpx(out, town):
    space = "{http://www.topografix.com/GPX/1/1}"
    for number, track in enumerate(ElementTree.parse(out / "fakes.gpx").iter(f"{space}trk")):  # noqa: S314
        for point in track.iter(f"{space}trkpt"):
            time = datetime.fromisoformat(point.find(f"{space}time").text.replace("Z", "+00:00"))
            local = time.astimezone(town.zone).replace(tzinfo=None)
            yield str(number), local, float(point.get("lat")), float(point.get("lon"))


def read_trips(out, town):
    for number, feature in enumerate(json.loads((out / "fakes.geojson").read_text())["features"]):
        for (lon, lat), stamp in zip(
            feature["geometry"]["coordinates"], feature["properties"]["datetimes"], strict=True
        ):
            when = datetime.fromisoformat(stamp)
            yield str(number), when.astimezone(town.zone).replace(tzinfo=None), lat, lon


def read_any(out, town):
    """Formats that are no table: the usual columns, whichever of UTC and local time they hold."""
    for row in rows_of(out):
        name = next(n for n in ("datetime", "time", "utc") if n in row)
        time = datetime.fromisoformat(row[name].replace("Z", "+00:00"))
        local = time if time.tzinfo is None else time.astimezone(town.zone).replace(tzinfo=None)
        lon = row["lng"] if "lng" in row else row["lon"]
        yield next(iter(row.values())), local, float(row["lat"]), float(lon)


RIDE = ["driver_id", "pickup_datetime", "dropoff_datetime"]
RIDE += [f"{end}_{side}" for end in ("pickup", "dropoff") for side in ("latitude", "longitude")]


def rides(town, folder):
    """Trips of vehicles: where and when somebody got in, and out."""
    rows, last = [], None
    for fix in town.fixes():
        if last is not None and last[0] == fix[0] and last[4] != fix[4]:
            where = [f"{each:.6f}" for each in (*last[2:4], *fix[2:4])]
            rows.append([fix[0], f"{last[1]:%Y-%m-%d %H:%M:%S}", f"{fix[1]:%Y-%m-%d %H:%M:%S}", *where])
        last = fix
    return table(folder / "rides.csv", RIDE, rows)


def read_rides(out, town):
    """Each trip as where it begins and where it ends, in the columns of the input."""
    for row in rows_of(out):
        assert list(row) == RIDE
        for end in ("pickup", "dropoff"):
            where = [float(row[f"{end}_{side}"]) for side in ("latitude", "longitude")]
            yield row["driver_id"], datetime.fromisoformat(row[f"{end}_datetime"]), *where


def calls(town, folder):
    """Calls by the id of a tower, one in each slot; and the towers."""
    (folder / "calls").mkdir()
    rows = [[u, f"{t:%Y-%m-%d %H:%M:%S}", 60, f"place {place}"] for u, t, _, _, place in town.fixes()]
    table(folder / "calls" / "calls.csv", ["caller_id", "call_start", "duration", "cell_id"], rows)
    where = [[f"place {p}", f"{y:.5f}", f"{x:.5f}"] for p, (y, x) in enumerate(zip(town.lat, town.lon, strict=True))]
    table(folder / "calls" / "towers.csv", ["cell_id", "latitude", "longitude"], where)
    return folder / "calls"


def doors(town, folder):
    """A log of a dozen doors: everybody's home is the entrance, where their nights count."""
    home = {f"p{who:03d}": np.bincount(town.place[town.who == who]).argmax() for who in np.unique(town.who)}
    rows = [
        [f"{t:%m/%d/%Y %I:%M:%S %p}", u, "Entrance" if place == home[u] else f"Door {place % 11}"]
        for u, t, _, _, place in town.fixes()
    ]
    return table(folder / "doors.csv", ["Timestamp", "Badge", "Door"], rows)


def grid(town, folder):
    """Whole numbers only: person, day, half hour and cell."""
    cells = [np.rint((side - side.min()) / (side.max() - side.min()) * 30).astype(int) for side in (town.lon, town.lat)]
    rows = {
        (who, day, minute // 30): (cells[0][place], cells[1][place])
        for who, day, minute, place in zip(town.who, town.day, town.minute, town.place, strict=True)
    }
    return table(folder / "grid.csv", ["uid", "d", "t", "x", "y"], [[*key, *cell] for key, cell in rows.items()])


def read_calls(out, town):
    for row in rows_of(out):
        yield row["caller_id"], datetime.fromisoformat(row["call_start"]), row["cell_id"], None


ALL = PEOPLE
# shape: how it is written, where, how its fakes are read, people with a usable day at least, and what is typed too
SHAPES = {
    "naive local times": (naive, "denver", read_naive, ALL, []),
    "times in UTC": (utc, "denver", read_utc, ALL, []),
    "gaps of 1 to 12 hours": (sparse, "denver", read_naive, 0.8 * PEOPLE, []),
    "4 % of the points abroad": (abroad, "beijing", read_naive, 0.95 * PEOPLE, []),
    "two places in one minute": (doubled, "denver", read_naive, ALL, []),
    "a control byte in a column nobody reads": (control_byte, "denver", read_naive, ALL, []),
    "taxis, a file each, blanks, no header": (taxis, "san francisco", read_taxis, ALL, []),
    "no header, columns by number": (
        headerless,
        "denver",
        read_headerless,
        ALL,
        ["--columns", "user=#1,lat=#2,lon=#3,time=#4"],
    ),
    "year-last dates": (year_last, "denver", read_year_last, ALL, []),
    "semicolons and decimal commas": (semicolons, "denver", read_semicolons, ALL, []),
    "a date column and a clock column": (date_and_clock, "denver", read_two, ALL, []),
    "Excel": (xlsx, "denver", read_naive, ALL, []),
    "check-ins with venues and categories": (check_ins, "new york", read_check_ins, 0.8 * PEOPLE, []),
    "a diary without coordinates": (diary, "denver", read_diary, ALL, []),
    "a diary of days and slots": (diary_slots, "denver", read_diary_slots, ALL, []),
    "a GeoLife folder": (geolife, "beijing", read_any, ALL, []),
    "a GPX folder": (gpx_folder, "denver", read_gpx, ALL, []),
    "Google Timeline of several phones": (timeline, "denver", read_any, ALL, []),
    "GeoJSON trips with time as 4th coordinate": (trips, "new york", read_trips, ALL, []),
    "trips with two ends": (rides, "new york", read_rides, 0.8 * PEOPLE, []),
    "calls and towers": (calls, "denver", read_calls, ALL, []),
    "dates that few people share": (few_dates, "denver", read_naive, ALL, []),
}
NAMED = {
    "check-ins with venues and categories",
    "calls and towers",
    "a diary without coordinates",
    "a diary of days and slots",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_first_try_gives_fakes(run, tmp_path, shape):
    write, city, read, least, typed = SHAPES[shape]
    town, out = Town(city, WEEK if write is check_ins else 2), tmp_path / "fakes"
    source = write(town, tmp_path)
    status, said, err = run("synthesize", source, "-o", out, *typed, "--no-report", "--json")
    assert status == 0, err
    told = json.loads(said)

    # people
    assert told["read"]["users"] + told["read"]["users_dropped"] == PEOPLE
    assert told["users"] >= least
    assert told["fakes"] >= 0.6 * told["seeds"]
    user, time, one, two = zip(*read(out, town), strict=True)
    days = {(u, t.date()) for u, t in zip(user, time, strict=True)}
    # a fake lives for days; what has no dates has a user for each; who travels nowhere on a day has no trip
    assert told["days"] in (len(days), len(set(user))) or (write is rides and len(days) > 0.8 * told["days"])

    assert any("every trip lasts one slot, " in note for note in told["notes"]) is (write is rides)

    # places
    if shape in NAMED:
        names = {venue(p) for p in range(town.r.max() + 1)} | {f"place {p}" for p in range(town.r.max() + 1)}
        assert set(one) <= names
        where = np.unique(np.array(one), return_inverse=True)[1]
    else:
        lat, lon = np.array(one, dtype=float), np.array(two, dtype=float)
        wide = np.cos(np.radians(town.lat0))
        near = np.min(
            [np.hypot(lat - y, (lon - x) * wide) * 111 for y, x in zip(town.lat, town.lon, strict=True)], axis=0
        )
        # a place stands for its neighbours, which eight people share: near the town's own, which lie so far apart
        assert near.max() < 2 * town.spacing
        where = np.unique(np.round(np.column_stack([lat, lon]), 5), axis=0, return_inverse=True)[1].ravel()
    assert len(np.unique(where)) >= 10  # of 80, where eight people must share each: the town is still a town

    # clock
    who = np.unique(np.array(user), return_inverse=True)[1]
    when = np.array(time, dtype="datetime64[s]")
    known = {sparse: some, check_ins: few}.get(write, lambda town: np.ones(len(town.who), bool))(town)
    assert abs(told_shift(moves_by_hour(who, when, where), real_moves(town, known))) <= 1 + (not known.all())

    # kind of day: a fake of a Saturday is on a Saturday
    links = rows_of(tmp_path / "fakes-private", name="links.csv")
    if links and "date" in links[0] and read is not read_diary_slots:
        seeds = [datetime.fromisoformat(row["date"]).weekday() >= 5 for row in links]
        assert 0 < sum(seeds) < len(seeds)
        assert len(seeds) == len(days) or write is rides
        # a life has the days of somebody like its seed; tracks are numbered anew: about as many of each kind together
        assert abs(sum(date.weekday() >= 5 for _, date in days) - sum(seeds)) <= 0.1 * len(days)
        of = Counter((row["fake"], at) for row, at in zip(links, seeds, strict=True))
        if {row["fake"] for row in links} <= set(user):
            assert (of & Counter((u, date.weekday() >= 5) for u, date in days)).total() >= 0.9 * len(days)


# --- docs/data.md ----------------------------------------------------------------------------------------------------


def geolife_folder(town, folder):
    (folder / "Geolife").mkdir()
    geolife(town, folder / "Geolife")


def spreadsheet(town, folder):
    semicolons(town, folder).rename(folder / "spreadsheet.csv")


PAGE = (Path(__file__).resolve().parents[1] / "docs" / "data.md").read_text()
COMMANDS = re.findall(r"^elsewhere .*", "\n".join(re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)), re.M)
FILES = {
    "Geolife/Data": (geolife_folder, "beijing"),
    "cabs": (taxis, "san francisco"),
    "checkins.csv": (check_ins, "new york"),
    "rides.csv": (rides, "new york"),
    "calls": (calls, "denver"),
    "grid.csv": (grid, "denver"),
    "doors.csv": (doors, "denver"),
    "diary.csv": (diary, "denver"),
    "phones": (timeline, "denver"),
    "tracks": (gpx_folder, "denver"),
    "traces.xlsx": (xlsx, "denver"),
    "spreadsheet.csv": (spreadsheet, "denver"),
}


SHAPED = {write for write, _, _, _, typed in SHAPES.values() if not typed} | {geolife_folder, spreadsheet}


def shaped(command):
    """Whether a shape above is tried by the same command."""
    _, _, source, *typed = shlex.split(command)
    return typed == ["-o", "fakes"] and FILES[source][0] in SHAPED


@pytest.mark.parametrize("command", [command for command in COMMANDS if not shaped(command)])
def test_every_other_command_of_the_page_works(run, tmp_path, monkeypatch, few_draws, command):
    words = shlex.split(command)[1:]
    if words[1] == "doors.csv":  # among a dozen places few lives pass: 32 to 56 of 56 in 24 runs, and once 3
        for name, value in few_draws.items():
            monkeypatch.setattr(f"elsewhere.{name}", value)
        words += ["--seed", "1", "--i-know"]
    write, city = FILES[words[1]]
    write(Town(city, WEEK if write is check_ins else 2), tmp_path)
    monkeypatch.chdir(tmp_path)
    # the report is not what is tried here, and takes longest
    status, said, err = run(*words, *(["--no-report"] if words[0] == "synthesize" else []), "--json")
    assert status == 0, err
    assert json.loads(said)["fakes"] >= 0.3 * PEOPLE
    pool = ew.Pool.load("fakes")
    assert (pool.traces.U, len(pool)) == (json.loads(said)["fakes"], json.loads(said)["days"])


def test_the_page_has_all_commands_and_kinds_of_file():
    assert len(COMMANDS) == len(PAGE.split("\nelsewhere ")) - 1 >= 12
    assert {shlex.split(command)[2] for command in COMMANDS} == set(FILES)


# --- few people ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("people", [12, 15, 20])
def test_few_people_are_told_all_in_one_message_and_what_it_says_works(run, tmp_path, people):
    town = ew.simulate_town(users=people, locations=150, rng=np.random.default_rng(people)).traces
    ew.write_traces(town, tmp_path / "few.csv")
    words = ["synthesize", tmp_path / "few.csv", "-o", tmp_path / "fakes", "--no-report", "--seed", "1", "--i-know"]
    status, said, err = run(*words)
    assert (status, said) in ((2, ""), (3, ""))
    assert list(tmp_path.glob("fakes*")) == []
    line = next(line for line in err.splitlines() if not line.startswith("warning"))
    assert f"There are {people} people with a usable day" in line
    # nine others for each fake, and five people to learn from, who share a place
    assert 'preset "product" needs at least 14 and 5: give more people' in line
    less = ["-k", "3", "--set", "m_min=2", "--set", "c_min=1"]  # what the line offers
    status, said, err = run(*words, *less, "--json")
    assert status == 0, err
    assert json.loads(said)["fakes"] >= 1


def test_places_that_few_people_share_are_joined_aloud(run, tmp_path):
    town = ew.simulate_town(users=30, locations=150, rng=np.random.default_rng(30)).traces
    columns = {"user": "uid", "time": "datetime", "lat": "lat", "lon": "lng"}
    ew.write_traces(town, tmp_path / "some.csv", columns=columns)
    words = ["synthesize", tmp_path / "some.csv", "--no-report", "--json", "--seed", "1", "--i-know"]
    status, said, err = run(*words, "-o", tmp_path / "fakes")
    assert status == 0, err
    told = json.loads(said)
    (note,) = (note for note in told["read"]["notes"] if "were joined" in note)
    before, of, after, places, cells = (int(n) for n in re.findall(r"\d+", note))
    assert before < 10 <= after <= places == told["read"]["places"] < of == cells
    assert told["fakes"] >= 0.5 * told["seeds"]
    # the places of a fake are those of the note, and the option that it names leaves them alone
    pool = ew.Pool.load(tmp_path / "fakes")
    assert len(np.unique(pool.traces.r)) <= places
    status, said, err = run(*words, "-o", tmp_path / "asked", "--cells", str(cells))
    assert "were joined" not in said
    assert status in (2, 3) or json.loads(said)["fakes"] <= told["fakes"]


def test_places_that_make_one_class_give_fakes_that_say_so(run, tmp_path):
    town = ew.simulate_town(users=30, locations=150, days=2, rng=np.random.default_rng(30)).traces
    ew.write_traces(
        town, tmp_path / "some.csv", columns={"user": "uid", "time": "datetime", "lat": "lat", "lon": "lng"}
    )
    words = ["--cells", "8", "--places", "merge", "--no-report", "--json"]
    status, said, err = run("synthesize", tmp_path / "some.csv", "-o", tmp_path / "fakes", *words)
    assert status == 0, err
    assert any("all places are in one class" in note for note in json.loads(said)["notes"])
