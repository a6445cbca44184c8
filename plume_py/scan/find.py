"""Finding what may be histories below the paths that the user gave: folders, files, globs and lists (``@files.txt``).

Content decides later, in the workers, whether a file is a history. Only folders are judged here, because a folder of
Cobra or Viper logs and a Jepsen run are one history each and must not be walked into.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from plume_py.base.errors import InputError, IsocheckError
from plume_py.history.detect import OF_A_JEPSEN_RUN
from plume_py.scan.settings import ScanTask
from plume_py.scan.storage import GLOB, Place, StorageEntry, identity, is_remote, place_of

_VIPER = re.compile(r"J[0-9]+\.log")

# Cobra's records: a mark, and what may follow the first one (S and a number of eight bytes).
_MARK = 9
_NEXT_MARKS = b"SWRCA"


def find(paths: Iterable[str], leave_out: Iterable[str] = ()) -> list[ScanTask]:
    """A task for everything that may be a history, the largest first; ``leave_out`` are files of our own."""
    own = {os.path.realpath(path) for path in leave_out}
    found: dict[str, ScanTask] = {}
    for path in _listed(paths):
        place = place_of(path)
        for entry, named in _expand(place, path):
            if is_remote(entry.path) or os.path.realpath(entry.path) not in own:
                found.setdefault(_identity(entry), ScanTask(0, entry.path, entry.size, named, alias=entry.alias))
    ordered = sorted(found.values(), key=lambda task: (-task.size, task.path))
    return [task._replace(number=i) for i, task in enumerate(ordered)]


def _identity(entry: StorageEntry) -> str:
    """The same for every way to a history; a run that is named through Jepsen's "latest" is still that run."""
    if entry.is_folder and not is_remote(entry.path):
        return identity(os.path.realpath(entry.path))
    return identity(entry.alias or entry.path)


def _listed(paths: Iterable[str]) -> Iterator[str]:
    """The paths, with lists replaced by their lines; a file that is named like a list is reached as ./@name."""
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
        # "-" would be standard input, and for a worker that is where its tasks come from.
        named = (line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
        yield from ("./-" if name == "-" else name for name in named)


def _expand(place: Place, path: str) -> Iterator[tuple[StorageEntry, bool]]:
    """What one path stands for; what is not there is kept, and told as unreadable when its turn comes."""
    entry = place.look(path)
    if entry is not None:
        yield from _below(place, entry, named=True)
        return
    matches = place.matches(path) if GLOB.search(path) else []
    for match in matches:
        inside = place.look(match)
        if inside is not None:
            yield from _below(place, inside, named=False)
    if not matches:
        yield StorageEntry(path, path, 0, False, is_missing=True), True


def _below(place: Place, entry: StorageEntry, named: bool) -> Iterator[tuple[StorageEntry, bool]]:
    """The file itself, or what is in the folder; a stack of our own, as folders may lie deep."""
    if not entry.is_folder:
        yield entry, named
        return
    stack = [entry]
    while stack:
        folder = stack.pop()
        try:
            inside = [e for e in place.entries(folder.path) if not e.name.startswith(".")]
        except OSError:  # kept, and told as unreadable when its turn comes
            yield folder, True
            continue
        size = _size_as_one(place, inside)
        if size is not None:
            yield folder._replace(size=size), named and folder is entry
            continue
        stack += [e for e in reversed(inside) if e.is_folder]
        yield from ((e, False) for e in inside if not e.is_folder)


def _size_as_one(place: Place, inside: list[StorageEntry]) -> int | None:
    """The size of a folder that is one history, else None."""
    sizes = {e.name: e.size for e in inside if not e.is_folder}
    size = _size_of_run(sizes)
    if size is not None:
        return size
    viper = [name for name in sizes if _VIPER.fullmatch(name)]
    if viper:
        return sum(sizes[name] for name in viper)
    for e in inside:
        if e.is_folder and e.name == "json":
            with suppress(OSError):  # it is walked, and then told
                logs = [log for log in place.entries(e.path) if _VIPER.fullmatch(log.name)]
                if logs:
                    return sum(log.size for log in logs)
    return _size_of_cobra(place, inside)


def _size_of_run(sizes: dict[str, int]) -> int | None:
    """The size of a Jepsen run, else None; if only the binary test.jepsen has its history, that will be told."""
    beside = "results.edn" in sizes or not OF_A_JEPSEN_RUN.isdisjoint(sizes)
    if "history.edn" in sizes and (beside or "history.txt" in sizes):
        return sizes["history.edn"]
    if "history.txt" in sizes and beside:
        return sizes["history.txt"]
    return sizes.get("test.jepsen")


def _size_of_cobra(place: Place, inside: list[StorageEntry]) -> int | None:
    """Any program may write *.log; Cobra's begin with its records. Most of them have to: one may be damaged."""
    logs = [e for e in inside if not e.is_folder and e.name.endswith(".log") and e.size]
    ours = sum(_is_cobra(place.head(log.path, _MARK + 1)) for log in logs)
    return sum(log.size for log in logs) if ours and 2 * ours >= len(logs) else None


def _is_cobra(head: bytes) -> bool:
    return len(head) >= _MARK and head[:1] == b"S" and (len(head) == _MARK or head[_MARK] in _NEXT_MARKS)
