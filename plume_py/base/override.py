"""``override``, the decorator of typing: a method that overrides one of its base class and needs no own docstring.

Type checkers compare the method with the base class. Python has it from 3.12 on; earlier it does nothing at run time.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import override  # type checkers know it even if it is not installed
else:

    def override(method):
        return method


__all__ = ["override"]
