"""
The catalogue of bad inputs (docs/reliability.md, B1-B60): one row per input, with the answer that is written there.

Every row goes through the command line, `elsewhere prepare --json`. A refusal: exit 2, one line with the code, the same
as an object on stdout, nothing written, and no id or coordinate of the input anywhere. What is accepted, repaired or
dropped: exit 0, the counts and words of the row, private files, and again no id or coordinate. A new input is a new
row of CASES. Rows on gaps and places stand in test_inputs_places.py, rows on what is learnt, made and written in
test_inputs_making.py; `test_every_number_has_a_row` counts all three.
"""

import gzip
import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import makefiles
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from makefiles import read_together

import elsewhere as ew
from elsewhere.cli import app
from elsewhere.traces import sources

CANARIES = ("CANARY", "46.519", "6.632")
ANN, BOB = "CANARY-7f3a", "CANARY-9c2e"
HEAD = "uid,datetime,lat,lng\n"
STAMPS = [f"2013-04-15 {h:02}:{m:02}:00" for h in range(24) for m in (10, 30, 50)]
LINES = [f"{u},{t},46.519{9 * (u[-1] == 'e')},6.632\n" for u in (ANN, BOB) for t in STAMPS]
PLAIN = HEAD + "".join(LINES)


@dataclass(frozen=True)
class Case:
    """An input: how to make it, how to read it, and the answer: a code, or the counts of what is read after all."""

    number: str
    what: str
    content: str | bytes | Callable[[Path], Any]
    code: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    rows: int | None = 2  # of the traces
    check: Callable[[ew.Traces], bool] | None = None
    beside: Mapping[str, str] = field(default_factory=dict)  # further files, for options that name one


def change(old, new, lines=144):
    """The plain file with `old` replaced in the first lines."""
    return HEAD + "".join(line.replace(old, new) for line in LINES[:lines]) + "".join(LINES[lines:])


def column(place, value, lines=1):
    """The plain file with another value in a column of the first lines."""
    changed = []
    for line in LINES[:lines]:
        parts = line.rstrip("\n").split(",")
        parts[place] = value
        changed.append(",".join(parts) + "\n")
    return HEAD + "".join(changed) + "".join(LINES[lines:])


def days(*dates, zone=""):
    return HEAD + "".join(
        f"{ANN},{d} {h:02}:{m:02}:00{zone},46.519,6.632\n" for d in dates for h in range(24) for m in (10, 30, 50)
    )


def make(name, content=PLAIN):
    def inside(folder):
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return inside


