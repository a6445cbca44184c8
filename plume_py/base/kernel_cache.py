"""Compiled kernels on disk, each entry with a digest: what is damaged is noticed, said, and built anew.

numba takes what it finds for what it wrote: half a file ends the program, and a flipped bit may be part of the machine
code. The folder is ours alone, or what is unpickled could be anybody's. Imported only where numba is.
"""

import os
import pickle
import stat
import sys
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from plume_py.base.errors import IsocheckError
from plume_py.base.files import write_atomically
from plume_py.base.text import one_line

_DIGEST = 32


class CheckedCache(FunctionCache):
    """numba's cache of a function, in files that are checked when they are read."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        plain = self._cache_file
        self._cache_file = _CheckedFile(plain._cache_path, self._impl.filename_base, plain._source_stamp)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it if that can be done; on a full disk, say, it will have to be compiled again."""
        with suppress(OSError, IsocheckError):
            super().save_overload(sig, data)


class _CheckedFile(IndexDataCacheFile):
    """The index of a function and its entries, one file each: a digest, then what was pickled."""

    def _load_index(self) -> dict[Any, str]:
        found = self._load(self._index_path)
        if found is None:
            return {}
        version, stamp, overloads = found
        is_fresh = version == self._version and stamp == self._source_stamp
        return dict(overloads) if is_fresh else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._save(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._load(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._save(self._data_path(name), data)

    def _load(self, path: str) -> Any:
        """What is in a file; None if there is none, or none that can be believed."""
        try:
            content = _read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            return _note(path, error.strerror or str(error))
        if content[:_DIGEST] != _digest(content[_DIGEST:]):
            return _note(path, "it is damaged")
        return pickle.loads(memoryview(content)[_DIGEST:])

    def _save(self, path: str, value: Any) -> None:
        text = self._dump(value)
        _make_way(path)
        write_atomically(path, [_digest(text), text])


def _make_way(path: str) -> None:
    """What is no file has no business here; a folder goes if there is nothing in it."""
    with suppress(OSError):
        kind = os.lstat(path).st_mode
        if stat.S_ISDIR(kind):
            os.rmdir(path)
        elif not stat.S_ISREG(kind):
            os.unlink(path)


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is no file")
        return file.read()


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST).digest()


def _note(path: str, problem: str) -> None:
    sys.stderr.write(one_line(f"isocheck: compiled kernel {path}: {problem}; it is built anew") + "\n")
