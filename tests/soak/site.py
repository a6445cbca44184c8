"""A place to disturb commands in: its folders, its processes, and what must be so afterwards."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from program import PATIENCE, PROGRAM, die_with_the_tests

from soak.commands import Command, content, is_sound, make_inputs, results, same

OLD = b"old\n"


class Site:
    """``base`` has the inputs, the outputs and the temporary files of one command at a time."""

    def __init__(self, base: Path) -> None:
        self.base, self.inputs, self.out, self.temporary = base, base / "in", base / "out", base / "tmp"
        self.errors = base / "errors.txt"
        self.complete: dict[str, dict[str, bytes]] = {}  # what an undisturbed run writes
        self.codes: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        make_inputs(self.inputs)
        self.clear()

    def clear(self) -> None:
        """As if nothing had ever been run."""
        for folder in (self.out, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()

    def start(
        self, command: Command, before: Callable[[], None] | None = None, **how: object
    ) -> subprocess.Popen[bytes]:
        """Start a command; ``before`` is called in its process first. It goes on with a record that is there."""
        arguments = [argument.replace("OUT", str(self.out)) for argument in command.arguments]
        record = self.out / next(iter(command.targets), "none")
        if command.record and record.exists() and record.stat().st_size:
            arguments += command.again
        environment = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "ISOCHECK_COMPILE": "never",
            "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
        }

        def prepare() -> None:
            die_with_the_tests()
            if before is not None:
                before()

        with self.errors.open("wb") as errors:
            given: dict[str, object] = {"stdin": subprocess.DEVNULL, "stdout": errors, "stderr": errors, **how}
            return subprocess.Popen(
                [*PROGRAM, *arguments],
                cwd=self.inputs, env=environment, start_new_session=True, preexec_fn=prepare, **given,
            )  # type: ignore[call-overload]  # fmt: skip

    def learn(self, command: Command) -> None:
        """Run it undisturbed, to know what it writes."""
        if command.name in self.complete:
            return
        self.clear()
        begin = time.monotonic()
        self.codes[command.name] = self.start(command).wait(PATIENCE)
        self.seconds[command.name] = time.monotonic() - begin
        assert self.codes[command.name] in command.codes, self.errors.read_text()
        self.complete[command.name] = content(self.out)
        assert self.complete[command.name], "it writes nothing"

    def judge(self, command: Command, before: dict[str, bytes], *, ended: bool) -> list[str]:
        """What is wrong after it was disturbed; if it has ``ended`` well, everything must be complete."""
        complete, after = self.complete[command.name], content(self.out)
        wrong = [f"{name} is gone" for name in before.keys() - after.keys() if not _is_hidden(name)]
        record = next(iter(command.targets)) if command.record else ""
        for name, got in after.items():
            if _is_hidden(name) and not ended:
                continue  # goes with the next run
            if name not in complete:
                wrong.append(f"{name} is left")
            elif name == record:
                wrong += self._judge_record(command, before.get(name, b""), got, ended)
            elif (ended or got != before.get(name)) and not command.targets.get(name, same)(got, complete[name]):
                wrong.append(f"{name} is neither old nor complete ({len(got)} bytes)")
        if ended:
            wrong += [f"{name} is missing" for name in complete.keys() - after.keys()]
            wrong += [f"{name} is left in the folder for temporary files" for name in os.listdir(self.temporary)]
        return wrong

    def _judge_record(self, command: Command, before: bytes, got: bytes, ended: bool) -> list[str]:
        name = next(iter(command.targets))
        if command.targets[name] is not results:
            try:
                return [] if is_sound(self.out / name) else [f"{name} cannot be read"]
            except Exception as error:
                return [f"{name} cannot be read: {error}"]
        complete = self.complete[command.name][name]
        if ended and sorted(got.splitlines()) != sorted(complete.splitlines()):
            return [f"{name} is not what an undisturbed scan writes"]
        lost = [line for line in before.splitlines(True) if line.endswith(b"\n") and line not in got.splitlines(True)]
        return [f"{len(lost)} lines of {name} are lost"] * bool(lost) + [f"{name} is damaged"] * (
            not results(got, complete)
        )

    def remove_what_is_kept(self) -> None:
        """A history that was collected and could not be judged, or its verdict not be told, is the user's to remove."""
        for path in re.findall(r"the history is kept in (\S+)", self.errors.read_text(errors="replace")):
            shutil.rmtree(Path(path).parent)

    def processes(self) -> list[int]:
        """Those that have to do with this place."""
        mark, found = os.fsencode(self.temporary), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                texts = [Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline")]
            except OSError:
                continue
            if int(pid) != os.getpid() and any(mark in text for text in texts):
                found.append(int(pid))
        return found

    def left_running(self, patience: float = 60.0) -> list[str]:
        """Processes that do not end by themselves; they are ended."""
        deadline = time.monotonic() + patience
        while (pids := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in pids:
            os.kill(pid, 9)
        return [f"process {pid} is left running" for pid in pids]


def _is_hidden(name: str) -> bool:
    return os.path.basename(name).startswith(".")
