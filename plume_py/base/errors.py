"""What can go wrong with what the user gave us, each told in one line."""

from collections.abc import Iterable
from enum import IntEnum

from plume_py.base.text import shorten

# A message may quote the input, but not pages of it.
LIMIT = 600


class IsocheckError(Exception):
    """A failure that is explained to the user in one line, never by a traceback."""


class InputError(IsocheckError):
    """A history that cannot be read: what is wrong, where, and what to do (exit code 4)."""

    def __init__(self, problem: str, *, where: str = "", hint: str = "") -> None:
        self.problem = problem
        self.where = where
        self.hint = hint
        self.source = ""
        super().__init__(problem)

    def in_source(self, name: str) -> "InputError":
        """Remember which file it was; the innermost reader to know the name wins."""
        self.source = self.source or name
        return self

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.source, shorten(self.where, LIMIT)) if part)
        problem = shorten(self.problem, LIMIT)
        line = f"{place}: {problem}" if place else problem
        return f"{line}; {self.hint}" if self.hint else line


class TooLargeError(InputError):
    """A history that is too large for the memory there is: with more of it, it might well be read."""


class LimitError(IsocheckError):
    """A bound of time, memory or size was reached: undecided (exit code 3)."""


class ConversionError(IsocheckError):
    """The target format cannot express this history."""


# From exits.py: What a run of isocheck ends with. Scripts rely on it.
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
