"""The one way kernels are compiled: cached where a cache can be written, GIL released, no fastmath."""

from collections.abc import Callable
from typing import Any

import numba


def njit(function: Callable[..., Any]) -> Any:
    """
    `numba.njit(cache=True, nogil=True)`, without the cache where no directory can be written.

    numba raises at import when neither `__pycache__` nor the user's cache directory is writable; a read-only
    installation must still work, only slower on its first call.
    """
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return numba.njit(nogil=True)(function)
