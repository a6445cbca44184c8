"""The longest list of a key so far: all others must be beginnings of it, and who is not in it comes after it.

A list is taken with all appends of its reader, if it shows any of them: then the reader is the next writer of the key.
Lists only ever get longer, so what was once read off a reference stays true.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from plume_py.history.model import Int64s

NO_CODES = np.empty(0, np.int64)

# Who appended an element, and all that this transaction appended to the key, in its order.
Appended = Callable[[int], "tuple[int, list[int]]"]


@dataclass
class Tail:
    """What stands in a list behind a reference: blocks of appends, one for each writer."""

    writers: list[int] = field(default_factory=list)
    ends: list[bool] = field(default_factory=list)  # by element: is it its writer's last append?
    due: list[int] = field(default_factory=list)  # what the last writer appended besides, and is not there
    blamed: set[int] = field(default_factory=set)  # whose appends are repeated, split, swapped or missing


@dataclass
class Reference:
    """The longest list of one key that is right by itself, as codes of its elements."""

    number: int = -1  # of the list
    codes: Int64s = field(default_factory=lambda: NO_CODES)
    members: set[int] = field(default_factory=set)  # the same
    ends: list[bool] = field(default_factory=list)
    due: list[int] = field(default_factory=list)
    writers: set[int] = field(default_factory=set)
    last: int = -1  # the last of them
    unseen: dict[int, None] = field(default_factory=dict)  # a set: other live writers of the key
    behind: int = 0  # so many writers became the last one since all of the unseen were put after it
    read: int = 0  # so many elements have been shown to somebody; its reader's own may still wait for that

    def agreement(self, codes: Int64s) -> int:
        """How many elements ``codes`` has in common with the reference, from the start."""
        both = min(len(codes), len(self.codes))
        differ = np.flatnonzero(codes[:both] != self.codes[:both])
        return int(differ[0]) if differ.size else both

    def tail(self, codes: Int64s, appended: Appended) -> Tail:
        """What ``codes``, of which the reference is a beginning, has behind it.

        Each writer's appends must stand together and in order; the last one's may be incomplete (TAP-f).
        """
        tail = Tail(due=self.due)
        owner = self.last
        shown: set[int] = set()
        for code in codes[len(self.codes) :].tolist():
            if tail.due and tail.due[0] == code:
                tail.due = tail.due[1:]
            else:
                writer, block = appended(code)
                if code in shown or code in self.members:
                    tail.blamed.add(writer)
                    continue
                if tail.due:
                    tail.blamed |= {owner, writer}
                if block[0] != code:
                    tail.blamed.add(writer)
                tail.due = block[block.index(code) + 1 :]
                tail.writers.append(writer)
                owner = writer
            shown.add(code)
            tail.ends.append(not tail.due)
        return tail

    def grow(self, number: int, codes: Int64s, tail: Tail) -> None:
        """List ``number``, with these elements, is the longest now."""
        self.members.update(codes[len(self.codes) :].tolist())
        self.number, self.codes, self.due = number, codes, tail.due
        self.ends += tail.ends
        self.writers.update(tail.writers)
        self.last = tail.writers[-1] if tail.writers else self.last
        self.behind += len(tail.writers)
        for writer in tail.writers:
            self.unseen.pop(writer, None)
