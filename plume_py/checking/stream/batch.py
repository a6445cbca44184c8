"""Transactions as they come, and as the columns that the kernels take."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

import numpy as np

from plume_py.base.errors import InputError
from plume_py.history.builder import KINDS, STATUS, bad_operation, time_of
from plume_py.history.model import APPEND, READ, READ_LIST, Int8s, Int32s, Int64s
from plume_py.history.times import NO_TIME
from plume_py.history.value_codes import MAX_DIGITS, NULL, Atom, Atoms

UNKNOWN = "unknown"  # an outcome that has no end

# Integers below this, in either direction, stand for themselves; from here on come the numbers of all other atoms.
OTHERS = 1 << 62


class StreamCoder:
    """Codes for keys and values alike."""

    def __init__(self) -> None:
        self._codes: dict[Atom, int] = {}
        self._others: list[Atom] = []

    def encode(self, atoms: Sequence[Any], what: str) -> Int64s:
        """The codes of ``atoms``."""
        if set(map(type, atoms)) <= {int}:
            try:
                codes = np.array(atoms, np.int64)
            except OverflowError:
                pass
            else:
                if not codes.size or -OTHERS < codes.min() <= codes.max() < OTHERS:
                    return codes
        return np.array([self._code(atom, what) for atom in atoms], np.int64)

    def spell(self, code: int) -> Atom:
        """The atom that has this code."""
        if code == NULL:
            return None
        return code if code < OTHERS else self._others[code - OTHERS]

    def table(self, codes: Int64s) -> tuple[Int64s, Atoms]:
        """``codes`` as a history wants them, and how it spells them."""
        if not self._others:
            return codes, Atoms()
        distinct, index = np.unique(codes, return_inverse=True)
        return index.reshape(-1).astype(np.int64), Atoms(tuple(map(self.spell, distinct.tolist())))

    def _code(self, atom: object, what: str) -> int:
        if atom is None and what != "key":
            return NULL
        if type(atom) is int and -OTHERS < atom < OTHERS:
            return atom
        if not isinstance(atom, str) and type(atom) is not int:
            raise InputError(f"a {what} must be an integer or a string, not {atom!r:.60}")
        if type(atom) is int and atom.bit_length() > MAX_DIGITS * 3:
            raise InputError(f"a {what} has more than {MAX_DIGITS} digits")
        code = self._codes.setdefault(atom, OTHERS + len(self._others))
        if code == OTHERS + len(self._others):
            self._others.append(atom)
        return code


class ArrivalLike(Protocol):
    """A transaction that arrives."""

    @property
    def session(self) -> Hashable:
        """To whom it belongs."""

    @property
    def ops(self) -> Sequence[Sequence[Any]]:
        """(kind, key, value) each."""

    @property
    def status(self) -> str:
        """committed, aborted or unknown."""

    @property
    def id(self) -> str | int | None:
        """Its name, if it has one."""

    @property
    def line(self) -> int:
        """The line on which it stands, or 0."""

    @property
    def start(self) -> int | None:
        """When it began, if that is known."""

    @property
    def end(self) -> int | None:
        """When it ended, if that is known."""


@dataclass(frozen=True)
class FedTransaction:
    """One that was handed over in Python."""

    session: Hashable
    ops: Sequence[Sequence[Any]]
    status: str = "committed"
    id: str | int | None = None
    line: int = 0
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Batch:
    """Transaction i has the operations start[i] .. start[i + 1] - 1, and its times, or NO_TIME."""

    kinds: Int8s
    keys: Int64s
    values: Int64s
    start: Int64s
    session: Int32s
    status: Int8s
    begin: Int64s
    end: Int64s
    lists: dict[int, Int64s] = field(default_factory=dict)  # list reads, by operation: all elements

    @property
    def items(self) -> int:
        """How many list elements there are."""
        return sum(map(len, self.lists.values()))


def make_batch(
    arrivals: Sequence[ArrivalLike], sessions: dict[Hashable, int], coder: StreamCoder, initial: Atom
) -> Batch:
    """The columns of some arrivals; ``sessions`` numbers the sessions and learns of new ones."""
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


def _times(moments: "list[int | None]") -> Int64s:
    if set(moments) == {None}:
        return np.full(len(moments), NO_TIME, np.int64)
    return np.array([time_of(moment) for moment in moments], np.int64)


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
        values, lists = _take_lists(kinds, list(seen), coder, initial)
    columns = np.frombuffer(kinds, np.uint8), coder.encode(keys, "key"), coder.encode(values, "value")
    if lists:
        _see_others(*columns, lists, start, code_of(initial, coder))
    if lists or APPEND in kinds:
        _reject_initial(columns[2][columns[0] == APPEND], lists, initial, coder)
    return *columns, lists


def _take_lists(
    kinds: bytearray, values: list[Any], coder: StreamCoder, initial: Atom
) -> tuple[list[Any], dict[int, Int64s]]:
    """Move lists aside; what stays in ``values`` is the last element."""
    lists: dict[int, Int64s] = {}
    for o, value in enumerate(values):
        if type(value) is list or type(value) is tuple:
            if kinds[o] != READ:
                raise InputError(f"cannot write a list at once: {value!r:.60}", hint='use "append"')
            kinds[o] = READ_LIST
            values[o] = value[-1] if value else initial
            lists[o] = coder.encode(value, "value")
    return values, lists


def _see_others(
    kinds: Int8s, keys: Int64s, values: Int64s, lists: dict[int, Int64s], start: Int64s, initial: int
) -> None:
    """A list is read from whoever appended the last element that is not the reader's own: put that in its place."""
    owner = np.searchsorted(start, list(lists), side="right") - 1
    for (o, codes), t in zip(lists.items(), owner.tolist(), strict=True):
        ops = slice(int(start[t]), int(start[t + 1]))
        own = values[ops][(kinds[ops] == APPEND) & (keys[ops] == keys[o])]
        if own.size:
            others = codes[~np.isin(codes, own)]
            values[o] = others[-1] if others.size else initial


def _reject_initial(appended: Int64s, lists: dict[int, Int64s], initial: Atom, coder: StreamCoder) -> None:
    """The empty list is the initial state, and is kept as the initial value: no element may look like that."""
    code = code_of(initial, coder)
    if any(bool(np.any(elements == code)) for elements in (appended, *lists.values())):
        raise InputError(
            f"the initial value {initial!r:.60} stands in a list",
            hint="declare an initial value that no list holds, or none",
        )


def code_of(atom: Atom, coder: StreamCoder) -> int:
    """The code of one value."""
    return NULL if atom is None else int(coder.encode([atom], "value")[0])
