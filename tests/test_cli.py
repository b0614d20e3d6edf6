"""The command line: what it prints where, its exit status, what it refuses to overwrite, and what it does not load."""

import inspect
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import warnings
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.main import get_command
from typer.testing import CliRunner

import elsewhere as ew
from elsewhere.cli import COMMANDS, WHICH, Door, app, front, output
from elsewhere.cli.sources import options_of
from elsewhere.settings import PANELS, Reading

DEMO = ["demo", "--users", "12", "--seed", "3"]
ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"


@pytest.fixture
def run(monkeypatch):
    monkeypatch.delenv("ELSEWHERE_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *words, app=app: CliRunner().invoke(app, [str(w) for w in words])


def broken(error):
    """A command line whose only command raises `error`."""
    fragile = typer.Typer(cls=Door, pretty_exceptions_enable=False)
    fragile.callback(invoke_without_command=True)(front)

    @fragile.command()
    def work(as_json: bool = typer.Option(False, "--json")) -> None:
        home = "CANARY-7f3a"  # a local that no message may show
        assert home
        raise error

    return fragile


@pytest.mark.parametrize("words", [["--help"], ["--version"], [], ["demo", "--help"], ["similarity", "--help"]])
def test_help_loads_nothing_heavy(words):
    look = (
        "import atexit, sys; heavy = {'numpy', 'numba', 'pandas', 'scipy', 'matplotlib', 'pyarrow'}\n"
        "atexit.register(lambda: print('LOADED', sorted(heavy & sys.modules.keys())))\n"
        f"sys.argv = ['elsewhere', *{words!r}]\nfrom elsewhere.cli import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "LOADED []"
    assert len(done.stdout.splitlines()) > 1


def test_version_by_both_names():
    for start in (["-m", "elsewhere"], ["-c", "from elsewhere.cli import main; main()"]):
        done = subprocess.run([sys.executable, *start, "--version"], capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.returncode) == (f"elsewhere {ew.__version__}\n", 0)


def test_every_command_speaks_json_and_is_documented(run):
    for command in COMMANDS:
        text = run(command.__name__, "--help").stdout
        assert "--json" in text
        assert inspect.getdoc(command)[:20] in text


def test_what_most_need_comes_first_in_the_help():
    for name, command in get_command(app).commands.items():
        panels = [getattr(p, "rich_help_panel", None) for p in command.params]
        named = [panel for panel in panels if panel is not None]

        assert panels[0] is None, name
        assert set(named) <= set(PANELS)
        assert sum(panel is None for panel in panels) <= 14, name
        assert [PANELS.index(panel) for panel in dict.fromkeys(named)] == sorted({PANELS.index(p) for p in named}), name


def test_the_help_shows_its_panels(run):
    text = run("synthesize", "--help").stdout
    places = [text.index(f"─ {panel} ─") for panel in ("Options", *PANELS)]

    assert places == sorted(places)
    assert text.index("--preset") < places[1] < text.index("--max-bad") < text.index("--kappa") < text.index("--delta")


def test_the_help_says_which_preset_to_take_and_says_what_the_plan_does(run):
    rows = [line.split() for line in WHICH.splitlines()[1:-1]]
    planned = {each.preset: each for each in ew.plan(10_000)}

    for words in (("--help",), ("synthesize", "--help")):
        shown = run(*words).stdout
        assert [line for line in WHICH.splitlines() if line not in shown] == []
    assert {row[0]: float(row[-1]) for row in rows} == {
        name: float(f"{each.people_needed:.1g}") if each.people_needed > 100 else each.people_needed
        for name, each in planned.items()
    }
    for name, *row in rows:
        promised = planned[name].certificate
        assert row[0].rstrip(":,") == promised.protects
        assert (float(row[row.index("eps") + 1]) if "eps" in row else None) == promised.eps


def test_commands_that_do_the_same_have_the_same_options():
    options = {name: {o for p in c.params for o in p.opts} for name, c in get_command(app).commands.items()}
    reading = {"--step", "--cells", "--tz", "--locations", "--max-bad", "--columns", "--gaps", "--allow-truncated"}
    making = {"--preset", "--kappa", "--set", "--seed", "--force", "--json"}
    judging = {"--seed", "--out", "--force", "--json"}

    assert [name for name, has in options.items() if "--max-bad" in has and not reading <= has] == []
    assert [name for name in ("synthesize", "fit", "generate") if not making <= options[name]] == []
    assert [name for name in ("evaluate", "audit", "lbs", "reproduce") if not judging <= options[name]] == []


@pytest.mark.parametrize("words", [["nope"], ["similarity"], ["--nope"], ["demo", "--nope"]])
def test_usage_errors_are_one_line(run, words):
    plain, machine = run(*words), run(*words, "--json")

    assert (plain.exit_code, plain.stdout) == (2, "")
    assert plain.stderr.startswith("E_USAGE: ")
    assert plain.stderr.count("\n") == 1
    assert machine.exit_code == 2
    assert json.loads(machine.stdout)["error"]["code"] == "E_USAGE"


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--users", "1"], ["`users`", "at least 2", "got '1'", "(--users)"]),
        (["--users", "5001"], ["at most 5,000", "got '5001'"]),
        (["--users", "x"], ["`users`", "a whole number", "got 'x'"]),
        (["--seed", "-71077345"], ["`seed`", "at least 0", "(--seed)"]),
    ],
)
def test_parameters_out_of_range_are_refused_with_range_value_and_option(run, words, parts):
    done = run("demo", *words)

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("E_PARAM: ")
    assert [part for part in parts if part not in done.stderr] == []
    assert "71077345" not in done.stderr  # the entropy of a run is in no message


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ew.errors.InvalidParameter("`k` must be in [2, 9], got 1."), 2, "E_PARAM: `k` must be in [2, 9], got 1."),
        (ew.errors.InvalidTraces("bad\nname\x1b[31m.", code="E_OPEN"), 2, "E_OPEN: bad name [31m."),
        (ew.errors.NothingPassed("0 of 8 fakes passed."), 3, "E_NOTHING_PASSED: 0 of 8 fakes passed."),
        (KeyboardInterrupt(), 130, "E_INTERRUPTED: stopped by Ctrl-C."),
    ],
)
def test_errors_become_one_line_and_a_status(run, error, status, line):
    plain, machine = run("work", app=broken(error)), run("work", "--json", app=broken(error))
    code, message = line.split(": ", 1)

    assert (plain.exit_code, plain.stdout, plain.stderr) == (status, "", line + "\n")
    assert (machine.exit_code, machine.stderr) == (status, line + "\n")
    facts = {"code": code, "message": message, "parameter": None, "exit_status": status}
    assert json.loads(machine.stdout) == {"error": facts}


