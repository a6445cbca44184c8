"""Sets of numbers as sorted arrays: numpy's own functions hash, which is several times slower on millions."""

import numpy as np

from plume_py.history.model import Bools, Int64s


def distinct(numbers: Int64s) -> Int64s:
    """Each number once, ascending."""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def among(numbers: Int64s, ordered: Int64s) -> Bools:
    """Which of ``numbers`` are in ``ordered``, which is ascending?"""
    if not len(ordered):
        return np.zeros(len(numbers), np.bool_)
    found: Bools = ordered[np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)] == numbers
    return found
