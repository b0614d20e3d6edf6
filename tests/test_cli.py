"""The command line: what it prints where, its exit status, what it refuses to overwrite, and what it does not load."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from rich.console import Console
from typer.main import get_command
from typer.testing import CliRunner

import elsewhere as ew
from elsewhere.cli import COMMANDS, WHICH, Door, app, front, output
from elsewhere.settings import PANELS
from elsewhere.synthesis import certificate
from elsewhere.synthesis.certificate import gaussian_mu

BOX = "45.8,-12.2,46.2,-11.8,100"


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


@pytest.mark.parametrize("words", [["--help"], ["--version"], [], ["demo", "--help"], ["synthesize", "--help"]])
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


def test_the_help_says_which_method_to_take_and_how_many_people_it_needs(run):
    for words in (("--help",), ("synthesize", "--help")):
        shown = run(*words).stdout
        assert [line for line in WHICH.splitlines() if line not in shown] == []
    planned = ew.plan(10_000)
    needs = [int(line.split()[-1]) for line in WHICH.splitlines()[1:3]]
    assert needs[0] == planned.people_tested
    assert needs[1] == planned.people_certified


def test_commands_that_do_the_same_have_the_same_options():
    options = {name: {o for p in c.params for o in p.opts} for name, c in get_command(app).commands.items()}
    judging = {"--seed", "--out", "--force", "--json"}

    reading = {name for name, has in options.items() if "--columns" in has}
    assert reading == {"synthesize", "prepare", "plan", "evaluate", "audit", "lbs", "reproduce"}
    assert len({frozenset(options[name] & {"--tz", "--cells", "--locations", "--grid"}) for name in reading}) == 1
    assert [name for name in ("evaluate", "audit", "lbs", "reproduce") if not judging <= options[name]] == []
    assert [name for name, has in options.items() if "--dask" in has] == ["synthesize"]


@pytest.mark.parametrize("words", [["nope"], ["synthesize"], ["--nope"], ["demo", "--nope"]])
def test_usage_errors_are_one_line(run, words):
    plain, machine = run(*words), run(*words, "--json")

    assert (plain.exit_code, plain.stdout) == (2, "")
    assert plain.stderr.startswith("E_USAGE: ")
    assert plain.stderr.count("\n") == 1
    assert machine.exit_code == 2
    assert json.loads(machine.stdout)["error"]["code"] == "E_USAGE"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ew.errors.InvalidParameter("`k` must be in [2, 9], got 1."), 2, "E_PARAM: -k must be in [2, 9], got 1."),
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

    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("")
    for words, code, parameter, option in (
        (["--par-s", "2"], "E_PARAM", "par_s", "--par-s must be"),
        (["-k", "0"], "E_PARAM", "k", "-k must be"),
        (["-o", tmp_path / "full"], "E_OUTPUT", "force", "or --force."),
        (["--seed", "3"], "E_LABORATORY", "laboratory", "or add --i-know"),
        (["--eps", "3"], "E_MAP", "grid", "such as --grid Tokyo"),
    ):
        done = run("synthesize", "-o", tmp_path / "o", *words, tmp_path / "a.csv", "--json")
        error = json.loads(done.stdout)["error"]
        assert (error["code"], error["parameter"]) == (code, parameter)
        assert option in error["message"]
        assert "`" not in error["message"]


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
    done = run("plan", "--", "--json")

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


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A file of people, whose ids must be seen nowhere."""
    visits = ew.simulate_town(users=60, days=2, locations=60, rng=np.random.default_rng(3)).visits
    path = tmp_path_factory.mktemp("people") / "people.csv"
    ew.write_visits(visits.replace(users=[f"CANARY-{u}" for u in range(visits.U)]), path)
    return path


@pytest.fixture(scope="module")
def made(people, tmp_path_factory):
    """What `synthesize` writes of them: a folder to publish and one beside it."""
    out = tmp_path_factory.mktemp("made") / "out"
    done = CliRunner().invoke(app, ["synthesize", str(people), "-o", str(out), "--no-report", "--json"])
    assert done.exit_code == 0, done.stderr
    return out, json.loads(done.stdout)