def test_an_error_names_the_option_of_its_command(run, tmp_path):
    (tmp_path / "a.csv").write_bytes(b"uid,datetime,lat,lng\na\xff,2024-03-04 00:00,46,7\n")

    for words, parameter, option in (
        (["--set", "k=0"], "k", "(-k)"),
        (["--set", "m_min=0"], "m_min", "(--set m_min)"),
        (["-k", "0"], "k", "(-k)"),
    ):
        done = run("synthesize", "-o", tmp_path / "o", *words, tmp_path / "a.csv", "--json")
        error = json.loads(done.stdout)["error"]
        assert (error["code"], error["parameter"]) == ("E_PARAM", parameter)
        assert error["message"].endswith(option)


def test_a_fault_of_ours_shows_its_place_and_no_value(run, monkeypatch):
    error = ValueError("the trace of CANARY-7f3a is 17, 17, 4")
    done = run("work", app=broken(error))

    assert done.exit_code == 70
    assert done.stdout == ""
    assert done.stderr.startswith("E_INTERNAL: ValueError at elsewhere/")
    assert done.stderr.count("\n") == 1
    assert "CANARY" not in done.stderr
    assert "Traceback" not in done.stderr

    monkeypatch.setenv("ELSEWHERE_DEBUG", "1")
    assert "Traceback" in CliRunner().invoke(broken(error), ["work"]).stderr


