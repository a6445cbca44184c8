"""Automata at work: a text in, columns out; a large one in two halves, by two threads.

The second half begins at a place that looks like the beginning of a record. Whether it is one shows when the first half
has been read: then both lead on in the same way. If they do not, the text is read as a whole.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from threading import Thread
from typing import Any

import numpy as np

from plume_py.base import accel
from plume_py.history.formats import automaton_kernels as kernels
from plume_py.history.formats.automaton import Usual
from plume_py.history.model import Int8s, Int64s
from plume_py.history.source import Buffer

# Bytes from which on two threads are worth it.
WORTH_CUTTING = 1 << 20

_NOTHING = np.empty(0, np.int64)

# As many bytes as are compared at once.
_PIECE = 1 << 18


@dataclass
class Columns:
    """What has been read, and room for more."""

    n: Int64s
    regs: Int64s
    rows: Int64s
    kinds: Int8s
    keys: Int64s
    values: Int64s
    list_ops: Int64s
    list_ends: Int64s
    items: Int64s

    @classmethod
    def room(cls, ops: int, rows: int, fields: int, items: int = 0) -> "Columns":
        """Room for so many; rows have so many fields."""
        lists = ops if items else 0
        return cls(
            np.zeros(7, np.int64),
            np.zeros(kernels.REGISTERS, np.int64),
            np.empty((fields, rows), np.int64),
            np.empty(ops, np.uint8),
            np.empty(ops, np.int64),
            np.empty(ops, np.int64),
            np.empty(lists, np.int64),
            np.zeros(lists + 1, np.int64),
            np.empty(items, np.int64),
        )

    def row(self, register: int) -> Int64s:
        """What a register held, row by row."""
        field: Int64s = self.rows[register - kernels.FIRST_OP, : self.n[kernels.ROWS]]
        return field


# Makes room for what ``buf[start:stop]`` can hold, with lists or without.
Room = Callable[[Any, int, int, bool], Columns]


def read(usual: Usual, content: Buffer, at: int, room: Room, registers: dict[int, int]) -> list[Columns] | None:
    """The columns of ``content`` from ``at`` on, in one piece or two; None if there is anything unusual.

    ``registers`` begin as given here, and hold that again after each row. Places count on from piece to piece.
    """
    if at >= len(content):
        return None
    buf = accel.byte_buffer(content, kernels)
    regs = np.zeros(kernels.REGISTERS, np.int64)
    for register, number in registers.items():
        regs[register] = number
    cut = _cut(usual, content, at)
    if cut:
        first, second = _read_pieces(usual, buf, (at, cut, len(content)), room, regs)
        if not first.n[kernels.STATE]:
            return None
        if _leads_on(usual, first, int(buf[cut])):
            second.row(kernels.PLACE)[:] += (first.regs - regs)[[kernels.LINE, kernels.SESSIONS]].sum()
            return [first, second] if second.n[kernels.STATE] in usual.ends else None
    (whole,) = _read_pieces(usual, buf, (at, len(content)), room, regs)
    return [whole] if whole.n[kernels.STATE] in usual.ends else None


def _cut(usual: Usual, content: Buffer, at: int) -> int:
    """Where the second half may begin; 0 if there is none."""
    if len(content) - at < WORTH_CUTTING or _cores() < 2:
        return 0
    found = content.find(usual.mark, (at + len(content)) // 2)
    cut = found + (usual.mark == b"\n")
    return cut if found >= 0 and cut < len(content) else 0


def _read_pieces(usual: Usual, buf: Any, places: tuple[int, ...], room: Room, regs: Int64s) -> list[Columns]:
    """The pieces between these places, each by a thread; with room for lists if it turns out that there are any."""
    for with_lists in (False, True):
        pieces = [room(buf, start, stop, with_lists) for start, stop in pairwise(places)]
        states = (usual.start, usual.middle)
        tasks = [(usual, buf, *task, regs) for task in zip(states, places, places[1:], pieces, strict=False)]
        others = [Thread(target=_run, args=task) for task in tasks[1:]]
        for thread in others:
            thread.start()
        try:
            _run(*tasks[0])
        finally:
            for thread in others:
                thread.join()
        if not any(piece.n[kernels.FULL] for piece in pieces):
            break
    return pieces


def _run(usual: Usual, buf: Any, state: int, at: int, stop: int, columns: Columns, regs: Int64s) -> None:
    columns.regs[:] = regs
    columns.n[kernels.STATE], columns.n[kernels.AT] = state, at
    kernels.run(
        buf,
        stop,
        *usual.tables,
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


def _leads_on(usual: Usual, first: Columns, byte: int) -> bool:
    """Is the next state the same, whether the text goes on or begins in the middle?"""
    row = np.reshape(usual.tables.after, (-1, kernels.CLASSES))[:, usual.tables.classes[byte]]
    return bool(row[first.n[kernels.STATE]] == row[usual.middle] > 0)


def merged(pieces: list[Columns]) -> Columns:
    """Two pieces as one; they are empty afterwards, column by column, as there is no memory for all of it twice."""
    if len(pieces) == 1:
        return pieces[0]
    first, second = pieces
    ops, _, items, _ = first.n[:4].tolist()
    second.row(kernels.FIRST_OP)[:] += ops
    lists = second.n[kernels.LISTS]
    second.list_ops[:lists] += ops
    second.list_ends[: lists + 1] += items

    def joined(name: str, counter: int, skipped: int = 0) -> Any:
        columns = [getattr(piece, name) for piece in pieces]
        for piece in pieces:
            setattr(piece, name, _NOTHING)
        sizes = [piece.n[counter] + skipped for piece in pieces]
        return np.concatenate((columns[0][..., : sizes[0]], columns[1][..., skipped : sizes[1]]), axis=-1)

    return Columns(
        np.concatenate((first.n[:4] + second.n[:4], second.n[4:])),
        first.regs + second.regs,
        joined("rows", kernels.ROWS),
        joined("kinds", kernels.OPS),
        joined("keys", kernels.OPS),
        joined("values", kernels.OPS),
        joined("list_ops", kernels.LISTS),
        joined("list_ends", kernels.LISTS, 1),
        joined("items", kernels.ITEMS),
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_worth_it(size: int, bytes_per_step: int) -> bool:
    """Are so many bytes, with those before, worth the kernel? It is there then.

    ``bytes_per_step``: what else would read them gets through so many while plain Python does a step of a loop.
    """
    if not accel.worth_compiling(size // bytes_per_step, kernels.__name__):
        return False
    accel.prepare(accel.WORTH_COMPILING, kernels)
    return True


def count(buf: Any, byte: bytes, start: int, stop: int) -> int:
    """How often ``byte`` occurs in ``buf[start:stop]``."""
    if isinstance(buf, bytes):
        return buf.count(byte, start, stop)
    pieces = (buf[at : min(at + _PIECE, stop)] for at in range(start, stop, _PIECE))
    return sum(int(np.count_nonzero(piece == byte[0])) for piece in pieces)
