"""Tests of base/terminal: the status line on a pseudo-terminal, colours, durations."""

import os
import subprocess
import sys
from contextlib import suppress

import pytest
from paths import ROOT
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


def on_terminal(script, *arguments, **environment):
    """Return what a script, or the program, writes to a terminal on standard output and standard error."""
    master, slave = pty.openpty()
    command = [sys.executable, "-c", script, *arguments]
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "", **environment}
    written = b""
    with (
        os.fdopen(master, "rb", 0) as screen,
        subprocess.Popen(command, stdout=slave, stderr=slave, env=environment, cwd=ROOT) as process,
    ):
        os.close(slave)
        with suppress(OSError):  # Linux: the other end is closed
            while data := screen.read(10_000):
                written += data
        process.wait(PATIENCE)
    return written.decode()


PROGRAM = "from plume_py.cli.main import main; main()"

# Commands that colour their output, or draw a status line.
COLORED = [
    ["histories/demo.json"],
    ["stats", "histories/demo.json"],
    ["explain", "TAP-k"],
    ["scan", "histories/SER"],
    ["check", "histories/demo.json", "--level", "TCC", "--max-exemples", "1"],
    ["synth", "--allow", "SI", "--forbid", "SER"],
    ["robust", "smallbank", "--levels", "SI"],
    ["predict", "smallbank"],
    ["watch", "histories/demo.json"],
]


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
@pytest.mark.parametrize("arguments", COLORED, ids=" ".join)
def test_no_escape_sequence_where_the_environment_forbids_colours(arguments, setting):
    seen = on_terminal(PROGRAM, *arguments, **setting)
    assert seen.strip() and "\x1b" not in seen


def test_colours_on_a_terminal_unless_forbidden():
    assert "\x1b[1m" in on_terminal(PROGRAM, "histories/demo.json")
    assert "\x1b[1m" in on_terminal(PROGRAM, "histories/demo.json", "--color", "always", NO_COLOR="1", TERM="dumb")
    assert "\x1b" not in on_terminal(PROGRAM, "histories/demo.json", "--color", "never")


def test_a_dumb_terminal_has_no_status_line():
    assert on_terminal(SHOWN.format(quiet=False), TERM="dumb") == ""


def test_a_status_line_fits_its_terminal_and_goes_away():
    seen = on_terminal(SHOWN.format(quiet=False))
    line = "half of it" + "." * 69
    assert seen == f"\r{line}\r{' ' * 79}\r", "drawn once, erased once, without an escape sequence"


def test_no_status_line_if_quiet_or_not_on_a_terminal():
    assert on_terminal(SHOWN.format(quiet=True)) == ""
    silent = subprocess.run([sys.executable, "-c", SHOWN.format(quiet=False)], capture_output=True, check=True)
    assert silent.stderr == b""


def test_a_status_line_is_redrawn_during_work():
    seen = on_terminal(REDRAWN)
    assert "at work" in seen and seen.endswith("\r       \r") and "\x1b" not in seen


def test_durations_are_those_of_a_clock():
    assert [clock(seconds) for seconds in (0.4, 61, 3601)] == ["0:00", "1:01", "1:00:01"]


def test_files_have_no_style():
    assert plain("text", bold=True, fg="red") == "text"
