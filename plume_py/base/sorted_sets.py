"""Sets of numbers as sorted arrays.

numpy's own functions for sets hash, which is several times slower on millions of numbers.
"""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Int64s = NDArray[np.int64]


def unique_sorted(numbers: Int64s) -> Int64s:
    """Return each number once, in ascending order."""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def isin_sorted(numbers: Int64s, ordered: Int64s) -> Bools:
    """Return for each of ``numbers`` whether it is in ``ordered``, an ascending array."""
    if not len(ordered):
        return np.zeros(len(numbers), np.bool_)
    found: Bools = ordered[np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)] == numbers
    return found
