"""Pairs of writers whose order is open, as variables: each side of a choice brings its edges."""

import numpy as np

from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.strong.solver.saturation import RW, WW
from plume_py.history.model import Int32s
from plume_py.levels.table import EVERYTHING, TRANSITIVE, WRITERS


class WriterPairs:
    """Variable v stands for "a commits before b" of ``pair[v]``, v counting from 1; -v is the opposite."""

    def __init__(self, layout: SolverColumns) -> None:
        self.layout = layout
        self.pair: list[tuple[int, int]] = [(-1, -1)]
        self.phase: list[bool] = [True]  # by variable: the side that was chosen, or that looks better
        self._number: dict[tuple[int, int], int] = {}
        self._rows: dict[int, Int32s] = {}

    def __len__(self) -> int:
        return len(self.pair) - 1

    def literal(self, a: int, b: int) -> int:
        """The literal for "a before b", or 0 if their order is no variable."""
        v = self._number.get((min(a, b), max(a, b)), 0)
        return v if a < b else -v

    def add(self, a: int, b: int) -> int:
        """A variable for the order of a and b; "a before b" looks better."""
        low, high = min(a, b), max(a, b)
        self.pair.append((low, high))
        self.phase.append(a < b)
        v = self._number[low, high] = len(self)
        return v if a < b else -v

    def chosen(self) -> list[int]:
        """The literals that hold at present."""
        return [v if self.phase[v] else -v for v in range(1, len(self.pair))]

    def rows(self, literal: int) -> Int32s:
        """What one side of a choice brings: rows (a, b, relation, key, read)."""
        found = self._rows.get(literal)
        if found is None:
            a, b = self.pair[abs(literal)]
            found = self._rows[literal] = self._derive(a, b) if literal > 0 else self._derive(b, a)
        return found

    def common_keys(self, a: int, b: int) -> Int32s:
        """The keys that both write."""
        start, key, _ = self.layout.writes
        return np.intersect1d(key[start[a] : start[a + 1]], key[start[b] : start[b + 1]], assume_unique=True)

    def _derive(self, a: int, b: int) -> Int32s:
        """a before b: whoever read a's version of a key does not see b's."""
        layout = self.layout
        start, reads = layout.readers
        keys = self.common_keys(a, b)
        rows = [(a, b, WW, int(keys[0]), -1)]
        for version in layout.version_of(np.full(len(keys), a, np.int32), keys).tolist():
            for r in reads[start[version] : start[version + 1]].tolist() if version >= 0 else ():
                t3, key = int(layout.read_txn[r]), int(layout.read_key[r])
                bits = int(layout.sees[t3])
                if t3 == b or not bits & TRANSITIVE:
                    continue
                no_conflict = bits & (WRITERS | EVERYTHING) == WRITERS and layout.also_writes[r]
                rows.append((t3, b, WW if no_conflict else RW, key, r))
        return np.array(rows, np.int32)
