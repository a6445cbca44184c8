"""Automata at work: a text in, columns out; a large one in two halves, by two threads.

The second half begins at a place that looks like the beginning of a record. Whether it is one shows when the first half
has been read: then both lead on in the same way. If they do not, the text is read as a whole.
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

# The states of a point: reached by a word, by space after it, and by a newline.
Point = tuple[int, ...]


class Tables(NamedTuple):
    """What the kernel goes by."""

    classes: Int8s
    after: npt.NDArray[np.int16]
    action: Int8s
    operand: Int64s


class BulkGrammar(NamedTuple):
    """The usual file of a format: the tables, the state to start in, and those that may be the last.

    A large file is cut in two behind ``mark`` (or before it, if it is a bracket); there it goes on from ``middle``.
    """

    tables: Tables
    start: int
    ends: Point
    mark: bytes
    middle: int


class Automaton:
    """Tables in the making. ``space`` may stand between words; a newline, too, and is counted if ``count_lines``.

    ``brackets``: what needs no space before it; empty if nothing does.
    """

    def __init__(self, space: bytes, *, newline: bool = True, count_lines: bool = False, brackets: bytes = b"") -> None:
        self._space = space + (b"" if count_lines or not newline else b"\n")
        self._newline = b"\n" if count_lines and newline else b""
        self._brackets = brackets
        self._steps: list[dict[int, int]] = []
        self._does: list[tuple[int, int]] = []
        self._joined: list[tuple[Point, Point]] = []
        self._tight: set[int] = set()  # here a word has just ended that needs space after it
        self._state()  # the end of it

    def _state(self, action: int = kernels.NOTHING, operand: int = 0) -> int:
        self._steps.append({})
        self._does.append((action, operand))
        return len(self._steps) - 1

    def point(self, action: int = kernels.NOTHING, operand: int = 0) -> Point:
        """A new place between words; what is done when a word leads there."""
        point: Point = (self._state(action, operand), self._state())
        if self._newline:
            point = (*point, self._state(kernels.COUNT, kernels.LINE))
        for state in point:
            self._steps[state].update(dict.fromkeys(self._space, point[1]))
            self._steps[state].update(dict.fromkeys(self._newline, point[-1]))
        return point

    def bare(self, action: int = kernels.NOTHING, operand: int = 0) -> Point:
        """A new place at which no space may stand."""
        return (self._state(action, operand),)

    def loop(self, point: Point, letters: bytes) -> None:
        """These may stand there, however many."""
        self._steps[point[0]].update(dict.fromkeys(letters, point[0]))

    def word(self, start: Point, text: bytes, to: Point | None = None, action: int = 0, operand: int = 0) -> Point:
        """``text`` leads from one point to another, or to a new one at which something is done."""
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
        """From ``point`` it goes on as from ``other``, whose words may be added later."""
        self._joined.append((point, other))

    def number(self, start: Point, to: Point) -> Point:
        """An integer leads from one point to another, at which something is done with it."""
        for digit in DIGITS:
            self.word(start, bytes([digit]), to)
        return to

    def string(self, start: Point, *, noted: bool) -> Point:
        """A string of plain ASCII, whose place may be noted, leads to a new point."""
        begin, inside = self.bare(kernels.SPAN if noted else kernels.NOTHING), self.bare()
        plain = bytes(byte for byte in range(32, 127) if byte not in b'"\\')
        self.word(start, b'"', begin)
        self.loop(inside, plain)
        for byte in plain:
            self.word(begin, bytes([byte]), inside)
        return self.word(begin + inside, b'"', action=kernels.SPAN_END if noted else kernels.NOTHING)

    def tables(self) -> Tables:
        """What the kernel goes by; bytes that lead to the same everywhere are of one class."""
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
    """The operand that sets a register."""
    return number << kernels.REGISTER_BITS | register


# --- parsing

# Bytes from which on two threads are worth it.
WORTH_CUTTING = 1 << 20

# As many bytes, or numbers, as are compared or moved at once.
_PIECE = 1 << 18


class Size(NamedTuple):
    """What a piece of text can hold at most; items, if there are lists."""

    ops: int
    rows: int
    items: int = 0


@dataclass
class Columns:
    """What has been read, and room for more; ``rows`` has the registers of a row, one after the other."""

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
        """What a register held, row by row."""
        field: Int64s = self.rows[register - kernels.FIRST_OP, : self.n[kernels.ROWS]]
        return field


# What ``buf[start:stop]`` can hold at most.
Measure = Callable[[Any, int, int], Size]


def parse_bulk(
    grammar: BulkGrammar, content: Buffer, at: int, fields: int, measure: Measure, registers: dict[int, int]
) -> Columns | None:
    """The columns of ``content`` from ``at`` on, rows of so many fields; None if there is anything unusual.

    ``registers`` begin as given here, and those of a row hold that again after each.
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
        if _leads_on(grammar, first, int(buf[cut])):
            return _merged(first, second, regs) if second.n[kernels.STATE] in grammar.ends else None
        del first, second
    (whole,) = _read_pieces(grammar, buf, (at, stop), fields, measure, regs)
    return whole if whole.n[kernels.STATE] in grammar.ends else None


