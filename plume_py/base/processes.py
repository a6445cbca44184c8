"""Processes of our own, and of a server and how to end them."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

# Every process of a server has its folder in this variable: a number in a file would come too late, or may meanwhile
# belong to somebody else.
MARK = "ISOCHECK_SERVER"
GONE = 10.0  # seconds until a killed process has ended, at the most


def module_command(name: str, *arguments: str) -> list[str]:
    """How one of our modules is started as a process of its own.

    -P: what lies in the folder at hand must not be taken for a module, ours or of the standard library.
    """
    return [sys.executable, "-P", "-m", name, *arguments]


def marked(folder: str) -> list[int]:
    """The processes that were started for the server in ``folder`` (Linux; elsewhere none)."""
    mark, found = f"{MARK}={folder}".encode(), []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # of somebody else, or gone
            if mark in environment.read_bytes().split(b"\0") or _works_in(environment.parent, folder):
                found.append(int(environment.parent.name))
    return found


def _works_in(process: Path, folder: str) -> bool:
    """Some programs, as Redis, write what they are doing over their environment; but they stay in their folder."""
    return f"{os.readlink(process / 'cwd')}/".startswith(f"{folder}/")


def tree(pid: int) -> list[int]:
    """A process and all below it (Linux; elsewhere only itself)."""
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
    """Is a connection from this port of the loopback held by the process or one below it (Linux; elsewhere never)?"""
    with suppress(OSError):
        rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        sockets = {f"socket:[{row[9]}]" for row in rows if int(row[1].rpartition(":")[2], 16) == port}
        for each in tree(pid):
            with suppress(OSError):
                for handle in Path(f"/proc/{each}/fd").iterdir():
                    with suppress(OSError):  # closed meanwhile
                        if os.readlink(handle) in sockets:
                            return True
    return False


def is_running(process: "subprocess.Popen[bytes]") -> bool:
    """Has it not ended yet?"""
    return process.poll() is None


def end(process: "subprocess.Popen[bytes]", patience: float) -> None:
    """End a server: by request if there is ``patience`` for it (seconds), in any case at last by force."""
    if is_running(process) and patience:
        process.send_signal(signal.SIGINT if _is_postgres(process) else signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    killed = kill_tree(process.pid) if is_running(process) else []
    with suppress(subprocess.TimeoutExpired):
        process.wait(GONE)
    # Those below it may hold on for an instant to what a server that is started next insists on having alone.
    deadline = time.monotonic() + GONE
    while any(map(_is_alive, killed)) and time.monotonic() < deadline:
        time.sleep(0.005)


def kill_tree(pid: int) -> list[int]:
    """Kill a process and all below it; returns who that was. They may still be ending then."""
    pids = tree(pid)
    for each in pids:  # first of all, nobody may start anything new
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGSTOP)
    pids = [*{*pids, *tree(pid)}]
    for each in pids:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    return pids


def _is_alive(pid: int) -> bool:
    """Does it still have memory and files? Who only waits to be noticed by its parent has none (Linux)."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def _is_postgres(process: "subprocess.Popen[bytes]") -> bool:
    """To PostgreSQL, SIGTERM means to wait until all clients have left, SIGINT to end now."""
    arguments = process.args
    return isinstance(arguments, list) and str(arguments[0]).endswith("postgres")
