"""Folders appear whole or not at all: whatever stops a run, and wherever, and what the next run makes of the rest."""

import importlib
import itertools
import json
import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pieces
import pytest

import elsewhere as ew
from elsewhere.cli import app
from elsewhere.evaluation.judge import Judgement
from elsewhere.files import check_folder, clean_up, whole_folder, whole_folders, write_files
from elsewhere.run.publish import published_links

pytestmark = pytest.mark.usefixtures("few_draws")
OLD = {"a.bin": b"old", "b.bin": b"old", "index.json": b"old", "mine.txt": b"mine"}
NEW = {"a.bin": b"new", "c.bin": b"new", "index.json": b"new"}
posix = pytest.mark.skipif(os.name == "nt", reason="signals, permissions and locks of POSIX")


def holds(folder):
    """Every file below a folder, hidden ones too, by its path."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def outdated(_folder):
    return {"b.bin"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), SystemExit(3)])
@pytest.mark.parametrize("there", [False, True])
def test_a_block_that_fails_changes_nothing(tmp_path, error, there):
    folder = tmp_path / "above" / "out"
    if there:
        write_files(folder, OLD)

    def fail():
        with whole_folder(folder, force=True, outdated=outdated) as new:
            write_files(new, NEW)
            assert stat.S_IMODE(new.stat().st_mode) == 0o700
            # until the end everything is as it was, but for the hidden folder
            seen = {n: c for n, c in holds(tmp_path).items() if new.name not in n}
            assert seen == ({f"above/out/{name}": content for name, content in OLD.items()} if there else {})
            raise error

    with pytest.raises(type(error)):
        fail()
    assert holds(tmp_path) == ({f"above/out/{name}": content for name, content in OLD.items()} if there else {})
    assert (tmp_path / "above").exists() is there


def test_a_block_that_ends_well_puts_all_files_in_their_place(tmp_path):
    with whole_folder(tmp_path / "new" / "out") as new:
        write_files(new, NEW)
    assert holds(tmp_path) == {f"new/out/{name}": content for name, content in NEW.items()}
    assert stat.S_IMODE((tmp_path / "new" / "out").stat().st_mode) == 0o700

    old = tmp_path / "old"
    write_files(old, OLD)
    (old / "theirs").mkdir()
    (old / "theirs" / "b.bin").write_bytes(b"theirs")
    before = old.stat().st_ino
    with whole_folder(old, force=True, outdated=outdated) as new:
        write_files(new, NEW)
    assert holds(old) == {**NEW, "mine.txt": b"mine", "theirs/b.bin": b"theirs"}
    # the same folder: somebody may have mounted it, or work in it
    assert old.stat().st_ino == before
    # files of the old run that `outdated` names and the new one has too are of the new one
    with whole_folder(old, force=True, outdated=lambda _: set(NEW)) as new:
        write_files(new, NEW)
    assert holds(old) == {**NEW, "mine.txt": b"mine", "theirs/b.bin": b"theirs"}


def test_several_folders_come_together_or_not_at_all(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"

    def write(force, **theirs):
        with whole_folders((one, two), force=force) as (a, b):
            write_files(a, NEW)
            write_files(b, NEW)
            if theirs:
                write_files(two, theirs)

    with pytest.raises(ew.errors.OutputRefused, match="no longer empty"):
        write(force=False, **{"theirs.txt": b"came first"})
    assert holds(tmp_path) == {"two/theirs.txt": b"came first"}
    assert not one.exists()
    write(force=True)
    assert holds(one) == NEW
    assert holds(two) == {**NEW, "theirs.txt": b"came first"}


def test_a_folder_is_found_through_a_link_and_one_that_is_worked_in_stays_the_same(tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    with whole_folder(tmp_path / "out") as new:
        write_files(new, NEW)
    assert (tmp_path / "out").is_symlink()
    assert holds(tmp_path / "disk") == NEW
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with whole_folder(Path()) as new:
        write_files(new, NEW)
    assert {p.name for p in Path().iterdir()} == set(NEW)  # as the shell sees it


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_in_somebody_elses_folder_can_be_filled(tmp_path):
    (tmp_path / "theirs" / "out").mkdir(parents=True)
    (tmp_path / "theirs").chmod(0o500)
    try:
        check_folder(tmp_path / "theirs" / "out")
        with whole_folder(tmp_path / "theirs" / "out") as new:
            write_files(new, NEW)
        assert holds(tmp_path / "theirs" / "out") == NEW
        with pytest.raises(ew.errors.OutputRefused, match="no permission"):
            check_folder(tmp_path / "theirs" / "other")
    finally:
        (tmp_path / "theirs").chmod(0o700)


KILLED = textwrap.dedent("""
    import os, pathlib, shutil, sys
    from elsewhere import files
    left, folder, new = int(sys.argv[1]), pathlib.Path(sys.argv[2]), {new!r}
    def counted(function):
        def call(*given, **named):
            global left
            left -= 1
            if left < 0:
                os._exit(9)  # no cleaning up, as if by SIGKILL
            return function(*given, **named)
        return call
    for name in ("rename", "replace", "unlink", "mkdir", "rmdir"):
        setattr(pathlib.Path, name, counted(getattr(pathlib.Path, name)))
    os.fsync, shutil.rmtree = counted(os.fsync), counted(shutil.rmtree)
    files.check_folder(folder, force=True)
    with files.whole_folder(folder, force=True, outdated=lambda _: {{"b.bin"}}) as at:
        files.write_files(at, new)
