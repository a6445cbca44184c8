"""What the strong engine answers, as plain data."""

from dataclasses import dataclass, field

from plume_py.history.model import Int32s


@dataclass(frozen=True)
class Core:
    """Why there is no commit order: transactions that contradict the level by themselves.

    The history cut down to ``transactions`` (their sessions and reads kept; a read from a transaction that is not among
    them left out) breaks the level, too. It is small, but not the smallest.
    """

    transactions: tuple[int, ...]


@dataclass(frozen=True)
class Decision:
    """Whether the level holds. ``ok`` is None if a limit was reached; ``reason`` says which one and how far it came.

    If ``ok`` is False, ``reason`` is the limit that was reached before any of the ``cores`` was found, or empty.
    """

    ok: bool | None
    reason: str = ""
    order: Int32s | None = None  # the commit order that shows it: the transactions that count, first to last
    cores: tuple[Core, ...] = ()  # each for itself; the smallest first
    stats: dict[str, float] = field(default_factory=dict)

    @property
    def core(self) -> Core | None:
        """The smallest one."""
        return self.cores[0] if self.cores else None
