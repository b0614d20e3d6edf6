"""Folders appear whole or not at all: whatever stops a run, and wherever, and what the next run makes of the rest."""

import itertools
import os
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

import elsewhere as ew
from elsewhere.files import check_folder, clean_up, whole_folders, write_files

OLD = {"a.bin": b"old", "b.bin": b"old", "index.json": b"old", "mine.txt": b"mine"}
NEW = {"a.bin": b"new", "c.bin": b"new", "index.json": b"new"}
posix = pytest.mark.skipif(os.name == "nt", reason="signals, permissions and locks of POSIX")


def holds(folder):
    """Every file below a folder, hidden ones too, by its path."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def replaced(folder):
    """What was in a folder before another took its place."""
    (aside,) = folder.parent.glob(f"{folder.name}.replaced-*")
    return holds(aside)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), SystemExit(3)])
@pytest.mark.parametrize("there", [False, True])
def test_a_block_that_fails_changes_nothing(tmp_path, error, there):
    folder = tmp_path / "above" / "out"
    if there:
        write_files(folder, OLD)

    def fail():
        with whole_folders((folder,), force=True) as (new,):
            write_files(new, NEW)
            assert stat.S_IMODE(new.stat().st_mode) == 0o700
            # until the end everything is as it was, but for the hidden folder
            seen = {n: c for n, c in holds(tmp_path).items() if new.name not in n}
            assert seen == ({f"above/out/{name}": content for name, content in OLD.items()} if there else {})
            raise error

    with pytest.raises(type(error)):
        fail()
    assert holds(tmp_path) == ({f"above/out/{name}": content for name, content in OLD.items()} if there else {})


def test_a_block_that_ends_well_puts_all_files_in_their_place(tmp_path):
    with whole_folders((tmp_path / "new" / "out",)) as (new,):
        write_files(new, NEW)
    assert holds(tmp_path) == {f"new/out/{name}": content for name, content in NEW.items()}
    assert stat.S_IMODE((tmp_path / "new" / "out").stat().st_mode) == 0o700

    old = tmp_path / "old"
    write_files(old, OLD)
    (old / "theirs").mkdir()
    (old / "theirs" / "b.bin").write_bytes(b"theirs")
    with pytest.warns(UserWarning, match="is now in"), whole_folders((old,), force=True) as (new,):
        write_files(new, NEW)
    assert holds(old) == NEW
    assert replaced(old) == {**OLD, "theirs/b.bin": b"theirs"}
    # where nothing would be lost nothing is kept
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "new" / "out"):
        with whole_folders((folder,), force=True) as (new,):
            write_files(new, NEW)
        assert holds(folder) == NEW
        assert not list(tmp_path.rglob(f"{folder.name}.replaced-*"))
    # also of a run that was killed after it had renamed a folder of the same content
    write_files(tmp_path / "twice.replaced-x", NEW)
    write_files(tmp_path / "twice.replaced-y", OLD)
    with whole_folders((tmp_path / "twice",)) as (new,):
        write_files(new, NEW)
    assert [p.name for p in tmp_path.glob("twice*")] in (["twice", "twice.replaced-y"], ["twice.replaced-y", "twice"])


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
    with pytest.warns(UserWarning, match="is now in"):
        write(force=True)
    assert holds(one) == holds(two) == NEW
    assert replaced(two) == {"theirs.txt": b"came first"}


def test_a_folder_is_found_through_a_link_and_one_that_is_worked_in_is_refused(tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    with whole_folders((tmp_path / "out",)) as (new,):
        write_files(new, NEW)
    assert (tmp_path / "out").is_symlink()
    assert holds(tmp_path / "disk") == NEW
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for folder in (Path(), tmp_path, Path("/")):
        with pytest.raises(ew.errors.OutputRefused, match="cannot be replaced"):
            check_folder(folder, force=True)


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_in_somebody_elses_folder_is_refused(tmp_path):
    (tmp_path / "theirs" / "out").mkdir(parents=True)
    (tmp_path / "theirs").chmod(0o500)
    try:
        for name in ("out", "other"):
            with pytest.raises(ew.errors.OutputRefused, match="ermission"):
                check_folder(tmp_path / "theirs" / name)
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
    with files.whole_folders((folder,), force=True) as (at,):
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
        # the old one is whole, in its place or beside it; the new one is whole or not there
        old = {name: content for name, content in found.items() if name.startswith("above/out.replaced-")}
        now = {name: content for name, content in found.items() if name not in old}
        assert now in ({}, OLD, NEW), step
        assert {name.split("/")[-1]: content for name, content in old.items()} == (OLD if there and now != OLD else {})
        left = {p.name.partition("-")[0] for p in folder.parents[1].rglob("*") if p.is_dir()}
        assert left <= {"above", "out", "out.replaced"}, step
        seen.add(now == NEW)
        if done.returncode == 0:
            assert now == NEW
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
    with whole_folders((folder,)) as (new,):
        assert [str(new)] == made[1:]
        clean_up(folder)  # now it is held
        assert new.is_dir()
        write_files(new, NEW)
    assert holds(folder) == NEW
    assert not Path(made[0]).exists()


@posix
def test_what_another_run_is_writing_is_left_alone(tmp_path):
    writing = (
        "import pathlib, sys\nfrom elsewhere.files import whole_folders, write_files\n"
        "with whole_folders([pathlib.Path(sys.argv[1])]) as (new,):\n"
        "    write_files(new, {'a.bin': b'new'})\n    print('ready', flush=True)\n    sys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", writing, str(tmp_path / "out")]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    check_folder(tmp_path / "out")
    assert len(holds(tmp_path)) == 1
    child.communicate("go on\n", timeout=30)
    assert holds(tmp_path) == {"out/a.bin": b"new"}
