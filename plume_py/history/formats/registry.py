"""The history formats: name, title, reader, writer and file extensions of each.

Readers and writers are imported when needed, so that ``isocheck formats`` and ``--help`` start fast.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from plume_py.history.assemble import RawColumns
    from plume_py.history.formats.render import Rendered
    from plume_py.history.model import History
    from plume_py.history.source import Source

    Reader = Callable[[Source], RawColumns]
    Writer = Callable[[History], Rendered]


@dataclass(frozen=True)
class Format:
    """A format; reader and writer are ``module:function``, and ``writer`` is empty if isocheck only reads it."""

    name: str
    title: str
    reader: str
    writer: str = ""
    extensions: tuple[str, ...] = ()

    def load_reader(self) -> "Reader":
        """Return the function that reads a source into raw columns."""
        return cast("Reader", _function(self.reader))

    def load_writer(self) -> "Writer":
        """Return the function that writes a history."""
        return cast("Writer", _function(self.writer))


def _function(spec: str) -> object:
    """Return the function of this package that ``module:function`` names."""
    module, function = spec.split(":")
    return getattr(import_module(f"plume_py.history.formats.{module}"), function)


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("json", "native JSON", "json_native:read", "json_writer:write_json", (".json",)),
        Format(
            "jsonl",
            "native JSON Lines, one transaction per line",
            "jsonl_native:read",
            "json_writer:write_lines",
            (".jsonl",),
        ),
        Format("plume", "Plume, PolySI and IsoVista text", "plume_text:read", "plume_text:write", (".txt",)),
        Format("dbcop", "dbcop bincode (history.bincode)", "dbcop:read_bincode", "dbcop:write_bincode", (".bincode",)),
        Format("dbcop-json", "dbcop JSON", "dbcop:read_json", "dbcop:write_json"),
        Format("dbcop-hist", "dbcop text", "dbcop:read_text", "", (".hist",)),
        Format("dbcop-yaml", "dbcop YAML, as in PolySI's tests", "dbcop:read_yaml", "", (".yaml", ".yml")),
        Format(
            "edn",
            "Jepsen and Elle EDN: list-append, rw-register, registers",
            "edn:read",
            "edn_writer:write",
            (".edn",),
        ),
        Format("jepsen-txt", "Jepsen's history.txt", "jepsen_text:read"),
        Format("elle-json", "Elle JSON: list-append, rw-register, registers", "elle_json:read"),
        Format("cobra", "Cobra logs (a folder of *.log)", "cobra:read"),
        Format("viper", "Viper logs (a folder of J*.log)", "viper:read"),
        Format("awdit", "AWDIT test format", "awdit:read"),
        Format("isopredict", "IsoPredict trace", "isopredict:read"),
    )
}


def writable_format(path: str) -> str | None:
    """Return the format in which a file of this name is written, by its extension, or None."""
    extension = os.path.splitext(path.lower())[1]
    return next((name for name, fmt in FORMATS.items() if fmt.writer and extension in fmt.extensions), None)
