"""What the strong engine answers, as plain data."""

from dataclasses import dataclass, field
from typing import NamedTuple

from plume_py.history.model import Int32s


class Edge(NamedTuple):
    """One dependency: ``source`` comes before ``target`` (SO, WR, WW) or must not be seen by it (RW).

    ``source`` and ``target`` are numbers of transactions. ``key`` and ``read`` are -1 where they mean nothing; ``read``
    counts as in ``Reads.read_op`` (WR: the read itself; WW, RW: the read of ``key`` that is the reason).
    """

    source: int
    target: int
    relation: str  # SO WR WW RW
    key: int = -1
    read: int = -1


class OpenPair(NamedTuple):
    """Two writers of a key whose order the known edges leave open."""

    key: int
    a: int
    b: int


@dataclass(frozen=True)
class Core:
    """Why there is no commit order: transactions that contradict the level by themselves.

    The history cut down to ``transactions`` (their sessions and reads kept; a read from a transaction that is not among
    them left out) breaks the level, too. It is small, but not the smallest. ``pairs`` are the guesses that all fail;
    without any, ``edges`` hold the contradiction.
    """

    transactions: tuple[int, ...]
    pairs: tuple[OpenPair, ...] = ()
    edges: tuple[Edge, ...] = ()


@dataclass(frozen=True)
class Decision:
    """Does the level hold? ``ok`` is None if a limit was reached, and ``reason`` says which one and how far it came."""

    ok: bool | None
    reason: str = ""
    order: Int32s | None = None  # the commit order that shows it: the transactions that count, first to last
    core: Core | None = None
    stats: dict[str, float] = field(default_factory=dict)
