"""GeoLife `.plt`: six lines of heading, then `lat,lon,0,altitude in feet,days since 1899,date,time` in GMT."""

from dataclasses import replace

from elsewhere.errors import InvalidTraces
from elsewhere.traces.sources import Source, as_utf8
from elsewhere.traces.tables import AS_IT_COMES, Reading, Table
from elsewhere.traces.texts import text_table

HEADING = 6
NAMES = ("lat", "lon", "zero", "altitude", "days", "date", "clock")


def read_plt(source: Source, reading: Reading = AS_IT_COMES) -> Table:
    """The fixes of one track; its user is the folder above `Trajectory`, else the file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    content = as_utf8(source.content, source.name, reading.encoding)
    at = 0
    for _ in range(HEADING):
        end = content.find(b"\n", at)
        if end < 0:
            raise InvalidTraces(f"{source.name} ends within the heading of a .plt file.", code="E_TRUNCATED")
        at = end + 1
    if not content[at:].strip():
        raise InvalidTraces(f"{source.name} holds a heading and nothing else.", code="E_EMPTY")
    # lines of the heading stay as blank ones, so that messages count lines as an editor does
    body = ",".join(NAMES).encode() + b"\n" * HEADING + content[at:]
    wanted = {"lat": "lat", "lon": "lon", "date": "date", "time": "clock"}
    table = text_table(body, source.name, lambda _: wanted, plain_times=False, max_bad=reading.max_bad, cut=reading.cut)
    date, clock = (pc.utf8_trim_whitespace(table.column(name)) for name in ("date", "clock"))
    columns = {
        "user": pa.array([source.user], pa.string()).take(pa.array([0] * table.rows)).dictionary_encode(),
        "utc": pc.binary_join_element_wise(date, clock, "T"),
        "lat": table.columns["lat"],
        "lon": table.columns["lon"],
    }
    return replace(table, columns=columns, names=tuple(columns), format="geolife")
