"""
Read tracks of GPS loggers: GPX and GeoLife `.plt`.

GPX 1.0 and 1.1: the points of tracks. A document type is refused, so no entity is ever expanded (B57). GeoLife: six
lines of heading, then `lat,lon,0,altitude in feet,days since 1899,date,time` in GMT.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.parsers import expat

from elsewhere.errors import InvalidTraces
from elsewhere.traces.columns import Meaning
from elsewhere.traces.formats.text import read_text
from elsewhere.traces.sources import Source
from elsewhere.traces.tables import AS_IT_COMES, Dialect, Reading, Table

CHUNK = 1 << 20
DEEPEST = 100


class _Refused(Exception):
    pass


class _Tracks:
    """What the parser meets: positions, their times, the name of their track."""

    def __init__(self) -> None:
        self.columns: dict[str, list[str]] = {"lat": [], "lon": [], "time": [], "name": []}
        self.path: list[str] = []
        self.text: list[str] | None = None
        self.point: dict[str, str] | None = None
        self.name = ""
        self.ours = False
        self.others = 0
        self.depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        self.depth += 1
        if self.depth > DEEPEST:
            raise _Refused
        if self.depth == 1 and tag != "gpx":
            raise _Refused
        if tag == "gpx":
            self.ours = attributes.get("creator") == "elsewhere"
        elif tag == "trk":
            self.name = ""
        elif tag == "trkpt":
            self.point = {"lat": attributes.get("lat", ""), "lon": attributes.get("lon", ""), "time": ""}
        elif tag in ("wpt", "rtept"):
            self.others += 1
        self.path.append(tag)
        if tag in ("time", "name"):
            self.text = []

    def end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        self.depth -= 1
        self.path.pop()
        within = self.path[-1] if self.path else ""
        if tag == "time" and within == "trkpt" and self.point is not None:
            self.point["time"] = "".join(self.text or [])
        elif tag == "name" and within == "trk":
            self.name = "".join(self.text or [])
        elif tag == "trkpt" and self.point is not None:
            for key, value in (*self.point.items(), ("name", self.name)):
                self.columns[key].append(value)
            self.point = None
        if tag in ("time", "name"):
            self.text = None

    def characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)


def _refuse(*_: Any) -> None:
    raise _Refused


def read_gpx(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """
    Return the points of all tracks of a file. The user is the file, or the name of the track in files of our own.

    Column `name` is the name of the track, for those who keep several people in one file.
    """
    import pyarrow as pa

    content, tracks = source.content, _Tracks()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = tracks.start
    parser.EndElementHandler = tracks.end
    parser.CharacterDataHandler = tracks.characters
    parser.buffer_text = True
    try:
        for at in range(0, len(content), CHUNK):
            parser.Parse(content[at : at + CHUNK], at + CHUNK >= len(content))
    except _Refused:
        raise InvalidTraces(
            f"{source.name}, line {parser.CurrentLineNumber}: a document type, or no GPX.", code="E_XML"
        ) from None
    except expat.ExpatError as error:
        cut = error.code == expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS] or not content.rstrip(
            b"\0 \t\r\n"
        ).endswith(b">")
        code, what = ("E_TRUNCATED", "cut off") if cut else ("E_XML", "damaged XML")
        if not (cut and reading.cut and b">" not in content[parser.ErrorByteIndex :]):
            raise InvalidTraces(f"{source.name}, line {error.lineno}: {what}.", code=code) from None
    except (UnicodeError, ValueError, LookupError):
        raise InvalidTraces(f"{source.name}: its text is not in the encoding it names.", code="E_ENCODING") from None
    n = len(tracks.columns["lat"])
    columns: dict[str, Any] = {key: pa.array(values, pa.string()) for key, values in tracks.columns.items()}
    columns["user"] = columns["name"] if tracks.ours else pa.array([source.user] * n, pa.string())
    notes = (f"{tracks.others} way points and route points were not read",) if tracks.others else ()
    return Table(source.name, columns, n, format="gpx", names=tuple(columns), notes=notes)


HEADING = 6
PLT = Dialect(",", ("lat", "lon", "zero", "altitude", "days", "date", "clock"), True, HEADING)
WANTED = Meaning({"lat": "lat", "lon": "lon", "date": "date", "time": "clock"})


def read_plt(source: Source, reading: Reading = AS_IT_COMES) -> Iterator[Table]:
    """Return the fixes of one track; its user is the folder above `Trajectory`, else the file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    head = source.head(1 << 12).splitlines(keepends=True)
    if len(head) < HEADING or not head[HEADING - 1].endswith((b"\n", b"\r")):
        raise InvalidTraces(f"{source.name} ends within the heading of a .plt file.", code="E_TRUNCATED")
    for table in read_text(source, replace(reading, roles=None), fixed=(PLT, WANTED)):
        date, clock = (pc.utf8_trim_whitespace(table.column(name)) for name in ("date", "clock"))
        columns = {
            "user": pa.DictionaryArray.from_arrays(np.zeros(table.rows, dtype=np.int32), pa.array([source.user])),
            "utc": pc.binary_join_element_wise(date, clock, "T"),
            "lat": table.columns["lat"],
            "lon": table.columns["lon"],
        }
        yield replace(table, columns=columns, names=tuple(columns), format="geolife")
