"""Kernels compiled by a second process while the first one loads: ``python -m plume_py.checking.precompile LEVEL...``.

The first check of a large history ever has to compile its kernels, about half of them for loading it and half for
deciding. The second process checks a few transactions; what it compiles, the first finds when it gets there.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from plume_py.base.processes import module_command

# Files of this size are worth a second process, where kernels have to be compiled; its start is as long as plain Python
# takes for a good part of a smaller one.
WORTH_AHEAD = 8_000_000

# Clocks count in bytes in sessions of fewer than 256 transactions, and are compiled apart for more.
MANY = 300


@contextmanager
def compiled_ahead(path: str, levels: Sequence[str]) -> Iterator[None]:
    """Meanwhile a second process compiles what the check of a large file will need, unless it is compiled already."""
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
    if not os.path.isfile(path) or os.path.getsize(path) < WORTH_AHEAD or (os.cpu_count() or 1) < 2:
        return False
    from plume_py.base.kernels.dispatch import how_to_compile, is_warm

    if how_to_compile() == "never":
        return False
    from plume_py.checking.graph import reads_kernels

    return not is_warm(reads_kernels)  # which every check needs


def main() -> None:
    """Check a few transactions; whoever started this holds its standard input open as long as it is wanted."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from plume_py.checking.check import check
    from plume_py.history.builder import HistoryBuilder

    builder = HistoryBuilder(None)
    for n in range(1, MANY):
        builder.add(min(n, 3), [("r", n % 2, n - 2 if n > 2 else None), ("w", n % 2, n)], id=n)
    check(builder.build(), sys.argv[1:], max_examples=0)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
