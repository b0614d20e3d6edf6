"""A run that is stopped goes on: the same command again gives the bytes of a run that nobody stopped."""

import errno
import importlib
import json
import os
import shutil
import stat
import subprocess
import sys
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
from elsewhere.checkpoint import Stages, _decode, at_once, derive_bytes, hash_value, resume

pytestmark = pytest.mark.filterwarnings("ignore:`alternates=", "always:resuming the stopped run")
posix = pytest.mark.skipif(os.name == "nt", reason="signals, permissions and locks of POSIX")
JOB = importlib.import_module("elsewhere.run.synthesize")  # the file, not the function in it
LAB = {"report": False, "laboratory": True}
KEY = "0" * 64


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    path = tmp_path_factory.mktemp("town") / "people.csv"
    ew.write_visits(ew.simulate_town(users=60, days=3, locations=60, rng=np.random.default_rng(3)).visits, path)
    return path


def holds(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def stop(*_given, **_named):
    raise KeyboardInterrupt


def forbidden(*_given, **_named):
    raise AssertionError("a stage that was finished is done again")


# ---- killed


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
def test_killed_at_a_few_random_steps_it_ends_with_the_same_bytes(town, tmp_path):
    found = killed(town, tmp_path, 4, 1)
    assert found["kills"] >= 4
    assert found["steps"] > 30


@posix
@pytest.mark.soak
def test_killed_two_hundred_times_it_ends_with_the_same_bytes(town, tmp_path):
    """About twenty minutes."""
    found = killed(town, tmp_path, 200, 2)
    print(found)
    assert found["kills"] >= 200


# ---- stopped


@pytest.mark.parametrize(
    ("method", "some"), [("life", {"learn lives", "learn test", "lives"}), ("paper", {"blocks_of_fakes"})]
)
def test_stopped_after_any_stage_it_goes_on_to_the_same_bytes(town, tmp_path, method, some):
    def run(folder):
        return ew.synthesize(town, tmp_path / folder / "out", method=method, rng=np.random.default_rng(7), **LAB)

    whole = run("whole")
    bytes_of_whole = holds(tmp_path / "whole")
    keep, stages = Stages.keep, []
    for n in range(100):

        def keep_some(self, name, value, n=n):
            keep(self, name, value)
            stages.append(name)
            if len(stages) > n:
                raise KeyboardInterrupt

        stages.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Stages, "keep", keep_some)
            try:
                run("stopped")
            except KeyboardInterrupt:
                pass
            else:
                break
        spare = tmp_path / "stopped" / "out-unfinished"
        if spare.exists():  # with something in it that somebody waited for
            assert stat.S_IMODE(spare.stat().st_mode) == 0o700
            assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in spare.iterdir())
            assert [p.name for p in spare.parent.iterdir()] == [spare.name]
            with pytest.warns(UserWarning, match="resuming the stopped run"):
                again = run("stopped")
            assert holds(tmp_path / "stopped") == bytes_of_whole, stages
            assert again.to_dict() == whole.to_dict()
            shutil.rmtree(tmp_path / "stopped")
    assert {name.partition("-")[0] for name in stages} >= some | {"reading"}


def test_what_is_finished_is_not_done_again(town, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JOB, "publish_with_links", stop)
        with pytest.raises(KeyboardInterrupt) as stopped:
            ew.synthesize(town, tmp_path / "out", report=False)
    assert "out-unfinished" in stopped.value.__notes__[0]
    life = importlib.import_module("elsewhere.synthesis.generate_life")
    with pytest.MonkeyPatch.context() as patch:
        for home, work in ((JOB, "read_visits"), (life, "learn_lives"), (life, "learn_test"), (life, "generate_block")):
            patch.setattr(home, work, forbidden)
        ew.synthesize(town, tmp_path / "out", report=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "out-private"]


