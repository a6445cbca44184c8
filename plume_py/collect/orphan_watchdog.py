"""Waits until its standard input ends, then ends the servers that the abandoned process started.

Run as ``python -m plume_py.collect.orphan_watchdog FOLDER``.

Standard input is a pipe from isocheck, which ends with it, however it ends. If isocheck could tidy up itself, there is
nothing left to do.
"""

import sys
import time
from pathlib import Path

from plume_py.base.processes import kill_tree, server_processes
from plume_py.base.temp_folder import remove_folder

# How often to try, and seconds between: what is being killed may still make a file.
ATTEMPTS, WAIT = 100, 0.1


def main() -> None:
    """Wait, then tidy up."""
    folder = sys.argv[1]
    sys.stdin.buffer.read()
    for _ in range(ATTEMPTS):
        for pid in server_processes(folder):
            kill_tree(pid)
        remove_folder(folder)
        if not Path(folder).exists():
            return
        time.sleep(WAIT)


if __name__ == "__main__":
    main()
