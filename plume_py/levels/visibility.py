"""The meaning of visibility bits: which transactions are visible to a transaction.

For small histories, with sets of transactions as of ``base.bits``. The kernels implement the same for columns.
"""

from collections.abc import Sequence

from plume_py.base.bits import closure
from plume_py.levels.table import EVERYTHING, PREFIX, TRANSITIVE, WRITERS


def visible_set(
    visibility: int, direct: int, rivals: int, before: int, seen_by: Sequence[int], *, placed: bool = False
) -> int:
    """Return the smallest set of transactions that may be visible to a transaction; all are in ``before``.

    ``visibility``: bits of its level. ``direct``: earlier transactions of its session, and its writers.
    ``rivals``: writers of a key that it writes. ``seen_by``: the visible set of each transaction in ``before``.
    ``placed``: transactions are numbered in commit order, so a prefix ends with its largest member; otherwise a prefix
    is all of ``before``.
    """
    if visibility & EVERYTHING or (visibility & PREFIX and not placed):
        return before
    found = direct & before
    if visibility & WRITERS:
        found |= rivals & before
    if visibility & PREFIX:
        return (1 << found.bit_length()) - 1
    return closure(found, seen_by.__getitem__) if visibility & TRANSITIVE else found


def reads_from_snapshot(visibility: int) -> bool:
    """Return whether a transaction reads from a snapshot, a prefix, and commits later; not with EVERYTHING."""
    return visibility & (PREFIX | EVERYTHING) == PREFIX
