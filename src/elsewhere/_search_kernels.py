"""Sorting and searching within compiled loops: numba's own take up to two seconds to compile, for each type again."""

from typing import Any

from elsewhere._jit import njit


@njit
def sort(values: Any) -> None:
    """Sort an array in place, by Shell's method: no recursion, and as fast as quicksort for a few thousand values."""
    gap = 1
    while 9 * gap < len(values):
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(values)):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@njit
def first_not_below(values: Any, x: float) -> int:
    """Return how many values of a sorted array are smaller than `x`."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def first_above(values: Any, x: float) -> int:
    """Return how many values of a sorted array are at most `x`."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


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
