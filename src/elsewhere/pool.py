"""
The pool of published fakes: visits, opaque ids, places. No seed, no order, no likelihood, no entropy.

On disk a pool is a folder: `pool.parquet` (id, start, end, place, and trip where there are trips; local seconds since
1970), `places.parquet` (place, its id, position and kind; only places that a fake of this pool visits), and
`manifest.json`, written last, which names the other files with their sha256; a reader trusts nothing else (C1, F23).
"""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere._version import __version__
from elsewhere.data.visits import Form, Locations, Visits
from elsewhere.errors import InvalidModel, require_whole
from elsewhere.files import check_folder, read_regular, write_folder

KIND, FORMAT = "elsewhere pool", 2
LARGEST_FILE = 4 * 2**30
LARGEST_TABLE = 2**31
VISITS, PLACES, MANIFEST = "pool.parquet", "places.parquet", "manifest.json"


@dataclass(frozen=True, eq=False)
class Pool:
    """
    Published fakes (public side).

    `visits.users` are random 128-bit ids in hex, one per fake life; `provenance` says how they were made: versions,
    parameters, totals.
    """

    visits: Visits
    provenance: Mapping[str, Any] = field(repr=False)

    def __len__(self) -> int:
        return self.visits.U

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the opaque id of each life."""
        return self.visits.users

    def draw(self, n: int, *, rng: np.random.Generator) -> Visits:
        """Draw `n` different lives, uniformly."""
        require_whole("n", n, 1, len(self))
        return self.visits.of_users(rng.choice(len(self), n, replace=False))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the pool into a folder; one that holds anything is refused without `force`."""
        folder = Path(path)
        check_folder(folder, force=force)
        write_folder(folder, self.files(), force=force)

    def files(self, beside: Mapping[str, str] | None = None) -> dict[str, bytes]:
        """Return the files of the pool, name -> content, the manifest last; it lists files `beside` too."""
        v, where = self.visits, self.visits.locations
        lives: dict[str, Any] = {"id": v.user, "start": v.start, "end": v.end, "place": v.place}
        if v.trip is not None:
            lives["trip"] = v.trip
        places: dict[str, Any] = {"place": np.arange(v.R, dtype=np.int32)}
        if where.xy is not None:
            places |= {"x": where.xy[:, 0], "y": where.xy[:, 1]}
        places |= {name: side for name, side in (("lat", where.lat), ("lon", where.lon)) if side is not None}
        places |= {name: words for name, words in (("id", where.ids), ("kind", where.kind)) if words is not None}
        content = {VISITS: _write_table(lives, ids=v.users), PLACES: _write_table(places)}
        manifest = {
            "kind": KIND,
            "format": FORMAT,
            "version": __version__,
            "lives": v.U,
            "visits": len(v),
            "places": v.R,
            "tz": v.tz,
            "form": dict(vars(v.form), columns=dict(v.form.columns)),
            "certificate": self.provenance.get("certificate"),
            "provenance": {name: value for name, value in self.provenance.items() if name != "certificate"},
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in content.items()} | dict(beside or {}),
        }
        return {**content, MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode()}

    @staticmethod
    def load(path: str | Path) -> "Pool":
        """Read a pool folder; `InvalidModel` if anything in it is not what its manifest says."""
        folder = Path(path)
        manifest = _manifest(folder)
        try:
            n, R = (require_whole(name, manifest[name], 1, LARGEST_TABLE) for name in ("visits", "places"))
            lives = _read_table(folder, VISITS, manifest, n)
            places = _read_table(folder, PLACES, manifest, R)
            ids, user = np.unique(lives["id"].astype(str), return_inverse=True)
            if len(ids) != manifest["lives"]:
                raise ValueError("not as many lives as the manifest says")
            visits = Visits(
                user,
                lives["start"],
                lives["end"],
                lives["place"],
                _locations(places, R),
                users=ids.tolist(),
                trip=lives.get("trip"),
                tz=manifest["tz"],
                form=Form(**manifest["form"]),
            )
            return Pool(visits, {**manifest["provenance"], "certificate": manifest.get("certificate")})
        except Exception:  # whatever reading it raises
            raise InvalidModel("a file of the pool is not what its manifest says.", code="E_POOL") from None


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: Any = json.loads(read_regular(folder / MANIFEST, 2**26))
    except (OSError, ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise InvalidModel(f"{folder} is no pool: it has no {MANIFEST} of one.", code="E_POOL")
    if manifest.get("format") != FORMAT:
        raise InvalidModel(
            f"the pool has format {manifest.get('format')!r}; this version of elsewhere reads format {FORMAT}.",
            code="E_POOL",
        )
    return manifest


def _write_table(columns: Mapping[str, Any], ids: tuple[str, ...] | None = None) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {name: pa.array(column) for name, column in columns.items()}
    if ids is not None:  # codes of lives and their ids
        arrays["id"] = pa.DictionaryArray.from_arrays(arrays["id"], pa.array(ids, pa.string()))
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays), sink, compression="zstd")
    return sink.getvalue()


def _read_table(folder: Path, name: str, manifest: Mapping[str, Any], rows: int) -> dict[str, NDArray[Any]]:
    """Return the columns of a table that the manifest lists, with as many rows as it says."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / name
    data = read_regular(path, LARGEST_FILE)
    if path.is_symlink() or hashlib.sha256(data).hexdigest() != manifest["files"][name]:
        raise ValueError("not what the manifest names")
    file = pq.ParquetFile(pa.BufferReader(data))
    if file.metadata.num_rows != rows:
        raise ValueError("not as many rows as the manifest says")
    table = file.read()
    return {column: table.column(column).to_numpy() for column in table.column_names}


def _locations(places: Mapping[str, NDArray[Any]], R: int) -> Locations:
    words = {what: places[name].tolist() for name, what in (("id", "ids"), ("kind", "kind")) if name in places}
    if "lat" in places:
        return Locations(lat=places["lat"], lon=places["lon"], **words)
    if "x" in places:
        return Locations(xy=np.column_stack([places["x"], places["y"]]), **words)
    return Locations(n=R, **words)
