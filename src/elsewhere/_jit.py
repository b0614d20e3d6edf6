"""The one way kernels are compiled: cached where numba can write, GIL released, no fastmath."""

import itertools
import secrets
from collections.abc import Callable
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
    Return `numba.njit(cache=True, nogil=True)`, without a cache where numba finds no place for one.

    numba writes beside the code, in a read-only installation into the user's cache directory, and raises at import
    where neither can be written: a service without a home compiles anew, which is slower and no reason to fail.
    """
    try:
        return _by_types(numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return _by_types(numba.njit(nogil=True)(function))


def _by_types(kernel: Any) -> Any:
    """Let a kernel that calls this one with a constant use what is compiled for its type: numba compiles for each."""
    if hasattr(kernel, "get_call_template"):  # without JIT it is the function itself
        of_call = kernel.get_call_template

        def template(args: Any, kws: Any) -> Any:
            return of_call(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

        kernel.get_call_template = template
    return kernel


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
