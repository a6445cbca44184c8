"""The program in processes of its own, none of which outlives its test; and waiting, for events and not for times."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

PROGRAM = [sys.executable, "-c", "from plume_py.cli.main import main; main()"]

# Seconds after which something that happens at once will never happen: as long as the slowest machine may take.
PATIENCE = float(os.environ.get("ISOCHECK_PATIENCE", "300"))

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG, on Linux


def wait_until(condition, alive=None, note=lambda: ""):
    """Wait for something to be so; ``alive`` is the process that is to bring it about."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert alive is None or alive.poll() is None, f"the process has ended; {note()}"
        assert time.monotonic() < deadline, note()
        time.sleep(0.01)


def lines_in(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def isocheck(*args, **how):
    """Run the program to its end."""
    command = [*PROGRAM, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, **how)
    assert "Traceback" not in done.stderr
    return done


class Children:
    """Processes that end with the test, however it ends: each leads a group of its own, which is killed as a whole."""

    def __init__(self):
        self.running = []

    def __call__(self, command, **how):
        process = subprocess.Popen([*map(str, command)], start_new_session=True, preexec_fn=die_with_the_tests, **how)
        self.running.append(process)
        return process

    def kill(self):
        for process in self.running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


def die_with_the_tests():
    """So that not even killing the tests leaves a process behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
