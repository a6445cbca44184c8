"""Dense numbers of assemble.py, by first appearance, with a table and with hashing."""

import random

import numpy as np
import pytest

from plume_py.base.kernels import dispatch
from plume_py.history import assemble
from plume_py.history import assemble_kernels as kernels
from plume_py.history.value_codes import NULL

FAR = (0, 1, -1, 2**62, -(2**62), 2**62 - 1, 2**63 - 1, NULL + 1, NULL)


def numbered(things):
    """The number of each, and each by its number."""
    numbers = {}
    return [numbers.setdefault(thing, len(numbers)) for thing in things], list(numbers)


def draw_codes(rng, count):
    low = rng.choice((0, -3, 2**40))
    pool = rng.choice((range(low, low + 4), range(low, low + 40), range(low, low + 2 * count), FAR))
    codes = [rng.choice(pool) for _ in range(count)]
    if rng.random() < 0.5:
        codes = [rng.choice((code, NULL)) for code in codes]
    return codes


def unique_values(rng, count):
    """Values that are unique over all keys, but for the initial one."""
    return [rng.choice((value, value, 0)) for value in rng.sample(range(1, count + 1), count)]


@pytest.mark.parametrize("compiled", [False, True])
def test_keys_and_versions_are_numbered_by_first_appearance(compiled, monkeypatch):
    dispatch.uncompile(kernels)
    monkeypatch.setenv("ISOCHECK_COMPILE", "always" if compiled else "never")
    dispatch.prepare(1, kernels)
    rng = random.Random(8)
    for _ in range(400):
        count = rng.randrange(0, 40)
        codes = draw_codes(rng, count)
        ids, distinct = assemble.intern_keys(np.array(codes, np.int64))
        assert (ids.tolist(), distinct.tolist()) == numbered(codes)
        values = rng.choice((draw_codes, unique_values))(rng, count)
        initial = rng.choice((None, 0, *values[:1]))
        ids, keys, found = assemble.intern_versions(ids, np.array(values, np.int64), len(distinct), initial)
        pairs = list(zip(numbered(codes)[0], values, strict=True))
        assert (ids.tolist(), list(zip(keys.tolist(), found.tolist(), strict=True))) == numbered(pairs)
    dispatch.uncompile(kernels)


def test_a_table_has_at_most_two_entries_per_code(monkeypatch):
    """Whatever the codes are: they come from a file."""
    sizes = []
    monkeypatch.setattr(np, "full", lambda size, *rest: sizes.append(size) or np.zeros(size, rest[1]) + rest[0])
    for codes in ([0, 2**62], [0, 10**9] * 50, list(range(100)), [1] * 100, FAR):
        column = np.array(codes, np.int64)
        sizes.clear()
        ids, distinct = assemble.intern_keys(column)
        assemble.intern_versions(ids, column, len(distinct), None)
        tables = [size for size in sizes if size != 1 << 10 and size != 1 << 12]  # what hashing begins with
        assert max(tables) <= max(assemble.SPARSE * len(codes), len(distinct))


def test_first_positions_of_numbers():
    assert assemble.first_positions(np.array([0, 1, 0, 2, 1], np.int32), 3).tolist() == [0, 1, 3]
