"""A run that is stopped goes on: the same command again gives the bytes of a run that nobody stopped."""

import errno
import hashlib
import importlib
import io
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere import checkpoint as kept
from elsewhere.checkpoint import Checkpoint, _decode, at_once, derive_bytes, hash_value, resume

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:.* classes instead of",
        "ignore:`m_min` = 1",
        "ignore:.*alternates are seeds",
        "always:resuming the stopped run",
    ),
    pytest.mark.usefixtures("few_draws"),
]
posix = pytest.mark.skipif(os.name == "nt", reason="signals, permissions and locks of POSIX")
JOB = importlib.import_module("elsewhere.run.synthesize")  # the file, not the function in it
SMALL = {"kappa": 6, "m_min": 2, "k": 3, "c_min": 1, "class_draws": 1}
TYPED = ["--kappa", "6", "--set", "m_min=2", "-k", "3", "--set", "c_min=1", "--set", "class_draws=1"]
KEY = "0" * 64


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    path = tmp_path_factory.mktemp("town") / "traces.csv"
    ew.write_traces(ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces, path)
    return path


def holds(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# --- killed


def killed(town, folder, kills, seed):
    """What `kills.py` has found; one thread of OpenMP, which does not survive a fork."""
    words = [sys.executable, str(Path(__file__).with_name("kills.py")), str(town), str(folder), str(kills), str(seed)]
    there = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=there)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["faults"] == [], done.stderr[-3000:]
    assert found["alike"] == found["runs"]
    return found


@posix
def test_killed_at_five_random_steps_it_ends_with_the_same_bytes(town, tmp_path):
    found = killed(town, tmp_path, 5, 1)
    assert found["kills"] >= 5
    assert found["steps"] > 60


@posix
@pytest.mark.soak
def test_killed_two_hundred_times_it_ends_with_the_same_bytes(town, tmp_path):
    """About an hour."""
    found = killed(town, tmp_path, 200, 2)
    print(found)
    assert found["kills"] >= 200


# --- stopped


def stop(*_given, **_named):
    raise KeyboardInterrupt


def forbidden(*_given, **_named):
    raise AssertionError("a stage that was finished is done again")


PRESETS = {
    "product": SMALL,
    "paper": {"preset": "paper", "kappa": 6},
}


@pytest.mark.usefixtures("few_attacks")
@pytest.mark.parametrize("name", PRESETS)
def test_whatever_stops_it_the_same_call_goes_on_to_the_same_bytes(town, tmp_path, name):
    def run(folder):
        rng = np.random.default_rng(7)
        return ew.synthesize(town, tmp_path / folder / "out", **PRESETS[name], rng=rng, laboratory=True)

    spare, write_pool = tmp_path / "stopped" / "out-unfinished", JOB.write_pool

    def sealed(*given, **named):  # what is there when a run is stopped here
        shutil.copytree(tmp_path / "whole" / spare.name, spare)
        return write_pool(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JOB, "write_pool", sealed)
        whole = run("whole")
    assert stat.S_IMODE(spare.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in spare.iterdir())
    names = {p.name.removesuffix(".part").split("-")[0] for p in spare.glob("*.part")}
    of_all = {"reading", "model", "publishing", "uses", "attacks"}
    assert (
        names
        == of_all
        | {
            "product": {"walk", "blocks_of_fakes"},
            "paper": {"blocks_of_fakes"},
        }[name]
    )
    with pytest.MonkeyPatch.context() as patch:
        for home, work in (
            (JOB, "read_usable_days"),
            ("run.generate", "learn"),
            ("evaluation.judge", "audit"),
            ("run.attempts", "pair"),
        ):
            home = importlib.import_module(f"elsewhere.{home}") if isinstance(home, str) else home
            patch.setattr(home, work, forbidden)
        with pytest.warns(UserWarning, match="resuming the stopped run.*already done: .*attacks.*model"):
            again = run("stopped")
    assert holds(tmp_path / "stopped") == holds(tmp_path / "whole")
    assert again.to_dict() == whole.to_dict()


