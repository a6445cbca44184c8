"""Start private servers for a run: in a temporary folder, on the loopback interface, on a free port.

A server runs programs that are installed. If isocheck runs as root, the server runs as an unprivileged user, because
PostgreSQL and MariaDB reject root. A second process (``orphan_watchdog``) stops the server and removes the folder if
isocheck is killed.
"""

import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from plume_py.base.errors import IsocheckError
from plume_py.base.processes import MARK, calls_from, end, is_running, module_command, tree
from plume_py.base.temp_folder import TempFolder
from plume_py.collect.nodes import Node
from plume_py.collect.registry import adapter_class

# Seconds for a server to answer after its start, to stop on request, and to create its files.
START, STOP, PREPARE = 60.0, 15.0, 120.0
ATTEMPTS = 3

# How PostgreSQL, MariaDB, Redis and etcd mark an error in their output.
_ERROR = re.compile(r'\b(fatal|panic)\b|\berror: |\[error\]|"level":"error"', re.I)


class ManagedServer(ABC):
    """A private server and the folder with all its files. Use it as a context manager."""

    title = ""
    scheme = ""
    package = ""  # Debian package with its programs
    programs: tuple[str, ...] = ()
    port = 0  # 0: choose a free one
    users: tuple[str, ...] = ("nobody",)  # the first that exists runs the server if isocheck is root

    def __init__(self) -> None:
        self.folder = ""
        self._temp_folder: TempFolder | None = None
        self.password = secrets.token_hex(16)
        self._server: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._paused: list[int] = []
        self.kill_at_stop = False  # set after Ctrl-C: do not wait for the server to stop in order

    @property
    @abstractmethod
    def url(self) -> str:
        """Address for clients."""

    @property
    def nodes(self) -> list[Node]:
        """The server as the only node."""
        return [Node(self.title, self.url)]

    @classmethod
    def find(cls) -> dict[str, str]:
        """Return the paths of its programs. Raise an error that names the package to install if one is missing."""
        places = os.pathsep.join(
            [os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin", *cls.program_folders()]
        )
        found = {name: shutil.which(name, path=places) for name in cls.programs}
        missing = [name for name, path in found.items() if path is None]
        if missing:
            raise IsocheckError(
                f"{cls.title} is not installed ({missing[0]} was not found); on Debian: apt-get install {cls.package}"
            )
        return {name: path for name, path in found.items() if path is not None}

    @classmethod
    def program_folders(cls) -> Sequence[str]:
        """Return further folders to search for programs, after PATH."""
        return ()

    @abstractmethod
    def prepare(self, programs: dict[str, str]) -> None:
        """Create the files of a new, empty server."""

    @abstractmethod
    def command(self, programs: dict[str, str]) -> list[str]:
        """Return the command that starts the server."""

    @abstractmethod
    def answers(self) -> None:
        """Raise an exception unless a client can connect."""

    def __enter__(self) -> "ManagedServer":
        adapter_class(f"{self.scheme}:")  # fails early if the driver is missing
        programs = self.find()
        self._temp_folder = TempFolder()
        try:
            self.folder = self._make_folder(self._temp_folder.path)
            self._start_watchdog()
            self.prepare(programs)
            self._start_somewhere()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill_at_stop |= isinstance(error, KeyboardInterrupt)
        self.stop()

    def stop(self) -> None:
        """Stop the server, then the watchdog, and remove the folder."""
        self.resume()
        if self._server is not None:
            if self.kill_at_stop:
                self.quit(self._server)
            end(self._server, 0.0 if self.kill_at_stop else STOP)
        if self._watchdog is not None and self._watchdog.stdin is not None:
            with suppress(OSError):
                self._watchdog.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._watchdog.wait(STOP)
        if self._temp_folder is not None:
            self._temp_folder.remove()

    def quit(self, server: "subprocess.Popen[bytes]") -> None:
        """Release what the system would keep of a killed server; called just before it is killed."""
        return

    def kill(self) -> None:
        """Kill the server without time to finish anything."""
        assert self._server is not None
        end(self._server, 0.0)

    def revive(self) -> None:
        """Start the server again, with the files that it left."""
        self._start()

    @property
    def members(self) -> Mapping[str, "ManagedServer"]:
        """The server as the only member of a cluster."""
        return {"": self}

    @property
    def faulty_network(self) -> Sequence[str]:
        """Possible network faults: none."""
        return ()

    def isolated(self, node: str) -> AbstractContextManager[None]:
        """Do nothing: a single server has no links to other nodes."""
        return nullcontext()

    def delayed(self, seconds: float) -> AbstractContextManager[None]:
        """Do nothing: a single server has no links to other nodes."""
        return nullcontext()

    def pause(self) -> None:
        """Stop all processes of the server with SIGSTOP."""
        assert self._server is not None
        self._paused = tree(self._server.pid)
        for pid in self._paused:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def calls_from(self, port: int) -> bool:
        """Return whether the server holds a connection from this local port."""
        return self._server is not None and calls_from(port, self._server.pid)

    def resume(self) -> None:
        """Continue the processes that ``pause`` stopped."""
        for pid in self._paused:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._paused = []

    def run(self, command: list[str]) -> None:
        """Run a program that prepares the server, as the server's user."""
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PREPARE,
                check=False,
                cwd=self.folder,
                env=self._environment(),
                **self._as_user(),
            )
        except subprocess.TimeoutExpired:
            raise IsocheckError(f"{command[0]} did not end within {PREPARE:.0f} s") from None
        if done.returncode:
            said = cause((done.stdout + b"\n" + done.stderr).decode("utf-8", "replace"))
            raise IsocheckError(f"{command[0]} failed: {said or f'exit code {done.returncode}'}")

    def write(self, name: str, text: str) -> str:
        """Create a file in the folder that only the server's user can read. Return its path."""
        path = str(Path(self.folder, name))
        # The folder belongs to that user: an existing file or link there may be a trap for root.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(text)
            self._give_to_user(file.fileno())
        return path

    def _start_somewhere(self) -> None:
        """Start on a free port. Retry a few times, because another process may take the port first."""
        if self.port:
            return self._start()
        for attempt in range(ATTEMPTS):
            self.port = free_port()
            try:
                return self._start()
            except IsocheckError:
                if attempt == ATTEMPTS - 1 or (self._server is not None and is_running(self._server)):
                    raise
        return None

    def _start(self) -> None:
        log = Path(self.folder, "server.log")
        appending = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC  # see ``write``
        with os.fdopen(os.open(log, appending, 0o644), "ab") as output:
            begin = output.tell()
            self._server = subprocess.Popen(
                self.command(self.find()),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env=self._environment(),
                start_new_session=True,  # Ctrl-C goes to the collector only
                **self._as_user(),
            )
        self._wait_until_it_answers(log, begin)

    def _wait_until_it_answers(self, log: Path, begin: int) -> None:
        """Wait until the server answers. Its output since this start follows the first ``begin`` bytes of the log."""
        deadline, problem = time.monotonic() + START, ""
        assert self._server is not None
        while time.monotonic() < deadline:
            if not is_running(self._server):
                break
            try:
                self.answers()
                return
            except Exception as error:  # from the driver: probably not ready yet
                problem = str(error)
            time.sleep(0.05)
        said = cause(log.read_bytes()[begin:].decode("utf-8", "replace"))
        raise IsocheckError(f"{self.title} did not start: {said or problem}")

    def _make_folder(self, parent: str) -> str:
        """Create a folder of the server's user inside ours, and let that user pass through ours."""
        folder = os.path.join(parent, "server")
        os.mkdir(folder, 0o700)
        if self._user() is not None:
            os.chmod(parent, 0o711)  # noqa: S103 - may pass, but not list
        self._give_to_user(folder)
        return folder

    def _start_watchdog(self) -> None:
        self._watchdog = subprocess.Popen(
            module_command("plume_py.collect.orphan_watchdog", os.path.dirname(self.folder)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _environment(self) -> dict[str, str]:
        """Return only the variables that programs need: settings for other servers must not reach ours."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
        return {**kept, MARK: os.path.dirname(self.folder)}

    def _user(self) -> pwd.struct_passwd | None:
        if os.geteuid() != 0:
            return None
        for name in (*self.users, "nobody"):
            with suppress(KeyError):
                return pwd.getpwnam(name)
        raise IsocheckError(f"{self.title} refuses to be run by root, and there is no other user to run it as")

    def _as_user(self) -> dict[str, Any]:
        user = self._user()
        return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def _give_to_user(self, path: str | int) -> None:
        user = self._user()
        if user is not None:
            os.chown(path, user.pw_uid, user.pw_gid)


def cause(output: str) -> str:
    """Return why a server's program failed: the first error line of its output, otherwise the last line.

    The last line alone would mislead, because programs clean up after an error and report that last.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next((line for line in lines if _ERROR.search(line)), lines[-1] if lines else "")


def free_port() -> int:
    """Return a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
