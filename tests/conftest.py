"""
What all tests share: the command line as a function, short runs and audits, a PostgreSQL server, and no deadline.

The first example of a compiled function pays for its compilation.
"""

import contextlib
import functools
import gc
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pieces
import pytest
import typer.main
from hypothesis import settings
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from elsewhere.cli import app

BIN = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)  # Debian's PostgreSQL

# files that take longest: they come first, so that no worker is left alone with one of them at the end; those after the
# first need few kernels or others than it, so that no worker waits for what the other compiles
LONGEST = ("cluster", "serve", "classes", "read_visits", "certified", "resume", "synthesize", "generate", "attacks")
LONGEST += ("docs", "reproduce", "page", "types", "cli", "files", "audit_pf")

settings.register_profile("house", deadline=None, max_examples=50)
settings.load_profile("house")

# compiling makes many objects and few rings: looked for as often as Python does, rings cost an eighth of the time
gc.set_threshold(50_000, 20, 100)

# no test pulls the plug: waiting for the disk at each of some ten thousand files only takes time
os.fsync = lambda file: None

# typer builds all commands anew for each line that is typed, which takes longer than some of them run
typer.main.get_command = functools.cache(typer.main.get_command)


def pytest_collection_modifyitems(items):
    """Put the longest files first; where kernels are plain Python, draw five examples, not more."""
    gc.freeze()  # modules and tests stay to the end
    place = {f"test_{name}": i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONGEST)))
    if pieces.PLAIN:
        for test in {item.function for item in items if hasattr(item.obj, "hypothesis")}:
            asked = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = settings(asked, max_examples=min(5, asked.max_examples))


@pytest.fixture(scope="session", autouse=True)
def compile_once(tmp_path_factory):
    """Each kernel is compiled by one worker; another one that needs it waits and takes it from the cache."""
    if "PYTEST_XDIST_WORKER" not in os.environ or os.name == "nt":
        yield
        return
    import fcntl

    compile_here = Dispatcher.compile
    folder = tmp_path_factory.getbasetemp().parent  # shared by the workers

    def compile_or_wait(kernel, signature):
        with contextlib.ExitStack() as held:
            held.enter_context(global_compiler_lock)  # first, so that threads of a worker do not wait for each other
            if kernel.stats.cache_path is not None:  # kernels do not call each other in rings: none waits for ever
                lock = folder / f"{kernel.py_func.__module__}.{kernel.py_func.__name__}.lock"
                fcntl.flock(held.enter_context(lock.open("w")), fcntl.LOCK_EX)
            return compile_here(kernel, signature)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "compile", compile_or_wait)
        yield


@pytest.fixture
def run(capsys):
    """A command -> its exit status, what it printed, and what it said on standard error."""

    def command(*words):
        with pytest.raises(SystemExit) as stopped:
            app([str(w) for w in words], prog_name="elsewhere")
        said = capsys.readouterr()
        return stopped.value.code or 0, said.out, said.err

    return command


@pytest.fixture
def few_rounds():
    """The law of certified fakes is led to the sums in few rounds: for tests of what else a run does."""
    before = pieces.change(pieces.FEW_ROUNDS)
    yield
    pieces.change(before)


@pytest.fixture(scope="session")
def postgres():
    """The address of a PostgreSQL server of our own, on a socket in a temporary folder."""
    if BIN is None or not shutil.which("runuser" if os.getuid() == 0 else "true"):
        pytest.skip("no PostgreSQL server on this machine (Debian: postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # a socket's path must be short
    as_other = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    if as_other:
        shutil.chown(folder, "postgres")
    options = f"-c listen_addresses= -k {folder} -c fsync=off"
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/"}
    subprocess.run([*as_other, BIN / "initdb", "-D", folder / "data", "-A", "trust", "-U", "owner"], **quiet)
    start = [BIN / "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", "-o", options, "start"]
    subprocess.run([*as_other, *start], **quiet)
    yield f"postgresql://owner@/postgres?host={folder}"
    subprocess.run([*as_other, BIN / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop"], **quiet)
    shutil.rmtree(folder)
