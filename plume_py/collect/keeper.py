"""``python -m plume_py.collect.keeper FOLDER``: waits until its standard input ends; then no server may be left.

Standard input is a pipe from isocheck, which ends with it, however it ends. If isocheck could tidy up itself, there is
nothing left to do.
"""

import shutil
import sys
from contextlib import suppress
from pathlib import Path

from plume_py.collect.processes import kill_tree


def main() -> None:
    """Wait, then tidy up."""
    folder = Path(sys.argv[1])
    sys.stdin.buffer.read()
    with suppress(OSError, ValueError):
        pid = int((folder / "pid").read_text())
        # Meanwhile the number may belong to somebody else: ours names its folder.
        if str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            kill_tree(pid)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
