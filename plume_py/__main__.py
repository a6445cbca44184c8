"""Start ``isocheck`` or ``python -m plume_py`` so that Ctrl-C never prints a traceback, also during imports.

Imports take a large part of a short run, so an interrupt often comes before the command line can handle it.
"""

import _thread
import os
import time
from types import FrameType

# The exit code that a shell reports for an interrupted program.
INTERRUPTED = 130
# An interrupt inside a callback of Python is repeated after this many seconds.
REPEAT_SECONDS = 0.01


def run() -> None:
    """Run the console command."""
    try:
        _leave_at_once(True)
        from plume_py.cli.main import run as start

        _leave_at_once(False)  # from now on there may be files and servers to clean up
        try:
            start()
        finally:
            _leave_at_once(True)
    except KeyboardInterrupt:
        _leave()


def _leave_at_once(wanted: bool) -> None:
    """Set whether Ctrl-C ends the process at once or raises KeyboardInterrupt.

    Raised in an import, or while Python ends, the exception could be printed and lost.
    """
    import signal

    ours = signal.default_int_handler, _leave, _interrupt
    if signal.getsignal(signal.SIGINT) in ours:  # the parent process may have set it to be ignored
        signal.signal(signal.SIGINT, _leave if wanted else _interrupt)


def _leave(*_: object) -> None:
    os._exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not in a callback of Python: there it would be printed and lost."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or (code.co_name == "cb" and "importlib" in code.co_filename):
            _thread.start_new_thread(_interrupt_soon, (number,))
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _interrupt_soon(number: int) -> None:
    time.sleep(REPEAT_SECONDS)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    run()
