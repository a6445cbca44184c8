r"""Read Jepsen's ``history.txt``: a line per operation, ``process \t :type \t :f \t value`` and maybe ``\t error``.

The columns are EDN, except the error, which may continue over several lines and is skipped. Each line becomes the map
that ``history.edn`` has for it, and ``edn`` reads the maps.
"""

import re

from plume_py.base.errors import InputError
from plume_py.history.assemble import RawColumns
from plume_py.history.formats.edn import BlockReader, read_blocks
from plume_py.history.source import Source

# The start of a line: process and type.
OPERATION = re.compile(rb"[ \t]*(?P<process>[^\s\t]+)[ ]*\t:(?P<type>invoke|ok|fail|info)[ ]*\t")
_EXAMPLE = "0, :ok, :txn and [[:w :x 1] [:r :y nil]], with tabs between"


def read(source: Source) -> RawColumns:
    """Return the raw columns of a history.txt."""
    maps = _Maps()
    text = b"".join(maps.add(chunk) for chunk in source.lines())
    try:
        return read_blocks(BlockReader(text), one_per_line=True)
    except InputError as error:
        error.where = error.where.split(", column")[0]  # the column would be one of the generated map
        raise


class _Maps:
    """Turns each line of the file into a map on its own line, and the further lines of an error into blank lines."""

    def __init__(self) -> None:
        self._line = 0
        self._in_error = False

    def add(self, chunk: bytes) -> bytes:
        lines = chunk.split(b"\n")
        last = lines.pop()
        maps = [self._map(line) + b"\n" for line in lines]
        return b"".join(maps) + (self._map(last) if last else b"")

    def _map(self, line: bytes) -> bytes:
        self._line += 1
        line = line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r")
        begin = OPERATION.match(line)
        if begin is None:
            if not line.strip() or self._in_error:
                return b""
            raise InputError("not an operation", where=f"line {self._line}", hint=f"a line has {_EXAMPLE}")
        columns = line[begin.end() :].split(b"\t", 2)
        self._in_error = len(columns) > 2
        if len(columns) < 2:
            raise InputError("an operation without a value", where=f"line {self._line}", hint=f"a line has {_EXAMPLE}")
        return b"{:process %b :type :%b :f %b :value %b}" % (begin["process"], begin["type"], *columns[:2])