def test_synthesize_says_everything_as_json(made):
    out, told = made
    assert told["command"] == "synthesize"
    assert told["files"] == ["fakes.csv", "fakes.parquet", "pool.parquet", "places.parquet", "manifest.json"]
    assert {p.name for p in out.iterdir()} == set(told["files"])
    private = Path(told["private"])
    assert {p.name for p in private.iterdir()} == set(told["private_files"]) == {"links.csv"}
    pool = ew.Pool.load(out)
    assert (told["fakes"], told["fake_visits"]) == (len(pool), len(pool.visits))
    assert (told["people"], told["method"], told["certificate"]["protects"]) == (60, "life", "nobody")
    assert told["seeds"] == 42
    assert told["seeds_without_a_fake"] == 42 - len(pool)
    assert told["attempts"] >= len(pool)
    assert told["read"]["users"] == 60
    assert {"people", "visits", "places", "read", "notes", "attempts"} <= set(told["private_fields"]) <= set(told)
    assert not {"fakes", "files", "certificate"} & set(told["private_fields"])
    assert b"CANARY" not in b"".join(p.read_bytes() for p in out.iterdir())
    assert (private / "links.csv").read_text().count("CANARY-") == len(pool)


def test_synthesize_says_it_to_people_in_ten_lines(run, people, tmp_path):
    done = run("synthesize", people, "-o", tmp_path / "[bold]out[/bold]", "--no-report")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert len(lines) <= 10
    assert lines[0].endswith(f"into {tmp_path / '[bold]out[/bold]'}")  # as it is
    assert "CANARY" not in done.stdout + done.stderr


