"""
What the fuzzer starts from beside single traces: folders that we write ourselves, and the small files beside traces.

A folder is damaged in one file. Its index names the others by sha256, so most damage would end there; half of the time
the index is made to fit again, and the damage reaches what stands behind it.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import makefiles
import numpy as np

import elsewhere as ew
from elsewhere.run.model import FittedModel
from elsewhere.run.publish import links_file, read_links
from elsewhere.settings import preset_of
from elsewhere.traces.maps import read_regions
from elsewhere.data.visits import Locations
from elsewhere.traces.write import save_traces


@dataclass(frozen=True)
class Input:
    """Files by name, the one that names the others by sha256, and how they are read from a folder."""

    files: Mapping[str, bytes]
    read: Callable[[Path], Any]
    index: str = ""

    def damaged(self, damage, rng):
        """The same with one file damaged, and the index made to fit half of the time."""
        name = list(self.files)[rng.integers(0, len(self.files))]
        files = {**self.files, name: damage(self.files[name], rng)}
        if self.index and name != self.index and rng.random() < 0.5:
            told = json.loads(files[self.index])
            told["files"][name] = hashlib.sha256(files[name]).hexdigest()
            files[self.index] = json.dumps(told).encode()
        return files


def _held(write):
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def _prepared(source):
    def write(folder):
        told = []
        save_traces(ew.read_traces(source, report=told.append), told[0], folder)

    return _held(write)


def inputs():
    """Name -> a good input of every kind."""
    rng = np.random.default_rng(1)
    town = ew.simulate_town(users=40, locations=60, rng=rng).traces
    settings = preset_of("product", m_min=2, c_min=2, k=3, alternates="split")
    learnt = ew.learn(town, settings, kappa=4, rng=rng)
    fakes = ew.generate_fakes(town, preset="paper", kappa=4, rng=rng)
    pool = ew.publish(fakes, laboratory=True, rng=rng)
    real = ew.Traces(np.zeros((3, 4), dtype=int), Locations(n=2), users=["ann", "bob", "cid"])
    made = ew.Traces(np.ones((2, 4), dtype=int), Locations(n=2), users=["f1", "f2"])
    csv = makefiles.csv(makefiles.fixes()).encode()
    slots = b"uid,slot,loc\n" + b"".join(b"ann,%d,%d\n" % (s, s // 30) for s in range(72))
    places = b"id,lat,lng\n0,46.5191,6.5668\n1,46.5375,6.6312\n2,46.6,6.7\n"
    ring = [[6.0, 46.0], [7.0, 46.0], [7.0, 47.0], [6.0, 46.0]]
    feature = {"type": "Feature", "properties": {"name": "a"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    regions = json.dumps({"type": "FeatureCollection", "features": [feature] * 3}).encode()
    frame = {"uid": ["ann"] * 72, "slot": range(72), "lat": [46.5, 46.7] * 36, "lng": [6.6] * 72}
    return {
        "prepared places": Input(_prepared(frame), ew.read_traces, "prepare.json"),
        "prepared numbers": Input(
            _prepared({"uid": ["ann"] * 9, "slot": range(9), "loc": [0, 1, 2] * 3}), ew.read_traces, "prepare.json"
        ),
        "pool": Input(_held(lambda d: pool.save(d)), ew.Pool.load, "manifest.json"),
        "model": Input(dict(learnt.files()), FittedModel.load, "model.json"),
        "fakes": Input(_held(lambda d: fakes.save(d)), ew.Fakes.load, "fakes.json"),
        "links": Input(
            {"l.csv": links_file(made, real, np.array([0, 2]))}, lambda d: read_links(d / "l.csv", made, real)
        ),
        "places": Input(
            {"t.csv": slots, "p.csv": places}, lambda d: ew.read_traces(d / "t.csv", locations=d / "p.csv")
        ),
        "regions": Input({"r.json": regions}, lambda d: read_regions(d / "r.json")),
        "folder": Input({"1.csv": csv, "2.csv": csv.replace(b"ann", b"bob"), "3.csv": b""}, ew.read_traces),
        "tracks": Input(
            {f"{n}.gpx": makefiles.gpx(makefiles.fixes()).encode() for n in (1, 2)} | {"notes.txt": b"a b\n"},
            ew.read_traces,
        ),
    }
