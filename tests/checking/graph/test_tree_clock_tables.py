"""graph/tree_clock_kernels: the tables, also for more sessions than 32 bits have pairs of."""

import warnings

import numpy as np

from plume_py.checking.graph import tree_clock_kernels as kernels

MANY = 65_537  # its square is a small number, as far as 32 bits go


def test_a_table_of_very_many_sessions_is_hashed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = kernels.new_table(MANY, np.int32(MANY))
        assert not kernels.is_whole(table)
        places = {int(kernels.slot_of(table, kernels.pair(np.int32(own), 0, MANY))) for own in range(MANY - 999, MANY)}
    assert len(places) > 400
    assert all(0 <= place < len(table) for place in places)


def test_a_table_of_few_sessions_has_a_place_for_each_pair():
    table = kernels.new_table(3, np.int32(5))
    assert kernels.is_whole(table)
    assert len(table) == 15
