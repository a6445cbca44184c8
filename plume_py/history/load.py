"""Load a history of any format from a path."""

import os

from plume_py.base.errors import InputError, TooLargeError
from plume_py.history.assemble import assemble
from plume_py.history.detect import detect
from plume_py.history.formats.registry import FORMATS
from plume_py.history.init_txn import InitTxn
from plume_py.history.model import History
from plume_py.history.source import Source


def load(path: str | os.PathLike[str], *, format: str | None = None, init_txn: InitTxn = "auto") -> History:
    """Return the history at ``path`` ("-" is standard input). Raise ``InputError`` if it cannot be read.

    The format is detected by content unless ``format`` names it; ``.gz``, ``.xz`` and ``.zst`` are unpacked.
    """
    return load_source(Source(path), format=format, init_txn=init_txn)


def load_source(source: Source, *, format: str | None = None, init_txn: InitTxn = "auto") -> History:
    """Return the history of a source, whose first bytes may have been read before; close the source in any case."""
    name = source.name
    if format is not None and format not in FORMATS:
        raise InputError(f"unknown format {format!r:.40}", hint=f"use one of {' '.join(FORMATS)}")
    try:
        chosen = FORMATS[format] if format else FORMATS[detect(source)]
        return assemble(chosen.load_reader()(source), chosen.name, init_txn)
    except InputError as error:
        raise error.in_source(name) from None
    except RecursionError:
        raise InputError("nested too deeply", hint="a history is at most seven levels deep").in_source(name) from None
    except MemoryError:
        raise TooLargeError("the history does not fit in memory").in_source(name) from None
    finally:
        source.close()