def test_plan_says_what_could_be_promised(run, people):
    done = run("plan", people, "--eps", "2", "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["people"], told["certificate"]["eps"]) == (0, 60, 2)
    assert told["people_tested"] <= 60 < told["people_certified"]
    assert told["private_fields"] == ["people", "eps_runs", "eps_good", "words"]
    assert run("plan", people).stdout.startswith("60 people (private")


def test_a_plan_for_others_counts_with_noise(run, people, monkeypatch):
    told = [json.loads(run("plan", people, "--noisy", "--grid", BOX, "--json").stdout) for _ in range(4)]

    counts = [each["people"] for each in told]
    assert len(set(counts)) > 1
    assert max(counts) < 60 + 6 / gaussian_mu(0.1, 1e-6)  # six standard deviations
    assert all(each["private_fields"] == [] for each in told)
    refused = run("plan", people, "--noisy")
    assert (refused.exit_code, refused.stderr[:5]) == (2, "E_MAP")
    monkeypatch.setattr(certificate, "discrete_gaussian", lambda n, _: np.zeros(n, dtype=np.int64))
    assert run("plan", people, "--noisy", "--grid", BOX).stdout.startswith("60 people (counted with noise of eps 0.1)")


def test_evaluate_and_audit_know_seeds_by_their_links(run, people, made, tmp_path):
    out, told = made
    words = ["--real", people, "--fakes", out, "--links", Path(told["private"]) / "links.csv", "--json"]
    done = run("evaluate", *words, "-o", tmp_path / "judged")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert json.loads((tmp_path / "judged" / "evaluate.json").read_text()) == found
    assert found["command"] == "evaluate"
    assert run("evaluate", *words, "-o", tmp_path / "judged").exit_code == 2
    again = run("evaluate", "--real", people, "--fakes", out / "fakes.csv", "--json")
    assert again.exit_code == 0, again.stderr
    done = run("audit", *words, "--attacks", "A1")
    assert done.exit_code == 0, done.stderr
    assert "A1" in json.loads(done.stdout)["attacks"]
    assert "CANARY" not in done.stdout + done.stderr


@pytest.mark.parametrize("on_map", [20, 4, 3])  # one row in so many is there
def test_fakes_that_are_largely_off_the_map_are_refused(run, people, tmp_path, on_map):
    table = pd.read_csv(people)[["user", "start", "end", "lat", "lon"]]
    table.to_csv(tmp_path / "real.csv", index=False)
    table.loc[table.index % on_map > 0, "lat"] -= 40
    table.to_csv(tmp_path / "elsewhere.csv", index=False)
    done = run("audit", "--real", tmp_path / "real.csv", "--fakes", tmp_path / "elsewhere.csv", "--json")

    error = json.loads(done.stdout)["error"]
    assert (done.exit_code, error["code"], error["parameter"]) == (2, "E_MISMATCH", "fakes")
    assert "--locations" in error["message"]


@pytest.mark.parametrize("content", [None, b"fake,seed\nx,y\n", b"a,b\n1,2\n", b"\xff\xfe"])
def test_links_that_are_none_are_refused(run, people, made, tmp_path, content):
    if content is not None:
        (tmp_path / "links.csv").write_bytes(content)
    done = run("audit", "--real", people, "--fakes", made[0], "--links", tmp_path / "links.csv", "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.exit_code, error["parameter"]) == (2, "links")
    assert error["code"] == ("E_OPEN" if content is None else "E_LINKS")
    assert error["message"].startswith("--links")


def test_prepare_shows_how_a_file_was_understood(run, people, tmp_path):
    done = run("prepare", people, "-o", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.stderr
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"visits.parquet", "prepare.html"}
    assert json.loads(done.stdout)["users"] == 60
    assert len(set(pd.read_parquet(tmp_path / "out" / "visits.parquet")["user"])) == 60
    assert "CANARY" not in done.stdout + done.stderr


def test_outputs_that_cannot_be_are_refused_before_any_work(run, people, tmp_path, monkeypatch):
    for home in ("elsewhere.run.synthesize.read_visits", "elsewhere.data.read.read_visits"):
        monkeypatch.setattr(home, lambda *_, **_named: pytest.fail("worked before refusing"))
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for command in ("synthesize", "prepare"):
        for out in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "full", "/proc/elsewhere"):
            done = run(command, people, "-o", out)
            assert (done.exit_code, done.stderr.split(":")[0], done.stderr.count("\n")) == (2, "E_OUTPUT", 1)
    assert {p.name for p in tmp_path.iterdir()} == {"file", "full"}


@pytest.mark.parametrize(
    ("content", "code"), [(None, "E_OPEN"), ("", "E_EMPTY"), ("uid,datetime,lat,lng\nCANARY,never,1,2\n", None)]
)
def test_inputs_that_cannot_be_read_are_refused_in_one_line_and_nothing_is_written(run, tmp_path, content, code):
    path = tmp_path / "in.csv"
    if content is not None:
        path.write_text(content)
    for command in ("synthesize", "prepare"):
        done = run(command, path, "-o", tmp_path / "out")
        assert (done.exit_code, done.stdout) == (2, "")
        assert code is None or done.stderr.startswith(f"{code}: ")
        assert done.stderr.count("\n") == 1
        assert "CANARY" not in done.stderr
        assert not (tmp_path / "out").exists()


def test_people_who_are_all_alike_give_exit_3(run, tmp_path):
    rows = [
        f"{user},2024-03-04T{hour:02}:00:00,46.{5 if hour in range(9, 17) else 4},7.1"
        for user in range(40)
        for hour in range(24)
    ]
    (tmp_path / "in.csv").write_text("\n".join(["uid,datetime,lat,lng", *rows]) + "\n")
    done = run("synthesize", tmp_path / "in.csv", "-o", tmp_path / "out", "--json")
    assert (done.exit_code, json.loads(done.stdout)["error"]["exit_status"]) == (3, 3)
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(("ignored", "status"), [(False, 130), (True, 143)])
def test_a_stopped_job_says_where_it_goes_on(people, tmp_path, ignored, status):
    # whoever starts it in the background may have it ignore Ctrl-C: it is then stopped by SIGTERM alone
    code = (
        "import signal, sys, time\n"
        f"signal.signal(signal.SIGINT, signal.{'SIG_IGN' if ignored else 'default_int_handler'})\n"
        "from elsewhere.cli import app\nfrom elsewhere.run import synthesize as job\n"
        "def wait(*_, **__):\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "job.make_fakes = wait\napp(sys.argv[1:])\n"
    )
    words = ["synthesize", str(people), "-o", str(tmp_path / "out"), "--json"]
    child = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    if ignored:
        child.send_signal(signal.SIGTERM)
    out, said = child.communicate(timeout=60)
    error = json.loads(out)["error"]
    assert (child.returncode, error["code"], error["exit_status"]) == (status, "E_INTERRUPTED", status)
    assert said == f"E_INTERRUPTED: {error['message']}\n"
    assert "out-unfinished" in said
    assert [p.name for p in tmp_path.iterdir()] == ["out-unfinished"]


def test_progress_is_a_line_now_and_then_where_nobody_watches(capsys, monkeypatch):
    with output.progress("reading", "making fakes") as progress:
        progress("making fakes", 1, 4)
    assert capsys.readouterr() == ("", "")  # a run of seconds says nothing
    monkeypatch.setattr(output, "QUIET", 0.0)
    with output.progress("reading", "making fakes") as progress:
        progress("reading", 0, 0)
        progress("making fakes", 2, 4)

    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["1 of 2: reading", "2 of 2: making fakes 2/4"]


def test_on_a_terminal_progress_counts_stages_and_estimates_within_one(monkeypatch):
    screen = StringIO()
    monkeypatch.setattr(output, "Console", lambda **_: Console(file=screen, force_terminal=True, width=100))
    with output.progress("reading", "making fakes") as progress:
        progress("reading", 0, 0)
        for done in range(4):
            progress("making fakes", done, 4)

    assert "2 of 2: making fakes 3/4" in screen.getvalue()
    assert "0:00:00" in screen.getvalue()  # so long, and so much longer


@pytest.mark.parametrize(
    ("unit", "first", "units"),
    [("person", "fixes", "people"), ("trip", "trips", "trips"), ("vehicle-day", "fixes", "shifts")],
)
def test_what_is_counted_has_its_name(run, tmp_path, unit, first, units):
    rows = [(u, 10 * u + 5 * i, 52.3 + u % 6 / 50, 4.9 + i % 2 / 50) for u in range(36) for i in range(6)]
    table = pd.DataFrame(rows, columns=["person", "minutes", "lat", "lon"])
    when = pd.Timestamp("2024-03-04") + pd.to_timedelta(table.minutes, unit="min")
    table = table.assign(time=when, colour="CANARY").drop(columns="minutes")
    if unit == "trip":
        table = table.rename(columns={"lat": "start_lat", "lon": "start_lon", "time": "started_at"})
        table = table.assign(ended_at=when + pd.Timedelta("5min"), end_lat=table.start_lat, end_lon=4.9)
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run("prepare", tmp_path / "t.csv", "--unit", unit, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    counted = done.stdout.splitlines()[0]
    assert counted.startswith(f"216 {first}")
    assert units in counted
    assert "left out: colour" in done.stdout.replace(", person", "").replace("person, ", "")
    assert "CANARY" not in done.stdout
    planned = run("plan", tmp_path / "t.csv", "--unit", unit).stdout
    assert f" {units} (private" in planned.splitlines()[0]
    assert ("people" in planned) == (unit == "person")


def test_messages_name_options_as_they_are_typed(run, tmp_path):
    (tmp_path / "t.csv").write_text("spot,when\na,2024-03-04 10:00\nb,2024-03-04 11:00\n")
    done = run("prepare", tmp_path / "t.csv", "-o", tmp_path / "out")
    assert "`" not in done.stdout + done.stderr
    calls = [f"p{i % 12},2024-03-04 1{i % 10}:00,s{i % 2}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["person,time,tower", *calls]) + "\n")
    done = run("prepare", tmp_path / "t.csv", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert "--tz" in done.stdout
    assert "--locations" in done.stdout
    assert not re.search("`(tz|locations|columns|unit)`", done.stdout)
