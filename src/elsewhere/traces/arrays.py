"""The kinds of arrays that all rooms hand to each other, and how one is kept from being changed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.int32]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only array with these values."""
    # a private copy: what the caller does to his own array afterwards must not reach into the house
    array = array.copy() if array.flags.writeable else array
    array.setflags(write=False)
    return array
