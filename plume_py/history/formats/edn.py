"""EDN, as Jepsen and Elle write it: one map per operation, bare or inside one vector.

A kernel turns EDN into lines of JSON, block by block; keywords keep their colon. ``jepsen`` does the rest.
"""

from enum import StrEnum
from typing import Any

import msgspec
import numpy as np

from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.history.assemble import RawColumns
from plume_py.history.formats import edn_kernels as kernels
from plume_py.history.formats.bulk_parser import edn_grammar
from plume_py.history.formats.edn_atoms import MARKED
from plume_py.history.formats.jepsen import Pairing
from plume_py.history.formats.jepsen_values import ABSENT, Dialect, Key, Value
from plume_py.history.formats.json_common import no_collector
from plume_py.history.source import Buffer, Source

# Large enough that the cost of a block does not count, small enough for its objects not to.
BLOCK = 1 << 22

_CLOSE = "close every bracket that is opened"
PROBLEMS = {
    kernels.UNCLOSED: ("a bracket that is never closed", "the file was cut off, or a closing bracket is missing"),
    kernels.UNCLOSED_STRING: ("a string that never ends", "the file was cut off, or a quote is missing"),
    kernels.STRAY_CLOSE: ("a closing bracket without an opening one", _CLOSE),
    kernels.MISMATCHED: ("a closing bracket of the wrong kind", _CLOSE),
    kernels.ODD_MAP: ("a map with a key but no value", "give every key a value"),
    kernels.DANGLING: ("a tag or #_ with nothing after it", "it needs a value to apply to"),
    kernels.TOO_DEEP: ("nested too deeply", f"at most {kernels.MAX_DEPTH} levels are read"),
    kernels.AFTER_END: ("something follows the vector of operations", "put all operations inside the vector"),
    kernels.COLLECTION_KEY: ("a collection as the key of a map", "use keywords, strings, symbols or numbers as keys"),
    kernels.BAD_BYTE: ("a character that EDN does not know", "is this EDN? `isocheck formats` lists what can be read"),
    kernels.BAD_NUMBER: ("a malformed number", "write it like 12, -3, 1.5, 2e9, 7N, 1/2, 0x1f or 16r1f"),
    kernels.BAD_KEYWORD: ("a malformed keyword", "a keyword is one colon and a name"),
    kernels.BAD_ESCAPE: ("an unknown escape in a string", r"EDN has \t \r \n \b \f \\ \" and \uXXXX"),
    kernels.BAD_CHARACTER: ("an unknown character name", r"a character is written \a, \newline or \u0041"),
    kernels.SAME_KEY: ("a key that its map has already", "give every key of a map once"),
    kernels.TOO_MANY_KEYS: (f"a map with more than {kernels.MAX_KEYS} keys", "is this an operation?"),
    kernels.BAD_DISPATCH: ("an unknown use of #", "EDN has sets #{...}, tags #name and #_"),
}


class EdnKind(StrEnum):
    """A micro-operation: spelled as EDN has it, equal to what ``HistoryBuilder`` calls it."""

    READ = ":r"
    WRITE = ":w"
    APPEND = ":append"

    def __new__(cls, keyword: str) -> "EdnKind":
        """The keyword's name is the string, the keyword is the value."""
        kind = str.__new__(cls, keyword[1:])
        kind._value_ = keyword
        return kind

    __hash__ = str.__hash__


class EdnOperation(msgspec.Struct, gc=False, rename=lambda name: f":{name}"):
    """An operation map; everything else in it is skipped."""

    type: str = ""
    process: Any = None
    f: Any = None
    value: msgspec.Raw = ABSENT
    index: Any = None
    time: Any = None


DIALECT = Dialect(
    msgspec.json.Decoder(EdnOperation),
    msgspec.json.Decoder(list[tuple[EdnKind, Key, Value]] | None),
    ":",
    "{:type :ok, :process 0, :f :txn, :value [[:w :x 1] [:r :y nil]]}",
    MARKED.search,
)


