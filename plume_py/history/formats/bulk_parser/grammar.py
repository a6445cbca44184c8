"""Automata for the usual files of formats: a format says as a graph what they look like.

A *point* is a place between two words, at which space may stand; a word leads from a point to the next. Unusual files
are no concern of an automaton: the format's reader takes them, and says what is wrong with them if anything is.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plume_py.history.formats.bulk_parser import automaton_kernels as kernels
from plume_py.history.model import Int8s, Int64s

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