def test_a_production_run_goes_on_with_its_own_entropy(town, tmp_path, monkeypatch):
    """Two runs that go on from one state end alike; two runs that begin do not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JOB, "judge_run", stop)
        with pytest.raises(KeyboardInterrupt) as stopped:
            ew.synthesize(town, tmp_path / "one" / "out", **SMALL)
    (note,) = stopped.value.__notes__
    assert f"kept in {tmp_path / 'one' / 'out-unfinished'}" in note
    assert [p.name for p in (tmp_path / "one").iterdir()] == ["out-unfinished"]
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for folder in ("one", "two", "three"):
        # without its judge it ends too: whether it is judged is no part of the job
        ew.synthesize(town, tmp_path / folder / "out", **SMALL, report=False)
    one, two, three = (holds(tmp_path / name) for name in ("one", "two", "three"))
    assert one == two
    assert set(one) == set(three)
    assert one["out/fakes.csv"] != three["out/fakes.csv"]
    assert not [name for name in one if "unfinished" in name]


@pytest.mark.usefixtures("few_rounds")
def test_no_noise_is_drawn_twice_for_one_release(tmp_path, monkeypatch):
    """What is made of noise is made of what is on disk; a run that goes on, or is refused again, draws none."""
    town = ew.simulate_town(users=120, locations=25, rng=np.random.default_rng(4)).traces
    town = ew.Traces(town.r[:, ::6], town.locations, step_minutes=120)
    release = importlib.import_module("elsewhere.privacy.private.release")
    make_fakes = importlib.import_module("elsewhere.run.generate").make_fakes
    monkeypatch.setattr(release, "ENOUGH", 1.0)
    monkeypatch.setattr(release, "ASTRAY", 2.0)
    drawn, draw = [], release.noisy_sum

    def counted(*words, **named):
        drawn.append(1)
        return draw(*words, **named)

    monkeypatch.setattr(release, "noisy_sum", counted)

    def run(stages):
        return make_fakes(town, 5, laboratory=False, stages=stages, preset="private", eps=10.0, delta=1e-3)

    folder, spent = tmp_path / "out-unfinished", frozenset({"sums"})

    def go_on():
        with resume(folder, KEY, spent) as stages:
            return run(stages).r.tobytes()

    # stopped before the noise is on disk: nothing was made of it
    with monkeypatch.context() as patch:
        patch.setattr(release, "fit_walk", forbidden)
        keep = Checkpoint.keep

        def full(self, name, value):
            if name == "sums":
                raise OSError(errno.ENOSPC, "No space left on device")
            keep(self, name, value)

        patch.setattr(Checkpoint, "keep", full)
        with pytest.raises(OSError, match="No space"):
            go_on()
    assert drawn == [1]
    assert not (folder / "sums.part").exists()
    # stopped, or refused, when it is on disk
    for error in (KeyboardInterrupt, ew.errors.NotEnoughUsers("too few.")):

        def fail(*_given, error=error, **_named):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(release, "fit_walk", fail)
            with pytest.raises((KeyboardInterrupt, ew.errors.NotEnoughUsers)) as stopped:
                go_on()
        assert drawn == [1, 1]
        assert (folder / "sums.part").exists()
    assert "costs no further privacy" in stopped.value.__notes__[-1]
    shutil.copytree(folder, tmp_path / "copy")
    first = go_on()
    assert drawn == [1, 1]
    assert not folder.exists()
    (tmp_path / "copy").rename(folder)
    assert go_on() == first
    assert drawn == [1, 1]
    # another release draws its own
    assert go_on() != first
    assert drawn == [1, 1, 1]


# --- another job, another process, a full disk


def stopped_job(town, out, **given):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JOB, "make_fakes", stop)
        with pytest.raises(KeyboardInterrupt):
            ew.synthesize(town, out, **{**SMALL, **given})


def test_another_job_is_not_taken_for_it(town, tmp_path):
    mine = tmp_path / "traces.csv"
    shutil.copy(town, mine)
    stopped_job(mine, tmp_path / "out")
    before = holds(tmp_path)
    assert "out-unfinished/reading.part" in before
    for changed in ({"k": 4}, {"holdout": 0.1}, {"kappa": 7}, {"step": "30min"}, {"per_seed": 2}):
        with pytest.raises(
            ew.errors.OutputRefused, match=r"of another job.*remove the folder, or pass `force=True`"
        ) as other:
            ew.synthesize(mine, tmp_path / "out", **{**SMALL, **changed}, report=False)
        assert other.value.code == "E_UNFINISHED"
    text = mine.read_text()
    mine.write_text(text + text.splitlines()[-1] + "\n")
    with pytest.raises(ew.errors.OutputRefused, match="the input, an option"):
        ew.synthesize(mine, tmp_path / "out", **SMALL, report=False)
    mine.write_text(text)
    with pytest.MonkeyPatch.context() as patch:  # the package was updated meanwhile, with or without a new version
        patch.setattr("elsewhere.scale._code", lambda: "another")
        with pytest.raises(ew.errors.OutputRefused, match="the version is not the same"):
            ew.synthesize(mine, tmp_path / "out", **SMALL, report=False)
    assert holds(tmp_path) == before
    # with `force` it is given up
    made = ew.synthesize(mine, tmp_path / "out", **{**SMALL, "k": 4}, report=False, force=True)
    assert made.fakes.preset.k == 4
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "out-private", "traces.csv"]


def test_noise_given_up_with_another_job_is_warned_of(tmp_path):
    folder = tmp_path / "x-unfinished"
    for stage, said in (("count", ["if anybody saw any of its results, its eps and delta add"]), ("model", [])):
        checkpoint = Checkpoint.open(folder, KEY)
        checkpoint(stage, lambda: 1)
        checkpoint.close()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with resume(folder, "1" * 64, frozenset({"count", "sums"}), force=True):
                pass
        assert [word in str(w.message) for w, word in zip(caught, said, strict=True)] == [True] * len(said)
        assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_removed_is_named(tmp_path, monkeypatch):
    def refuse(*_given, **_named):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "left"))

    folder = tmp_path / "x-unfinished"
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", refuse)
        said = r"left cannot be removed \(Permission denied\): it holds real traces"
        with pytest.warns(UserWarning, match=said), resume(folder, KEY, frozenset()) as stages:
            stages("model", lambda: 1)
    for path in tmp_path.iterdir():
        shutil.rmtree(path)
    Checkpoint.open(folder, KEY).close()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        # it does not try for ever
        with pytest.raises(ew.errors.OutputRefused, match="Permission denied"):
            Checkpoint.open(folder, "1" * 64, force=True)


def test_the_same_content_is_the_same_job_wherever_it_comes_from(town, tmp_path):
    from scipy.sparse import csr_array

    preset = importlib.import_module("elsewhere.settings").PRESETS["product"]

    def key(source, settings=preset, entropy=None, **options):
        return JOB.job_key(source, *JOB._sort_options(options, settings, None, None), entropy)

    copy = tmp_path / town.name
    shutil.copy(town, copy)
    os.utime(copy, (1, 1))
    table, moves = pd.read_csv(town), tmp_path / "moves.csv"
    moves.write_text("from,to\n0,1\n")
    assert key(town) == key(str(copy))
    assert key(table) == key(pd.read_csv(town))
    assert key(town) == key(town, also="gpx", out_as="visits", workers=1)
    changed = table.copy()
    changed.iloc[5, -1] += 1
    keys = [
        key(town),
        key(table),
        key(changed),
        key(town, entropy=b"1"),
        key(town, entropy=b"2"),
        key(town, preset.changed(k=9)),
        key(town, kappa=5),
        key(town, feasible="data"),
        key(town, feasible=moves),
        key(town, feasible=np.eye(4)),
        key(town, feasible=csr_array(np.eye(4))),
        key(town, feasible=csr_array(np.eye(5))),
        key(town, per_seed=2),
        key(town, n=7),
        key(town, missing="gibbs"),
        key(town, cells=9),
        key(town, locations=town),
    ]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert key(iter([])) is None
    assert key(tmp_path / "nothing.csv") is None


@posix
def test_a_second_process_is_refused(town, tmp_path, run):
    out = tmp_path / "out"
    stopped_job(town, out)
    before = holds(tmp_path)
    waiting = (
        "import sys\nfrom elsewhere.files import lock_folder\nlock_folder(sys.argv[1])\nprint('held', flush=True)\n"
    )
    words = [sys.executable, "-c", f"{waiting}sys.stdin.readline()", str(tmp_path / "out-unfinished")]
    other = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "held\n"
    status, said, err = run("synthesize", town, "-o", out, *TYPED)
    assert (status, said) == (2, "")
    assert err.startswith("E_BUSY: another process is running this job")
    assert holds(tmp_path) == before
    other.communicate("\n", timeout=60)


def test_a_full_disk_leaves_what_was_there_and_what_is_done(town, tmp_path, monkeypatch, run):
    """The disk is full at one write after the other: one line each time, and the run goes on when there is room."""
    words = ["synthesize", town, "-o", tmp_path / "out", *TYPED, "--no-report", "--seed", "7", "--i-know"]
    assert run(*words)[0] == 0
    whole = holds(tmp_path)
    # with an old output in its place
    old = tmp_path / "other" / "out"
    ew.synthesize(town, old, **SMALL, report=False)
    before, spare = holds(old.parent), old.parent / "out-unfinished"
    words = [*words[:3], old, *words[4:], "--force"]
    codes, done = [], importlib.import_module("elsewhere.files").os.fsync

    for room in range(0, 60, 4):
        left = iter(range(room))

        def sync(handle, left=left):
            if stat.S_ISREG(os.fstat(handle).st_mode) and next(left, None) is None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return done(handle)

        with monkeypatch.context() as patch:
            patch.setattr("elsewhere.files.os.fsync", sync)
            status, said, err = run(*words)
        codes.append(status)
        now = {name: content for name, content in holds(old.parent).items() if "unfinished" not in name}
        if status == 0:
            break
        line = err.splitlines()[-1]
        assert (status, said, line.split(":")[0]) == (2, "", "E_OUTPUT"), err
        assert "No space left on device" in line
        assert now == before, room
        assert ("resumes" in line) == spare.exists()
    assert codes[:2] == [2, 2]
    assert codes[-1] == 0
    assert now == {name: whole[name] for name in whole}
    assert not spare.exists()


def test_ctrl_c_says_what_to_type_and_that_does_it(town, tmp_path, monkeypatch, run):
    words = ["synthesize", town, "-o", tmp_path / "out", *TYPED, "--no-report"]
    with monkeypatch.context() as patch:
        patch.setattr(JOB, "publish_with_rows", stop)
        status, said, err = run(*words)
    line = err.splitlines()[-1]
    assert (status, said) == (130, "")
    assert line.startswith("E_INTERRUPTED: stopped by Ctrl-C. Finished stages are kept in ")
    assert line.endswith("resumes.")
    status, said, err = run(*words)
    assert status == 0, err
    assert "resuming the stopped run" in err
    assert len(ew.Pool.load(tmp_path / "out")) > 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "out-private"]


def test_the_seed_of_a_laboratory_run_is_not_repeated_in_a_message(town, tmp_path, monkeypatch, run):
    words = ["synthesize", town, "-o", tmp_path / "out", *TYPED, "--seed", "90210", "--i-know"]
    monkeypatch.setattr(JOB, "publish_with_rows", stop)
    status, _, err = run(*words)
    assert status == 130
    assert "90210" not in err


def test_a_refusal_and_a_run_that_had_hardly_begun_leave_nothing(town, tmp_path, monkeypatch):
    with pytest.raises(ew.errors.NotEnoughUsers):
        ew.synthesize(town, tmp_path / "out", **{**SMALL, "k": 1000})
    with monkeypatch.context() as patch:
        patch.setattr(JOB, "read_usable_days", stop)
        with pytest.raises(KeyboardInterrupt) as stopped:
            ew.synthesize(town, tmp_path / "out", **SMALL)
    assert getattr(stopped.value, "__notes__", []) == []
    assert list(tmp_path.iterdir()) == []


def test_the_private_folder_is_not_where_a_run_keeps_what_is_done(town, tmp_path):
    for force in (False, True):
        with pytest.raises(ew.errors.InvalidParameter, match="`private` must not be out-unfinished") as refused:
            ew.synthesize(town, tmp_path / "out", private=tmp_path / "out-unfinished", **SMALL, force=force)
        assert refused.value.code == "E_OUTPUT"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_elses_and_a_damaged_one_are_refused(town, tmp_path):
    spare = tmp_path / "out-unfinished"
    spare.mkdir()
    (spare / "mine.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(ew.errors.OutputRefused, match="files that are not of a stopped run"):
            ew.synthesize(town, tmp_path / "out", **SMALL, force=force)
    assert holds(tmp_path) == {"out-unfinished/mine.txt": b"mine"}
    shutil.rmtree(spare)
    stopped_job(town, tmp_path / "out")
    part = spare / "reading.part"
    data = part.read_bytes()
    for damaged in (data[:-1], data[:40], b"", data[:100] + bytes([data[100] ^ 1]) + data[101:]):
        part.write_bytes(damaged)
        with pytest.raises(ew.errors.OutputRefused, match=r"reading.part is damaged.*remove .*-unfinished") as refused:
            ew.synthesize(town, tmp_path / "out", **SMALL)
        assert refused.value.code == "E_UNFINISHED"
        assert not hasattr(refused.value, "__notes__")  # it must not say that the same call resumes
        assert part.read_bytes() == damaged
    part.write_bytes(data)
    ew.synthesize(town, tmp_path / "out", **SMALL, report=False)
    assert not spare.exists()


# --- values as bytes


class Pair(NamedTuple):
    one: Any
    other: Any


@dataclass(frozen=True)
class Thing:
    a: Any
    b: Any = None


for each in (Pair, Thing):  # only classes of the package are read back
    each.__module__ = "elsewhere.checkpoint"
    setattr(kept, each.__name__, each)

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
keys = st.text() | st.integers()


def grown(inner):
    return (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.tuples(inner, inner).map(lambda pair: Pair(*pair))
        | st.tuples(inner, inner).map(lambda pair: Thing(*pair))
    )


@given(st.recursive(plain, grown, max_leaves=12))
def test_values_come_back_as_they_were(tmp_path_factory, value):
    folder = tmp_path_factory.mktemp("kept")
    with resume(folder / "x-unfinished", KEY, frozenset()) as stages:
        assert stages("value", lambda: value) == value
    assert hash_value(value) == hash_value(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.array(["a", "bé"]),
        np.array(["a", 7, None], dtype=object),
        np.array(["2024-01-02"], dtype="datetime64[D]"),
        np.zeros((0, 4), dtype=np.int32),
        np.array([np.nan, -0.0, np.inf]),
        np.float32(0.1),
        np.bool_(True),
        np.datetime64("2024-01-02"),
    ],
    ids=str,
)
def test_arrays_come_back_to_the_last_bit(tmp_path, array):
    checkpoint = Checkpoint.open(tmp_path / "x", KEY)
    back = checkpoint("array", lambda: array)
    assert type(back) is type(array)
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    if array.dtype == object:
        assert back.tolist() == array.tolist()
    else:
        assert back.tobytes() == array.tobytes()
        assert getattr(back, "flags", {}).f_contiguous == array.flags.f_contiguous
    checkpoint.remove()
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_kept_is_refused(tmp_path):
    checkpoint = Checkpoint.open(tmp_path / "x", KEY)
    assert checkpoint("mine", lambda: Thing(1, b"2")) == Thing(1, b"2")
    for alien in (object(), iter([]), np.random.default_rng(1), lambda: 1, subprocess):
        with pytest.raises(TypeError, match="cannot be kept"):
            checkpoint("alien", lambda alien=alien: alien)
    assert "alien" not in checkpoint.finished
    assert not list((tmp_path / "x").glob("*alien*"))
    # of a file nothing is run: it names classes of this package alone
    for name, nodes, said in (("os:system", [], "another package"), ("elsewhere.checkpoint:Thing", [1], "shorter")):
        tree = json.dumps([name, nodes]).encode()
        content = struct.pack("<Q", len(tree)) + tree
        checksum = hashlib.sha256(f"{KEY} trap".encode() + content).digest()
        (tmp_path / "x" / "trap.part").write_bytes(checksum + content)
        checkpoint.finished.add("trap")
        with pytest.raises(ew.errors.OutputRefused, match="damaged"):
            checkpoint("trap", dict)
        with io.BytesIO() as file, pytest.raises(ValueError, match=said):
            _decode(json.loads(tree), file)
    # a part of one job, or of one stage, is none of another
    shutil.copy(tmp_path / "x" / "mine.part", tmp_path / "x" / "other.part")
    checkpoint.close()
    checkpoint = Checkpoint.open(tmp_path / "x", KEY)
    with pytest.raises(ew.errors.OutputRefused, match="damaged"):
        checkpoint("other", forbidden)
    checkpoint.remove()


def test_uses_of_a_secret_tell_nothing_of_each_other():
    secret = bytes(32)
    drawn = {derive_bytes(secret, use, 32) for use in ("a", "b", "")} | {derive_bytes(b"other", "a", 32)}
    assert len(drawn) == 4
    assert derive_bytes(secret, "a", 64)[:32] == derive_bytes(secret, "a", 32)
    assert at_once("x", lambda: 5) == 5
