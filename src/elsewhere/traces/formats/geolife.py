"""GeoLife `.plt`: six lines of heading, then `lat,lon,0,altitude in feet,days since 1899,date,time` in GMT."""

from elsewhere.errors import InvalidTraces
from elsewhere.traces.sources import Source, as_utf8
from elsewhere.traces.tables import Table
from elsewhere.traces.texts import text_table

HEADING = 6
NAMES = ("lat", "lon", "zero", "altitude", "days", "date", "clock")


def read_plt(source: Source, encoding: str = "utf-8") -> Table:
    """The fixes of one track; its user is the folder above `Trajectory`, else the file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    content = as_utf8(source.content, source.name, encoding)
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
    table = text_table(body, source.name, lambda _: wanted, plain_times=False)
    date, clock = (pc.utf8_trim_whitespace(table.column(name)) for name in ("date", "clock"))
    columns = {
        "user": pa.array([source.user], pa.string()).take(pa.array([0] * table.rows)).dictionary_encode(),
        "utc": pc.binary_join_element_wise(date, clock, "T"),
        "lat": table.columns["lat"],
        "lon": table.columns["lon"],
    }
    return Table(source.name, columns, table.rows, format="geolife", text=body, names=tuple(columns))
