"""Parse large files by automata: a format describes its usual files as a graph, and one kernel fills columns.

A *point* is a position between two words, where space is allowed; a word leads from one point to another. If the
automaton does not accept a file, the format's general reader reads it and reports its errors.

Large texts are read in two halves, by two threads. The second half begins at a position that looks like the start of a
record. If the first half then leads to the same state there, the guess was right; else the text is read as a whole.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plume_py.base.kernels import dispatch
from plume_py.history.formats import automaton_kernels as kernels
from plume_py.history.model import Int8s, Int64s
from plume_py.history.source import Buffer

# --- grammars

DIGITS = b"-0123456789"

# The states of a point: after a word, after space, and after a newline.
Point = tuple[int, ...]


class Tables(NamedTuple):
    """The tables of an automaton, for the kernel."""

    classes: Int8s
    after: npt.NDArray[np.int16]
    action: Int8s
    operand: Int64s


class BulkGrammar(NamedTuple):
    """The grammar of a format's usual files: the tables, the first state, and the states that may be the last.

    A large file is cut after ``mark`` (before it if it is a bracket); the second half starts in the state ``middle``.
    """

    tables: Tables
    start: int
    ends: Point
    mark: bytes
    middle: int


class Automaton:
    """Builds the tables. ``space`` may occur between words, and newlines, which ``count_lines`` counts.

    Words need no space before and after ``brackets``; if ``brackets`` is empty, no word needs space.
    """

    def __init__(self, space: bytes, *, newline: bool = True, count_lines: bool = False, brackets: bytes = b"") -> None:
        self._space = space + (b"" if count_lines or not newline else b"\n")
        self._newline = b"\n" if count_lines and newline else b""
        self._brackets = brackets
        self._steps: list[dict[int, int]] = []
        self._does: list[tuple[int, int]] = []
        self._joined: list[tuple[Point, Point]] = []
        self._tight: set[int] = set()  # states after a word that needs space after it
        self._state()  # state 0: not accepted

    def _state(self, action: int = kernels.NOTHING, operand: int = 0) -> int:
        self._steps.append({})
        self._does.append((action, operand))
        return len(self._steps) - 1

    def point(self, action: int = kernels.NOTHING, operand: int = 0) -> Point:
        """Return a new point; ``action`` runs when a word leads to it."""
        point: Point = (self._state(action, operand), self._state())
        if self._newline:
            point = (*point, self._state(kernels.COUNT, kernels.LINE))
        for state in point:
            self._steps[state].update(dict.fromkeys(self._space, point[1]))
            self._steps[state].update(dict.fromkeys(self._newline, point[-1]))
        return point

    def bare(self, action: int = kernels.NOTHING, operand: int = 0) -> Point:
        """Return a new point where no space is allowed."""
        return (self._state(action, operand),)

    def loop(self, point: Point, letters: bytes) -> None:
        """Allow any number of these letters at a point."""
        self._steps[point[0]].update(dict.fromkeys(letters, point[0]))

    def word(self, start: Point, text: bytes, to: Point | None = None, action: int = 0, operand: int = 0) -> Point:
        """Add a word from one point to another, or to a new one with an action; return the target."""
        to = to or self.point(action, operand)
        states = start
        for i, byte in enumerate(text):
            from_here = [s for s in states if not (s in self._tight and byte not in self._brackets)]
            known = {self._steps[s][byte] for s in from_here if byte in self._steps[s]}
            state = to[0] if i + 1 == len(text) else max(known) if known else self._state()
            assert known <= {state}
            for s in from_here:
                self._steps[s][byte] = state
            states = (state,)
        if self._brackets and text[-1] not in self._brackets:
            self._tight.add(to[0])
        return to

    def join(self, point: Point, other: Point) -> None:
        """Let ``point`` continue like ``other``, whose words may be added later."""
        self._joined.append((point, other))

    def number(self, start: Point, to: Point) -> Point:
        """Add an integer from one point to another, whose action stores it; return the target."""
        for digit in DIGITS:
            self.word(start, bytes([digit]), to)
        return to

    def string(self, start: Point, *, noted: bool) -> Point:
        """Add a string of plain ASCII; its span is stored if ``noted``. Return the new point after it."""
        begin, inside = self.bare(kernels.SPAN if noted else kernels.NOTHING), self.bare()
        plain = bytes(byte for byte in range(32, 127) if byte not in b'"\\')
        self.word(start, b'"', begin)
        self.loop(inside, plain)
        for byte in plain:
            self.word(begin, bytes([byte]), inside)
        return self.word(begin + inside, b'"', action=kernels.SPAN_END if noted else kernels.NOTHING)

    def tables(self) -> Tables:
        """Return the tables; bytes with the same transitions in all states share a class."""
        for point, other in self._joined:
            for byte, state in self._steps[other[1]].items():
                if byte not in self._space and byte not in self._newline:
                    for s in point:
                        if not (s in self._tight and byte not in self._brackets):
                            self._steps[s][byte] = state
        columns = [tuple(steps.get(byte, 0) for steps in self._steps) for byte in range(256)]
        distinct = {column: number for number, column in enumerate(dict.fromkeys(columns))}
        assert len(distinct) <= kernels.CLASSES
        after = np.zeros((len(self._steps), kernels.CLASSES), np.int16)
        for column, number in distinct.items():
            after[:, number] = column
        actions, operands = zip(*self._does, strict=True)
        return Tables(
            np.array([distinct[column] for column in columns], np.uint8),
            after.reshape(-1),
            np.array(actions, np.uint8),
            np.array(operands, np.int64),
        )


def constant(register: int, number: int) -> int:
    """Return the operand that sets a register to a number."""
    return number << kernels.REGISTER_BITS | register


# --- parsing

# Two threads pay off for texts of at least this many bytes.
MIN_CUT_SIZE = 1 << 20

# Number of bytes or numbers that are compared or moved at once.
_PIECE = 1 << 18


class Size(NamedTuple):
    """Upper bounds for a piece of text: operations, rows and items of lists."""

    ops: int
    rows: int
    items: int = 0


@dataclass
class Columns:
    """Output of the kernel, with spare capacity; ``rows`` has a row of values per register."""

    n: Int64s
    regs: Int64s
    rows: Int64s
    kinds: Int8s
    keys: Int64s
    values: Int64s
    list_ops: Int64s
    list_ends: Int64s
    items: Int64s

    def row(self, register: int) -> Int64s:
        """Return the value of a register in each row."""
        field: Int64s = self.rows[register - kernels.FIRST_OP, : self.n[kernels.ROWS]]
        return field


# Returns the upper bounds for ``buf[start:stop]``.
Measure = Callable[[Any, int, int], Size]


def parse_bulk(
    grammar: BulkGrammar, content: Buffer, at: int, fields: int, measure: Measure, registers: dict[int, int]
) -> Columns | None:
    """Return the columns of ``content`` from ``at`` on, with ``fields`` registers per row; None if it is not accepted.

    ``registers`` are initial values; after each row its registers are reset to them.
    """
    if at >= len(content):
        return None
    buf = _buffer(content)
    regs = np.zeros(kernels.REGISTERS, np.int64)
    for register, number in registers.items():
        regs[register] = number
    cut, stop = _cut(grammar, content, at), len(content)
    if cut:
        first, second = _read_pieces(grammar, buf, (at, cut, stop), fields, measure, regs)
        if not first.n[kernels.STATE]:
            return None
        if _states_agree(grammar, first, int(buf[cut])):
            return _merged(first, second, regs) if second.n[kernels.STATE] in grammar.ends else None
        del first, second
    (whole,) = _read_pieces(grammar, buf, (at, stop), fields, measure, regs)
    return whole if whole.n[kernels.STATE] in grammar.ends else None


def _buffer(content: Buffer) -> Any:
    """Return ``content`` as the kernel takes it, always read-only: a writable array would be compiled again."""
    buf = dispatch.byte_buffer(content, kernels)
    if isinstance(buf, np.ndarray):
        buf.setflags(write=False)
    return buf


def _cut(grammar: BulkGrammar, content: Buffer, at: int) -> int:
    """Return where the second half may begin; 0 for no cut."""
    if len(content) - at < MIN_CUT_SIZE or _cores() < 2:
        return 0
    found = content.find(grammar.mark, (at + len(content)) // 2)
    cut = found + (grammar.mark == b"\n")
    return cut if found >= 0 and cut < len(content) else 0


def _read_pieces(
    grammar: BulkGrammar, buf: Any, places: Sequence[int], fields: int, measure: Measure, regs: Int64s
) -> list[Columns]:
    """Read the pieces between these positions; allocate columns for lists only if there are any."""
    sizes = [measure(buf, start, stop) for start, stop in pairwise(places)]
    for with_lists in (False, True):
        pieces = _allocate(sizes, fields, with_lists)
        states = (grammar.start, grammar.middle)
        tasks = [(grammar, buf, *task, regs) for task in zip(states, places, places[1:], pieces, strict=False)]
        _run_all(tasks)
        if not any(piece.n[kernels.FULL] for piece in pieces):
            break
    return pieces


def _allocate(sizes: list[Size], fields: int, with_lists: bool) -> list[Columns]:
    """Allocate columns for each piece; its operations follow those of the piece before."""
    ops = sum(size.ops for size in sizes)
    kinds, keys, values = np.empty(ops, np.uint8), np.empty(ops, np.int64), np.empty(ops, np.int64)
    pieces, at = [], 0
    for size in sizes:
        lists, items = (size.ops, size.items) if with_lists else (0, 0)
        here = slice(at, at + size.ops)
        at += size.ops
        pieces.append(
            Columns(
                np.zeros(7, np.int64),
                np.zeros(kernels.REGISTERS, np.int64),
                np.empty((fields, size.rows), np.int64),
                kinds[here],
                keys[here],
                values[here],
                np.empty(lists, np.int64),
                np.zeros(lists + 1, np.int64),
                np.empty(items, np.int64),
            )
        )
    return pieces


def _run_all(tasks: list[tuple[BulkGrammar, Any, int, int, int, Columns, Int64s]]) -> None:
    """Run the first task in this thread and each other task in its own."""
    others = [Thread(target=_run, args=task) for task in tasks[1:]]
    for thread in others:
        thread.start()
    try:
        _run(*tasks[0])
    finally:
        for thread in others:
            thread.join()


def _run(grammar: BulkGrammar, buf: Any, state: int, at: int, stop: int, columns: Columns, regs: Int64s) -> None:
    columns.regs[:] = regs
    columns.n[kernels.STATE], columns.n[kernels.AT] = state, at
    kernels.run(
        buf,
        stop,
        *grammar.tables,
        columns.n,
        columns.regs,
        regs,
        columns.rows,
        columns.kinds,
        columns.keys,
        columns.values,
        columns.list_ops,
        columns.list_ends,
        columns.items,
    )


def _states_agree(grammar: BulkGrammar, first: Columns, byte: int) -> bool:
    """Return whether the first half leads to the state in which the second half began."""
    row = np.reshape(grammar.tables.after, (-1, kernels.CLASSES))[:, grammar.tables.classes[byte]]
    return bool(row[first.n[kernels.STATE]] == row[grammar.middle] > 0)


def _merged(first: Columns, second: Columns, regs: Int64s) -> Columns:
    """Return two pieces as one. Operations are moved in place, because memory may not suffice for a copy."""
    counted = first.regs - regs
    ops, lists, items, rows = first.n[:4].tolist()
    more_ops, more_lists, more_items, more_rows = second.n[:4].tolist()
    second.row(kernels.FIRST_OP)[:] += ops
    second.row(kernels.PLACE)[:] += counted[kernels.LINE] + counted[kernels.SESSIONS]
    return Columns(
        np.concatenate((first.n[:4] + second.n[:4], second.n[4:])),
        second.regs + counted,
        np.concatenate((first.rows[:, :rows], second.rows[:, :more_rows]), axis=1),
        _close_gap(first.kinds, ops, more_ops),
        _close_gap(first.keys, ops, more_ops),
        _close_gap(first.values, ops, more_ops),
        np.concatenate((first.list_ops[:lists], second.list_ops[:more_lists] + ops)),
        np.concatenate((first.list_ends[: lists + 1], second.list_ends[1 : more_lists + 1] + items)),
        np.concatenate((first.items[:items], second.items[:more_items])),
    )


def _close_gap(first: npt.NDArray[Any], used: int, more: int) -> npt.NDArray[Any]:
    """Return the column that begins with ``first``, with the gap between its used part and the next piece closed."""
    column: npt.NDArray[Any] = first.base  # type: ignore[assignment]
    for at in range(0, more if used < len(first) else 0, _PIECE):
        size = min(_PIECE, more - at)
        column[used + at : used + at + size] = column[len(first) + at : len(first) + at + size]
    return column[: used + more]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pays_off(work: int) -> bool:
    """Return whether the kernel pays off, and compile it if so.

    ``work`` is the cost of the general reader in loop steps of plain Python.
    """
    if not dispatch.worth_compiling(work, kernels):
        return False
    dispatch.prepare(dispatch.WORTH_COMPILING, kernels)
    return True


def count(buf: Any, byte: bytes, start: int, stop: int) -> int:
    """Return how often ``byte`` occurs in ``buf[start:stop]``."""
    if isinstance(buf, bytes):
        return buf.count(byte, start, stop)
    pieces = (buf[at : min(at + _PIECE, stop)] for at in range(start, stop, _PIECE))
    return sum(int(np.count_nonzero(piece == byte[0])) for piece in pieces)