def test_json_after_a_double_dash_is_a_file_name(run):
    done = run("similarity", "--", "--json")

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("E_OPEN: ")


def test_warnings_of_ours_are_one_line_and_those_of_others_are_not_shown(run):
    talkative = typer.Typer(cls=Door)
    talkative.callback()(front)

    @talkative.command()
    def work() -> None:
        warnings.simplefilter("always")
        warnings.warn_explicit("ours", UserWarning, ew.__file__, 1)
        warnings.warn_explicit("theirs, of CANARY-7f3a", UserWarning, json.__file__, 1)

    assert run("work", app=talkative).stderr == "warning: ours\n"


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to a child on Windows")
@pytest.mark.parametrize("how", ["time.sleep(60)", "swallowed()"])
def test_ctrl_c_exits_130(how):
    # a library may swallow it in a callback and fail with an error of its own: that is no fault of ours
    wait = (
        "def swallowed():\n    try:\n        time.sleep(60)\n    except BaseException:\n"
        "        raise RuntimeError('callback failed') from None\n"
        # a shell that runs the tests in the background has Ctrl-C ignored, also by their children
        "import signal, time, typer\nfrom elsewhere.cli import Door, front\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "app = typer.Typer(cls=Door)\napp.callback()(front)\n"
        f"@app.command()\ndef work():\n    print('ready', flush=True)\n    {how}\n"
        "app(['work'])\n"
    )
    child = subprocess.Popen([sys.executable, "-c", wait], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)

    assert (child.returncode, said) == (130, "E_INTERRUPTED: stopped by Ctrl-C.\n")


def test_a_closed_pipe_is_no_traceback():
    line = f"{sys.executable} -m elsewhere --help | true"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)

    assert "Traceback" not in done.stderr


def test_demo_shows_histograms_and_numbers(run):
    done = run(*DEMO)
    result = json.loads(run(*DEMO, "--json").stdout)

    assert (done.exit_code, done.stderr) == (0, "")
    assert "66 pairs of 12 users" in done.stdout
    assert f"{result['semantic']['mean']:.3f}" in done.stdout
    assert f"{result['geographic']['quantiles']['95']:.3f}" in done.stdout
    assert done.stdout.count("█") > 24


def test_demo_numbers_are_those_of_the_library(run):
    result = json.loads(run(*DEMO, "--json").stdout)
    profiles = ew.fit_profiles(ew.simulate_town(users=12, locations=150, rng=np.random.default_rng(3)).traces)
    pairs = [(u, v) for u in range(12) for v in range(u)]
    semantic = [ew.semantic_similarity(profiles[u], profiles[v]).sim for u, v in pairs]
    geographic = [ew.geographic_similarity(profiles[u], profiles[v]) for u, v in pairs]

    assert (result["users"], result["pairs"], result["reproducible"]) == (12, 66, True)
    for name, values in (("semantic", semantic), ("geographic", geographic)):
        assert result[name]["mean"] == pytest.approx(np.mean(values), abs=1e-12)
        assert result[name]["quantiles"]["25"] == pytest.approx(np.quantile(values, 0.25), abs=1e-12)
        assert sum(result[name]["histogram"]) == pytest.approx(1, abs=1e-12)


def test_a_path_is_printed_as_it_is(run, tmp_path):
    out = tmp_path / "[bold]brackets[/bold]" / ("long" * 40)

    assert f"wrote {out / 'similarity.json'}\n" in run(*DEMO, "-o", out).stdout


