"""Compiled code is kept for the next process, also where the package cannot be written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pieces
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elsewhere
from elsewhere._jit import find_sorted, njit

ONE = (
    "import numpy as np\n"
    "from elsewhere.paper._generate_kernels import open_stream as f\n"
    "f(np.zeros(2, np.uint64), np.uint64(1), np.uint64(1))\n"
    "print(sum(f.stats.cache_hits.values()), sum(f.stats.cache_misses.values()))\n"
)


@njit
def added(n, more):
    return n + more


@njit
def with_constants(n):
    last = 0
    for i in range(3):
        last = added(i, last)
    return added(n, 2) + added(n, 1) + added(last, more=-1)


@pytest.mark.skipif(pieces.PLAIN, reason="nothing is compiled")
def test_a_kernel_is_compiled_once_whatever_constants_others_call_it_with():
    # compiled anew: what comes from the cache does not ask for what it calls
    assert numba.njit(with_constants.py_func)(10) == 12 + 11 + 2
    assert len(added.signatures) == 1


SORTS = """
import sys
import numpy as np
from numba.core.bytecode import FunctionIdentity
from elsewhere._jit import njit

@njit
def sort(x):
    return np.sort(x)

@njit
def argsort(x):
    return np.argsort(x)

if sys.argv[1:] == ["argsort"]:
    for _ in range(3):  # numba (0.68) counts three functions more on the way to the same part of `sort`
        next(FunctionIdentity._unique_ids)
for name in sys.argv[1:]:
    x = np.random.default_rng(1).random(1000)
    assert np.array_equal(globals()[name](x), getattr(np, name)(x)), name
"""


@pytest.mark.skipif(pieces.PLAIN, reason="nothing is compiled")
def test_kernels_that_two_processes_have_compiled_work_in_a_third(tmp_path):
    # numbered from 1 on in both processes, parts of `sort` and of `argsort` have one name, and the third mixes them up
    (tmp_path / "sorts.py").write_text(SORTS)
    for names in (["sort"], ["argsort"], ["sort", "argsort"]):
        done = subprocess.run(
            [sys.executable, tmp_path / "sorts.py", *names], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


TYPED = """
from typing import NamedTuple
from elsewhere._jit import njit

class Old(NamedTuple):
    x: int

@njit
def first(pair):
    return pair.x

print(first(Old(1)), sum(first.stats.cache_misses.values()))
"""


@pytest.mark.skipif(pieces.PLAIN, reason="nothing is compiled")
def test_what_was_compiled_for_a_type_that_is_gone_is_compiled_anew(tmp_path):
    for text in (TYPED, TYPED.replace("Old", "New")):
        (tmp_path / "typed.py").write_text(text)
        run = [sys.executable, "-c", "import typed"]  # numba keeps the types of a script whole
        done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.stdout.split() == ["1", "1"], done.stderr


@pytest.fixture
def read_only(tmp_path):
    """The package where nothing can be written beside the code, not even by root."""
    package = tmp_path / "installed" / "elsewhere"
    shutil.copytree(Path(elsewhere.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (folder / "__pycache__").write_bytes(b"")  # a file where a folder should be
    return package.parent


def compiled(package, home):
    there = {n: v for n, v in os.environ.items() if n not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    there |= {"PYTHONPATH": str(package), "HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", ONE], env=there, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(os.name == "nt", reason="homes and permissions of POSIX")
def test_the_second_process_finds_what_the_first_compiled(read_only, tmp_path):
    where = tmp_path / "home"
    where.mkdir()
    assert compiled(read_only, where) == ["0", "1"]
    assert compiled(read_only, where) == ["1", "0"]
    for _ in range(2):
        assert compiled(read_only, "/dev/null") == ["0", "1"]  # it works, without a cache


@given(st.lists(st.integers(-9, 9), unique=True), st.integers(-10, 10), st.integers(0, 5), st.integers(0, 20))
def test_a_value_is_found_in_its_part_by_definition(values, wanted, low, size):
    values = np.array(sorted(values), dtype=np.int64)
    high = min(low + size, len(values))
    expected = next((i for i in range(low, high) if values[i] == wanted), -1)
    assert find_sorted(values, min(low, high), high, wanted) == expected
