"""Code the keys and values of a history ("atoms") as 64-bit integers, and spell them again.

In most large histories all atoms are integers or null. Then the code is the integer itself, and ``NULL`` stands for
null. Histories with strings or larger integers need a table. Integers and strings never mix: 1 and "1" differ.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plume_py.base.errors import InputError

Atom = int | str | None
Codes = npt.NDArray[np.int64]

# The code of null: the only 64-bit integer that is not its own code.
NULL = -(2**63)

# int() and str() take quadratic time; no database has longer keys.
MAX_DIGITS = 4000


@dataclass(frozen=True)
class Atoms:
    """How to spell codes: through ``table``, or else the code itself, as an unsigned integer if ``unsigned``."""

    table: tuple[Atom, ...] | None = None
    unsigned: bool = False

    @classmethod
    def of_bit_patterns(cls, codes: Codes) -> "Atoms":
        """Return how to spell unsigned 64-bit integers: numbers from 2**63 on have negative codes."""
        return cls(unsigned=bool(np.any(codes < 0)))

    def spell(self, code: int) -> Atom:
        """Return the key or value that ``code`` represents."""
        if self.table is not None:
            return self.table[code]
        if code == NULL and not self.unsigned:
            return None
        return code + 2**64 if self.unsigned and code < 0 else code

    def code_of(self, atom: Atom) -> int | None:
        """Return the code of ``atom``, or None if it has none in this history."""
        if self.table is not None:
            for code, known in enumerate(self.table):
                if known == atom and type(known) is type(atom):
                    return code
            return None
        if atom is None:
            return None if self.unsigned else NULL
        if isinstance(atom, str):
            return None
        if self.unsigned:
            return (atom if atom < 2**63 else atom - 2**64) if 0 <= atom < 2**64 else None
        return atom if -(2**63) < atom < 2**63 else None


def joined(chunks: list[npt.NDArray[Any]], kind: type) -> npt.NDArray[Any]:
    """Return the chunks as one column, and empty ``chunks`` to free memory early."""
    column = chunks[0] if len(chunks) == 1 else np.concatenate(chunks or [np.empty(0, kind)])
    chunks.clear()
    return column


class AtomCoder:
    """Code several streams of atoms, chunk by chunk, with one table.

    Integers are their own codes until another kind of atom arrives; then all streams are coded again with a table.
    """

    def __init__(self, what: str, streams: int = 1) -> None:
        self._what = what
        self._streams: list[list[Codes]] = [[] for _ in range(streams)]
        self._table: dict[Atom, int] | None = None

    def encode(self, atoms: Sequence[object], stream: int = 0) -> None:
        """Append a chunk of atoms to a stream."""
        kinds = set(map(type, atoms))
        if not kinds <= {int, str, type(None)}:
            self._reject(atoms)
        if self._table is None and str not in kinds:
            try:
                self._streams[stream].append(_integers(atoms, type(None) in kinds))
                return
            except OverflowError:
                pass
        codes = self._through_table(atoms)  # before the append: this may replace all streams
        self._streams[stream].append(codes)

    def add_codes(self, codes: Codes, stream: int = 0) -> None:
        """Append a chunk to a stream: integers that are their own codes, and NULL."""
        self._streams[stream].append(codes if self._table is None else self._recode(codes))

    def finish(self) -> tuple[list[Codes], Atoms]:
        """Return all codes of each stream, and how to spell them."""
        codes = [joined(chunks, np.int64) for chunks in self._streams]
        self._streams = []
        return codes, Atoms() if self._table is None else Atoms(tuple(self._table))

    def _through_table(self, atoms: Sequence[object]) -> Codes:
        if self._table is None:
            self._table = {}
            self._streams = [[self._recode(chunk) for chunk in chunks] for chunks in self._streams]
        table = self._table
        for atom in atoms:
            if atom not in table:
                table[_bounded(atom, self._what)] = len(table)
        return np.fromiter(map(table.__getitem__, atoms), np.int64, len(atoms))  # type: ignore[arg-type]

    def _recode(self, chunk: Codes) -> Codes:
        distinct, inverse = np.unique(chunk, return_inverse=True)
        return self._through_table([None if c == NULL else c for c in distinct.tolist()])[inverse]

    def _reject(self, atoms: Iterable[object]) -> None:
        for atom in atoms:
            if type(atom) not in (int, str, type(None)):
                raise InputError(f"a {self._what} must be an integer or a string, not {atom!r:.60}")


def _integers(atoms: Sequence[object], some_null: bool) -> Codes:
    if some_null:
        if NULL in atoms:
            raise OverflowError
        return np.array([NULL if atom is None else atom for atom in atoms], dtype=np.int64)
    codes = np.array(atoms, dtype=np.int64)
    if codes.size and codes.min() == NULL:
        raise OverflowError
    return codes


def _bounded(atom: object, what: str) -> Atom:
    if isinstance(atom, int) and atom.bit_length() > MAX_DIGITS * 3:
        raise InputError(f"a {what} has more than {MAX_DIGITS} digits")
    return atom  # type: ignore[return-value]
