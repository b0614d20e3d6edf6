"""
Tell formats apart by content; one file per family reads them: `text`, `tables`, `records`, `phones`, `tracks`.

A reader is a function from a file to named columns, `user`, `time` (or `utc`), `lat` and `lon`, so that everything
after it is the same for all formats. Where a format names no user, the user is the file (or the folder it is in). A new
format needs its reader, a line in `recognise`, and a line in `inputs`.
"""

import re

from elsewhere.errors import InvalidTraces
from elsewhere.traces.sources import is_workbook

PLT = re.compile(rb"\s*geolife trajectory", re.IGNORECASE)
REC = re.compile(rb"\s*[^\t\r\n]{1,40}\t[^\t\r\n]{0,80}\t\{")
HEX_ID = rb"[0-9a-f]{24}"
CHECK_IN = re.compile(
    rb"\s*\d+\t" + HEX_ID + rb"\t([^\t\r\n]*\t[^\t\r\n]*\t[^\t\r\n]*\t[^\t\r\n]*\t)?"
    rb"(-?\d+\t\w{3} \w{3} \d\d [\d:]{8} \+0000 \d{4}|\w{3} \w{3} \d\d [\d:]{8} \+0000 \d{4}\t-?\d+)\s*(\n|$)"
)
VENUE = re.compile(rb"\s*" + HEX_ID + rb"\t-?[\d.]+\t-?[\d.]+\t[^\t\r\n]*\t[A-Z]{2}\s*(\n|$)")
GOOGLE = re.compile(
    rb'"(semanticSegments|rawSignals|timelineObjects|latitudeE7|placeVisit|timelinePath|topCandidate|timestampMs)"'
)
XLS = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # workbooks before 2007
HEAD = 1 << 16  # the first of a file, in which it must show what it is


def recognise(content: bytes, name: str) -> str:
    """Return the name of the format of a file, by its first bytes; what is nothing else is delimited text."""
    if content[:4] == b"PAR1":
        return "parquet"
    if is_workbook(content) or content[:8] == XLS:
        return "excel"
    head = content[:HEAD]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        head = head[: len(head) & ~1].decode("utf-16", errors="replace").encode(errors="replace")
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] == b"<":
        return _xml(head, name)
    if head[:1] in (b"{", b"["):
        return _json(head)
    for kind, mark in (("geolife", PLT), ("owntracks", REC), ("foursquare", CHECK_IN), ("foursquare", VENUE)):
        if mark.match(head):
            return kind
    return "csv"


def _xml(head: bytes, name: str) -> str:
    plain = re.sub(rb"<\?.*?\?>|<!--.*?-->", b"", head, flags=re.DOTALL).lstrip()
    if plain[:2] == b"<!" or re.match(rb"<(\w+:)?gpx\b", plain):
        return "gpx"  # a document type is refused there, whatever it announces
    raise InvalidTraces(f"{name} is XML, and no GPX; KML and others are not read.", code="E_FORMAT")


def _json(head: bytes) -> str:
    if re.search(rb'"_type"\s*:', head):
        return "owntracks"
    if re.search(rb'"type"\s*:\s*"(Feature|FeatureCollection|MovingFeatures?|MovingPoint)"', head):
        return "geojson"
    return "google" if GOOGLE.search(head) else "json"
