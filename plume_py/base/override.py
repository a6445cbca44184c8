"""``override``: marks a method that does what its base class says; it needs no description of its own.

Type checkers hold it against the base class. Python has it from 3.12 on; before that it is nothing but a mark.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import override  # known to every type checker, installed or not
else:

    def override(method):
        """The same method."""
        return method


__all__ = ["override"]
