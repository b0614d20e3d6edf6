"""
The studio: the results of a run, for its owner, in a browser on this machine (private side).

`studio_file` keeps what it needs beside the links: the class of each place, the skeleton of each fake (the classes of
its seed's places, no place), and what the privacy test measured on every attempt. `Studio` reads that, the pool and the
judgement, and answers one browser on loopback: the address that is opened holds a key after its `#`, which no server is
sent, and which is exchanged once for the token of that tab. The web framework stays in `serve`: this is the standard
library's server, in a process that never faces a network.
"""

import hmac
import json
import secrets
import threading
from collections.abc import Mapping
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidModel, OutputRefused
from elsewhere.files import PAGE_HEADERS, pack_arrays, page_files, read_arrays, read_index, read_regular
from elsewhere.paper.privacy_test import RULES, Verdicts
from elsewhere.pool import Pool
from elsewhere.reports.attacks import advice, count_outcomes, format_figure, format_main, outcome_sign, question
from elsewhere.reports.results import findings
from elsewhere.run.fakes import Fakes
from elsewhere.traces.ground import page_map
from elsewhere.traces.model import Ints, Traces

KIND = "elsewhere studio (private) 1"
STUDIO, JUDGEMENT = "studio.npz", "judgement.json"
MEASURED = ("sim", "shared", "aligned", "alternates", "sim_s", "closest")  # of a verdict
LARGEST = 2**31
MOST_SHOWN = 5_000  # fakes; a pool is in no order, so the first ones are some at random
PAGE = ("studio.html", "studio.js", "map.js", "parts.js", "style.css", "icon.svg")


def studio_file(traces: Traces, fakes: Fakes, pool: Pool, rows: Ints) -> bytes:
    """
    Return what the studio needs of a run, as npz, the same bytes of the same run.

    `rows` says which fake each row of the pool is.
    """
    arrays: dict[str, NDArray[Any]] = {}
    about: dict[str, Any] = {"kind": KIND, "kappa": fakes.kappa, "preset": fakes.preset.name}
    fit = fakes.learnt
    if fit is not None:
        label = np.full(pool.traces.R, -1, dtype=np.int16)
        there = pool.traces.r >= 0
        label[pool.traces.r[there]] = fit.classes.label[fakes.r[rows][there]]
        arrays["label"] = label
        if not fakes.covered:  # where a theorem covers them, fakes are made of no single seed
            arrays["skeleton"] = fit.classes_of(traces.r[fakes.seed[rows]]).astype(np.int16)
    if isinstance(fakes.verdicts, Verdicts) and isinstance(fakes.rejected, Verdicts):
        lives, _ = np.unique(fakes.life, return_index=True)
        first = np.searchsorted(fakes.life, lives)  # one verdict for each fake person
        for part, verdicts in (("accepted", fakes.verdicts.select(first)), ("rejected", fakes.rejected)):
            arrays |= {f"{part}_{name}": getattr(verdicts, name) for name in MEASURED}
            arrays[f"{part}_bits"] = verdicts.rejected
        arrays["of_row"] = np.searchsorted(lives, fakes.life[rows])
        about |= {"quantile": fakes.verdicts.quantile, "not_run": list(fakes.verdicts.not_run)}
    about |= {"parameters": dict(fakes.preset.parameters()), "tally": dict(fakes.tally)}
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    return pack_arrays(arrays)


