"""GeoLife `.plt`: six lines of heading, then `lat,lon,0,altitude in feet,days since 1899,date,time` in GMT."""

from collections.abc import Iterator
from dataclasses import replace

from elsewhere.errors import InvalidTraces
from elsewhere.traces.sources import Source
from elsewhere.traces.tables import AS_IT_COMES, Found, Reading, Table
from elsewhere.traces.texts import Dialect, read_text

HEADING = 6
PLT = Dialect(",", ("lat", "lon", "zero", "altitude", "days", "date", "clock"), True, HEADING)
WANTED = Found({"lat": "lat", "lon": "lon", "date": "date", "time": "clock"})


def read_plt(source: Source, reading: Reading = AS_IT_COMES) -> Iterator[Table]:
    """The fixes of one track; its user is the folder above `Trajectory`, else the file."""
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
