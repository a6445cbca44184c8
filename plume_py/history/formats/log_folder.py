"""Histories that are a folder with one log per session, as Cobra and Viper write them."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from plume_py.base.errors import InputError
from plume_py.history.source import Source

_DIGITS = re.compile(r"([0-9]+)")


def log_names(folder: str, pattern: str) -> list[str]:
    """The names in ``folder`` that match ``pattern``, numbers in them ordered as numbers: T2 before T10."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise InputError(error.strerror or str(error), hint="give the folder that holds the logs") from None
    return sorted(filter(re.compile(pattern).fullmatch, names), key=_natural_order)


@contextmanager
def open_log(folder: str, name: str) -> Iterator[Source]:
    """One log of the folder; whatever is wrong with it is told with its name."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):  # a pipe, say, would block for ever
        raise InputError("not a regular file", where=display(name), hint="a folder of logs holds one file per session")
    source = Source(path)
    try:
        yield source
    except InputError as error:
        error.where = ", ".join(part for part in (display(name), error.where) if part)
        raise
    finally:
        source.close()


def display(name: str) -> str:
    """A file name that can always be printed."""
    return os.fsencode(name).decode("utf-8", "replace")


def _natural_order(name: str) -> tuple[list[str | int], str]:
    # splitting on digits puts text at even and numbers at odd places, so that like is compared with like
    pieces = _DIGITS.split(name)
    return [int(piece) if i % 2 else piece for i, piece in enumerate(pieces)], name
