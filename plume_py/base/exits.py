"""What a run of isocheck ends with. Scripts rely on it."""

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What a run of isocheck ends with."""

    HOLDS = 0
    VIOLATION = 1
    USAGE = 2
    UNDECIDED = 3
    BAD_INPUT = 4


_PRECEDENCE = (ExitCode.BAD_INPUT, ExitCode.VIOLATION, ExitCode.UNDECIDED, ExitCode.HOLDS)


def exit_code(ok: bool | None, error: str | None) -> ExitCode:
    """What the outcome of one history stands for."""
    if error is not None:
        return ExitCode.BAD_INPUT
    return {True: ExitCode.HOLDS, False: ExitCode.VIOLATION, None: ExitCode.UNDECIDED}[ok]


def combined(codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code of a run over several files: 4 before 1 before 3 before 0."""
    seen = set(codes) | {ExitCode.HOLDS}
    return next(code for code in _PRECEDENCE if code in seen)
