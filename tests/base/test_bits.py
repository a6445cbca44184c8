"""Tests of base/bits: sets as integers."""

import random

from plume_py.base.bits import bits, closure, members


def test_a_set_has_the_members_it_was_made_of():
    rng = random.Random(1)
    for _ in range(200):
        numbers = {rng.randrange(200) for _ in range(rng.randrange(20))}
        assert members(bits(numbers)) == sorted(numbers)


def test_a_closure_is_all_that_can_be_reached():
    next_to = {0: [1], 1: [2, 0], 2: [], 3: [0]}

    def follow(t):
        return bits(next_to[t])

    assert members(closure(bits([0]), follow)) == [0, 1, 2]
    assert members(closure(bits([2]), follow)) == [2]
    assert members(closure(bits([3, 2]), follow)) == [0, 1, 2, 3]
    assert closure(0, follow) == 0


def test_a_closure_stops_at_its_goal():
    visited = []

    def follow(t):
        visited.append(t)
        return 1 << (t + 1)

    assert closure(1, follow, until=1 << 5) >> 5 & 1
    assert visited == [0, 1, 2, 3, 4]
