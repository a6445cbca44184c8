"""The status line, on a terminal that is not one."""

import os
import subprocess
import sys

import pytest
from program import PATIENCE

from plume_py.base.terminal import clock, plain

pty = pytest.importorskip("pty", reason="pseudo-terminals are a thing of Unix")

SHOWN = """
from plume_py.base.terminal import StatusLine
status = StatusLine(quiet={quiet})
status.show("half of it" + "." * 500)
status.clear()
status.clear()
"""

REDRAWN = """
import threading
from plume_py.base.terminal import StatusLine
drawn = threading.Event()
def text():
    drawn.set()
    return "at work"
with StatusLine().redrawn(text):
    assert drawn.wait(60)
"""


def on_terminal(script):
    """What a terminal gets to see on standard error."""
    master, slave = pty.openpty()
    with os.fdopen(master, "rb", 0) as screen:
        try:
            subprocess.run([sys.executable, "-c", script], stderr=slave, check=True, timeout=PATIENCE)
        finally:
            os.close(slave)
        try:
            return screen.read(10_000).decode()
        except OSError:  # Linux: nothing was written, and the other end is closed
            return ""


def test_a_status_line_fits_its_terminal_and_goes_away():
    seen = on_terminal(SHOWN.format(quiet=False))
    assert seen.startswith("\r\x1b[Khalf of it....") and seen.endswith("\r\x1b[K")
    assert seen.count("\x1b[K") == 2  # drawn once, and cleared once
    assert len(seen) < 100


def test_whoever_is_quiet_or_not_on_a_terminal_sees_none():
    assert on_terminal(SHOWN.format(quiet=True)) == ""
    silent = subprocess.run([sys.executable, "-c", SHOWN.format(quiet=False)], capture_output=True, check=True)
    assert silent.stderr == b""


def test_a_status_line_is_redrawn_meanwhile():
    seen = on_terminal(REDRAWN)
    assert "at work" in seen and seen.endswith("\r\x1b[K")


def test_durations_are_those_of_a_clock():
    assert [clock(seconds) for seconds in (0.4, 61, 3601)] == ["0:00", "1:01", "1:00:01"]


def test_files_have_no_style():
    assert plain("text", bold=True, fg="red") == "text"
