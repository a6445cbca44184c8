"""``isocheck`` and ``python -m plume_py``: Ctrl-C ends it without a word about where it was, from the first moment on.

Importing takes a good part of a short run, and an interrupt in there would show where by pages of our sources.
"""

import _thread
import os
import time
from types import FrameType

# What a shell reports for a program that was interrupted.
INTERRUPTED = 130
# Seconds after which an interrupt that came at a bad moment comes again.
SOON = 0.01


def run() -> None:
    """The console command."""
    try:
        _leave_at_once(True)
        from plume_py.cli.main import run as start

        _leave_at_once(False)  # now there may be something to put in order first
        try:
            start()
        finally:
            _leave_at_once(True)
    except KeyboardInterrupt:
        _leave()


def _leave_at_once(wanted: bool) -> None:
    """Does an interrupt just end the process? Raised amid an import, or at Python's end, it may be shown, and lost."""
    import signal

    ours = signal.default_int_handler, _leave, _interrupt
    if signal.getsignal(signal.SIGINT) in ours:  # who started us may want it ignored
        signal.signal(signal.SIGINT, _leave if wanted else _interrupt)


def _leave(*_: object) -> None:
    os._exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """As Python does, but not while it calls back: what is raised then is shown, and lost."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or (code.co_name == "cb" and "importlib" in code.co_filename):
            _thread.start_new_thread(_interrupt_soon, (number,))
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _interrupt_soon(number: int) -> None:
    time.sleep(SOON)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    run()