def read(source: Source) -> RawColumns:
    """The raw columns of an EDN history."""
    content = source.content()
    columns = edn_grammar.read_events(content) if edn_grammar.is_large(len(content)) else None
    return read_blocks(BlockReader(content)) if columns is None else columns


def read_blocks(reader: "BlockReader", *, one_per_line: bool = False) -> RawColumns:
    """The raw columns of the operations that ``reader`` hands out; ``one_per_line``: no two may share a line."""
    pairing = Pairing(DIALECT)
    before = 0
    with no_collector():
        while not reader.finished:
            text, lines = reader.next_block()
            if one_per_line and len({before, *lines}) <= len(lines):
                raise InputError("two operations on a line", where=f"lines {lines[0]} to {lines[-1]}")
            before = lines[-1] if lines else before
            pairing.add_lines(text, lines)
        return pairing.columns(enclosed=reader.mode == kernels.CLOSED)


class BlockReader:
    """Hands out the top-level forms of ``content``, as lines of JSON, some megabytes at a time."""

    def __init__(self, content: Buffer, block: int = BLOCK) -> None:
        dispatch.prepare(edn_grammar.STEPS * len(content), kernels)
        self._content = content
        self._buffer = dispatch.byte_buffer(content or b" ", kernels)
        self._classes = dispatch.byte_buffer(CLASSES, kernels)
        self._at = 3 if content[:3] == b"\xef\xbb\xbf" else 0
        self._line = 1
        self.mode = kernels.NOTHING_YET
        self.finished = not len(content)
        self._resize(min(block, len(content)))

    def next_block(self) -> tuple[bytes, list[int]]:
        """Lines of JSON, and the source line of each; ``finished`` tells whether they were the last."""
        while True:
            start, stop = self._at, min(self._at + self._block, len(self._content))
            last = stop == len(self._content)
            problem, where, size, forms, self._at, self._line, self.mode = map(
                int,
                kernels.transduce(
                    self._buffer, start, stop, last, self._classes, self._out, self._lines, self._line, self.mode
                ),
            )
            if problem not in (kernels.FINE, kernels.CUT_OFF):
                raise self._error(problem, where)
            self.finished = problem == kernels.FINE
            if forms or self.finished:
                return bytes(memoryview(self._out)[:size]), self._lines[:forms].tolist()
            if self._at == start:  # one form is longer than a block
                self._resize(2 * self._block)

    def _resize(self, block: int) -> None:
        self._block = block
        size = kernels.GROWTH * block + kernels.MARGIN
        # Python is quicker to fill a bytearray, and compiled code knows only arrays.
        self._out: Any = bytearray(size) if isinstance(self._buffer, bytes) else np.empty(size, np.uint8)
        self._lines = np.empty(block + 1, np.int32)

    def _error(self, problem: int, where: int) -> InputError:
        line, newline, at = self._line, -1, self._at
        while (found := self._content.find(b"\n", at, where)) >= 0:
            line, newline, at = line + 1, found, found + 1
        if newline < 0:
            newline = self._content.rfind(b"\n", 0, where)
        column = len(self._content[newline + 1 : where].decode("utf-8", "replace")) + 1
        what, hint = PROBLEMS[problem]
        return InputError(what, where=f"line {line}, column {column}", hint=hint)


def _classify() -> bytes:
    """The class of each byte."""
    classes = bytearray([kernels.UNKNOWN] * 128 + [kernels.SYMBOL] * 128)
    for members, kind in (
        (b" \t\r\f\v,", kernels.SPACE),
        (b"\n", kernels.NEWLINE),
        (b";", kernels.COMMENT),
        (b"[({", kernels.OPEN),
        (b"])}", kernels.CLOSE),
        (b'"', kernels.QUOTE),
        (b"\\", kernels.BACKSLASH),
        (b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.*!_?$%&=<>/|", kernels.SYMBOL),
        (b"0123456789", kernels.DIGIT),
        (b"+-", kernels.SIGN),
        (b":", kernels.COLON),
        (b"#", kernels.HASH),
        (b"'", kernels.APOSTROPHE),
    ):
        for member in members:
            classes[member] = kind
    return bytes(classes)


CLASSES = _classify()
