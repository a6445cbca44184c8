"""Errors that are reported to the user in one line, and the exit codes of a run."""

from collections.abc import Iterable
from enum import IntEnum

from plume_py.base.text import shorten

# Characters of the input that a message may quote.
LIMIT = 600


class IsocheckError(Exception):
    """An error that is reported to the user in one line, never as a traceback."""


class InputError(IsocheckError):
    """A history or file that cannot be read: the problem, its position, and a hint (exit code 4)."""

    def __init__(self, problem: str, *, where: str = "", hint: str = "") -> None:
        self.problem = problem
        self.where = where
        self.hint = hint
        self.source = ""
        super().__init__(problem)

    def in_source(self, name: str) -> "InputError":
        """Set the name of the file, unless an inner reader has set it, and return the error."""
        self.source = self.source or name
        return self

    def __str__(self) -> str:
        position = ", ".join(part for part in (self.source, shorten(self.where, LIMIT)) if part)
        problem = shorten(self.problem, LIMIT)
        line = f"{position}: {problem}" if position else problem
        return f"{line}; {self.hint}" if self.hint else line


class TooLargeError(InputError):
    """A history that is too large for the available memory; a machine with more memory might read it."""


class LimitError(IsocheckError):
    """A limit of time, memory or size was reached, so the answer is "undecided" (exit code 3)."""


class ConversionError(IsocheckError):
    """The target format cannot express this history."""


class ExitCode(IntEnum):
    """Exit code of a run of isocheck, on which scripts rely."""

    HOLDS = 0
    VIOLATION = 1
    USAGE = 2
    UNDECIDED = 3
    BAD_INPUT = 4


_PRECEDENCE = (ExitCode.BAD_INPUT, ExitCode.VIOLATION, ExitCode.UNDECIDED, ExitCode.HOLDS)


def exit_code(ok: bool | None, error: str | None) -> ExitCode:
    """Return the exit code for the outcome of one history; ``ok`` is None if undecided."""
    if error is not None:
        return ExitCode.BAD_INPUT
    return {True: ExitCode.HOLDS, False: ExitCode.VIOLATION, None: ExitCode.UNDECIDED}[ok]


def combined(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the exit code of a run over several files: 4 before 1 before 3 before 0."""
    seen = set(codes) | {ExitCode.HOLDS}
    return next(code for code in _PRECEDENCE if code in seen)
