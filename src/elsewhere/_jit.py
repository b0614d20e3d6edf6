"""The one way kernels are compiled: cached where a cache can be written, GIL released, no fastmath."""

import itertools
import os
import secrets
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numba
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import IndexDataCacheFile
from numba.core.types import unliteral

# numba numbers what it compiles from 1 on in every process, and the number alone tells its `sort` of floats from its
# `argsort`: of two kernels that two processes have cached under one number, one gives wrong answers or crashes
FunctionIdentity._unique_ids = itertools.count(secrets.randbits(48))
_read_index = IndexDataCacheFile._load_index


def _read_own_index(self: IndexDataCacheFile) -> dict[Any, str]:
    """Return what is compiled already: nothing where it is of a version whose types are gone, on which numba fails."""
    try:
        return _read_index(self)
    except (AttributeError, ImportError):
        return {}


cast("Any", IndexDataCacheFile)._load_index = _read_own_index


def njit(function: Callable[..., Any]) -> Any:
    """
    Return `numba.njit(cache=True, nogil=True)`, with a cache of our own where numba finds no place for one.

    numba writes beside the code, in a read-only installation into the user's cache directory, and raises at import
    where neither can be written: a service without a home. There compiled code goes into a folder for temporary files
    that belongs to this user alone; without one it is compiled anew, which is slower and no reason to fail.
    """
    try:
        return _by_types(numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        folder, config = _temporary(), cast("Any", numba.config)
    if folder is None:
        return _by_types(numba.njit(nogil=True)(function))
    usual, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return _by_types(numba.njit(cache=True, nogil=True)(function))
    finally:
        config.CACHE_DIR = usual


def _by_types(kernel: Any) -> Any:
    """Let a kernel that calls this one with a constant use what is compiled for its type: numba compiles for each."""
    if hasattr(kernel, "get_call_template"):  # without JIT it is the function itself
        of_call = kernel.get_call_template

        def template(args: Any, kws: Any) -> Any:
            return of_call(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

        kernel.get_call_template = template
    return kernel


def _temporary() -> Path | None:
    """Return a folder that nobody else can write: what lies in a cache is run."""
    user = os.geteuid() if hasattr(os, "geteuid") else None
    folder = Path(tempfile.gettempdir()) / f"elsewhere-compiled-{'' if user is None else user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    except OSError:
        return None
    mine = user is None or (about.st_uid == user and not about.st_mode & 0o077)
    return folder if mine and stat.S_ISDIR(about.st_mode) else None


@njit
def find_sorted(values: Any, low: int, high: int, wanted: Any) -> int:
    """Return the position of `wanted` in the sorted `values[low:high]`, -1 if it is not there."""
    end = high
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and values[low] == wanted else -1
