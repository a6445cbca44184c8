"""Keys and values of a stream as 64-bit codes that never change: small integers are themselves, others get a number."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plume_py.base.errors import InputError
from plume_py.history.model import Int64s
from plume_py.history.value_codes import MAX_DIGITS, NULL, Atom, Atoms

# Integers below this, in either direction, stand for themselves; from here on come the numbers of all other atoms.
OTHERS = 1 << 62


class StreamCoder:
    """Codes for keys and values alike."""

    def __init__(self) -> None:
        self._codes: dict[Atom, int] = {}
        self._others: list[Atom] = []

    def encode(self, atoms: Sequence[Any], what: str) -> Int64s:
        """The codes of ``atoms``."""
        if set(map(type, atoms)) <= {int}:
            try:
                codes = np.array(atoms, np.int64)
            except OverflowError:
                pass
            else:
                if not codes.size or -OTHERS < codes.min() <= codes.max() < OTHERS:
                    return codes
        return np.array([self._code(atom, what) for atom in atoms], np.int64)

    def spell(self, code: int) -> Atom:
        """The atom that has this code."""
        if code == NULL:
            return None
        return code if code < OTHERS else self._others[code - OTHERS]

    def table(self, codes: Int64s) -> tuple[Int64s, Atoms]:
        """``codes`` as a history wants them, and how it spells them."""
        if not self._others:
            return codes, Atoms()
        distinct, index = np.unique(codes, return_inverse=True)
        return index.reshape(-1).astype(np.int64), Atoms(tuple(map(self.spell, distinct.tolist())))

    def _code(self, atom: object, what: str) -> int:
        if atom is None and what != "key":
            return NULL
        if type(atom) is int and -OTHERS < atom < OTHERS:
            return atom
        if not isinstance(atom, str) and type(atom) is not int:
            raise InputError(f"a {what} must be an integer or a string, not {atom!r:.60}")
        if type(atom) is int and atom.bit_length() > MAX_DIGITS * 3:
            raise InputError(f"a {what} has more than {MAX_DIGITS} digits")
        code = self._codes.setdefault(atom, OTHERS + len(self._others))
        if code == OTHERS + len(self._others):
            self._others.append(atom)
        return code