def fifo(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def zipped(folder):
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("../../evil.csv", PLAIN)
    return folder / "a.zip"


def dead_link(folder):
    (folder / "link.csv").symlink_to(folder / "nowhere")
    return folder / "link.csv"


def parquet(folder, **columns):
    pq.write_table(pa.table(columns), folder / "a.parquet", store_schema=False)
    return folder / "a.parquet"


def rows_without_end(folder):
    # five million rows of one value in some kB; at 300 bytes a row more than the memory that the fixture allows
    same = pa.array(np.zeros(5 * 10**6, np.int8))
    return parquet(folder, uid=same, ts=same, lat=same, lng=same)


def text_without_end(folder):
    n, text = 100_000, pa.array(["CANARY" * 20_000])
    same = pa.array(np.zeros(n, np.int32))
    return parquet(folder, uid=pa.DictionaryArray.from_arrays(same, text), ts=same, lat=same, lng=same)


def million_users(folder):
    # the first of them has 200 slots, so all have
    user = np.concatenate([np.zeros(200, np.int64), np.arange(1, 10**6)])
    slot = np.concatenate([np.arange(200), np.zeros(10**6 - 1, np.int64)])
    return parquet(folder, uid=user, slot=slot, loc=np.zeros(len(user), np.int64))


def geojson(latitude):
    """Two days of points, the first of which has another latitude."""
    return makefiles.geojson_points(makefiles.fixes(days=2)).replace("46.5191", latitude, 1)


def without_seconds(text):
    return re.sub(r"(\d\d:\d\d):00,", r"\1,", text)


def at_midnight(traces):
    return bool(traces.r[0, 0] >= 0)


def bomb(folder):
    # 80 MB of blanks in 80 kB; the cap is set to 32 MB for this test
    return make("bomb.csv.gz", gzip.compress(b" " * (80 << 20), 9))(folder)


def two_files(folder):
    (folder / "all").mkdir()
    (folder / "all" / "1.csv").write_text(HEAD + "".join(LINES[:30]))
    (folder / "all" / "2.csv").write_text(HEAD + "".join(LINES[30:]))
    return folder / "all"


def short_file(number):
    def inside(folder):
        two_files(folder)
        (folder / "all" / "3.csv").write_text(HEAD + LINES[0] + f"{ANN},46.519\n" * number + LINES[1])
        return folder / "all"

    return inside


def places(traces):
    return [(round(a, 2), round(b, 2)) for a, b in zip(traces.locations.lat, traces.locations.lon, strict=True)]


GZ = gzip.compress(PLAIN.encode())
UTC = {"tz": "UTC"}
MERCATOR = "738264.9"
SLOTS = "uid,slot,loc\n"
NESTED = (
    '{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"uid": "CANARY"}, "geometry": '
    '{"type": "GeometryCollection", "geometries": [{"type": "GeometryCollection", "geometries": []}]}}]}'
)
CASES = [
    Case("B1", "missing", lambda folder: folder / "none.csv", "E_OPEN"),
    Case("B1", "an empty folder", lambda folder: folder, "E_OPEN"),
    Case("B1", "a pipe", fifo, "E_OPEN"),
    Case("B1", "a device", lambda folder: Path("/dev/zero"), "E_OPEN"),
    Case("B1", "a link to nowhere", dead_link, "E_OPEN"),
    Case("B1", "an endless name", lambda folder: folder / ("a" * 300), "E_OPEN"),
    Case("B2", "no bytes", "", "E_EMPTY"),
    Case("B2", "names only", HEAD, "E_EMPTY"),
    Case("B2", "blank lines", "\n \r\n\n\t\n", "E_EMPTY"),
    Case("B3", "byte order mark", PLAIN.encode("utf-8-sig")),
    Case("B4", "UTF-16 LE", b"\xff\xfe" + PLAIN.encode("utf-16-le")),
    Case("B4", "UTF-16 BE", b"\xfe\xff" + PLAIN.encode("utf-16-be")),
    Case("B4", "half of UTF-16", b"\xff\xfe" + PLAIN.encode("utf-16-le")[:-1], "E_ENCODING"),
    Case("B5", "Latin-1", change("CANARY", "CANARY\u00e9").encode("latin-1"), "E_ENCODING"),
    Case("B5", "Latin-1, and said so", change("CANARY", "\u00e9").encode("latin-1"), options={"encoding": "latin-1"}),
    Case("B6", "NUL in one id", change("CANARY", "CANARY\0", 1), dropped={"E_ENCODING": 1}),
    Case("B6", "a control character in one id", change("CANARY", "CANARY\x1b", 1), dropped={"E_ENCODING": 1}),
    Case("B6", "in a time", column(1, "2013-04-15\x01 00:10:00"), dropped={"E_DATE": 1}),
    Case("B6", "in a number", column(2, "46\0"), dropped={"E_NUMBER": 1}),
    Case("B6", "in two ids", change("CANARY", "CANARY\0", 2), "E_ENCODING"),
    Case("B6", "in a column that is not read", PLAIN.replace("lng", "lng,x", 1).replace("6.632\n", "6.632,\0\x1b\n")),
    Case("B6", "no text at all", bytes(range(256)) * 9, "E_ENCODING"),
    Case(
        "B5",
        "Latin-1 in a column that is not read",
        PLAIN.replace("lng", "lng,x", 1).replace("6.632\n", "6.632,\u00e9\n").encode("latin-1"),
    ),
    Case("B7", "CR", PLAIN.replace("\n", "\r")),
    Case("B7", "CRLF", PLAIN.replace("\n", "\r\n")),
    Case(
        "B7", "mixed, no last newline", (HEAD + "".join(LINES[:9]).replace("\n", "\r\n") + "".join(LINES[9:])).rstrip()
    ),
    Case("B8", "the last line is cut", PLAIN + f"{ANN},2013-04", "E_TRUNCATED"),
    Case("B8", "and may be", PLAIN + f"{ANN},2013-04", options={"allow_truncated": True}, note="cut off"),
    Case("B8", "a cut document", make("a.json", f'[{{"uid": "{ANN}", "lat": 46.519}}, {{"a": [1]'), "E_TRUNCATED"),
    Case("B8", "a short line within", HEAD + f"{ANN},46.519\n" + "".join(LINES), dropped={"E_CSV": 1}),
    Case("B8", "a long line within", change(",6.632", ",6.632,1", 1), dropped={"E_CSV": 1}),
    Case("B8", "a short line in a short file of a folder", short_file(1), dropped={"E_CSV": 1}),
    Case("B8", "several", short_file(4), "E_CSV"),
    Case("B8", "nothing but long lines", HEAD + f"{ANN},1,2,3,4\n" * 9, "E_CSV", {"max_bad": 1}),
    Case("B8", "none may be", change(",6.632", ",6.632,1", 1), "E_CSV", {"max_bad": 0}),
    Case("B8", "too many short lines", HEAD + f"{ANN},46.519\n" * 2 + "".join(LINES), "E_CSV"),
    Case("B8", "but allowed", HEAD + f"{ANN}\n" * 2 + "".join(LINES), options={"max_bad": 0.1}, dropped={"E_CSV": 2}),
    Case("B8", "short and unreadable, too many", column(1, "?") + f"{ANN},1\n" + LINES[0], "E_DATE"),
    Case("B8", "a short one and a cut one", change(",6.632", "", 1) + f"{ANN},2013-04", "E_TRUNCATED"),
    Case(
        "B8",
        "which may be",
        change(",6.632", "", 1) + f"{ANN},2013-04",
        options={"allow_truncated": True},
        dropped={"E_CSV": 1},
        note="cut off",
    ),
    Case("B9", "cut gzip", GZ[:-20], "E_COMPRESSION"),
    Case("B9", "cut gzip that may be", GZ[:-40], options={"allow_truncated": True}, note="cut off"),
    Case("B9", "a wrong checksum is no cut", GZ[:-8] + b"\0" * 8, "E_COMPRESSION", {"allow_truncated": True}),
    Case("B9", "bad checksum", GZ[:-8] + b"\0" * 8, "E_COMPRESSION"),
    Case("B9", "trailing garbage", GZ + b"garbage", "E_COMPRESSION"),
    Case("B9", "no gzip at all", make("bad.csv.gz", b"\x00\x01CANARY"), "E_COMPRESSION"),
    Case("B9", "no Parquet at all", make("bad.parquet", b"\x00\x01CANARY"), "E_PARQUET"),
    Case("B10", "a bomb", bomb, "E_TOO_LARGE"),
    Case("B10", "rows without end in a Parquet file", rows_without_end, "E_TOO_LARGE"),
    Case("B10", "a text repeated without end in a Parquet file", text_without_end, "E_TOO_LARGE"),
    Case("B10", "an archive in an archive", gzip.compress(GZ), "E_COMPRESSION"),
    Case("B10", "a zip with ../", zipped, "E_COMPRESSION"),
    Case("B10", "a tar", b"a" * 257 + b"ustar" + b"\0" * 300, "E_COMPRESSION"),
    Case("B11", "semicolons", PLAIN.replace(",", ";")),
    Case("B11", "tabs", PLAIN.replace(",", "\t")),
    Case("B11", "decimal commas", PLAIN.replace(",", ";").replace("46.519", "46,519"), "E_NUMBER"),
    Case("B12", "a newline in quotes", change(ANN, f'"{ANN}\nx"')),
    Case("B12", "an unbalanced quote", change("CANARY", '"CANARY', 1), "E_CSV"),
    Case("B13", "one name twice", PLAIN.replace("lng", "lat"), "E_COLUMN"),
    Case("B13", "no longitude", PLAIN.replace("lng", "x"), "E_COLUMN"),
    Case("B13", "a named column that is not there", PLAIN, "E_COLUMN", options={"columns": {"user": "who"}}),
    Case("B13", "columns too many", PLAIN.replace("6.632\n", "6.632,9\n").replace("lng", "lng,mood"), note="'mood'"),
    Case(
        "B13",
        "another order",
        "lng,lat,datetime,uid\n" + "".join(",".join(x.strip().split(",")[::-1]) + "\n" for x in LINES),
    ),
    Case("B14", "an endless field", change("CANARY", "CANARY" * 200_000, 1), "E_TOO_LARGE"),
    Case("B14", "an endless line", change("CANARY", "CANARY," * 2_000_000, 1), "E_TOO_LARGE"),
    Case("B15", "swapped", column(3, "146.519", 144).replace("lat,lng", "lng,lat"), "E_SWAPPED"),
    Case("B16", "swapped, and plausible", PLAIN.replace("lat,lng", "lng,lat"), "E_OUTSIDE", {"box": (46, 6, 47, 7)}),
    Case(
        "B17",
        "swapped in one row",
        HEAD + LINES[0].replace("46.5190,6.632", "6.632,46.5190") + "".join(LINES[1:]),
        options={"box": (46, 6, 47, 7)},
        dropped={"outside the map": 1},
    ),
    Case("B18", "poles and date line", column(2, "90").replace("6.632", "180"), options={"map": "whole"}, rows=2),
    Case(
        "B18",
        "180 is -180",
        change("6.632", "180", 72).replace("6.632", "-180").replace("46.5199", "46.5190"),
        check=lambda t: t.R == 1,
    ),
    Case("B19", "beyond the pole", column(2, "90.0000001"), dropped={"E_OUTSIDE": 1}),
    Case("B19", "beyond the date line", column(3, "181"), dropped={"E_OUTSIDE": 1}),
    Case("B19", "0 to 360", change("6.632", "286.632"), "E_OUTSIDE"),
    Case("B19", "0 to 360, and one beyond the pole", column(2, "91").replace("6.632", "286.632"), "E_OUTSIDE"),
    Case(
        "B19",
        "0 to 360, and said so",
        change("6.632", "286.632"),
        options={"lon360": True},
        check=lambda t: places(t)[0] == (46.52, -73.37),
    ),
    Case(
        "B20",
        "null island, outside the map",
        column(2, "0").replace("0,6.632", "0,0", 1),
        options={"box": (46, 6, 47, 7)},
        dropped={"E_NULL_ISLAND": 1},
    ),
    Case(
        "B20",
        "null island",
        HEAD + f"{ANN},2013-04-15 00:10:00,0,0\n" + "".join(LINES[1:]),
        dropped={"E_NULL_ISLAND": 1},
    ),
    Case(
        "B20",
        "null island on the whole map",
        HEAD + f"{ANN},2013-04-15 00:10:00,0,0\n" + "".join(LINES[1:]),
        options={"map": "whole"},
        note="0, 0",
    ),
    *(
        Case("B21", word or "empty", column(2, word), dropped={"E_NUMBER": 1})
        for word in ("NaN", "inf", "-inf", "", "NULL", "N/A", "None")
    ),
    *(
        Case("B22", f"{word!a} is a number", column(2, word), check=lambda t: t.r[0, 0] >= 0)
        for word in ("4.6519e1", "+46.519", " 46.519")
    ),
    *(
        Case("B22", f"{word!a} is none", column(2, word), dropped={"E_NUMBER": 1})
        for word in ("0x10", "1_000", "\uff14\uff16", "\u0664\u0666", "46.5\u00a0", "46,5"[:2] + "'5")
    ),
    *(
        Case("B22", f"{word!a} is none in JSON", geojson(json.dumps(word)), options=UTC, dropped={"E_NUMBER": 1})
        for word in ("1_000", "\uff14\uff16", "46.5\u00a0", "inf")
    ),
    Case("B23", "degrees and minutes", column(2, "46 31 12N"), dropped={"E_NUMBER": 1}),
    Case("B23", "radians", PLAIN.replace("46.519", "0.8119").replace("6.632", "0.1157"), "E_SWAPPED"),
    Case("B23", "metres of a map", PLAIN.replace("46.519", "5866000.").replace("6.632", MERCATOR), "E_SWAPPED"),
    Case(
        "B24",
        "across the date line",
        change("6.632", "179.9", 72).replace("6.632", "-179.9"),
        check=lambda t: 15 < t.locations.distance(*t.r[:, 0]) < 16,
    ),
    Case("B25", "near a pole", change("46.519", "89.519"), note="pole"),
    Case("B26", "every row twice", HEAD + "".join(LINES * 2), fixed={"repeated": 144}),
    Case("B27", "one of 145 contradicts", PLAIN + LINES[0].replace("46.519", "46.999"), fixed={"contradicted": 1}),
    Case("B27", "all contradict", PLAIN + "".join(LINES).replace("46.519", "46.999"), fixed={"contradicted": 144}),
    Case(
        "B28",
        "backwards and interleaved",
        HEAD + "".join(LINES[::-2] + LINES[::2]),
        fixed={},
        check=lambda t: t.labels == (ANN, BOB),
    ),
    Case("B29", "an hour that is not", days("2018-03-25"), "E_DST", {"tz": "Europe/Zurich"}),
    Case(
        "B29",
        "an hour that is twice",
        days("2018-10-28"),
        options={"tz": "Europe/Zurich"},
        fixed={"in the doubled hour": 3},
        rows=1,
    ),
    Case(
        "B30",
        "two offsets",
        HEAD
        + "".join(line.replace(":00,46", ":00+02:00,46") for line in LINES[:72])
        + "".join(line.replace(":00,46", ":00Z,46") for line in LINES[72:]),
        options={"tz": "UTC", "min_coverage": 0},
        rows=3,
    ),
    Case("B30", "with and without", HEAD + LINES[0].replace(":00,46", ":00Z,46") + "".join(LINES[1:]), "E_TZ"),
    Case(
        "B31",
        "seconds and milliseconds",
        HEAD + f"{ANN},1365984600,46.519,6.632\n{ANN},1365984600000,46.519,6.632\n",
        "E_DATE",
    ),
    *(
        Case("B31", f"{word} is not believed", column(1, word), dropped={"E_DATE": 1})
        for word in ("1970-01-01 00:00:00", "2106-02-07 06:28:16", "9999-12-31 23:59:59")
    ),
    Case("B31", "an hour alone, among times with seconds", column(1, "2013-04-15 00"), check=at_midnight),
    Case("B31", "an hour alone, among times without", without_seconds(column(1, "2013-04-15 00")), check=at_midnight),
    Case(
        "B31",
        "an epoch of 2106",
        HEAD + "".join(f"{ANN},{4294967296 if i == 99 else 1365984600 + i * 600},46.519,6.632\n" for i in range(100)),
        options=UTC,
        dropped={"E_DATE": 1},
        rows=1,
    ),
    Case("B31", "any date", column(1, "1970-01-01 00:00:00"), options={"any_date": True}, rows=2),
    Case("B31", "24:00", column(1, "2013-04-14 24:00:00"), fixed={"24:00 read as 00:00 of the next day": 1}),
    Case("B31", "a leap second", column(1, "2013-04-15 00:10:60"), fixed={"a leap second read as second 59": 1}),
    Case(
        "B31", "negative epoch", HEAD + "".join(f"{ANN},{-1365984600 - i},46.519,6.632\n" for i in range(9)), "E_DATE"
    ),
    Case("B32", "ambiguous dates", PLAIN.replace("2013-04-15", "03/04/2013"), "E_DATE"),
    Case(
        "B32",
        "and a format",
        PLAIN.replace("2013-04-15", "03/04/2013"),
        options={"date_format": "%d/%m/%Y %H:%M:%S"},
        check=lambda t: str(t.dates[0]) == "2013-04-03",
    ),
    Case(
        "B33",
        "a day of 25 hours",
        HEAD
        + "".join(
            f"{ANN},{t:%Y-%m-%dT%H:%M:%SZ},46.519,6.632\n"
            for t in pd.date_range("2018-10-27T22:10", "2018-10-28T22:50", freq="20min")
        ),
        options={"tz": "Europe/Zurich"},
        fixed={"second passing of the doubled hour": 3},
        rows=1,
        check=lambda t: t.L == 72 and t.r.min() == 0,
    ),
    Case(
        "B35",
        "a fix a second",
        HEAD
        + "".join(
            f"{ANN},{t:%Y-%m-%d %H:%M:%S},{46.519 if t.second < 40 else 46.7},6.632\n"
            for t in pd.date_range("2013-04-15", periods=7200, freq="s")
        ),
        options={"min_coverage": 0},
        rows=1,
        note="finer than",
        check=lambda t: len(set(t.r[0, :6].tolist())) == 1,
    ),
    Case("B43", "slots without end", SLOTS + f"{ANN},0,1\n{ANN},1365984000,2\n", "E_TOO_LARGE"),
    Case(
        "B44",
        "nothing in common",
        SLOTS + "".join(f"{ANN},{s},1\n" for s in range(9)) + "".join(f"{BOB},{s},1\n" for s in range(50, 59)),
        "E_ALIGN",
    ),
    Case("B45", "an empty id", column(0, ""), dropped={"E_USER": 1}),
    Case("B45", "blanks and case", change(BOB, f" {ANN}"), note="look-alike", check=lambda t: t.U == 2),
    Case("B45", "look-alikes", change(BOB, ANN.replace("A", "\u0410")), note="look-alike", check=lambda t: t.U == 2),
    Case("B45", "an endless id", change(ANN, ANN * 30), "E_USER"),
    Case("B45", "an id of 10 MB", change(ANN, "A" * (10 << 20), 1), "E_TOO_LARGE"),
    Case("B45", "zero is an id", change(ANN, "0"), check=lambda t: t.labels == ("0", BOB)),
    Case("B45", "an id like a path", change(ANN, "../../x"), check=lambda t: "../../x" in t.labels),
    Case("B45", "an id like a formula", change(ANN, "=cmd|x"), check=lambda t: "=cmd|x" in t.labels),
    Case("B46", "one user in two files", two_files, check=lambda t: t.labels == (ANN, BOB)),
    Case(
        "B47",
        "long numbers",
        change(ANN, "9007199254740993").replace(BOB, "9007199254740992"),
        check=lambda t: t.labels == ("9007199254740992", "9007199254740993"),
    ),
    Case(
        "B47",
        "numbers of 30 digits in JSON",
        json.dumps([{"uid": 7, "time": f"{t}Z", "lat": 46.519, "lng": 6.632} for t in STAMPS]).replace(
            " 7,", f" {'9' * 30},"
        ),
        options=UTC,
        check=lambda t: t.labels == ("9" * 30,),
        rows=1,
    ),
    Case("B47", "1.0 is not 1", change(ANN, "1.0").replace(BOB, "1"), check=lambda t: t.labels == ("1", "1.0")),
    Case("B48", "numbers and text", change(ANN, "1").replace(BOB, "x1"), check=lambda t: t.labels == ("1", "x1")),
    Case(
        "B57",
        "an entity bomb",
        '<!DOCTYPE gpx [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><gpx><trk><name>&b;</name></trk></gpx>',
        "E_XML",
    ),
    Case(
        "B57",
        "an external entity",
        '<!DOCTYPE gpx [<!ENTITY a SYSTEM "file:///etc/passwd">]><gpx><trk><name>&a;</name></trk></gpx>',
        "E_XML",
    ),
    Case("B57", "altitude", makefiles.geojson_points(makefiles.fixes()), options={"tz": "UTC"}, rows=1),
    Case(
        "B57",
        "an entity bomb in UTF-16",
        '<!DOCTYPE gpx [<!ENTITY a "aa">]><gpx><trk><name>&a;</name></trk></gpx>'.encode("utf-16"),
        "E_XML",
    ),
    Case(
        "B57",
        "collections in collections",
        NESTED,
        "E_EMPTY",
    ),
    Case("B58", "GeoLife", makefiles.plt(makefiles.fixes()), options={"tz": "UTC"}, rows=1),
    Case("B58", "SGLT", makefiles.sglt(makefiles.fixes()), rows=1, check=lambda t: t.r[0, 0] == 0 and t.R == 2),
    Case("B58", "PF", "user_index,slot,poi_index\n0,0,3\n0,1,4\n", rows=1, check=lambda t: t.r.tolist() == [[3, 4]]),
    Case("B59", "SGLT from 0", makefiles.sglt(makefiles.fixes()).replace(",1\n", ",0\n"), "E_INDEX"),
    Case(
        "B59",
        "a place that is not",
        SLOTS + f"{ANN},0,2\n{ANN},1,1\n",
        "E_INDEX",
        {"locations": "places.csv"},
        beside={"places.csv": "lat,lng\n46.519,6.632\n46.7,6.632\n"},
    ),
    Case("B60", "a name of two lines", make("a\nb.csv", ""), "E_EMPTY"),
    Case("B60", "a name that paints the terminal", make("a\x1b[31m.csv", ""), "E_EMPTY"),
    Case("B60", "a name like an option", make("--force.csv")),
    Case("B60", "a name with glob characters", make("*[a]?.csv")),
]


def named(case):
    return f"{case.number} {case.what}"


def written(case, folder):
    """The input of a case, in a folder of its own, and the words of the command line that read it."""
    for name, content in case.beside.items():
        (folder / name).write_text(content)
    source = case.content(folder) if callable(case.content) else make("input.csv", case.content)(folder)
    words = []
    for name, value in case.options.items():
        if isinstance(value, Mapping):
            value = ",".join(f"{role}={column}" for role, column in value.items())
        elif isinstance(value, tuple):
            value = ",".join(map(str, value))
        elif value in case.beside:
            value = folder / value
        words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    return source, words


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def elsewhere(capfd, caplog, monkeypatch):
    """Run a command line in this process: its exit status, its stdout as JSON, its stderr, and all that was heard."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.delenv("ELSEWHERE_DEBUG", raising=False)

    def run(*words):
        with pytest.raises(SystemExit) as stopped:
            app([*map(str, words)], prog_name="elsewhere")
        said = capfd.readouterr()
        return stopped.value.code, json.loads(said.out), said.err, said.out + said.err + caplog.text

    return run


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(sources, "MAX_BYTES", 32 << 20)
    monkeypatch.setattr(sources, "MEMORY", 1 << 30)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("case", [c for c in CASES if c.code], ids=named)
def test_refused(case, tmp_path, elsewhere):
    source, words = written(case, tmp_path)
    before = listing(tmp_path)
    status, told, said, heard = elsewhere("prepare", "-o", tmp_path / "out", *words, "--json", "--", source)

    assert (status, told["error"]["code"], told["error"]["exit_status"]) == (2, case.code, 2)
    assert said == f"{case.code}: {told['error']['message']}\n"
    assert listing(tmp_path) == before
    assert [canary for canary in CANARIES if canary in heard] == []


@pytest.mark.parametrize("case", [c for c in CASES if not c.code], ids=named)
def test_read_after_all(case, tmp_path, elsewhere):
    source, words = written(case, tmp_path)
    before, out = listing(tmp_path), tmp_path / "out"
    status, told, said, heard = elsewhere("prepare", "-o", out, *words, "--json", "--", source)

    assert status == 0, said
    assert told["dropped"] == dict(case.dropped)
    assert {k: v for k, v in told["fixed"].items() if case.fixed or k != "repeated"} == dict(case.fixed)
    assert case.note in " ".join(told["notes"])
    assert [canary for canary in CANARIES if canary in heard] == []
    # written as private files into the one folder, under names that nobody's id is in
    assert [p for p in listing(tmp_path) if p != "out" and not p.startswith("out/")] == before
    assert set(told["files"]) == {path.name for path in out.iterdir()}
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o600}
    traces = ew.read_traces(out)
    assert len(traces) == case.rows
    assert case.check is None or case.check(traces)
    assert [canary for canary in CANARIES if canary in repr(traces)] == []


def test_plain_is_plain(tmp_path):
    # the rows above are changes of one good file: it must be read without a word
    counted = []
    traces = ew.read_traces(make("plain.csv")(tmp_path), report=counted.append, tz="UTC")

    assert (traces.labels, traces.r.shape, traces.r.min()) == ((ANN, BOB), (2, 72), 0)
    assert (dict(counted[0].dropped), dict(counted[0].fixed), counted[0].notes) == ({}, {}, ())


def test_every_number_has_a_row():
    import test_inputs_making
    import test_inputs_places

    rows = [*(named(case) for case in CASES), *test_inputs_making.ROWS, *test_inputs_making.FEASIBLE]
    rows += test_inputs_making.MODELS
    rows += [*test_inputs_places.REFUSED, *test_inputs_places.ACCEPTED]
    alone = {"B55", "B56"}  # below: they need processes of their own

    assert alone | {row.split()[0] for row in rows if row[:1] == "B"} == {f"B{n}" for n in range(1, 61)}


def test_backwards_is_forwards(tmp_path):  # B28
    backwards = HEAD + "".join(LINES[::-2] + LINES[::-1][1::2])
    found = [ew.read_traces(make(f"{n}.csv", text)(tmp_path)) for n, text in enumerate((PLAIN, backwards))]

    assert found[0].r.tolist() == found[1].r.tolist()
    assert (found[0].labels, found[0].locations) == (found[1].labels, found[1].locations)


# B1: what one may not read


@pytest.fixture
def nobody():
    """Somebody without rights, who meets `root`'s permissions; a folder that is open to all."""
    folder = Path(tempfile.mkdtemp(prefix="elsewhere-test-"))
    folder.chmod(0o777)
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        os.seteuid(was)
        shutil.rmtree(folder)


def test_a_file_that_one_may_not_read(nobody, elsewhere):
    path = make("secret.csv")(nobody)
    path.chmod(0)
    status, told, said, _ = elsewhere("prepare", path, "-o", nobody / "out", "--json")

    assert (status, told["error"]["code"]) == (2, "E_OPEN")
    assert "Permission denied" in said
    assert listing(nobody) == ["secret.csv"]


def test_a_folder_that_one_may_not_write(nobody, elsewhere):  # B54
    (nobody / "closed").mkdir(mode=0o555)
    status, told, *_ = elsewhere("prepare", make("a.csv")(nobody), "-o", nobody / "closed" / "out", "--json")

    assert (status, told["error"]["code"]) == (2, "E_OUTPUT")
    assert listing(nobody) == ["a.csv", "closed"]


# B10: the memory of a bomb


def test_a_bomb_takes_no_memory(tmp_path, monkeypatch):
    import tracemalloc

    monkeypatch.setattr(sources, "MAX_BYTES", 64 << 20)
    path = bomb(tmp_path)
    tracemalloc.start()
    try:
        with pytest.raises(ew.errors.InvalidTraces, match="E_TOO_LARGE"):
            ew.read_traces(path)
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


# B43: a refusal that says how much memory it would take


def test_too_large_says_how_large(tmp_path, monkeypatch, elsewhere):
    path = make("a.csv")(tmp_path)
    monkeypatch.setattr(sources, "MEMORY", 1000)
    with pytest.raises(ew.errors.InvalidTraces, match=r"E_TOO_LARGE: a.csv: 144 rows need about 0 GiB"):
        ew.read_traces(path)
    monkeypatch.undo()
    # more than a million users
    _, told, *_ = elsewhere("prepare", million_users(tmp_path), "-o", tmp_path / "out", "--json")
    assert told["error"]["code"] == "E_TOO_LARGE"
    assert "need 3.0 GiB, more than the limit of 2.0" in told["error"]["message"]


def test_slots_without_end_are_refused_before_memory_is_taken_for_them():
    last = 1_365_984_000  # a byte for each slot would be 1.3 GB
    tracemalloc.start()
    try:
        with pytest.raises(ew.errors.InvalidTraces, match="E_TOO_LARGE"):
            ew.read_traces(pd.DataFrame({"uid": ["a", "a"], "slot": [0, last], "loc": [1, 2]}))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1e8


# B55: what can be read only once, and what changes meanwhile


def run(words, **options):
    return subprocess.run([sys.executable, "-m", "elsewhere", *words], capture_output=True, timeout=120, **options)


def test_standard_input_of_the_command_line(tmp_path):
    done = run(["prepare", "-", "-o", tmp_path / "out", "--json"], input=PLAIN.encode())

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["users"] == 2


def test_a_process_instead_of_a_file(tmp_path):
    read, write = os.pipe()
    os.write(write, PLAIN.encode())
    os.close(write)
    with os.fdopen(read, "rb"):
        assert ew.read_traces(f"/dev/fd/{read}").U == 2


def test_fakes_from_standard_input(monkeypatch):
    # they are looked at twice, to find out what they hold and to read them
    frame = pd.read_csv(io.StringIO(PLAIN))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PLAIN.replace("CANARY", "fake").encode())))
    found, _ = read_together({"real": frame, "fakes": "-"})

    assert found["fakes"].r.tolist() == found["real"].r.tolist()