""").format(new=NEW)


@posix
@pytest.mark.parametrize("there", [False, True])
@pytest.mark.filterwarnings("ignore:.*killed")
def test_killed_at_any_step_the_next_run_finds_all_or_nothing(tmp_path, there):
    seen = set()
    for step in itertools.count():
        folder = tmp_path / str(step) / "above" / "out"
        folder.parents[1].mkdir()
        if there:
            write_files(folder, OLD)
        done = subprocess.run([sys.executable, "-c", KILLED, str(step), str(folder)], check=False)
        check_folder(folder, force=True)  # what every command does first
        found = {name.removeprefix("above/out/"): content for name, content in holds(folder.parents[1]).items()}
        left = {p.relative_to(folder.parents[1]).as_posix() for p in folder.parents[1].rglob("*") if p.is_dir()}
        assert left <= {"above", "above/out"}, step
        before, after = (OLD, {**NEW, "mine.txt": b"mine"}) if there else ({}, NEW)
        assert found in (before, after), step
        seen.add(found == after)
        if done.returncode == 0:
            assert found == after
            break
        assert done.returncode == 9
    assert step > 10
    assert seen == {False, True}


@posix
def test_a_new_folder_that_another_run_removes_is_made_again(tmp_path, monkeypatch):
    folder, made, make = tmp_path / "out", [], tempfile.mkdtemp

    def swept(**where):
        made.append(make(**where))
        if len(made) == 1:  # another run begins before this one holds its folder
            with pytest.warns(UserWarning, match="left incomplete"):
                clean_up(folder)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept)
    with whole_folder(folder) as new:
        assert [str(new)] == made[1:]
        clean_up(folder)  # now it is held
        assert new.is_dir()
        write_files(new, NEW)
    assert holds(folder) == NEW
    assert not Path(made[0]).exists()


@posix
def test_what_another_run_is_writing_is_left_alone(tmp_path):
    writing = (
        "import pathlib, sys\nfrom elsewhere.files import whole_folder, write_files\n"
        "with whole_folder(pathlib.Path(sys.argv[1])) as new:\n"
        "    write_files(new, {'a.bin': b'new'})\n    print('ready', flush=True)\n    sys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", writing, str(tmp_path / "out")]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    check_folder(tmp_path / "out")
    assert len(holds(tmp_path)) == 1
    child.communicate("go on\n", timeout=30)
    assert holds(tmp_path) == {"out/a.bin": b"new"}


SYNTHESIZE = importlib.import_module("elsewhere.run.synthesize")  # the file, not the function in it
PUBLISH = importlib.import_module("elsewhere.run.publish")
SMALL = ["--kappa", "6", "--set", "m_min=2", "--set", "k=3", "--set", "c_min=1", "--set", "class_draws=1"]


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    path = tmp_path_factory.mktemp("town") / "traces.csv"
    ew.write_traces(ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces, path)
    return path


@pytest.fixture(scope="module")
def made(people):
    return ew.generate_fakes(ew.read_traces(people), kappa=6, m_min=2, k=3, c_min=1, class_draws=1)


@pytest.fixture
def run(capsys, monkeypatch, made):
    # the fakes are made once; what comes after them is what these tests are about
    def make_fakes(*_given, **_named):
        made.published[:] = False
        return made

    monkeypatch.setattr(SYNTHESIZE, "make_fakes", make_fakes)

    def command(*words):
        with pytest.raises(SystemExit) as stopped:
            app([str(w) for w in words], prog_name="elsewhere")
        said = capsys.readouterr()
        return stopped.value.code or 0, said.out, said.err

    return command


def stop(*_given, **_named):
    raise KeyboardInterrupt


def fault(*_given, **_named):
    raise RuntimeError("CANARY-7f3a was at home")


def no_space(*given, **_named):
    raise ew.errors.OutputRefused("no space left on device.")


@pytest.mark.filterwarnings("ignore:.* classes instead of", "ignore:resuming the stopped run")
@pytest.mark.parametrize(
    ("stage", "how", "status", "code"),
    [
        ("write_links", stop, 130, "E_INTERRUPTED: stopped by Ctrl-C. "),
        ("write_fakes", fault, 70, "E_INTERNAL: RuntimeError at "),
        ("judge_run", stop, 130, "E_INTERRUPTED: stopped by Ctrl-C. "),
        ("judge_run", fault, 70, "E_INTERNAL: RuntimeError at "),
        ("write_reports", no_space, 2, "E_OUTPUT: no space left on device. "),
        ("write_pool", stop, 130, "E_INTERRUPTED: stopped by Ctrl-C. "),
    ],
)
def test_whatever_stops_synthesize_it_goes_on_and_nothing_else_is_left(
    run, made, people, tmp_path, monkeypatch, stage, how, status, code
):
    out, spare = tmp_path / "fakes", tmp_path / "fakes-unfinished"
    words = ["synthesize", people, "-o", out, *SMALL]
    with monkeypatch.context() as broken:
        broken.setattr(SYNTHESIZE, "judge_run", lambda *_given, **_named: Judgement(None, None, None, {}))
        broken.setattr(SYNTHESIZE, stage, how)
        got, said, err = run(*words, *(["--no-report"] if stage == "write_pool" else []))
    line = err.splitlines()[-1]
    assert (got, said) == (status, "")
    assert line.startswith(code)
    assert "CANARY" not in err
    assert {p.name for p in tmp_path.iterdir()} == {spare.name}
    assert stat.S_IMODE(spare.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in spare.iterdir())
    # what the message says to type goes on; how it is judged is not tried here
    typed = shlex.split(line.split("`")[1])
    assert typed[:4] == ["elsewhere", *map(str, words[:3])]
    assert run(*typed[1:], *([] if stage == "write_pool" else ["--no-report"]))[0] == 0
    assert len(ew.Pool.load(out)) == len(np.unique(made.seed))
    assert not spare.exists()
    # with the links: with other seeds more fakes share a place than with their own
    links = tmp_path / "fakes-private" / "links.csv"
    words = ["--real", people, "--fakes", out, "--links", links, "--attacks", "A1", "--json"]
    found = json.loads(run("audit", *words)[1])["attacks"]["A1"]
    seeds = ew.read_traces(people).r[made.seed]
    own, other = (
        np.mean([not {*fake}.isdisjoint(seed) for fake, seed in zip(made.r.tolist(), some.tolist(), strict=True)])
        for some in (seeds, np.roll(seeds, 1, axis=0))
    )
    assert (found["status"], found["own_shared"]["value"]) == ("run", pytest.approx(own))
    assert other > own
    assert stat.S_IMODE(links.stat().st_mode) == 0o600


@pytest.mark.filterwarnings("ignore:.* classes instead of", "ignore:resuming the stopped run")
def test_with_force_the_old_folders_stay_until_the_new_ones_are_complete(run, people, tmp_path, monkeypatch):
    words = ["synthesize", people, "-o", tmp_path / "fakes", *SMALL, "--no-report"]
    assert run(*words)[0] == 0
    before = holds(tmp_path)
    assert set(before) == {
        *(f"fakes/{n}" for n in ("fakes.csv", "fakes.parquet", "pool.parquet", "places.parquet", "manifest.json")),
        "fakes-private/links.csv",
    }
    with monkeypatch.context() as broken:
        broken.setattr(SYNTHESIZE, "write_pool", stop)
        assert run(*words, "--force")[0] == 130
    kept = {name: content for name, content in holds(tmp_path).items() if "unfinished" not in name}
    assert kept == before
    assert run(*words, "--force")[0] == 0
    after = holds(tmp_path)
    assert set(after) == set(before)
    assert all(after[name] != before[name] for name in ("fakes/fakes.csv", "fakes-private/links.csv"))
    assert len({p.stat().st_mtime_ns for p in (tmp_path / "fakes").iterdir()}) == 1


WAITS = textwrap.dedent("""
    import importlib, os, pieces, signal, sys, time
    from elsewhere.cli import app
    pieces.change(pieces.FEW_DRAWS)
    s = importlib.import_module("elsewhere.run.synthesize")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    source, folder, *options = sys.argv[1:]
    try:
        app(["synthesize", source, "-o", f"{folder}/first", *options, "--no-report"])  # children inherit its kernels
    except SystemExit:
        pass
    def wait(*_given, **_named):
        os.write(judging, b"judging")
        time.sleep(60)
    s.judge_run = wait
    for how in ("SIGINT", "SIGTERM", "SIGKILL"):
        begun, judging = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(os.open(f"{folder}/{how}.out", os.O_WRONLY | os.O_CREAT), 1)
            os.dup2(os.open(f"{folder}/{how}.err", os.O_WRONLY | os.O_CREAT), 2)
            app(["synthesize", source, "-o", f"{folder}/{how}/fakes", *options, "--json"])
        os.close(judging)
        assert os.read(begun, 7) == b"judging"
        assert not os.path.exists(f"{folder}/{how}/fakes")
        os.kill(child, getattr(signal, how))
        print(how, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
""")


@pytest.fixture(scope="module")
def signalled(people, tmp_path_factory):
    """Runs that were sent a signal while their fakes were judged: the folder of each, and how it ended."""
    folder = tmp_path_factory.mktemp("signals")
    for how in ("SIGINT", "SIGTERM", "SIGKILL"):
        (folder / how).mkdir()
    words = [sys.executable, "-c", WAITS, people, folder, *SMALL]
    there = os.environ | {"PYTHONPATH": str(pieces.HERE)}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600, env=there)
    assert done.returncode == 0, done.stderr
    ended = re.findall(r"^(SIG\w+) (-?\d+)$", done.stdout, re.MULTILINE)
    return folder, {how: int(status) for how, status in ended}


@posix
@pytest.mark.filterwarnings("always:removed .* killed", "always:resuming the stopped run")
@pytest.mark.parametrize(("how", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGKILL", -9)])
def test_a_signal_while_the_fakes_are_judged(people, signalled, how, status, capsys):
    assert signalled[1][how] == status
    here = signalled[0] / how
    left = {p.name for p in here.iterdir()}
    if how != "SIGKILL":
        assert left == {"fakes-unfinished"}
        name = "Ctrl-C" if how == "SIGINT" else how
        err = (signalled[0] / f"{how}.err").read_text()
        assert err.splitlines()[-1].startswith(f"E_INTERRUPTED: stopped by {name}. Finished stages are kept in ")
        assert json.loads((signalled[0] / f"{how}.out").read_text())["error"]["exit_status"] == status
        return
    hidden = {name for name in left if name.startswith(".fakes")}
    assert left == {"fakes-unfinished", *hidden}
    assert len(hidden) == 2
    with pytest.raises(SystemExit) as stopped:
        app(["synthesize", str(people), "-o", str(here / "fakes"), *SMALL, "--no-report"])
    said = capsys.readouterr().err
    assert not stopped.value.code, said
    assert all(f"removed {here / name}, left incomplete by a run" in said for name in hidden)
    assert "resuming the stopped run" in said
    assert {p.name for p in here.iterdir()} == {"fakes", "fakes-private"}


@pytest.mark.filterwarnings("ignore:.* classes instead of")
@pytest.mark.parametrize(
    ("words", "stage"),
    [
        (["prepare", "PEOPLE"], "elsewhere.reports.page.preparation_page"),
        (["fit", "PEOPLE", *SMALL], "elsewhere.files.whole_file"),
        (["generate", "PEOPLE", *SMALL], "elsewhere.files.whole_file"),
        (["demo", "--users", "30"], "elsewhere.files.whole_file"),
        (["similarity", "PEOPLE", "--users", "5"], "elsewhere.files.whole_file"),
        (["evaluate", "--real", "PEOPLE", "--fakes", "PEOPLE"], "elsewhere.reports.page.report"),
        (["audit", "--real", "PEOPLE", "--fakes", "PEOPLE", "--attacks", "A13"], "elsewhere.reports.page.report"),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_every_command_leaves_all_or_nothing(run, people, tmp_path, monkeypatch, words, stage):
    calls = iter(range(100))
    import elsewhere.files

    whole = elsewhere.files.whole_file

    def second(*given, **named):
        if stage.endswith("whole_file") and next(calls) == 0:
            return whole(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(stage, second)
    status, _, err = run(*(people if w == "PEOPLE" else w for w in words), "-o", tmp_path / "out")
    assert status == 130, err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.* classes instead of")
def test_publish_spends_the_budget_only_with_the_pool(run, made, tmp_path, monkeypatch):
    made.published[:] = False
    made.save(tmp_path / "made")
    with monkeypatch.context() as broken:
        broken.setattr(PUBLISH, "write_pool", stop)
        assert run("publish", tmp_path / "made", "-o", tmp_path / "out")[0] == 130
    assert {p.name for p in tmp_path.iterdir()} == {"made"}
    assert not ew.Fakes.load(tmp_path / "made").published.any()
    assert run("publish", tmp_path / "made", "-o", tmp_path / "out")[0] == 0
    assert ew.Fakes.load(tmp_path / "made").published.any()


def test_links_of_other_fakes_are_refused():
    pool = ew.Traces([[0]], ew.Locations(n=1), users=["f"])
    with pytest.raises(ew.errors.InvalidTraces, match="those of others"):
        published_links(b"fake,seed\n0,a\n", np.array([0]), pool, 2)
