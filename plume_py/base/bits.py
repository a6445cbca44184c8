"""Sets of small numbers as integers: bit t stands for the member t."""

from collections.abc import Callable, Iterable


def bits(members: Iterable[int]) -> int:
    """The set with these members."""
    result = 0
    for t in members:
        result |= 1 << t
    return result


def members(bits: int) -> list[int]:
    """The members of a set, ascending."""
    result = []
    while bits:
        lowest = bits & -bits
        result.append(lowest.bit_length() - 1)
        bits ^= lowest
    return result


def closure(start: int, next_to: Callable[[int], int], until: int = 0) -> int:
    """These, the sets ``next_to`` them, and so on; or as far as one comes before a member of ``until`` is met."""
    reached = todo = start
    while todo and not reached & until:
        lowest = todo & -todo
        more = next_to(lowest.bit_length() - 1) & ~reached
        reached |= more
        todo = (todo ^ lowest) | more
    return reached
