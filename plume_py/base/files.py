"""Writing files so that nobody ever sees half of one."""

import os
import sys
import tempfile
from collections.abc import Iterable

from plume_py.base.errors import IsocheckError


def write_atomically(path: str, chunks: Iterable[bytes], *, sync: bool = False) -> None:
    """Write ``chunks`` to a temporary file beside ``path``, then rename; "-" is standard output.

    ``sync``: bring it to the disk before, so that not even a power failure can leave less than there was.
    """
    if path == "-":
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        return
    folder = os.path.dirname(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    except OSError as error:
        raise IsocheckError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        os.unlink(temporary)
        raise IsocheckError(f"cannot write {path}: {error.strerror}") from None
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
