"""Start Python modules as processes, find the processes of a server, and stop them."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

# Environment variable with the folder of a server, in every process of that server. A file with process ids could be
# written too late, or its ids could belong to other processes by now.
MARK = "ISOCHECK_SERVER"
GONE = 10.0  # seconds to wait for the end of a killed process


def module_command(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of ours as a process.

    With -P, files in the current folder cannot replace modules of ours or of the standard library.
    """
    return [sys.executable, "-P", "-m", name, *arguments]


def server_processes(folder: str) -> list[int]:
    """Return the ids of the processes of the server in ``folder`` (Linux; elsewhere none)."""
    mark, found = f"{MARK}={folder}".encode(), []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # of another user, or ended
            if mark in environment.read_bytes().split(b"\0") or _works_in(environment.parent, folder):
                found.append(int(environment.parent.name))
    return found


def _works_in(process: Path, folder: str) -> bool:
    """Return whether a process works in ``folder``; Redis and others overwrite their environment, but stay there."""
    return f"{os.readlink(process / 'cwd')}/".startswith(f"{folder}/")


def tree(pid: int) -> list[int]:
    """Return the ids of a process and its descendants (Linux; elsewhere only its own)."""
    found, to_look_at = [pid], [pid]
    while to_look_at:
        parent = to_look_at.pop()
        with suppress(OSError):
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                below = [int(child) for child in children.read_text().split()]
                found += below
                to_look_at += below
    return found


def calls_from(port: int, pid: int) -> bool:
    """Return whether a process or its descendant holds a loopback connection from this port (Linux; else False)."""
    with suppress(OSError):
        rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        sockets = {f"socket:[{row[9]}]" for row in rows if int(row[1].rpartition(":")[2], 16) == port}
        for each in tree(pid):
            with suppress(OSError):
                for handle in Path(f"/proc/{each}/fd").iterdir():
                    with suppress(OSError):  # closed in the meantime
                        if os.readlink(handle) in sockets:
                            return True
    return False


def is_running(process: "subprocess.Popen[bytes]") -> bool:
    return process.poll() is None


def end(process: "subprocess.Popen[bytes]", patience: float) -> None:
    """Stop a server: by a signal, and after ``patience`` seconds, or at once if 0, by force."""
    if is_running(process) and patience:
        process.send_signal(signal.SIGINT if _is_postgres(process) else signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    killed = kill_tree(process.pid) if is_running(process) else []
    with suppress(subprocess.TimeoutExpired):
        process.wait(GONE)
    # For an instant, descendants may still hold files or ports that the next server needs.
    deadline = time.monotonic() + GONE
    while any(map(_is_alive, killed)) and time.monotonic() < deadline:
        time.sleep(0.005)


def kill_tree(pid: int) -> list[int]:
    """Kill a process and its descendants; return their ids. They may still be ending on return."""
    pids = tree(pid)
    for each in pids:  # stop them first, so that none starts another process
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGSTOP)
    pids = [*{*pids, *tree(pid)}]
    for each in pids:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    return pids


def _is_alive(pid: int) -> bool:
    """Return whether a process still has memory and files; a zombie has none (Linux)."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def _is_postgres(process: "subprocess.Popen[bytes]") -> bool:
    """Return whether it is PostgreSQL, which waits for its clients after SIGTERM and stops at once after SIGINT."""
    arguments = process.args
    return isinstance(arguments, list) and str(arguments[0]).endswith("postgres")