def test_demo_writes_once_and_never_overwrites_without_force(run, tmp_path):
    out = tmp_path / "new" / "town"
    first = run(*DEMO, "-o", out)
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    again = run(*DEMO, "--users", "13", "-o", out)

    assert first.exit_code == 0
    assert sorted(written) == ["histograms.png", "similarity.json"]
    assert written["histograms.png"].startswith(b"\x89PNG")
    assert json.loads(written["similarity.json"])["users"] == 12
    assert (again.exit_code, again.stderr.split(":")[0]) == (2, "E_OUTPUT")
    assert written == {path.name: path.read_bytes() for path in out.iterdir()}

    (out / "mine.txt").write_text("keep")
    assert run(*DEMO, "-o", out, "--force").exit_code == 0
    assert {**written, "mine.txt": b"keep"} == {path.name: path.read_bytes() for path in out.iterdir()}
    if os.name == "posix":
        assert {path.stat().st_mode & 0o777 for path in out.glob("*.[jp]*")} == {0o600}


def test_outputs_that_cannot_be_are_refused_before_any_work(run, tmp_path, monkeypatch):
    monkeypatch.setattr("elsewhere.traces.town.simulate_town", lambda **_: pytest.fail("worked before refusing"))
    (tmp_path / "file").write_text("mine")

    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        done = run(*DEMO, "-o", out)
        assert (done.exit_code, done.stderr.split(":")[0], done.stderr.count("\n")) == (2, "E_OUTPUT", 1)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_full_disk_leaves_no_half_file(run, tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    done = run(*DEMO, "-o", tmp_path / "out")

    assert (done.exit_code, done.stderr.split(":")[0]) == (2, "E_OUTPUT")
    assert "No space left" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def days(tmp_path):
    """Four users, one day each: two the same, one the same elsewhere, one who never moves."""
    lives = {
        "ann": [0] * 36 + [1] * 36,
        "bob": [0] * 36 + [1] * 36,
        "eve": [2] * 36 + [3] * 36,
        "CANARY-7f3a": [4] * 72,
    }
    rows = [f"{user},{slot},{place}" for user, life in lives.items() for slot, place in enumerate(life)]
    path = tmp_path / "days.csv"
    path.write_text("\n".join(["uid,slot,loc", *rows]) + "\n")
    return path


def test_similarity_of_a_file_by_hand(run, days):
    done = run("similarity", days, "--json")
    result = json.loads(done.stdout)

    assert (done.exit_code, done.stderr) == (0, "")
    assert (result["users"], result["pairs"], result["places"]) == (4, 6, 5)
    assert result["geographic"]["mean"] == pytest.approx(1 / 6)  # ann and bob alone share places
    assert result["semantic"]["mean"] == pytest.approx((3 * 1 + 3 * 0.5) / 6)  # who stays put overlaps by half
    assert result["semantic"]["histogram"][10] == result["semantic"]["histogram"][19] == 0.5
    assert "CANARY" not in done.stdout
    assert "days.csv" not in done.stdout


def test_similarity_with_periods_counts_ordered_pairs(run, days):
    result = json.loads(run("similarity", days, "--periods", "2", "--json").stdout)

    assert (result["pairs"], result["periods"]) == (12, 2)
    assert result["semantic"]["mean"] == pytest.approx(1)  # half a day at one place, for everybody


def test_similarity_of_users_drawn_at_random(run, days):
    drawn = [run("similarity", days, "--users", "2", "--seed", seed, "--json").stdout for seed in (1, 1, 2, 3, 4, 5)]

    assert json.loads(drawn[0])["pairs"] == 1
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1
    assert run("similarity", days, "--users", "5").stderr.startswith("E_PARAM: `users` ")


@pytest.mark.parametrize(
    ("content", "words", "code"),
    [
        (None, [], "E_OPEN"),
        ("", [], "E_EMPTY"),
        ("uid,slot,loc\nann,0,1\nann,1,2\n", ["--missing", "perhaps"], "E_PARAM"),
        ("uid,slot,loc\nCANARY-7f3a,0,1\nCANARY-7f3a,1,2\n", [], "E_TOO_FEW"),
    ],
)
def test_similarity_refuses_in_one_line_and_writes_nothing(run, tmp_path, content, words, code):
    path = tmp_path / "in.csv"
    if content is not None:
        path.write_text(content)
    done = run("similarity", path, "--step", "12h", "-o", tmp_path / "out", *words)

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{code}: ")
    assert done.stderr.count("\n") == 1
    assert "CANARY" not in done.stderr
    assert not (tmp_path / "out").exists()


SHOWN = {
    "simulated town": ["demo", "--users", "400", "--seed", "1"],
    "StudentLife": ["similarity", DATA / "studentlife" / "paperlike_30users_2days_72slots.csv.gz"],
    "PF Tokyo": ["similarity", DATA / "pf_tokyo" / "pf_tokyo_traces.csv.gz"],
}


@pytest.mark.parametrize("people", SHOWN)
def test_people_are_apart_and_alike_as_the_docs_show(run, people):
    command = SHOWN[people]
    if not all(word.exists() for word in command if isinstance(word, Path)):
        pytest.skip(f"{people}: the data are not beside the project")
    result = json.loads(run(*command, "--json").stdout)
    lines = (ROOT / "docs" / "paper.md").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"| {people}"))

    assert f"| {result['pairs']:,} |" in lines[first]
    for kind, line in zip(("geographic", "semantic"), lines[first : first + 2], strict=True):
        numbers = [result[kind]["mean"], *result[kind]["quantiles"].values()]
        assert line.endswith(" | ".join(f"{x:.3f}"[1:] for x in numbers) + " |")
    # the shape of fig:real-gs-similarity: geographic piled near 0, semantic high
    assert np.argmax(result["geographic"]["histogram"]) == 0
    assert result["semantic"]["quantiles"]["25"] >= 0.5 > result["geographic"]["quantiles"]["95"]


