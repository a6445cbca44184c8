"""What a commit order must obey besides SO and WR, and the order or the cycles that follow."""

from dataclasses import dataclass

from plume_py.checking.graph.causal import Extra, Ordering
from plume_py.history.model import Int32s


@dataclass(frozen=True)
class Forced:
    """Edges that are forced: rows (t2, t1, read, list), one of the last two being the reason and the other -1.

    ``stale`` tells how often the initial state was read too late.
    """

    edges: Int32s
    stale: int


@dataclass(frozen=True)
class CommitOrder:
    """The commit order that the causal order and the forced edges allow, or their cycles."""

    forced: Forced
    extra: Extra
    ordering: Ordering

    @property
    def exists(self) -> bool:
        """Is there a commit order at all?"""
        return bool(self.forced.stale == 0 and self.ordering.acyclic)
