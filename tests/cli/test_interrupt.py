"""Ctrl-C at any moment (``__main__.py``, cli/main.py): exit code 130 and no traceback."""

import os
import signal
import subprocess
import sys
import tomllib

import pytest
from paths import HISTORIES, ROOT
from program import PATIENCE

from plume_py import __main__ as entry

INTERRUPTED = 130
# In lines of -X importtime, after the package itself was imported; a command takes a few hundred.
MOMENTS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)


def script(folder):
    """The command as an installer writes it."""
    target = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["isocheck"]
    module, _, function = target.partition(":")
    path = folder / "isocheck"
    path.write_text(
        f"import sys\nfrom {module} import {function}\nif __name__ == '__main__':\n    sys.exit({function}())\n"
    )
    return [str(path)]


def start(child, entry_point, *arguments):
    return child(
        [sys.executable, "-X", "importtime", *entry_point, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def imported(line):
    return line.startswith(b"import time:")


def name_in(line):
    return line.rpartition(b"|")[2].strip()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", ["script", "module"])
def test_an_interrupt_during_imports_ends_with_130_and_no_traceback(way, moment, child, tmp_path):
    """It waits for a history that never comes, so nothing but the signal ends it, however fast the machine is."""
    process = start(child, script(tmp_path) if way == "script" else ["-m", "plume_py"], "check", "-", "--level", "SER")
    last = b"plume_py.__main__" if way == "script" else b"plume_py"
    while name_in(process.stderr.readline()) != last:
        assert process.poll() is None
    for _ in range(moment):
        if not imported(process.stderr.readline()):
            break
    process.send_signal(signal.SIGINT)
    told = [line for line in process.stderr.read().splitlines() if not imported(line)]
    assert process.wait() == INTERRUPTED, told
    assert [line for line in told if line] in ([], [b"interrupted"])
    assert process.stdout.read() == b""


@pytest.mark.parametrize("moment", range(100, 105_000, 6_553))
def test_an_interrupt_during_any_work_ends_with_130_and_no_traceback(moment, child):
    """The signal comes with the so-manieth call of a function, in our modules or in others."""
    program = f"""
import os, signal, sys
from plume_py.__main__ import run
left = {moment}
def look(frame, event, argument):
    global left
    left -= event == "call"
    if left < 0:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)
sys.argv = ["isocheck", "check", "-", "--level", "SER"]
sys.setprofile(look)
run()
"""
    process = child(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "ISOCHECK_COMPILE": "never"},
    )
    out, told = process.communicate((HISTORIES / "TCC/serial.json").read_bytes())
    if b"interrupted" not in told and process.returncode == 0:
        assert told == b"" and out, "it was done before so many calls"
    else:
        assert process.returncode == INTERRUPTED, told
        assert told.strip() in (b"", b"interrupted")


def test_an_interrupt_in_a_callback_of_python_is_not_lost(child):
    """What is raised in there would be shown, and lost; it waits for a history, so only the signal ends it."""
    program = """
import os, signal, sys
from plume_py import __main__ as entry
def look(frame, event, argument):
    code = frame.f_code
    back = event == "call" and code.co_name == "cb" and "importlib" in code.co_filename
    if back and signal.getsignal(signal.SIGINT) is entry._interrupt:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)
sys.argv = ["isocheck", "check", "-", "--level", "SER"]
sys.setprofile(look)
entry.run()
"""
    process = child(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "ISOCHECK_COMPILE": "never"},
    )
    assert process.wait(PATIENCE) == INTERRUPTED
    assert process.stderr.read().strip() in (b"", b"interrupted")


def test_an_ignored_interrupt_stays_ignored():
    """A shell lets what it starts in the background ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        entry._leave_at_once(True)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        entry._leave_at_once(False)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
