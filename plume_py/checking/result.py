"""Results of a check as plain data. Renderers and other programs need no other module of this package."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from plume_py.base.text import counted, display
from plume_py.history.throughput import Speed
from plume_py.history.value_codes import Atom
from plume_py.levels.orders import DEFAULT_ORDER
from plume_py.levels.patterns import Kind, Pattern

Id = str | int

# Maximum number of characters of a text in the ``repr`` of a result or a violation.
SHOWN = 200

# The usual cause of a violation that needs real time.
STALE = "a read was answered from an old copy, although the write that it missed had been acknowledged"

# Renderers for interpreters and notebooks: "text", "html" and "svg". ``plume_py.api`` fills them in, because this
# module must not import ``report``.
DRAW: dict[str, Callable[[Any], str]] = {}


class Ends(Enum):
    """Where the steps of an argument lead."""

    CLOSED = auto()  # back to the first transaction: a cycle
    BEFORE_START = auto()  # before the initial state, which precedes every transaction
    OPEN = auto()  # nowhere: a read is wrong without a cycle, or the argument has no steps


@dataclass(frozen=True)
class Step:
    """One edge of an argument, from ``source`` to ``target``. The relations:

    - SO, RT, WR: session order, real time, reads-from.
    - CM with a reader: a forced commit order. ``reader`` read ``key`` from ``target``; ``source`` also wrote the key
      and, as
    ``evidence`` shows, comes before the reader.
    - WW, and CM without a reader: a version order, or a commit order without a key. Either a list that ``reader`` read
      shows
    it, or it is ``assumed``, or its opposite is impossible: then ``evidence`` is a cycle that follows from the
    opposite.
    - RW: ``evidence`` is the read and, unless the initial state was read, the WW step that makes the version read
      older.

    Operations are positions in ``ShownTransaction.ops``; None means the transaction as a whole, or the initial state.
    """

    source: Id
    target: Id
    relation: str  # SO RT WR CM WW RW
    key: Atom = None
    because: str = ""
    value: Atom = None  # WR, RW: the value read
    reader: Id | None = None  # CM, WW: the transaction that read ``key``
    evidence: tuple["Step", ...] = ()
    assumed: bool = False  # supposed, not shown by the history
    source_op: int | None = None
    target_op: int | None = None
    reader_op: int | None = None
    question: "Step | None" = None  # the read of ``reader`` from ``target``, if ``target`` is its source
    needs_proof: bool = False  # whether reports print its evidence, or ``because`` is enough

    @property
    def has_key(self) -> bool:
        """Whether the step is about a key, and not about transactions as a whole."""
        return not self.is_given and (self.relation != "CM" or self.reader is not None)

    @property
    def is_given(self) -> bool:
        """Whether the order between transactions implies the step: session order or real time."""
        return self.relation in ("SO", "RT")

    @property
    def is_proved(self) -> bool:
        """Whether this is an order whose opposite ``evidence`` refutes."""
        return self.relation in ("WW", "CM") and self.reader is None and bool(self.evidence)


@dataclass(frozen=True)
class ShownTransaction:
    """A transaction of a counterexample, with the operations on the keys involved."""

    id: Id
    session: Id
    place: str  # its position in the file, for reports
    line: int  # the line in the file; 0 if the format has no lines
    status: str
    ops: tuple[tuple[object, ...], ...]
    hidden_ops: int = 0
    level: str | None = None  # its level, if levels are declared
    index: int | None = None  # the index of its operation in a Jepsen history
    nth: int = 0  # its position in the session, from 0
    start: float | None = None  # seconds, if the history has times
    end: float | None = None
    node: str = ""  # the database node on which it ran, if known
    during: str = ""  # faults during the transaction, if recorded
    sql: tuple[str, ...] = ()  # the statements that it sent to the database, if known


@dataclass(frozen=True, repr=False)
class Violation:
    """One complete counterexample.

    Transactions, steps, where the steps lead, and the conclusion. Reports only draw it.
    """

    pattern: Pattern
    level: str  # "declared" where each transaction has its own
    keys: tuple[Atom, ...]
    transactions: tuple[ShownTransaction, ...]
    steps: tuple[Step, ...]
    ends: Ends
    conclusion: str  # last sentence of the proof
    explanation: str  # the proof in one sentence
    culprits: tuple[tuple[int, int], ...] = ()  # (transaction, operation): reads that are wrong without a cycle
    order: str = DEFAULT_ORDER  # the order between transactions that was assumed
    headline: str = ""  # what happened in this history, in one sentence

    @property
    def tap(self) -> str:
        """The letter of the pattern, or its id if it has no letter."""
        return self.pattern.id

    @property
    def name(self) -> str:
        return self.pattern.name

    @property
    def cause(self) -> str:
        """The usual cause in a database."""
        in_time = any(step.relation == "RT" for step in self.all_steps())
        return STALE if in_time and self.pattern.kind is Kind.TRIPLE else self.pattern.cause

    def all_steps(self) -> "Iterator[Step]":
        """Yield the steps and, recursively, their evidence."""
        return _all(self.steps)

    def __str__(self) -> str:
        return f"{self.pattern.title}: {self.headline}"

    def __repr__(self) -> str:
        return f"<Violation {display(f'{self.pattern.title} of {self.level}: {self.headline}', SHOWN)}>"

    def _repr_svg_(self) -> str | None:
        return DRAW["svg"](self) if "svg" in DRAW else None


def _all(steps: Iterable[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        yield from _all(step.evidence)


@dataclass(frozen=True)
class Lane:
    """A session for pictures: its transactions with their outcomes, in order."""

    session: Id
    transactions: tuple[tuple[Id, str], ...]


@dataclass(frozen=True)
class Evidence:
    """Whether the run could have shown an error: the figures behind a passing check."""

    tried: int  # number of reads that were changed to the previous version
    levels_detecting: dict[str, int]  # number of changed reads that violate each level: a lower bound
    seed: int
    conflicts: int | None  # overlapping pairs that accessed a key, at least one writing it; None: no times
    conflicts_exact: bool
    unseen: tuple[tuple[str, str], ...]  # anomalies that the run cannot show, and how to change the workload


# The reason of a violated level without a pattern.
NOT_EXPLAINED = "a limit was reached before it was told how"


@dataclass(frozen=True)
class LevelVerdict:
    """Verdict on one level. ``ok`` is None if it is undecided; ``reason`` then says why."""

    ok: bool | None
    taps: tuple[str, ...] = ()
    reason: str | None = None
    order: str = DEFAULT_ORDER  # the order between transactions, one of levels.orders
    holds_in: str | None = None  # the weaker order in which a violated level holds
    because: tuple[str, ...] = ()  # the witness or argument, for a level that was checked by its definition


@dataclass(frozen=True, repr=False)
class Result:
    """Result of checking one history; ``error`` is set if the history could not be read."""

    history: str
    format: str | None = None
    sessions: int = 0
    transactions: int = 0
    operations: int = 0
    levels: dict[str, LevelVerdict] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    counts_exact: bool = True
    notes: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    lanes: tuple[Lane, ...] = ()  # all sessions of a small history
    evidence: Evidence | None = None  # for the levels that hold, if requested
    run: dict[str, str] = field(default_factory=dict)  # metadata of a recorded run: database, workload, …
    speed: Speed | None = None  # throughput of the run, if the check observed it

    @property
    def ok(self) -> bool | None:
        """True if every level holds, False if one is violated, None if undecided or unreadable."""
        verdicts = [level.ok for level in self.levels.values()]
        if False in verdicts:
            return False
        return None if None in verdicts or self.error is not None else True

    def __bool__(self) -> bool:
        """Return whether every level holds. An undecided level does not count as holding."""
        return self.ok is True

    def __str__(self) -> str:
        return DRAW["text"](self) if "text" in DRAW else repr(self)

    def __repr__(self) -> str:
        """Return one line: the file, its size and the verdicts."""
        if self.error is not None:
            return f"<Result {display(self.history)}: not read: {display(self.error, SHOWN)}>"
        words = {True: "hold", False: "violated", None: "undecided"}
        found = {
            word: " ".join(name for name, level in self.levels.items() if level.ok is ok) for ok, word in words.items()
        }
        verdicts = ", ".join(display(f"{names} {word}", SHOWN) for word, names in found.items() if names)
        size = counted(self.transactions, "transaction")
        return f"<Result {display(self.history)}: {size}, {verdicts or 'no level checked'}>"

    def _repr_html_(self) -> str | None:
        return DRAW["html"](self) if "html" in DRAW else None
