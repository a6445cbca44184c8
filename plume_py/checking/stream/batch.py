"""Convert arriving transactions to a batch of columns, with keys and values as 64-bit codes, for the kernels.

``monitor`` calls ``make_batch``.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np

from plume_py.base.errors import InputError
from plume_py.history.builder import KINDS, STATUS, bad_operation, time_of
from plume_py.history.model import APPEND, READ, READ_LIST, Int8s, Int32s, Int64s
from plume_py.history.times import NO_TIME
from plume_py.history.value_codes import MAX_DIGITS, NULL, Atom, Atoms

UNKNOWN = "unknown"  # the status of transactions without an end

# Integers of smaller magnitude are their own codes. Codes from here on are the numbers of all other atoms.
FIRST_NUMBERED = 1 << 62


class StreamCoder:
    """Codes for keys and values that never change. Small integers are their own codes; other atoms are numbered."""

    def __init__(self) -> None:
        self._codes: dict[Atom, int] = {}
        self._others: list[Atom] = []

    def encode(self, atoms: Sequence[Any], what: str) -> Int64s:
        """Return the codes of ``atoms``. ``what`` is "key" or "value", for errors."""
        if set(map(type, atoms)) <= {int}:
            try:
                codes = np.array(atoms, np.int64)
            except OverflowError:
                pass
            else:
                if not codes.size or -FIRST_NUMBERED < codes.min() <= codes.max() < FIRST_NUMBERED:
                    return codes
        return np.array([self._code(atom, what) for atom in atoms], np.int64)

    def atom(self, code: int) -> Atom:
        if code == NULL:
            return None
        return code if code < FIRST_NUMBERED else self._others[code - FIRST_NUMBERED]

    def table(self, codes: Int64s) -> tuple[Int64s, Atoms]:
        """Return ``codes`` in the form of a ``History``, and the atoms they refer to."""
        if not self._others:
            return codes, Atoms()
        distinct, index = np.unique(codes, return_inverse=True)
        return index.reshape(-1).astype(np.int64), Atoms(tuple(map(self.atom, distinct.tolist())))

    def _code(self, atom: object, what: str) -> int:
        if atom is None and what != "key":
            return NULL
        if type(atom) is int and -FIRST_NUMBERED < atom < FIRST_NUMBERED:
            return atom
        if not isinstance(atom, str) and type(atom) is not int:
            raise InputError(f"a {what} must be an integer or a string, not {atom!r:.60}")
        if type(atom) is int and atom.bit_length() > MAX_DIGITS * 3:
            raise InputError(f"a {what} has more than {MAX_DIGITS} digits")
        code = self._codes.setdefault(atom, FIRST_NUMBERED + len(self._others))
        if code == FIRST_NUMBERED + len(self._others):
            self._others.append(atom)
        return code


class ArrivalLike(Protocol):
    """A transaction from a reader or a caller. Optional fields are None if unknown."""

    @property
    def session(self) -> Hashable: ...

    @property
    def ops(self) -> Sequence[Sequence[Any]]:
        """Operations, each (kind, key, value)."""

    @property
    def status(self) -> str:
        """``committed``, ``aborted`` or ``unknown``."""

    @property
    def id(self) -> str | int | None: ...

    @property
    def line(self) -> int:
        """The line in its file, or 0."""

    @property
    def start(self) -> int | None: ...

    @property
    def end(self) -> int | None: ...


@dataclass(frozen=True)
class FedTransaction:
    """A transaction given to ``Monitor.feed``."""

    session: Hashable
    ops: Sequence[Sequence[Any]]
    status: str = "committed"
    id: str | int | None = None
    line: int = 0
    start: int | None = None
    end: int | None = None


class Batch(NamedTuple):
    """Columns of some transactions.

    Transaction i has the operations start[i] .. start[i + 1] - 1. Unknown times are NO_TIME.
    """

    kinds: Int8s
    keys: Int64s
    values: Int64s
    start: Int64s
    session: Int32s
    status: Int8s
    begin: Int64s
    end: Int64s
    lists: dict[int, Int64s]  # per operation that reads a list: all elements

    @property
    def items(self) -> int:
        return sum(map(len, self.lists.values()))


def make_batch(
    arrivals: Sequence[ArrivalLike], sessions: dict[Hashable, int], coder: StreamCoder, initial: Atom
) -> Batch:
    """Return the columns of some arrivals. ``sessions`` numbers the sessions; new ones are added."""
    ops = list(chain.from_iterable(arrival.ops for arrival in arrivals))
    start = np.zeros(len(arrivals) + 1, np.int64)
    np.cumsum([len(arrival.ops) for arrival in arrivals], out=start[1:])
    kinds, keys, values, lists = _columns(ops, start, coder, initial)
    status = [STATUS.get(arrival.status, -1) for arrival in arrivals]
    if -1 in status:
        raise InputError(
            f"unknown status {arrivals[status.index(-1)].status!r:.40}", hint="use committed, aborted or unknown"
        )
    number = [sessions.setdefault(arrival.session, len(sessions)) for arrival in arrivals]
    begin, end = (
        _times([arrival.start for arrival in arrivals]),
        _times([None if arrival.status == UNKNOWN else arrival.end for arrival in arrivals]),
    )
    return Batch(kinds, keys, values, start, np.array(number, np.int32), np.array(status, np.uint8), begin, end, lists)


def _times(times: "list[int | None]") -> Int64s:
    if set(times) == {None}:
        return np.full(len(times), NO_TIME, np.int64)
    return np.array([time_of(time) for time in times], np.int64)


def _columns(
    ops: "list[Sequence[Any]]", start: Int64s, coder: StreamCoder, initial: Atom
) -> tuple[Int8s, Int64s, Int64s, dict[int, Int64s]]:
    if not ops:
        nothing = np.empty(0, np.int64)
        return np.empty(0, np.uint8), nothing, nothing, {}
    try:
        spelled, keys, seen = zip(*ops, strict=True)
        kinds = bytearray(map(KINDS.__getitem__, spelled))
    except (KeyError, TypeError, ValueError):
        raise bad_operation(ops) from None
    lists: dict[int, Int64s] = {}
    values: Sequence[Any] = seen
    if {list, tuple} & set(map(type, seen)):
        values, lists = _separate_lists(kinds, list(seen), coder, initial)
    columns = np.frombuffer(kinds, np.uint8), coder.encode(keys, "key"), coder.encode(values, "value")
    if lists:
        _set_list_sources(*columns, lists, start, code_of(initial, coder))
    if lists or APPEND in kinds:
        _reject_initial_element(columns[2][columns[0] == APPEND], lists, initial, coder)
    return *columns, lists


def _separate_lists(
    kinds: bytearray, values: list[Any], coder: StreamCoder, initial: Atom
) -> tuple[list[Any], dict[int, Int64s]]:
    """Separate the lists from ``values``, where the last element of each remains."""
    lists: dict[int, Int64s] = {}
    for o, value in enumerate(values):
        if type(value) is list or type(value) is tuple:
            if kinds[o] != READ:
                raise InputError(f"cannot write a list at once: {value!r:.60}", hint='use "append"')
            kinds[o] = READ_LIST
            values[o] = value[-1] if value else initial
            lists[o] = coder.encode(value, "value")
    return values, lists


def _set_list_sources(
    kinds: Int8s, keys: Int64s, values: Int64s, lists: dict[int, Int64s], start: Int64s, initial: int
) -> None:
    """Replace the value of a list read by the last element that the reader did not append: its source appended that."""
    owner = np.searchsorted(start, list(lists), side="right") - 1
    for (o, codes), t in zip(lists.items(), owner.tolist(), strict=True):
        ops = slice(int(start[t]), int(start[t + 1]))
        own = values[ops][(kinds[ops] == APPEND) & (keys[ops] == keys[o])]
        if own.size:
            others = codes[~np.isin(codes, own)]
            values[o] = others[-1] if others.size else initial


def _reject_initial_element(appended: Int64s, lists: dict[int, Int64s], initial: Atom, coder: StreamCoder) -> None:
    """Raise ``InputError`` if an element equals the initial value, which represents the empty list."""
    code = code_of(initial, coder)
    if any(bool(np.any(elements == code)) for elements in (appended, *lists.values())):
        raise InputError(
            f"the initial value {initial!r:.60} stands in a list",
            hint="declare an initial value that no list holds, or none",
        )


def code_of(atom: Atom, coder: StreamCoder) -> int:
    return NULL if atom is None else int(coder.encode([atom], "value")[0])
