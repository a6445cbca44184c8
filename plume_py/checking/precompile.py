"""Compile the kernels of a check in a second process while the first one loads the history.

The first check of a large history compiles its kernels: about half of them to load the history, half to decide. The
second process (``python -m plume_py.checking.precompile LEVEL...``) checks a few transactions. The first process finds
the kernels that it has compiled in the cache. ``isocheck check`` calls ``compiled_ahead``.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from plume_py.base.processes import module_command

# The smallest file for a second process. Plain Python checks much of a smaller file while that process starts.
MIN_BYTES = 8_000_000

# More than 255 transactions in a session need clocks of more than one byte, for which other kernels are compiled.
TRANSACTIONS = 300


@contextmanager
def compiled_ahead(path: str, levels: Sequence[str]) -> Iterator[None]:
    """Inside, a second process compiles the kernels for the check of a large file, unless the cache has them."""
    if not _needed(path):
        yield
        return
    environment = {**os.environ, "ISOCHECK_COMPILE": "always"}
    quiet = subprocess.DEVNULL
    other = subprocess.Popen(
        module_command(__name__, *levels), stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, env=environment
    )
    try:
        yield
    finally:
        other.kill()
        other.communicate()


def _needed(path: str) -> bool:
    if not os.path.isfile(path) or os.path.getsize(path) < MIN_BYTES or (os.cpu_count() or 1) < 2:
        return False
    from plume_py.base.kernels.dispatch import how_to_compile, is_warm

    if how_to_compile() == "never":
        return False
    from plume_py.checking.graph import reads_kernels

    return not is_warm(reads_kernels)  # which every check needs


def main() -> None:
    """Check a few transactions. The parent keeps standard input open for as long as it needs the kernels."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from plume_py.checking.check import check
    from plume_py.history.builder import HistoryBuilder

    builder = HistoryBuilder(None)
    for n in range(1, TRANSACTIONS):
        builder.add(min(n, 3), [("r", n % 2, n - 2 if n > 2 else None), ("w", n % 2, n)], id=n)
    check(builder.build(), sys.argv[1:], max_examples=0)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
