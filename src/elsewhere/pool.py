"""
The pool of published fakes: traces, opaque ids, places and clock. No seed, no order, no likelihood, no entropy.

On disk a pool is a folder: `pool.parquet` (id, slot, loc), `places.parquet` (loc, its position, name and category; only
places that a fake of this pool visits), and `manifest.json`, written last, which names the other files with their
sha256; a reader trusts nothing else (C1, F23).
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
from elsewhere.data.slots import Traces, match_places
from elsewhere.data.visits import Locations
from elsewhere.errors import ElsewhereError, InvalidModel, InvalidTraces, OutputRefused, require_whole
from elsewhere.files import check_folder, read_index, read_listed, write_folder

KIND, FORMAT = "elsewhere pool", 1
LARGEST_FILE = 4 * 2**30
LARGEST_TABLE = 2**31  # fakes x slots


@dataclass(frozen=True, eq=False)
class Pool:
    """
    Published fakes (public side).

    `traces.users` are random 128-bit ids in hex; `provenance` says how they were made: versions, parameters, totals.
    """

    traces: Traces
    provenance: Mapping[str, Any] = field(repr=False)

    def __len__(self) -> int:
        return len(self.traces)

    @property
    def ids(self) -> NDArray[Any]:
        """Return the opaque id of each fake."""
        return self.traces.users

    def lives(self) -> list[NDArray[np.int64]]:
        """Return the rows of each life, in order of their dates; lives in order of first appearance."""
        t = self.traces
        order = np.arange(len(t)) if t.dates is None else np.argsort(t.dates, kind="stable")
        order = order[np.argsort(t.user[order], kind="stable")]
        return np.split(order, np.flatnonzero(np.diff(t.user[order])) + 1)

    def to_map(self, locations: Locations) -> Traces:
        """
        Return the fakes on another map of the same places, such as that of the real traces.

        A pool numbers its own places anew; they are told by name or position, and refused where one is missing.
        """
        number = match_places(self.traces.locations, locations)
        if number is None or np.any(number < 0):
            raise InvalidTraces(
                "the pool visits places that this map does not have: give the map that its fakes were made on.",
                code="E_MISMATCH",
            )
        r = np.where(self.traces.r >= 0, number[self.traces.r], -1)
        return self.traces.with_map(locations, r)

    def draw(self, n: int, *, rng: np.random.Generator) -> Traces:
        """Draw `n` different fakes, uniformly."""
        require_whole("n", n, 1, len(self))
        return self.traces.select(rng.choice(len(self), n, replace=False))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the pool into a folder; one that holds anything is refused without `force`."""
        folder = Path(path)
        check_folder(folder, force=force)
        write_folder(folder, self.files(), force=force, outdated=earlier_files)

    def files(self, beside: Mapping[str, str] | None = None) -> dict[str, bytes]:
        """Return the files of the pool, name -> content, the manifest last; it lists files `beside` too."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        t, locations = self.traces, self.traces.locations
        fakes = {
            "id": np.repeat(t.users, t.L),
            "slot": np.tile(np.arange(t.L, dtype=np.int32), len(t)),
            "loc": t.r.ravel(),
        }
        places: dict[str, Any] = {"loc": np.arange(t.R, dtype=np.int32)}
        if locations.lat is not None:
            places |= {"lat": locations.lat, "lon": locations.lon}
        elif locations.xy is not None:
            places |= {"x": locations.xy[:, 0], "y": locations.xy[:, 1]}
        for name, what in WORDS.items():
            if getattr(locations, what) is not None:
                places[name] = np.array(getattr(locations, what), dtype=object)
        content = {}
        for name, columns in zip(_FILES, (fakes, places), strict=True):
            sink = io.BytesIO()
            pq.write_table(pa.table(columns), sink, compression="zstd")
            content[name] = sink.getvalue()
        manifest = {
            "kind": KIND,
            "format": FORMAT,
            "version": __version__,
            "fakes": len(t),
            "people": t.U,
            "slots": t.L,
            "places": t.R,
            "step_minutes": t.step_minutes,
            "start": t.start,
            "tz": t.tz,
            "dates": None if t.dates is None else np.datetime_as_string(t.dates).tolist(),
            "certificate": self.provenance.get("certificate"),
            "provenance": {name: value for name, value in self.provenance.items() if name != "certificate"},
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in content.items()} | dict(beside or {}),
        }
        return {**content, "manifest.json": (json.dumps(manifest, indent=1) + "\n").encode()}

    @staticmethod
    def load(path: str | Path) -> "Pool":
        """Read a pool folder; `InvalidModel` if anything in it is not what its manifest says."""
        folder = Path(path)
        manifest = _manifest(folder)
        try:
            N, L, R = (require_whole(name, manifest[name], 1) for name in ("fakes", "slots", "places"))
            if N * L > LARGEST_TABLE or R > LARGEST_TABLE:
                raise InvalidModel(f"the pool declares {N} fakes of {L} slots, more than this version reads.")
            tables = {name: _checked(folder, name, manifest) for name in _FILES}
            provenance = {**manifest["provenance"], "certificate": manifest.get("certificate")}
            return Pool(_traces(tables, manifest, N, L, R), provenance)
        except InvalidModel:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, ElsewhereError):
            raise InvalidModel("the pool's manifest and its files do not fit together.", code="E_POOL") from None


def put_on_map(fakes: Any, *others: Any) -> Any:
    """Return what a `Pool` holds on the first map among `others`; anything but a pool as it is."""
    if not isinstance(fakes, Pool):
        return fakes
    maps = (other if isinstance(other, Locations) else getattr(other, "locations", None) for other in others)
    where = next((each for each in maps if each is not None), None)
    if where is None:
        raise InvalidTraces(
            "a pool numbers its places anew: give the real traces as `Traces`, or their `locations`.", code="E_MISMATCH"
        )
    return fakes.to_map(where)


_FILES = ("pool.parquet", "places.parquet")
WORDS = {"name": "names", "category": "categories"}  # column of places.parquet -> what a place is called


def earlier_files(folder: Path) -> set[str]:
    """
    Return the files of the pool in a folder, which another pool there makes obsolete: only what its manifest lists.

    A file that is not, or no longer, what the manifest says is somebody's own.
    """
    try:
        files = _manifest(folder)["files"].items()
    except (InvalidModel, KeyError, AttributeError):
        return set()
    names = set()
    for name, sha256 in files:
        path = folder / name
        if Path(name).name != name or "\0" in name or path.is_symlink() or not path.is_file():
            continue
        try:
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == sha256:
                    names.add(name)
        except OSError as error:
            raise OutputRefused(f"{name} of the pool that was there cannot be removed: {error.strerror}.") from None
    return names


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        manifest = read_index(path, 2**26)
    except OSError:
        raise InvalidModel(f"{folder} is no pool: its manifest.json cannot be read.", code="E_POOL") from None
    except ValueError:
        raise InvalidModel("the pool's manifest.json is not that of a pool.", code="E_POOL") from None
    if manifest.get("kind") != KIND:
        raise InvalidModel("the manifest is not that of a pool.", code="E_POOL")
    if manifest.get("format") != FORMAT:
        raise InvalidModel(
            f"the pool has format {manifest.get('format')!r}; this version of elsewhere reads format {FORMAT}.",
            code="E_POOL",
        )
    return manifest


def _checked(folder: Path, name: str, manifest: Mapping[str, Any]) -> bytes:
    try:
        return read_listed(folder, name, manifest, LARGEST_FILE)
    except OSError:
        raise InvalidModel(f"{name} of the pool cannot be read.", code="E_POOL") from None
    except ValueError as error:
        raise InvalidModel(f"of the pool {error}.", code="E_POOL") from None


def _traces(tables: Mapping[str, bytes], manifest: Mapping[str, Any], N: int, L: int, R: int) -> Traces:
    fakes, places = (_read(tables[name], rows) for name, rows in zip(_FILES, (N * L, R), strict=True))
    if len(fakes["loc"]) != N * L or len(places["loc"]) != R:
        raise InvalidModel("the pool's tables do not have the size its manifest gives.", code="E_POOL")
    where: dict[str, Any] = {"n": R}
    if "lat" in places:
        where = {"lat": places["lat"], "lon": places["lon"]}
    elif "x" in places:
        where = {"xy": np.column_stack([places["x"], places["y"]])}
    words = {what: places[name].tolist() for name, what in WORDS.items() if name in places}
    locations = Locations(**where, **words)
    return Traces(
        fakes["loc"].reshape(N, L),
        locations,
        users=fakes["id"].reshape(N, L)[:, 0],
        dates=manifest["dates"],
        step_minutes=manifest["step_minutes"],
        start=manifest["start"],
        tz=manifest["tz"],
    )


def _read(data: bytes, rows: int) -> dict[str, NDArray[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        if file.metadata.num_rows > rows:
            raise InvalidModel("a table of the pool has more rows than its manifest gives.", code="E_POOL")
        table = file.read()
    except (pa.ArrowException, OSError):
        raise InvalidModel("a table of the pool is not Parquet.", code="E_POOL") from None
    return {name: table.column(name).to_numpy() for name in table.column_names}