def test_progress_is_a_line_now_and_then_where_nobody_watches(capsys, monkeypatch):
    with output.bars(["reading", "making fakes"]) as progress:
        progress("making fakes", 1, 4)
    assert capsys.readouterr() == ("", "")  # a run of seconds says nothing
    told, echo = threading.Event(), output.typer.echo
    monkeypatch.setattr(output.typer, "echo", lambda *words, **named: echo(*words, **named) or told.set())
    monkeypatch.setattr(output, "QUIET", 0.01)
    with output.bars(["reading", "making fakes"]) as progress:
        progress("making fakes", 2, 4)
        assert told.wait(60)

    out, err = capsys.readouterr()
    assert (out, {*err.splitlines()}) == ("", {"2 of 2: making fakes 2/4"})


def test_on_a_terminal_progress_counts_stages_and_estimates_within_one(monkeypatch):
    screen = StringIO()
    monkeypatch.setattr(output, "Console", lambda **_: Console(file=screen, force_terminal=True, width=100))
    with output.bars(["reading", "making fakes"]) as progress:
        progress("reading", 0, 0)
        for done in range(4):
            progress("making fakes", done, 4)

    assert "2 of 2: making fakes 3/4" in screen.getvalue()
    assert "0:00:00" in screen.getvalue()  # so long, and so much longer


def test_how_an_input_is_read_can_be_typed_again():
    other = {"step": "30min", "max_gap": "3h", "gaps": "drop", "places": "merge", "map": "whole", "cells": 7}
    other |= {"max_bad": 0.3, "min_coverage": 0.25, "lon360": True, "any_date": True, "allow_truncated": True}
    changed = {name: other.get(name, "a b") for name in Reading.model_fields}
    words = shlex.split(" ".join(options_of(Reading(**changed))))
    for command in ("synthesize", "plan"):
        context = (
            get_command(app)
            .commands[command]
            .make_context(command, [*words, "x", *(["-o", "y"] if command == "synthesize" else [])])
        )
        texts = {name: text for name, text in context.params.items() if name in changed}
        assert dict(Reading.of_texts(texts)) == changed
    assert options_of(Reading()) == []
