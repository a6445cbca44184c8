"""``isocheck`` and ``python -m plume_py``: Ctrl-C ends it without a word about where it was, from the first moment on.

Importing takes a good part of a short run, and an interrupt in there would show where by pages of our sources.
"""

import os

# What a shell reports for a program that was interrupted.
INTERRUPTED = 130


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

    own, usual = _leave, signal.default_int_handler
    if signal.getsignal(signal.SIGINT) is (usual if wanted else own):  # who started us may want it ignored
        signal.signal(signal.SIGINT, own if wanted else usual)


def _leave(*_: object) -> None:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    run()
