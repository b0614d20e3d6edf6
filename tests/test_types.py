"""A typed front door: type checkers pass a right program that uses the public API only, and refuse wrong calls."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import elsewhere as ew

ROOT = Path(__file__).resolve().parents[1]
RIGHT = """
import numpy as np
import elsewhere as ew
from elsewhere.evaluation.audit import AuditResult
from elsewhere.evaluation.publishing import PublishingResult
from elsewhere.run.synthesize import Result
from elsewhere.data.town import Town

rng = np.random.default_rng(1)
town: Town = ew.simulate_town(users=60, locations=100, rng=rng)
visits: ew.Visits = ew.read_visits("traces.csv", cells=100, tz="Europe/Zurich")
traces: ew.Traces = visits.traces(step_minutes=30)
lives: ew.Fakes = ew.generate_fakes(visits, k=5, alternates=town.visits)
fakes: ew.Fakes = ew.generate_fakes(town.traces, method="paper", par_c=0.3, k=3, rng=rng)
more: ew.Fakes = ew.generate_fakes(town.visits, eps=2.0, n=100)
pool: ew.Pool = ew.publish(fakes, per_seed=2, choose="likelihood", laboratory=True)
result: PublishingResult = ew.evaluate_publishing(town.traces, None, fakes.r, rng=rng)
attacks: AuditResult = ew.audit(town.traces, town.traces, fakes.r, fakes.seed, rng=rng)
made: Result = ew.synthesize("traces.csv", "out", method="paper", par_c=0.2, cells=200)
again: Result = ew.synthesize("traces.csv", "out", cells=300, also=["gpx"], force=True)
ew.report([result, attacks], "report.html")
"""
WRONG = [
    'ew.publish("nonsense", no_such=3)',
    "ew.publish(fakes, temperature=2.0)",
    'ew.publish(fakes, choose="best")',
    'ew.generate_fakes(traces, method="best")',
    'ew.generate_fakes(traces, alternates="all")',
    'ew.generate_fakes("traces.csv")',
    'ew.synthesize("traces.csv")',
    "ew.audit(traces, traces, fakes.r)",
    'ew.read_visits("traces.csv", max_gpa="3h")',
    'ew.read_visits("traces.csv", cells="half")',
    "ew.no_such_function()",
]
# names and values of `settings`, which are checked when they are given
WRONG_SETTINGS = [
    "ew.generate_fakes(traces, par_q=1)",
    'ew.generate_fakes(traces, method="paper", par_c="much")',
    'ew.synthesize("traces.csv", "out", cell=300)',
    'ew.synthesize("traces.csv", "out", holdout=2)',
]
PYRIGHT = Path(sys.executable).with_name("pyright")


def mypy(path):
    """Lines of a program that mypy refuses."""
    # with the project's own options, strict ones, so that it takes what `make lint` has found out about the package
    ran = run(sys.executable, "-m", "mypy", "--no-error-summary", str(path))
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return {int(line): said for line, said in re.findall(r"program\.py:(\d+): error: (.*)", ran.stdout)}


def pyright(path):
    """Lines of a program that pyright refuses."""
    if not PYRIGHT.exists() or run(PYRIGHT, "--version").returncode:
        pytest.skip("pyright is not installed, or cannot fetch itself")
    told = json.loads(run(PYRIGHT, "--outputjson", "--pythonpath", sys.executable, str(path)).stdout)
    errors = [d for d in told["generalDiagnostics"] if d["severity"] == "error"]
    return {d["range"]["start"]["line"] + 1: d["message"] for d in errors}


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_right_programs_pass_and_every_wrong_call_is_refused(checker, tmp_path):
    program = RIGHT.strip() + "\n"
    first = program.count("\n") + 1
    path = tmp_path / "program.py"
    path.write_text(program + "\n".join(WRONG) + "\n")
    refused = checker(path)

    assert {line: said for line, said in refused.items() if line < first} == {}
    assert [call for i, call in enumerate(WRONG) if first + i not in refused] == []


@pytest.fixture(scope="module")
def names():
    town = ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces
    fakes = ew.generate_fakes(town, k=3)
    return {"ew": ew, "traces": town, "fakes": fakes, "rng": np.random.default_rng(4)}


@pytest.mark.parametrize("call", WRONG[:-1])
def test_wrong_calls_are_refused(call, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ew.ElsewhereError, TypeError)):
        eval(call, dict(names))  # noqa: S307 - the calls above


@pytest.mark.parametrize(
    ("call", "parameter"),
    [*zip(WRONG_SETTINGS, ["par_q", "par_c", "cell", "holdout"], strict=True)],
)
def test_wrong_settings_are_refused_by_name(call, parameter, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ew.errors.InvalidParameter) as refused:
        eval(call, dict(names))  # noqa: S307 - the calls above

    assert (refused.value.code, refused.value.parameter) == ("E_PARAM", parameter)


def test_public_functions_take_data_first_options_by_keyword_and_rng_last():
    many, late = {}, {}
    for name in ew.__all__:
        value = getattr(ew, name)
        if inspect.isfunction(value):
            given = inspect.signature(value).parameters.values()
            named = [p.name for p in given if p.kind is not inspect.Parameter.VAR_KEYWORD]
            data = [p.name for p in given if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
            if len(named) > 14 or len(data) > 4:
                many[name] = named
            after = set(named[named.index("rng") + 1 :]) if "rng" in named else set()
            if after - {"executor", "workers", "progress", "locations", "roles"}:
                late[name] = named

    assert many == {}
    assert late == {}
