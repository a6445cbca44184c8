"""What can go wrong with what the user gave us, each told in one line."""

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