def read_studio_file(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return arrays and words of what `studio_file` wrote; `InvalidModel` where it is none."""
    try:
        arrays = read_arrays(read_regular(path, LARGEST), LARGEST)
        about = json.loads(arrays.pop("about").tobytes())
        if about["kind"] != KIND:
            raise ValueError("another kind")
    except (ValueError, KeyError, TypeError):
        raise InvalidModel(f"{path.name} of the private folder is damaged, or of another version.") from None
    return arrays, about


class Run:
    """What is there of a run: the pool, and of the private folder classes, skeletons, verdicts and the judgement."""

    def __init__(self, folder: Path, private: Path | None = None) -> None:
        self.pool = Pool.load(folder)
        whole = folder.resolve()
        mine = whole.with_name(f"{whole.name}-private") if private is None else private
        if not mine.is_dir():
            raise InvalidModel(
                f"{mine} is not there: the studio needs the private folder of the run too; give `private`.",
                code="E_PRIVATE",
            )
        self.name = whole.name
        self.arrays, self.about = ({}, {}) if not (mine / STUDIO).exists() else read_studio_file(mine / STUDIO)
        self.judgement: dict[str, Any] = {}
        if (mine / JUDGEMENT).exists():
            try:
                self.judgement = read_index(mine / JUDGEMENT, 1 << 28)
            except (OSError, ValueError):
                raise InvalidModel(f"{JUDGEMENT} of the private folder is damaged.") from None
        t = self.pool.traces
        fits = {"label": (t.R,), "skeleton": t.r.shape, "of_row": (len(t),)}
        if any(name in self.arrays and self.arrays[name].shape != shape for name, shape in fits.items()):
            raise InvalidModel("the private folder is that of another run than this pool.", code="E_MISMATCH")

    @cached_property
    def page_data(self) -> bytes:
        """Return all of it as JSON, for the page."""
        t, lives = self.pool.traces, self.pool.lives()
        values = {
            "name": self.name,
            "laboratory": bool(self.pool.provenance.get("reproducible")),
            "preset": self.pool.provenance.get("preset"),
            "kappa": self.about.get("kappa", self.pool.provenance.get("kappa")),
            "step_minutes": t.step_minutes,
            "start": t.start,
            "slots": t.L,
            **page_map(t.locations),
            "label": self._list("label"),
            "fakes": [
                {
                    "id": str(t.labels[t.user[rows[0]]]),
                    "r": t.r[rows].tolist(),
                    "skeleton": None if "skeleton" not in self.arrays else self.arrays["skeleton"][rows].tolist(),
                    "verdict": None if "of_row" not in self.arrays else int(self.arrays["of_row"][rows[0]]),
                }
                for rows in lives[:MOST_SHOWN]
            ],
            "total": len(lives),
            "test": self._test(),
            "audit": self._audit(),
            "notes": list(self.pool.provenance.get("notes") or ()),
        }
        return json.dumps(values, separators=(",", ":"), allow_nan=False).encode()

    def _list(self, name: str) -> list[Any] | None:
        return self.arrays[name].tolist() if name in self.arrays else None

    def _test(self) -> dict[str, Any] | None:
        """Return what the privacy test measured on every attempt; None where nothing was tested."""
        if "accepted_sim" not in self.arrays:
            return None
        sides = {
            side: {name: np.round(self.arrays[f"{side}_{name}"], 6).tolist() for name in (*MEASURED, "bits")}
            for side in ("accepted", "rejected")
        }
        about = self.about
        parameters = {
            name: value for name, value in about["parameters"].items() if isinstance(value, int | float | str)
        }
        return {**sides, **{name: about[name] for name in ("quantile", "not_run", "tally")}, "rules": RULES} | {
            "parameters": parameters
        }

    def _audit(self) -> dict[str, Any] | None:
        """Return every attack in a line, as the report has it; None where the run was not judged."""
        audit = self.judgement.get("audit")
        if not isinstance(audit, Mapping):
            return None
        run = dict(self.pool.provenance)
        rows = []
        for name, f in findings(dict(audit)).items():
            words_asked, _, unit = question(name, f)
            ends = f.get("interval")
            sign, words, kind = outcome_sign(name, f)
            rows.append(
                {
                    "name": name,
                    "question": words_asked,
                    "sign": sign,
                    "outcome": words,
                    "kind": kind,
                    "reached": format_main(f, unit),
                    "interval": "–"
                    if not isinstance(ends, list)
                    else " to ".join(format_figure(e, unit) for e in ends),
                    "strangers": format_figure(f.get("control"), unit),
                    "guessing": format_figure(f.get("baseline"), unit),
                    "bar": format_figure(f.get("bar"), unit),
                    "words": str(f.get("words") or f.get("needs") or ""),
                }
            )
        uses = self.judgement.get("uses")
        recommendation = advice(dict(audit), run, uses if isinstance(uses, dict) else None)
        return {"rows": rows, "sentence": count_outcomes(dict(audit)), "advice": recommendation._asdict()}


class Studio(ThreadingHTTPServer):
    """The server of one run on loopback; `url` is what the owner opens, good for one tab."""

    daemon_threads = True

    def __init__(self, run: Run, port: int = 0) -> None:
        self.run, self.files = run, page_files(PAGE)
        self.key, self.token = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self.opening = threading.Lock()  # held for good by the first tab
        try:
            super().__init__(("127.0.0.1", port), _Answer)
        except OSError as error:
            raise OutputRefused(f"port {port} cannot be used: {error.strerror}.", code="E_PORT") from None
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.url = f"http://{self.host}/#{self.key}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that goes away is no fault, and no line may quote what was asked."""


class _Answer(BaseHTTPRequestHandler):
    server: Studio
    timeout = 10
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "elsewhere", ""

    def do_GET(self) -> None:
        """Answer with a file of the page, or with the run where the token of the tab is shown."""
        if not self._for_us():
            return
        if self.path == "/run":
            header = self.headers.get("Authorization", "")
            if not hmac.compare_digest(header.encode(), f"Bearer {self.server.token}".encode()):
                self._refuse(401, "this tab was not opened by `elsewhere studio`.")
                return
            self._send(200, "application/json", self.server.run.page_data)
            return
        name = "studio.html" if self.path == "/" else self.path.removeprefix("/page/")
        if name not in self.server.files:
            self._refuse(404, "there is no such page.")
            return
        content, kind = self.server.files[name]
        self._send(200, kind, content)

    def do_POST(self) -> None:
        """Exchange the key of the address for the token of the tab, once."""
        if not self._for_us():
            return
        length = self.headers.get("Content-Length", "")
        key = self.rfile.read(int(length)) if length.isdigit() and int(length) <= 200 else b""
        right = hmac.compare_digest(key, self.server.key.encode())
        if self.path != "/open" or not right or not self.server.opening.acquire(blocking=False):
            self._refuse(401, "this address is good for one tab: run `elsewhere studio` again.")
            return
        self._send(200, "application/json", json.dumps({"token": self.server.token}).encode())

    def _for_us(self) -> bool:
        # a foreign name that leads here is somebody's page that wants to read ours
        if self.headers.get("Host") == self.server.host:
            return True
        self._refuse(403, f"the studio is at {self.server.host} only.")
        return False

    def _refuse(self, status: int, words: str) -> None:
        self.close_connection = True
        self._send(status, "application/json", json.dumps({"error": words}).encode())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in {**PAGE_HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
        """Log nothing."""