@pytest.mark.parametrize("change_it", ["grow", "overwrite"])
def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch, elsewhere, change_it):
    path = make("a.csv")(tmp_path)
    blocks = sources.Source.blocks

    def and_change(self):
        for content in blocks(self):
            about = path.stat()
            with path.open("ab" if change_it == "grow" else "r+b") as file:
                file.write(LINES[-1].encode())
            if change_it == "overwrite":  # the same size at the same time
                os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
            yield content

    monkeypatch.setattr(sources.Source, "blocks", and_change)
    status, told, *_ = elsewhere("prepare", path, "-o", tmp_path / "out", "--json")

    assert (status, told["error"]["code"]) == (2, "E_OPEN")
    assert "changed while it was read" in told["error"]["message"]
    assert listing(tmp_path) == ["a.csv"]


# B56: the machine's own habits


def test_the_same_bytes_whatever_the_locale(tmp_path):
    path = make("a.csv", PLAIN.replace("CANARY", "zo\u00eb"))(tmp_path)
    outputs = []
    for number, habits in enumerate(
        ({"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"}, {"LANG": "de_DE.UTF-8", "TZ": "Asia/Tokyo"})
    ):
        out = tmp_path / str(number) / "of" / "mine"
        plain = {k: v for k, v in os.environ.items() if k not in ("LANG", "LC_ALL", "TZ", "PYTHONUTF8")}
        done = run(["prepare", path, "-o", out], env={**plain, **habits}, umask=0)
        assert done.returncode == 0, done.stderr
        outputs.append({file.name: file.read_bytes() for file in out.iterdir()})
        assert {file.stat().st_mode & 0o777 for file in out.iterdir()} == {0o600}
        assert {folder.stat().st_mode & 0o777 for folder in (out, out.parent, out.parent.parent)} == {0o700}

    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("packed", [False, True])
def test_other_rights_are_no_other_file(tmp_path, packed):
    path, content = tmp_path / "a.csv", b"uid,slot,loc\na,0,1\n"
    path.write_bytes(gzip.compress(content) if packed else content)
    source = sources.open_source(path)
    path.chmod(0o600)
    os.link(path, tmp_path / "b.csv")
    assert path.stat().st_ctime_ns != source.about.st_ctime_ns
    assert source.content == content


def test_other_bytes_under_the_old_time_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"uid,slot,loc\na,0,1\n")
    source = sources.open_source(path)
    blocks = source.blocks()
    next(blocks)
    path.write_bytes(b"uid,slot,loc\na,0,2\n")
    os.utime(path, ns=(source.about.st_atime_ns, source.about.st_mtime_ns))
    with pytest.raises(ew.errors.InvalidTraces, match="changed while it was read"):
        next(blocks)
