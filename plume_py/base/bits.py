"""Sets of small numbers as integers: bit t is set if t is a member."""

from collections.abc import Callable, Iterable


def bits(members: Iterable[int]) -> int:
    """Return the set with these members."""
    result = 0
    for t in members:
        result |= 1 << t
    return result


def members(bits: int) -> list[int]:
    """Return the members of a set in ascending order."""
    result = []
    while bits:
        lowest = bits & -bits
        result.append(lowest.bit_length() - 1)
        bits ^= lowest
    return result


def closure(start: int, next_to: Callable[[int], int], until: int = 0) -> int:
    """Return all members reachable from ``start`` by ``next_to``; stop early once a member of ``until`` is reached."""
    reached = todo = start
    while todo and not reached & until:
        lowest = todo & -todo
        more = next_to(lowest.bit_length() - 1) & ~reached
        reached |= more
        todo = (todo ^ lowest) | more
    return reached
