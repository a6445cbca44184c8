"""Access to histories on this machine and on remote file systems that fsspec opens (s3://, gs://, file://…)."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import translate
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, NamedTuple, Protocol

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.passwords import without_credentials, without_password, without_those_of

GLOB = re.compile(r"[*?[]")

# The names of folders with local copies begin so; the number is the process.
_COPIES = "isocheck-worker-{}-"


class StorageEntry(NamedTuple):
    """A file or folder inside a folder."""

    name: str
    path: str
    size: int
    is_folder: bool
    is_missing: bool = False  # there is nothing at this path

    @property
    def alias(self) -> str:
        """The path without its password, if it is a URL with one; else ""."""
        if not is_remote(self.path):
            return ""
        # A missing path may be a malformed URL, in which it is unclear where the password ends.
        alias = without_password(self.path) if self.is_missing else without_credentials(self.path)
        return alias if alias != self.path else ""


class FileSystem(Protocol):
    """The operations on a file system that finding histories needs."""

    def entries(self, folder: str) -> list[StorageEntry]:
        """Return the regular files and folders in a folder, sorted by name; raise OSError if it cannot be listed."""

    def entry_at(self, path: str) -> StorageEntry | None:
        """Return the file or folder at ``path``, or None."""

    def matches(self, pattern: str) -> list[str]:
        """Return the paths that match a glob."""

    def head(self, path: str, size: int) -> bytes:
        """Return the first bytes of a file."""


class LocalFiles:
    """The files of this machine. Links to folders are not followed: Jepsen's "latest" would count a run twice."""

    def entries(self, folder: str) -> list[StorageEntry]:
        with os.scandir(folder) as inside:
            return sorted(entry for one in inside if (entry := self._entry(one)) is not None)

    def _entry(self, one: "os.DirEntry[str]") -> StorageEntry | None:
        try:
            if one.is_dir(follow_symlinks=False):
                return StorageEntry(one.name, one.path, 0, True)
            info = one.stat()
        except OSError:  # a broken link, or a file that was just removed
            return None
        return StorageEntry(one.name, one.path, info.st_size, False) if stat.S_ISREG(info.st_mode) else None

    def entry_at(self, path: str) -> StorageEntry | None:
        """Return the file or folder at ``path``. Links are followed here, because the user named the path."""
        try:
            info = os.stat(path)
        except (OSError, ValueError):
            return None
        return StorageEntry(os.path.basename(path), path, info.st_size, stat.S_ISDIR(info.st_mode))

    def matches(self, pattern: str) -> list[str]:
        """Return the paths that match a glob; ``**`` follows no links, because two circular links would never end."""
        parts = tuple(part for part in pattern.split("/") if part)
        stack = [("/" if pattern.startswith("/") else "", parts)]
        seen, found = set(stack), set()
        while stack:
            path, parts = stack.pop()
            try:
                more = self._next(path, parts) if parts else None
            except NotADirectoryError:
                continue
            except OSError:  # the folder cannot be listed, which is reported when it is searched
                more = None
            if more is None:
                found.add(path)
            else:
                stack += [step for step in more if step not in seen]
                seen.update(more)
        return sorted(found)

    def _next(self, path: str, parts: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
        """Return the paths to which the first of ``parts`` leads from ``path``, each with the remaining parts."""
        first, remaining = parts[0], parts[1:]
        if first == "**":
            inside = [e.name for e in self.entries(path or ".") if e.is_folder and not e.name.startswith(".")]
            return [(path, remaining), *((os.path.join(path, name), parts) for name in inside)]
        if not GLOB.search(first):
            inner = os.path.join(path, first)
            return [(inner, remaining)] if os.path.lexists(inner) else []
        fits = re.compile(translate(first)).match
        names = [name for name in os.listdir(path or ".") if name.startswith(".") <= first.startswith(".")]
        return [(os.path.join(path, name), remaining) for name in names if fits(name)]

    def head(self, path: str, size: int) -> bytes:
        """Return the first bytes of a file; no bytes if it cannot be read."""
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                return file.read(size)
        except OSError:
            return b""


class RemoteFiles:
    """A file system of fsspec; all paths are URLs."""

    def __init__(self, url: str) -> None:
        self.fs, _ = _open_fs(url)

    def entries(self, folder: str) -> list[StorageEntry]:
        with _errors_in_one_line(folder):
            found = self.fs.ls(self.fs._strip_protocol(folder), detail=True)
        own = self.fs._strip_protocol(folder).rstrip("/")
        return sorted(self._entry(info) for info in found if info["name"].rstrip("/") != own)

    def _entry(self, info: dict[str, Any]) -> StorageEntry:
        name = info["name"].rstrip("/")
        is_folder = info["type"] == "directory"
        return StorageEntry(
            name.rsplit("/", 1)[-1], self.fs.unstrip_protocol(name), int(info.get("size") or 0), is_folder
        )

    def entry_at(self, path: str) -> StorageEntry | None:
        with _errors_in_one_line(path):
            try:
                return self._entry(self.fs.info(path))
            except FileNotFoundError:
                return None

    def matches(self, pattern: str) -> list[str]:
        with _errors_in_one_line(pattern):
            return sorted(self.fs.unstrip_protocol(path) for path in self.fs.glob(pattern))

    def head(self, path: str, size: int) -> bytes:
        with _errors_in_one_line(path):
            return bytes(self.fs.cat_file(path, start=0, end=size))


def is_remote(path: str) -> bool:
    return "://" in path


def identity(path: str) -> str:
    """Return one name for all spellings of a path: a URL as it is, any other path as an absolute path."""
    return path if is_remote(path) else os.path.abspath(path)


def file_system_of(path: str) -> FileSystem:
    return RemoteFiles(path) if is_remote(path) else LocalFiles()


@contextmanager
def local_copy(path: str) -> Iterator[str]:
    """Yield a path on this machine with the content of ``path``; a copy is removed afterwards."""
    if not is_remote(path):
        yield path
        return
    with TemporaryDirectory(prefix=_COPIES.format(os.getpid())) as folder:
        fs, inner = _open_fs(path)
        local = os.path.join(folder, os.path.basename(without_credentials(inner).rstrip("/")) or "history")
        try:
            fs.get(inner, local, recursive=fs.isdir(inner))
        except Exception as error:
            raise InputError(f"cannot be fetched: {_in_words(error, path)}") from None
        yield local


def remove_copies(pid: int) -> None:
    """Remove the local copies of a process that has ended or is about to end."""
    for path in Path(gettempdir()).glob(_COPIES.format(pid) + "*"):
        rmtree(path, ignore_errors=True)


def _open_fs(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        what = f"{url}: remote paths need fsspec: pip install fsspec"
        raise IsocheckError(without_those_of(url, what)) from None
    try:
        fs, inner = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise IsocheckError(without_those_of(url, f"{url}: {error}")) from None
    return fs, inner


@contextmanager
def _errors_in_one_line(url: str) -> Iterator[None]:
    """Turn any exception of a remote file system into an error of one line. Each file system has other exceptions."""
    try:
        yield
    except (IsocheckError, FileNotFoundError):
        raise
    except Exception as error:
        raise IsocheckError(f"{without_those_of(url, url)}: cannot be listed: {_in_words(error, url)}") from None


def _in_words(error: Exception, url: str) -> str:
    """Return the error as text. The password is removed before the text is cut, because half of it would stay."""
    return without_those_of(url, f"{type(error).__name__}: {error}")[:300]
