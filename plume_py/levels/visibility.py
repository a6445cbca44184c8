"""What the bits of a level mean: whom a transaction sees. For small histories; the kernels restate it in columns.

Sets of transactions are those of ``base.bits``.
"""

from collections.abc import Sequence

from plume_py.base.bits import closure
from plume_py.levels.table import EVERYTHING, PREFIX, TRANSITIVE, WRITERS


def seen(sees: int, direct: int, rivals: int, before: int, seen_by: Sequence[int], *, placed: bool = False) -> int:
    """The least set that a transaction sees of those ``before`` it.

    ``direct``: its session's past, and whom it read from; ``rivals``: those that write a key that it writes;
    ``seen_by``: what each of those before it sees. ``placed`` says that transactions are numbered in commit order: then
    a prefix ends with its last member. Else it is taken to be all that came before.
    """
    if sees & EVERYTHING or (sees & PREFIX and not placed):
        return before
    found = direct & before
    if sees & WRITERS:
        found |= rivals & before
    if sees & PREFIX:
        return (1 << found.bit_length()) - 1
    return closure(found, seen_by.__getitem__) if sees & TRANSITIVE else found


def reads_from_snapshot(sees: int) -> bool:
    """Does it take a snapshot, of a prefix, and commit later? Who sees EVERYTHING looks when it commits."""
    return sees & (PREFIX | EVERYTHING) == PREFIX
