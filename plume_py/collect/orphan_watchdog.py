"""Stop the servers of an isocheck process that has ended, and remove their folder.

Run as ``python -m plume_py.collect.orphan_watchdog FOLDER``. Standard input is a pipe from isocheck, which closes
however isocheck ends. If isocheck could clean up itself, nothing is left to do.
"""

import sys
import time
from pathlib import Path

from plume_py.base.processes import kill_tree, server_processes
from plume_py.base.temp_folder import remove_folder

# Attempts, and seconds between them: a process that is being killed may still create a file.
ATTEMPTS, WAIT = 100, 0.1


def main() -> None:
    """Wait for the end of isocheck, then clean up."""
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