def _buffer(content: Buffer) -> Any:
    """``content`` as the kernel takes it: always as something that is not written to, or it would be compiled twice."""
    buf = dispatch.byte_buffer(content, kernels)
    if isinstance(buf, np.ndarray):
        buf.setflags(write=False)
    return buf


def _cut(grammar: BulkGrammar, content: Buffer, at: int) -> int:
    """Where the second half may begin; 0 if there is none."""
    if len(content) - at < WORTH_CUTTING or _cores() < 2:
        return 0
    found = content.find(grammar.mark, (at + len(content)) // 2)
    cut = found + (grammar.mark == b"\n")
    return cut if found >= 0 and cut < len(content) else 0


def _read_pieces(
    grammar: BulkGrammar, buf: Any, places: Sequence[int], fields: int, measure: Measure, regs: Int64s
) -> list[Columns]:
    """What stands between these places; there is room for lists if it turns out that there are any."""
    sizes = [measure(buf, start, stop) for start, stop in pairwise(places)]
    for with_lists in (False, True):
        pieces = _room(sizes, fields, with_lists)
        states = (grammar.start, grammar.middle)
        tasks = [(grammar, buf, *task, regs) for task in zip(states, places, places[1:], pieces, strict=False)]
        _run_all(tasks)
        if not any(piece.n[kernels.FULL] for piece in pieces):
            break
    return pieces


def _room(sizes: list[Size], fields: int, with_lists: bool) -> list[Columns]:
    """Room for each piece; its operations stand behind those of the piece before."""
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
    """The first task here, each other by a thread of its own."""
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


def _leads_on(grammar: BulkGrammar, first: Columns, byte: int) -> bool:
    """Is the next state the same, whether the text goes on or begins in the middle?"""
    row = np.reshape(grammar.tables.after, (-1, kernels.CLASSES))[:, grammar.tables.classes[byte]]
    return bool(row[first.n[kernels.STATE]] == row[grammar.middle] > 0)


def _merged(first: Columns, second: Columns, regs: Int64s) -> Columns:
    """Two pieces as one. Operations are moved, not copied: there may be no memory to have them twice."""
    counted = first.regs - regs
    ops, lists, items, rows = first.n[:4].tolist()
    more_ops, more_lists, more_items, more_rows = second.n[:4].tolist()
    second.row(kernels.FIRST_OP)[:] += ops
    second.row(kernels.PLACE)[:] += counted[kernels.LINE] + counted[kernels.SESSIONS]
    return Columns(
        np.concatenate((first.n[:4] + second.n[:4], second.n[4:])),
        second.regs + counted,
        np.concatenate((first.rows[:, :rows], second.rows[:, :more_rows]), axis=1),
        _closed_up(first.kinds, ops, more_ops),
        _closed_up(first.keys, ops, more_ops),
        _closed_up(first.values, ops, more_ops),
        np.concatenate((first.list_ops[:lists], second.list_ops[:more_lists] + ops)),
        np.concatenate((first.list_ends[: lists + 1], second.list_ends[1 : more_lists + 1] + items)),
        np.concatenate((first.items[:items], second.items[:more_items])),
    )


def _closed_up(first: npt.NDArray[Any], used: int, more: int) -> npt.NDArray[Any]:
    """The column of which ``first`` is the beginning, without the gap between what is used of it and what follows."""
    column: npt.NDArray[Any] = first.base  # type: ignore[assignment]
    for at in range(0, more if used < len(first) else 0, _PIECE):
        size = min(_PIECE, more - at)
        column[used + at : used + at + size] = column[len(first) + at : len(first) + at + size]
    return column[: used + more]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_worth_it(work: int) -> bool:
    """Is the kernel worth it, and therefore there? ``work``: what reading in another way takes, in steps of a loop."""
    if not dispatch.worth_compiling(work, kernels):
        return False
    dispatch.prepare(dispatch.WORTH_COMPILING, kernels)
    return True


def count(buf: Any, byte: bytes, start: int, stop: int) -> int:
    """How often ``byte`` occurs in ``buf[start:stop]``."""
    if isinstance(buf, bytes):
        return buf.count(byte, start, stop)
    pieces = (buf[at : min(at + _PIECE, stop)] for at in range(start, stop, _PIECE))
    return sum(int(np.count_nonzero(piece == byte[0])) for piece in pieces)
