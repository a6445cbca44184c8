"""Find candidate histories below the paths given to ``isocheck scan``: files, folders, globs, URLs and ``@list`` files.

Workers decide later, by content, whether a file is a history. A folder that is one history (a Jepsen run, Cobra logs,
Viper logs) becomes one task and is not searched further. Hidden files are skipped.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from plume_py.base.errors import InputError, IsocheckError
from plume_py.history.detect import OF_A_JEPSEN_RUN
from plume_py.scan.settings import ScanTask
from plume_py.scan.storage import GLOB, FileSystem, StorageEntry, file_system_of, identity, is_remote

_VIPER = re.compile(r"J[0-9]+\.log")

# A log of Cobra begins with the letter S and a number of eight bytes. The next record begins with one of these letters.
_FIRST_RECORD = 9
_NEXT_RECORD = b"SWRCA"


def find(paths: Iterable[str], leave_out: Iterable[str] = ()) -> list[ScanTask]:
    """Return one task per candidate, the largest first; ``leave_out`` lists files that isocheck writes."""
    written = {os.path.realpath(path) for path in leave_out}
    found: dict[str, ScanTask] = {}
    for path in _listed(paths):
        files = file_system_of(path)
        for entry, named in _expand(files, path):
            if is_remote(entry.path) or os.path.realpath(entry.path) not in written:
                found.setdefault(_identity(entry), ScanTask(0, entry.path, entry.size, named, alias=entry.alias))
    ordered = sorted(found.values(), key=lambda task: (-task.size, task.path))
    return [task._replace(number=i) for i, task in enumerate(ordered)]


def _identity(entry: StorageEntry) -> str:
    """Return one name for all paths to a history, for example through Jepsen's ``latest`` link."""
    if entry.is_folder and not is_remote(entry.path):
        return identity(os.path.realpath(entry.path))
    return identity(entry.alias or entry.path)


def _listed(paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths; replace each ``@list`` by its lines. Write ``./@name`` for a file with the name ``@name``."""
    for path in paths:
        if path == "-":
            raise IsocheckError("scan cannot read a history from standard input; use `isocheck check -`")
        if not path.startswith("@"):
            yield path
            continue
        try:
            lines = os.fsdecode(Path(path[1:]).read_bytes()).split("\n")
        except OSError as error:
            raise InputError(f"cannot read the list: {error.strerror}").in_source(path[1:]) from None
        if any("\0" in line for line in lines):
            raise InputError("not a list of paths", hint="give a text file, one path per line").in_source(path[1:])
        # "-" would mean standard input, from which a worker reads its tasks.
        named = (line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
        yield from ("./-" if name == "-" else name for name in named)


def _expand(files: FileSystem, path: str) -> Iterator[tuple[StorageEntry, bool]]:
    """Yield the candidates for one path, and whether the user named them.

    A missing path is a candidate as well, so that it is reported as unreadable.
    """
    entry = files.entry_at(path)
    if entry is not None:
        yield from _below(files, entry, named=True)
        return
    matches = files.matches(path) if GLOB.search(path) else []
    for match in matches:
        inside = files.entry_at(match)
        if inside is not None:
            yield from _below(files, inside, named=False)
    if not matches:
        yield StorageEntry(path, path, 0, False, is_missing=True), True


def _below(files: FileSystem, entry: StorageEntry, named: bool) -> Iterator[tuple[StorageEntry, bool]]:
    """Yield a file, or the candidates in a folder. Iterative, because folders may be deeply nested."""
    if not entry.is_folder:
        yield entry, named
        return
    stack = [entry]
    while stack:
        folder = stack.pop()
        try:
            inside = [e for e in files.entries(folder.path) if not e.name.startswith(".")]
        except OSError:  # reported as unreadable later
            yield folder, True
            continue
        size = _size_as_one(files, inside)
        if size is not None:
            yield folder._replace(size=size), named and folder is entry
            continue
        stack += [e for e in reversed(inside) if e.is_folder]
        yield from ((e, False) for e in inside if not e.is_folder)


def _size_as_one(files: FileSystem, inside: list[StorageEntry]) -> int | None:
    """Return the size in bytes of a folder that is one history, or None."""
    sizes = {e.name: e.size for e in inside if not e.is_folder}
    size = _size_of_run(sizes)
    if size is not None:
        return size
    viper = [name for name in sizes if _VIPER.fullmatch(name)]
    if viper:
        return sum(sizes[name] for name in viper)
    for e in inside:
        if e.is_folder and e.name == "json":
            with suppress(OSError):  # reported when the folder is searched
                logs = [log for log in files.entries(e.path) if _VIPER.fullmatch(log.name)]
                if logs:
                    return sum(log.size for log in logs)
    return _size_of_cobra(files, inside)


def _size_of_run(sizes: dict[str, int]) -> int | None:
    """Return the size of a Jepsen run, or None. A run with only the binary ``test.jepsen`` is unreadable later."""
    is_run = "results.edn" in sizes or not OF_A_JEPSEN_RUN.isdisjoint(sizes)
    if "history.edn" in sizes and (is_run or "history.txt" in sizes):
        return sizes["history.edn"]
    if "history.txt" in sizes and is_run:
        return sizes["history.txt"]
    return sizes.get("test.jepsen")


def _size_of_cobra(files: FileSystem, inside: list[StorageEntry]) -> int | None:
    """Return the size of a folder of Cobra logs, or None. At least half of the logs must begin with a Cobra record."""
    logs = [e for e in inside if not e.is_folder and e.name.endswith(".log") and e.size]
    cobra = sum(_is_cobra(files.head(log.path, _FIRST_RECORD + 1)) for log in logs)
    return sum(log.size for log in logs) if cobra and 2 * cobra >= len(logs) else None


def _is_cobra(head: bytes) -> bool:
    if len(head) < _FIRST_RECORD or head[:1] != b"S":
        return False
    return len(head) == _FIRST_RECORD or head[_FIRST_RECORD] in _NEXT_RECORD
