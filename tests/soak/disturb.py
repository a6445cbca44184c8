"""Ways to disturb a command: to kill it, to leave it no room, to take its streams away."""

import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path

from program import PATIENCE

from plume_py.base.errors import ExitCode
from plume_py.cli.main import READER_GONE
from soak.commands import Command, content
from soak.site import OLD, Site

FAILED = (ExitCode.USAGE, ExitCode.UNDECIDED, ExitCode.BAD_INPUT)  # it could not do what it was asked for
KILLS = ("kill", "kill all", "term", "stop and kill")
OTHERS = ("full", "read-only", "closed streams", "reader gone")

Disturb = Callable[[Site, Command, random.Random], list[str]]


def kill(kind: str, site: Site, command: Command, rng: random.Random) -> list[str]:
    """Start it, and end it at some moment."""
    before = content(site.out)
    process = site.start(command)
    _wait_for_a_moment(site, command, process, rng)
    with suppress(ProcessLookupError):
        if kind == "kill all":
            os.killpg(process.pid, signal.SIGKILL)
        elif kind == "stop and kill":
            os.killpg(process.pid, signal.SIGSTOP)
            time.sleep(rng.random() / 10)
            process.kill()
            os.killpg(process.pid, signal.SIGCONT)
        else:
            process.send_signal(signal.SIGTERM if kind == "term" else signal.SIGKILL)
    process.wait(PATIENCE)
    return [*site.left_running(), *_uncaught(site), *site.judge(command, before, ended=False)]


def _wait_for_a_moment(site: Site, command: Command, process: subprocess.Popen[bytes], rng: random.Random) -> None:
    """Any, or shortly after it has opened something to be written."""
    if rng.random() < 0.4:
        time.sleep(rng.random() * site.seconds[command.name] * 1.05)
        return
    while process.poll() is None and not _is_writing(process.pid, str(site.out)):
        time.sleep(0.0005)
    time.sleep(rng.choice((0.0, 0.002, 0.02, 0.2)) * rng.random())


def _is_writing(pid: int, folder: str) -> bool:
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{name}").startswith(folder):
                    return True
    return False


def _uncaught(site: Site) -> list[str]:
    text = site.errors.read_text(errors="replace")
    return [f"a traceback: {text.strip().splitlines()[-1]}"] if "Traceback" in text else []


def to_the_end(site: Site, command: Command, before: Callable[[], None] | None = None, **how: object) -> list[str]:
    """Run it; unless it says that it did not succeed, everything is complete. Only a violation may be told as one."""
    there = content(site.out)
    code = site.start(command, before, **how).wait(PATIENCE)
    site.remove_what_is_kept()
    usual = site.codes[command.name]
    wrong = [f"exit code {code}"] if code not in (usual, *FAILED, READER_GONE) else []
    # With a violation to tell, what cannot be written is said, and the exit code stays; so does that of bad input.
    return [*wrong, *_uncaught(site), *site.left_running(), *site.judge(command, there, ended=code == usual == 0)]


def full(site: Site, command: Command, rng: random.Random) -> list[str]:
    """A disk with too little room for it, or just enough."""
    size = sum(map(len, site.complete[command.name].values()))
    room = 4096 * rng.randrange(1, 3 + size // 4096)
    with mounted(site.out, room) as is_mounted:
        if is_mounted:
            return to_the_end(site, command)
    return to_the_end(site, command, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))


def read_only(site: Site, command: Command, rng: random.Random) -> list[str]:
    """A folder that nothing can be written to."""
    with mounted(site.out, 1 << 20) as is_mounted:
        for name in command.targets:
            if not command.record and rng.random() < 0.5:
                (site.out / name).write_bytes(OLD)
        if is_mounted:
            subprocess.run(["mount", "-o", "remount,ro", site.out], check=True)
        else:
            site.out.chmod(0o555)
        try:
            before = content(site.out)
            code = site.start(command).wait(PATIENCE)
        finally:
            if not is_mounted:
                site.out.chmod(0o755)
        wrong = [] if content(site.out) == before else ["something was written to it"]
        wrong += [f"exit code {code}"] if code not in FAILED and (code != site.codes[command.name] or code == 0) else []
        return [*wrong, *_uncaught(site), *site.left_running()]


def closed_streams(site: Site, command: Command, rng: random.Random) -> list[str]:
    """Without standard input, output or error, or any of them."""
    closed = rng.sample((0, 1, 2), rng.randrange(1, 4))
    return to_the_end(site, command, lambda: [os.close(each) for each in closed] and None)


def reader_gone(site: Site, command: Command, rng: random.Random) -> list[str]:
    """Nobody reads what it prints."""
    end, other = os.pipe()
    os.close(end)
    try:
        return to_the_end(site, command, **{rng.choice(("stdout", "stderr")): other})
    finally:
        os.close(other)


@contextmanager
def mounted(folder: Path, size: int):
    """A file system of so many bytes in place of ``folder``; False where that is not allowed."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], capture_output=True)
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", folder], check=True)


def can_mount(site: Site) -> bool:
    """Are disks really full and folders really read-only here?"""
    with mounted(site.out, 4096) as is_mounted:
        return is_mounted


WAYS: dict[str, Disturb] = {
    **{kind: lambda *given, kind=kind: kill(kind, *given) for kind in KILLS},
    **dict(zip(OTHERS, (full, read_only, closed_streams, reader_gone), strict=True)),
}


def round_of(site: Site, command: Command, kinds: list[str], rng: random.Random) -> list[str]:
    """Disturb it several times in one place; then, undisturbed, it must leave what it always leaves, nothing else."""
    site.learn(command)
    site.clear()
    for name in command.targets:
        if not command.record and rng.random() < 0.5:
            (site.out / name).write_bytes(OLD)
    found = [f"{command.name}, {kind}: {wrong}" for kind in kinds for wrong in WAYS[kind](site, command, rng)]
    code = site.start(command).wait(PATIENCE)
    wrong = [f"exit code {code}"] if code != site.codes[command.name] else []
    wrong += [*site.left_running(), *site.judge(command, content(site.out), ended=True)]
    return found + [f"{command.name}, afterwards: {each}" for each in wrong]
