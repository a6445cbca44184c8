"""The history model: columns of operations, transactions and sessions.

Transactions are numbered session by session and in session order, so session order is ``t - 1 -> t``. Operations are
numbered transaction by transaction, in program order. A *version* is a pair of a key and a value: a write creates it, a
read returns it. The checker matches reads and writes by version number and never compares values.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plume_py.base.text import counted
from plume_py.history.times import Times, known
from plume_py.history.value_codes import Atom, Atoms

Int8s = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Operation kinds: bit 0 is set for writes, bit 1 for operations on lists.
READ, WRITE, READ_LIST, APPEND = 0, 1, 2, 3

COMMITTED, ABORTED, UNKNOWN = 0, 1, 2
STATUS_NAMES = ("committed", "aborted", "unknown")

# The name of the initial state in reports, in place of a transaction; no transaction may have this id.
INITIAL_ID = "(initial state)"

# ``version_writer`` of a version that no transaction wrote.
NOBODY = -1

# The writer of a read that returns the initial state, in place of a transaction's number.
INITIAL = -1


class Op(NamedTuple):
    """One operation in readable form: ``kind`` is "r", "w" or "append"; the value of a list read is a tuple."""

    kind: str
    key: Atom
    value: Atom | tuple[Atom, ...]


class Transaction(NamedTuple):
    """One transaction in readable form."""

    id: str | int
    session: str | int
    status: str
    level: str | None
    ops: tuple[Op, ...]
    begin: int | None = None  # by the history's clock, if known
    end: int | None = None


@dataclass(frozen=True)
class ListReads:
    """The lists that list reads returned: ``ops`` ascend; list i is ``items[starts[i]:starts[i + 1]]`` (versions)."""

    ops: Int64s
    starts: Int64s
    items: Int32s


@dataclass(frozen=True)
class Labels:
    """Names of transactions or sessions: from the file, or else made from the number."""

    names: tuple[str | int | None, ...] | Int64s | None = None
    prefix: str = ""

    def __getitem__(self, index: int) -> str | int:
        if self.names is not None:
            name = self.names[index]
            if name is not None:
                return name if isinstance(name, str) else int(name)
        return f"{self.prefix}{index + 1}" if self.prefix else index


@dataclass(frozen=True, eq=False)
class History:
    """An immutable transaction history. Build one with ``HistoryBuilder`` or ``plume_py.load``."""

    op_kind: Int8s
    op_key: Int32s
    op_version: Int32s
    txn_start: Int64s  # operations of t: txn_start[t] .. txn_start[t + 1]
    txn_session: Int32s
    txn_status: Int8s
    txn_level: Int8s | None  # 0: none declared; else 1 + index into levels.NAMES
    txn_line: Int32s | None  # line of the file on which it begins, if the format has lines
    session_start: Int32s  # transactions of s: session_start[s] .. session_start[s + 1]
    version_key: Int32s
    version_value: Int64s  # codes of ``values``
    version_writer: Int32s  # the transaction that wrote the version, or NOBODY
    key_code: Int64s  # codes of ``keys``
    keys: Atoms
    values: Atoms
    initial: int | None  # code of the value that represents the initial state; None: no implicit initial state
    lists: ListReads | None
    txn_label: Labels
    session_label: Labels
    txn_index: Int64s | None = None  # index of the completing operation, if the format numbers operations (Jepsen)
    times: Times | None = None  # when transactions began and ended, if known
    txn_node: tuple[str, ...] | None = None  # the node of each transaction, "" if unknown; set by ``nodes.with_nodes``
    init_txn: int = NOBODY  # an explicit transaction that sets up the initial state
    init_guessed: bool = False  # recognized only by its shape: see ``history.init_txn``
    version_initial: Bools | None = None  # the initial versions, if keys have their own initial values
    format: str = "code"
    warnings: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        sizes = (self.sessions, "session"), (self.transactions, "transaction"), (self.operations, "operation")
        size = ", ".join(counted(number, what) for number, what in sizes)
        return f"<History: {size}, format {self.format}>"

    @property
    def sessions(self) -> int:
        return len(self.session_start) - 1

    @property
    def transactions(self) -> int:
        """Number of transactions, whatever their outcome."""
        return len(self.txn_session)

    @property
    def operations(self) -> int:
        return len(self.op_kind)

    def key(self, key: int) -> Atom:
        """Return key number ``key`` as the history spells it."""
        return self.keys.spell(int(self.key_code[key]))

    def value(self, version: int) -> Atom:
        """Return the value of a version as the history spells it."""
        return self.values.spell(int(self.version_value[version]))

    @property
    def initial_versions(self) -> Bools:
        """Which versions are the initial version of their key: shape (versions,)."""
        if self.version_initial is not None:
            return self.version_initial
        if self.initial is None:
            return np.zeros(len(self.version_value), np.bool_)
        initial: Bools = (self.version_value == self.initial) & (self.version_writer == NOBODY)
        return initial

    @property
    def initial_values(self) -> dict[Atom, Atom]:
        """The initial value by key, for keys that have their own initial value."""
        own = np.flatnonzero(self.version_initial) if self.version_initial is not None else ()
        return {self.key(int(self.version_key[v])): self.value(int(v)) for v in own}

    @property
    def initial_value(self) -> Atom:
        """The value that represents the initial state in this history's format."""
        return None if self.initial is None else self.values.spell(self.initial)

    def transaction(self, t: int) -> Transaction:
        """Return transaction ``t`` in readable form."""
        from plume_py.levels import NAMES

        declared = 0 if self.txn_level is None else int(self.txn_level[t])
        return Transaction(
            id=self.txn_label[t],
            session=self.session_label[int(self.txn_session[t])],
            status=STATUS_NAMES[self.txn_status[t]],
            level=NAMES[declared - 1] if declared else None,
            ops=tuple(map(self.op, range(self.txn_start[t], self.txn_start[t + 1]))),
            begin=None if self.times is None else known(self.times.begin[t]),
            end=None if self.times is None else known(self.times.end[t]),
        )

    def op(self, o: int) -> Op:
        """Return operation ``o`` in readable form."""
        kind = int(self.op_kind[o])
        key = self.key(int(self.op_key[o]))
        if kind == READ_LIST and self.lists is not None:
            at = int(np.searchsorted(self.lists.ops, o))
            items = self.lists.items[self.lists.starts[at] : self.lists.starts[at + 1]]
            return Op("r", key, tuple(map(self.value, items)))
        return Op(("r", "w", "r", "append")[kind], key, self.value(int(self.op_version[o])))

    def __iter__(self) -> Iterator[list[Transaction]]:
        """Yield the transactions of each session in readable form (for small histories and tests)."""
        for s in range(self.sessions):
            yield [self.transaction(t) for t in range(self.session_start[s], self.session_start[s + 1])]

    def place(self, t: int) -> str:
        """Return the position of transaction ``t`` in its file: a line, or a path in native JSON."""
        if self.txn_line is not None and self.txn_line[t] > 0:
            return f"line {self.txn_line[t]}"
        s = int(self.txn_session[t])
        return f"sessions[{s}][{t - int(self.session_start[s])}]"
