"""
Follow the fixes of a small file from CSV to fakes.csv and report: functions and files on the way, and `Traces` built.

    python bench/walk_of_a_fix.py [SRC]

SRC is the `src` folder of another version to compare with. Only functions of the package count, each once, however
often it is called; compiled kernels are told apart. Rooms are entered from `run`: what another room calls of a room's
functions is listed; types of data, such as `Traces`, belong to everybody.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1] / "src"
WALK = """
import functools, json, sys, tempfile, threading, warnings
from pathlib import Path
import numpy as np
import elsewhere as ew

house = str(Path(ew.__file__).parent)
people = ew.simulate_town(users=40, days=2, locations=40, rng=np.random.default_rng(3)).traces
codes, built, entries = set(), [0], set()

@functools.cache
def room(code):
    return code.co_filename[len(house) + 1 :].split("/")[0] if code.co_filename.startswith(house) else None

def look(frame, event, _):
    if event == "call":
        code = frame.f_code
        codes.add(code)
        if code.co_qualname == "Traces.__init__":
            built[0] += 1
        caller, here = frame.f_back, room(code)
        while here and caller and room(caller.f_code) is None:
            caller = caller.f_back
        if here and caller and "." not in code.co_qualname and not here.endswith(".py"):
            outside = room(caller.f_code)
            if outside not in (here, "run") and not outside.endswith(".py") and here != "run":
                entries.add(f"{outside} calls {here}.{code.co_name}")

with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ew.write_traces(people, f"{folder}/people.csv")
    run = dict(kappa=5, m_min=2, k=3, c_min=1, step="1h", report=REPORT, workers=1)
    ew.synthesize(f"{folder}/people.csv", f"{folder}/first", **run)  # compiles
    threading.setprofile(look)
    sys.setprofile(look)
    ew.synthesize(f"{folder}/people.csv", f"{folder}/out", **run)
    sys.setprofile(None)
seen = {(c.co_filename, c.co_qualname) for c in codes if c.co_filename.startswith(house) and c.co_name[0] != "<"}
kernels = sum(f.endswith("_kernels.py") for f, _ in seen)
print(json.dumps({"functions": len(seen), "kernels": kernels, "files": len({f for f, _ in seen}), "traces": built[0],
                  "entries": sorted(entries)}))
"""


def walk(src: Path, report: bool) -> dict[str, Any]:
    """Count on the way of a run with, or without, judgement and reports."""
    code = WALK.replace("REPORT", str(report))
    env = {**os.environ, "PYTHONPATH": str(src)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    if ran.returncode:
        raise SystemExit(ran.stderr)
    return dict(json.loads(ran.stdout.splitlines()[-1]))


if __name__ == "__main__":
    versions = {"before": Path(sys.argv[1]).resolve()} if len(sys.argv) > 1 else {}
    for name, src in {**versions, "now": HERE}.items():
        files = list((src / "elsewhere").rglob("*.py"))
        lines = sum(len(path.read_text().splitlines()) for path in files)
        print(f"{name}: {len(files)} files, {lines:,} lines")
        for what, report in (("CSV to fakes.csv", False), ("and both reports", True)):
            n = walk(src, report)
            of = f"{n['functions']} functions ({n['kernels']} compiled)"
            print(f"  {what}: {of} in {n['files']} files; {n['traces']} times `Traces`")
            print(f"    rooms entered past `run`: {'; '.join(n['entries']) or 'none'}", flush=True)
