"""
Number and count whole numbers by sorting.

`numpy.unique` hashes them or sorts from scratch, which takes up to ten times as long for the millions of pairs of a
large dataset.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def distinct(numbers: NDArray[np.integer]) -> Ints:
    """
    Return the distinct whole numbers in order.

    Examples
    --------
    >>> distinct(np.array([[3, 1], [3, 2]])).tolist()
    [1, 2, 3]

    """
    ordered = np.sort(numbers, axis=None)
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def number_keys(keys: Ints) -> tuple[Ints, Ints]:
    """
    Return the distinct keys in order, and for each key its number among them.

    Fast for keys in rising runs, such as those of one person after another: a stable sort merges runs.

    Examples
    --------
    >>> [part.tolist() for part in number_keys(np.array([3, 5, 3, 8]))]
    [[3, 5, 8], [0, 1, 0, 2]]

    """
    return np.unique(keys, return_inverse=True)


def number_parts(many: Ints) -> tuple[Ints, Ints]:
    """
    Return, for rows of so many parts each, the row of each part and its number within the row.

    Examples
    --------
    >>> [part.tolist() for part in number_parts(np.array([2, 0, 3]))]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]

    """
    row = np.repeat(np.arange(len(many)), many)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)


def count_users(user: NDArray[np.integer], r: NDArray[np.integer], R: int) -> Ints:
    """
    Return how many users visit each of R places.

    `r` holds the places of each row, (N,) or (N, L), and -1 for none; `user` (N,) is the user of each row.

    Examples
    --------
    >>> count_users(np.array([0, 1]), np.array([[1, 1, 0], [1, -1, 1]]), 3).tolist()
    [1, 2, 0]

    """
    table = r if r.ndim == 2 else r[:, None]
    arrives = table >= 0
    arrives[:, 1:] &= table[:, 1:] != table[:, :-1]  # people stay: far fewer pairs have to be sorted
    row, slot = np.nonzero(arrives)
    n = np.int64(user.max(initial=0)) + 1
    pairs = distinct(table[row, slot] * n + user[row])
    return np.bincount(pairs // n, minlength=R).astype(np.int64)