def test_a_stage_draws_the_same_whether_the_one_before_was_done_now_or_earlier(town, tmp_path, monkeypatch):
    life = importlib.import_module("elsewhere.synthesis.generate_life")
    drawn, learn = [], life.learn_test

    def spy(*given, rng, **named):
        drawn.append(repr(rng.bit_generator.state))
        return learn(*given, rng=rng, **named)

    monkeypatch.setattr(life, "learn_test", spy)
    ew.synthesize(town, tmp_path / "whole", rng=np.random.default_rng(7), **LAB)
    with monkeypatch.context() as patch:
        patch.setattr(life, "learn_test", stop)
        with pytest.raises(KeyboardInterrupt):
            ew.synthesize(town, tmp_path / "out", rng=np.random.default_rng(7), **LAB)
    ew.synthesize(town, tmp_path / "out", rng=np.random.default_rng(7), **LAB)
    assert drawn[0] == drawn[1]


def test_a_production_run_goes_on_with_its_own_entropy(town, tmp_path):
    """Two runs that go on from one state end alike; two runs that begin do not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JOB, "judge_run", stop)
        with pytest.raises(KeyboardInterrupt):
            ew.synthesize(town, tmp_path / "one" / "out")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for folder in ("one", "two", "three"):
        # without its judge it ends too: whether it is judged is no part of the job
        ew.synthesize(town, tmp_path / folder / "out", report=False)
    one, two, three = (holds(tmp_path / name) for name in ("one", "two", "three"))
    assert one == two
    assert set(one) == set(three)
    assert one["out/fakes.csv"] != three["out/fakes.csv"]


@pytest.mark.usefixtures("few_rounds")
def test_no_noise_is_drawn_twice_for_one_release(tmp_path, monkeypatch):
    """What is made of noise is made of what is on disk; a run that goes on, or is refused again, draws none."""
    from elsewhere.run.generate import Run, make_fakes
    from elsewhere.settings import Certified, Making

    town = ew.simulate_town(users=120, locations=25, rng=np.random.default_rng(4)).traces
    town = ew.Traces(town.r[:, ::6], town.locations, step_minutes=120)
    release = importlib.import_module("elsewhere.synthesis.certified")
    monkeypatch.setattr(release, "people_needed", lambda *_: 1)
    drawn, draw = [], release.noisy_sum

    def counted(*words, **named):
        drawn.append(1)
        return draw(*words, **named)

    monkeypatch.setattr(release, "noisy_sum", counted)
    folder = tmp_path / "out-unfinished"

    def go_on():
        with resume(folder, KEY, JOB.SPENT) as stages:
            run = Run(Certified(eps=10.0, delta=1e-3), Making(workers=1), bytes(16), False, stages)
            return make_fakes(run, town).r.tobytes()

    for error in (KeyboardInterrupt, ew.errors.NotEnoughUsers("too few.")):

        def fail(*_given, error=error, **_named):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(release, "fit_law", fail)
            with pytest.raises((KeyboardInterrupt, ew.errors.NotEnoughUsers)) as stopped:
                go_on()
        assert drawn == [1]
        assert (folder / "sums.part").exists()
    assert "costs no further privacy" in stopped.value.__notes__[-1]
    shutil.copytree(folder, tmp_path / "copy")
    first = go_on()
    assert not folder.exists()
    (tmp_path / "copy").rename(folder)
    assert go_on() == first
    assert drawn == [1]
    assert go_on() != first  # another release draws its own
    assert drawn == [1, 1]


# ---- another job, another process, a full disk


def stopped_job(town, out, **given):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JOB, "make_fakes", stop)
        with pytest.raises(KeyboardInterrupt):
            ew.synthesize(town, out, **given)


def test_another_job_is_not_taken_for_it(town, tmp_path):
    mine = tmp_path / "people.csv"
    shutil.copy(town, mine)
    stopped_job(mine, tmp_path / "out")
    before = holds(tmp_path)
    assert "out-unfinished/reading.part" in before
    for changed in ({"k": 4}, {"holdout": 0.1}, {"cells": 30}, {"per_seed": 2}, {"method": "paper"}):
        with pytest.raises(ew.errors.OutputRefused) as other:
            ew.synthesize(mine, tmp_path / "out", report=False, force=True, **changed)
        assert other.value.code == "E_UNFINISHED"
    text = mine.read_text()
    mine.write_text(text + text.splitlines()[-1] + "\n")
    with pytest.raises(ew.errors.OutputRefused):
        ew.synthesize(mine, tmp_path / "out", report=False)
    mine.write_text(text)
    with pytest.MonkeyPatch.context() as patch:  # the package was updated meanwhile
        patch.setattr("elsewhere.scale.__version__", "another")
        with pytest.raises(ew.errors.OutputRefused):
            ew.synthesize(mine, tmp_path / "out", report=False)
    assert holds(tmp_path) == before


def test_a_folder_that_cannot_be_removed_is_named(tmp_path, monkeypatch):
    def refuse(*_given, **_named):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "left"))

    folder = tmp_path / "x-unfinished"
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", refuse)
        with pytest.warns(UserWarning, match="left cannot be removed"), resume(folder, KEY, frozenset()) as stages:
            stages("model", lambda: 1)


def test_the_same_content_is_the_same_job_wherever_it_comes_from(town, tmp_path):
    def key(source, entropy=None, method="life", **options):
        return JOB.job_key(source, *JOB._sort_options(options, method, None), entropy)

    copy = tmp_path / town.name
    shutil.copy(town, copy)
    os.utime(copy, (1, 1))
    assert key(town) == key(str(copy))
    assert key(town) == key(town, also="gpx", workers=1, report=False)
    keys = [key(town), key(town, b"1"), key(town, b"2"), key(town, method="paper")]
    keys += [key(town, **each) for each in ({"k": 9}, {"kappa": 5}, {"per_seed": 2}, {"n": 7}, {"cells": 9})]
    keys += [key(town, eps=eps, delta=1e-5, grid="Tokyo") for eps in (2.0, 4.0)] + [key(town, locations=town)]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert key(pd.read_csv(town)) is key(iter([])) is None
    assert key(tmp_path / "nothing.csv") is None


@posix
def test_a_second_process_is_refused(town, tmp_path, run):
    stopped_job(town, tmp_path / "out")
    before = holds(tmp_path)
    waiting = (
        "import sys\nfrom elsewhere.files import lock_folder\nlock_folder(sys.argv[1])\nprint('held', flush=True)\n"
    )
    words = [sys.executable, "-c", f"{waiting}sys.stdin.readline()", str(tmp_path / "out-unfinished")]
    other = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "held\n"
    status, said, err = run("synthesize", town, "-o", tmp_path / "out")
    assert (status, said, err.partition(":")[0]) == (2, "", "E_BUSY")
    assert holds(tmp_path) == before
    other.communicate("\n", timeout=60)


@pytest.mark.filterwarnings("ignore:what was in")
def test_a_full_disk_leaves_what_was_there_and_what_is_done(town, tmp_path, monkeypatch, run):
    """The disk is full at one write after the other: one line each time, and the run goes on when there is room."""
    words = ["synthesize", town, "-o", tmp_path / "out", "--no-report", "--seed", "7", "--i-know"]
    assert run(*words)[0] == 0
    whole = holds(tmp_path)
    old = tmp_path / "other" / "out"
    ew.synthesize(town, old, report=False)
    before = holds(old.parent)
    words = [*words[:3], old, *words[4:], "--force"]
    codes = []
    for room in range(0, 60, 2):
        left = iter(range(room))

        def sync(handle, left=left):
            if stat.S_ISREG(os.fstat(handle).st_mode) and next(left, None) is None:
                raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", sync)
            status, said, err = run(*words)
        if status == 0:
            break
        codes.append(err.splitlines()[-1].partition(":")[0])  # after a warning that it resumes
        assert (status, said) == (2, "")
        assert {name: content for name, content in holds(old.parent).items() if "unfinished" not in name} == before
    assert len(codes) > 2
    assert set(codes) == {"E_OUTPUT"}
    now = holds(old.parent)
    assert {name: content for name, content in now.items() if ".replaced-" not in name} == whole
    kept_aside = {name: content for name, content in now.items() if ".replaced-" in name}
    assert sorted(kept_aside.values()) == sorted(before.values())


def test_a_run_refused_for_good_leaves_nothing(town, tmp_path):
    with pytest.raises(ew.errors.NotEnoughUsers):
        ew.synthesize(town, tmp_path / "out", k=40)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_elses_and_a_damaged_one_are_refused(town, tmp_path):
    spare = tmp_path / "out-unfinished"
    spare.mkdir()
    (spare / "mine.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(ew.errors.OutputRefused):
            ew.synthesize(town, tmp_path / "out", force=force)
    assert holds(tmp_path) == {"out-unfinished/mine.txt": b"mine"}
    shutil.rmtree(spare)
    stopped_job(town, tmp_path / "out")
    part = spare / "reading.part"
    data = part.read_bytes()
    for damaged in (data[:-1], data[:40], b"", data[:100] + bytes([data[100] ^ 1]) + data[101:]):
        part.write_bytes(damaged)
        with pytest.raises(ew.errors.OutputRefused) as refused:
            ew.synthesize(town, tmp_path / "out")
        assert refused.value.code == "E_UNFINISHED"
        assert not hasattr(refused.value, "__notes__")  # it must not say that the same call resumes
        assert part.read_bytes() == damaged
    part.write_bytes(data)
    ew.synthesize(town, tmp_path / "out", report=False)
    assert not spare.exists()


# ---- values as bytes


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
        np.array(["2024-01-02"], dtype="datetime64[D]"),
        np.zeros((0, 4), dtype=np.int32),
        np.array([np.nan, -0.0, np.inf]),
    ],
    ids=str,
)
def test_arrays_come_back_to_the_last_bit(tmp_path, array):
    checkpoint = Stages.open(tmp_path / "x", KEY)
    back = checkpoint("array", lambda: array)
    assert type(back) is type(array)
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert back.flags.f_contiguous == array.flags.f_contiguous
    checkpoint.remove()
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_kept_is_refused(tmp_path):
    checkpoint = Stages.open(tmp_path / "x", KEY)
    assert checkpoint("mine", lambda: Thing(1, b"2")) == Thing(1, b"2")
    assert checkpoint("number", lambda: [np.int32(3), np.float64(0.1), np.bool_(True)]) == [3, 0.1, True]
    for alien in (object(), np.array(["a", None]), iter([]), np.random.default_rng(1), lambda: 1, subprocess):
        with pytest.raises(TypeError, match="cannot be kept"):
            checkpoint("alien", lambda alien=alien: alien)
    assert "alien" not in checkpoint.finished
    assert not list((tmp_path / "x").glob("*alien*"))
    # of a file nothing is run: it names classes of this package alone
    for name, nodes, said in (("os:system", [], "another package"), ("elsewhere.checkpoint:Thing", [1], "shorter")):
        tree = json.dumps([KEY, "trap", [name, nodes]]).encode()
        with (tmp_path / "x" / "trap.part").open("wb") as file:
            np.savez(file, np.frombuffer(tree, dtype=np.uint8))
        checkpoint.finished.add("trap")
        with pytest.raises(ew.errors.OutputRefused, match="damaged"):
            checkpoint("trap", dict)
        with pytest.raises(ValueError, match=said):
            _decode([name, nodes], iter([]))
    # a part of one job, or of one stage, is none of another
    shutil.copy(tmp_path / "x" / "mine.part", tmp_path / "x" / "other.part")
    checkpoint.close()
    checkpoint = Stages.open(tmp_path / "x", KEY)
    with pytest.raises(ew.errors.OutputRefused, match="damaged"):
        checkpoint("other", forbidden)
    checkpoint.remove()


def test_uses_of_a_secret_tell_nothing_of_each_other():
    secret = bytes(32)
    drawn = {derive_bytes(secret, use, 32) for use in ("a", "b", "")} | {derive_bytes(b"other", "a", 32)}
    assert len(drawn) == 4
    assert derive_bytes(secret, "a", 64)[:32] == derive_bytes(secret, "a", 32)
    assert at_once("x", lambda: 5) == 5
