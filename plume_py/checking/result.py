"""What a check finds, as plain data: the renderers and other programs need nothing else."""

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

# Characters of a text that the ``repr`` of a result or a violation shows.
SHOWN = 200

# The usual cause of what only real time forbids.
STALE = "a read was answered from an old copy, although the write that it missed had been acknowledged"

# How results are drawn where an interpreter or a notebook asks them to show themselves: "text", "html" and "svg". Who
# draws fills it in (``plume_py.api``); a result knows of no report.
DRAW: dict[str, Callable[[Any], str]] = {}


class Ends(Enum):
    """Where the steps of an argument lead."""

    CLOSED = auto()  # back to where they began
    BEFORE_START = auto()  # before the initial state, which precedes everything
    OPEN = auto()  # nowhere: something is wrong by itself, or there are no steps


@dataclass(frozen=True)
class Step:
    """One edge of an argument.

    A CM step is forced: ``reader`` read ``key`` from ``target`` although ``source`` wrote it too and, as ``evidence``
    shows, comes before the reader. A WW step is an order of appends that a list shows to ``reader``, or one that is
    ``assumed``, or one of which the opposite is impossible: then ``evidence`` is a cycle that follows if that opposite
    is assumed. A RW step has as its ``evidence`` the read and, unless the initial state was read, the WW step by which
    what was read is older. (A CM step without a reader is assumed or proved like a WW step, but says nothing of a key.)

    The operations are places in ``ShownTransaction.ops``; None means the transaction as a whole, or the initial state.
    """

    source: Id
    target: Id
    relation: str  # SO RT WR CM WW RW
    key: Atom = None
    because: str = ""
    value: Atom = None  # of a WR or RW step: what was read
    reader: Id | None = None  # whose read of ``key`` is the reason (CM, WW)
    evidence: tuple["Step", ...] = ()
    assumed: bool = False  # not a fact, but one of the two ways to go
    source_op: int | None = None
    target_op: int | None = None
    reader_op: int | None = None
    question: "Step | None" = None  # of a step with a reader: its read from ``target``, if that is whom it read from
    needs_proof: bool = False  # is its evidence worth being told, or does ``because`` say it all?

    @property
    def has_key(self) -> bool:
        """Is it about a key, or about transactions as a whole?"""
        return not self.is_given and (self.relation != "CM" or self.reader is not None)

    @property
    def is_given(self) -> bool:
        """Does the order between transactions that counts say so by itself: their session, or real time?"""
        return self.relation in ("SO", "RT")

    @property
    def is_proved(self) -> bool:
        """Is this an order whose opposite is impossible, as its evidence shows?"""
        return self.relation in ("WW", "CM") and self.reader is None and bool(self.evidence)


@dataclass(frozen=True)
class ShownTransaction:
    """A transaction of a counterexample, with the operations that matter."""

    id: Id
    session: Id
    place: str  # where it stands in its file, for people
    line: int  # the line on which it begins; 0 where the format has no lines
    status: str
    ops: tuple[tuple[object, ...], ...]
    hidden_ops: int = 0
    level: str | None = None  # where it was judged by a level of its own
    index: int | None = None  # of its operation in a Jepsen history
    nth: int = 0  # in its session, counted from 0
    start: float | None = None  # by the clock, in seconds, where its history says when it ran
    end: float | None = None
    node: str = ""  # of several that its database has, the one it ran on, where that is known
    during: str = ""  # the faults meanwhile, where they were recorded
    sql: tuple[str, ...] = ()  # all that it sent to its database, where that is known


@dataclass(frozen=True, repr=False)
class Violation:
    """One counterexample, complete: who takes part, the steps, where they lead, and what follows from that.

    Reports draw it, each in its own way; none of them has to find out anything.
    """

    pattern: Pattern
    level: str  # "declared" where each transaction has its own
    keys: tuple[Atom, ...]
    transactions: tuple[ShownTransaction, ...]
    steps: tuple[Step, ...]
    ends: Ends
    conclusion: str  # the last sentence of the proof
    explanation: str  # all of it in one sentence
    culprits: tuple[tuple[int, int], ...] = ()  # (transaction, operation): the reads that are wrong by themselves
    order: str = DEFAULT_ORDER  # between transactions, in which it is a violation
    headline: str = ""  # what happened, in a sentence about this history

    @property
    def tap(self) -> str:
        """The letter of its pattern, or the name of one that has none."""
        return self.pattern.id

    @property
    def name(self) -> str:
        """What its pattern is called."""
        return self.pattern.name

    @property
    def cause(self) -> str:
        """What is usually behind it."""
        in_time = any(step.relation == "RT" for step in self.all_steps())
        return STALE if in_time and self.pattern.kind is Kind.TRIPLE else self.pattern.cause

    def all_steps(self) -> "Iterator[Step]":
        """The steps, and all that they rest on."""
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
    """A session in a few words: its transactions with their outcomes, in order."""

    session: Id
    transactions: tuple[tuple[Id, str], ...]


@dataclass(frozen=True)
class Evidence:
    """What a pass is worth: would the run have shown an error, had there been one?"""

    tried: int  # reads that were given the version before
    levels_detecting: dict[str, int]  # by level: how many of them it would have noticed, at least
    seed: int
    conflicts: int | None  # pairs of overlapping transactions that touched a key, one of them writing; None: no times
    conflicts_exact: bool
    unseen: tuple[tuple[str, str], ...]  # anomalies that the run could not have shown, and what to change


# Why a broken level has no pattern.
NOT_EXPLAINED = "a limit was reached before it was told how"


@dataclass(frozen=True)
class LevelVerdict:
    """Does one level hold? ``ok`` is None where that could not be decided, and ``reason`` says why."""

    ok: bool | None
    taps: tuple[str, ...] = ()
    reason: str | None = None
    order: str = DEFAULT_ORDER  # between transactions: one of levels.orders
    holds_in: str | None = None  # of a broken level: an order that asks for less, and in which it holds
    because: tuple[str, ...] = ()  # of a level that was judged by its definition: the witness, or the argument


@dataclass(frozen=True, repr=False)
class Result:
    """What a check of one history found; ``error`` is set if it could not be read."""

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
    lanes: tuple[Lane, ...] = ()  # all sessions, of a history that is small enough to be seen as a whole
    evidence: Evidence | None = None  # of the levels that hold, where that was asked
    run: dict[str, str] = field(default_factory=dict)  # what a recorded history says of its run: database, workload, …
    speed: Speed | None = None  # of the run, where it was seen running

    @property
    def ok(self) -> bool | None:
        """True if every level holds, False if one is violated, None if undecided or unreadable."""
        verdicts = [level.ok for level in self.levels.values()]
        if False in verdicts:
            return False
        return None if None in verdicts or self.error is not None else True

    def __bool__(self) -> bool:
        """Does every level hold? What was not decided does not count as holding."""
        return self.ok is True

    def __str__(self) -> str:
        return DRAW["text"](self) if "text" in DRAW else repr(self)

    def __repr__(self) -> str:
        """Return one line: the file, its size and the verdicts. ``print`` shows the rest."""
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
