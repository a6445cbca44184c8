"""Dense numbers for the keys and the versions of a history, by first appearance.

Most histories have keys, and values, that are nearly consecutive numbers: of each key, or over all keys. Then a table
with a place for each of them does; others are hashed, with a secret: nobody can make up numbers that all meet at one
place.
"""

import os

import numpy as np

from plume_py.history import assemble_kernels as kernels
from plume_py.history.model import Int32s, Int64s
from plume_py.history.value_codes import NULL

# Places of a table per thing to be numbered, at most: it takes less memory than hashing.
SPARSE = 2

# Of this process; 62 bits, which with any code make another one.
SECRET = int.from_bytes(os.urandom(8), "big") >> 2

# Codes below this, whatever their sign, can be added and subtracted.
_SAFE = 2**62


def intern_keys(codes: Int64s) -> tuple[Int32s, Int64s]:
    """The number of each code, and the code of each number."""
    ids = np.empty(len(codes), np.int32)
    distinct = np.empty(len(codes), np.int64)
    low, high = _bounds(codes)
    if high - low < SPARSE * len(codes):
        table = np.full(high - low + 1, -1, np.int32)
        found = kernels.intern_dense_keys(codes, low, table, ids, distinct)
    else:
        found = kernels.intern_keys(codes, SECRET, ids, distinct)
    return ids, distinct[:found].copy()


def intern_versions(keys: Int32s, codes: Int64s, key_count: int, initial: int | None) -> tuple[Int32s, Int32s, Int64s]:
    """The number of each pair of a key and a code, and the key and the code of each number."""
    ids = np.empty(len(codes), np.int32)
    version_key, version_code = np.empty(len(codes), np.int32), np.empty(len(codes), np.int64)
    found = _by_table(keys, codes, key_count, NULL if initial is None else initial, ids, version_key, version_code)
    if found < 0:
        found = kernels.intern_versions(keys, codes, SECRET, ids, version_key, version_code)
    return ids, version_key[:found].copy(), version_code[:found].copy()


def first_places(ids: Int32s, count: int) -> Int64s:
    """Where each number stands first."""
    places = np.empty(count, np.int64)
    places[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    return places


def _by_table(
    keys: Int32s, codes: Int64s, key_count: int, initial: int, ids: Int32s, version_key: Int32s, version_code: Int64s
) -> int:
    """How many versions there are; -1 if there are too few for a table with a place for each that there could be.

    The initial value, which may be far from all others, has places of its own.
    """
    low, high = np.full(key_count, _SAFE, np.int64), np.full(key_count, -_SAFE, np.int64)
    kernels.value_ranges(keys, codes, initial, low, high)
    if not key_count or low.min() <= -_SAFE or high.max() >= _SAFE:
        return -1
    lengths = np.maximum(high - low + 1, 0)
    most = SPARSE * len(codes)
    if lengths.max() <= most and key_count + int(lengths.sum()) <= most:  # a range of values of each key
        is_shared, size = False, key_count + int(lengths.sum())
        first = np.concatenate(([0], np.cumsum(lengths + 1)[:-1]))
        base = np.where(lengths > 0, first + 1 - low, 0)
    elif 0 <= high.max() - low.min() < most - key_count:  # one for all of them
        is_shared, size = True, key_count + int(high.max() - low.min()) + 1
        first = np.arange(key_count)
        base = np.full(key_count, key_count - low.min())
    else:
        return -1
    places = first, base, np.full(size, -1, np.int32)
    return int(kernels.intern_dense_versions(keys, codes, initial, *places, is_shared, ids, version_key, version_code))


def _bounds(codes: Int64s) -> tuple[int, int]:
    return (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
