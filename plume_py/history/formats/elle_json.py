"""Read Elle JSON, the input of elle-cli: a Jepsen history's maps as one array, or one object per line."""

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import numpy as np

from plume_py.base.json_names import given, reject_same_names
from plume_py.base.kernels import dispatch
from plume_py.history.assemble import RawColumns
from plume_py.history.formats import elle_json_kernels as kernels
from plume_py.history.formats.jepsen import ABSENT, Dialect, Key, Pairing, Value
from plume_py.history.formats.reading import decode, no_collector
from plume_py.history.source import Buffer, Source


class ElleOperation(msgspec.Struct, gc=False):
    """An operation; its other fields are skipped."""

    type: str = ""
    process: Any = None
    f: Any = None
    value: msgspec.Raw = ABSENT
    index: Any = None
    time: Any = None
    error: msgspec.Raw = ABSENT


# Defaults of optional fields.
OPTIONAL: dict[str, object] = {
    **dict.fromkeys(("process", "f", "index", "time")),
    **dict.fromkeys(("value", "error"), ABSENT),
    "type": "",
}

DIALECT = Dialect(
    msgspec.json.Decoder(ElleOperation),
    msgspec.json.Decoder(list[tuple[Literal["r", "w", "append"], Key, Value]] | None),
    "",
    '{"type": "ok", "process": 0, "f": "txn", "value": [["w", "x", 1], ["r", "y", null]]}',
    re.compile(rb'"(?:[0-9#:\x27\[\\-]|true"|false")').search,
)

_array = msgspec.json.Decoder(list[ElleOperation])


def read(source: Source) -> RawColumns:
    """Return the raw columns of an Elle JSON history."""
    pairing = Pairing(DIALECT)
    with no_collector():
        enclosed = source.head().lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        if enclosed:
            _read_array(source.content(), pairing)
        else:
            for text, lines in _blocks(source):
                names = pairing.add_lines(text, lines, OPTIONAL)
                reject_same_names(text, names, line_numbers=lines, lines=True)
        return pairing.columns(enclosed=enclosed)


def _read_array(content: Buffer, pairing: Pairing) -> None:
    begin = 3 if content[:3] == b"\xef\xbb\xbf" else 0
    operations = decode(_array, memoryview(content)[begin:], hint=f"an operation looks like {DIALECT.example}")
    dispatch.prepare(2 * len(content), kernels)
    lines = np.empty(len(operations), np.int32)
    kernels.object_lines(dispatch.byte_buffer(content, kernels), lines)
    names = given(operations, OPTIONAL)
    pairing.add(operations, lines.tolist())
    reject_same_names(content, names)


def _blocks(source: Source) -> Iterator[tuple[bytes, list[int]]]:
    """Yield blocks of lines that are not blank, with their line numbers."""
    number = 1
    for chunk in source.lines():
        records, numbers = [], []
        for line, text in enumerate(chunk.split(b"\n"), number):
            record = text.strip(b"\xef\xbb\xbf \t\r")
            if record:
                records.append(record)
                numbers.append(line)
        number += chunk.count(b"\n")
        yield b"\n".join(records), numbers
