"""The history formats: what they are called, who writes them, and which module reads or writes each.

Nothing here imports a reader: ``isocheck formats`` and ``--help`` must start at once.
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
    """One format; ``writer`` is empty where isocheck only reads it."""

    name: str
    title: str
    reader: str
    writer: str = ""
    extensions: tuple[str, ...] = ()

    def load_reader(self) -> "Reader":
        """The function that turns a source into raw columns."""
        return cast("Reader", import_module(f"plume_py.history.formats.{self.reader}").read)

    def load_writer(self) -> "Writer":
        """The function that writes a history."""
        module, function = self.writer.split(":")
        return cast("Writer", getattr(import_module(f"plume_py.history.formats.{module}"), function))


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("json", "native JSON", "json_native", "json_writer:write_json", (".json",)),
        Format(
            "jsonl",
            "native JSON Lines, one transaction per line",
            "jsonl_native",
            "json_writer:write_lines",
            (".jsonl",),
        ),
        Format("plume", "Plume, PolySI and IsoVista text", "plume_text", "text_writer:write", (".txt",)),
        Format(
            "dbcop", "dbcop bincode (history.bincode)", "dbcop_bincode", "dbcop_writer:write_bincode", (".bincode",)
        ),
        Format("dbcop-json", "dbcop JSON", "dbcop_json", "dbcop_writer:write_json"),
        Format("dbcop-hist", "dbcop text", "dbcop_hist", "", (".hist",)),
        Format("dbcop-yaml", "dbcop YAML, as in PolySI's tests", "dbcop_yaml", "", (".yaml", ".yml")),
        Format("edn", "Jepsen and Elle EDN: list-append, rw-register, registers", "edn", "edn_writer:write", (".edn",)),
        Format("jepsen-txt", "Jepsen's history.txt", "jepsen_text"),
        Format("elle-json", "Elle JSON: list-append, rw-register, registers", "elle_json"),
        Format("cobra", "Cobra logs (a folder of *.log)", "cobra"),
        Format("viper", "Viper logs (a folder of J*.log)", "viper"),
        Format("awdit", "AWDIT test format", "awdit"),
        Format("isopredict", "IsoPredict trace", "isopredict"),
    )
}


def writable_format(path: str) -> str | None:
    """The format that is written to a file of this name, by its extension."""
    extension = os.path.splitext(path.lower())[1]
    return next((name for name, fmt in FORMATS.items() if fmt.writer and extension in fmt.extensions), None)
