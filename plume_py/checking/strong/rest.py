"""What is left of a history when reads are left out: to see what else is wrong with it.

Reads are what constrains a history: with fewer of them there are only more commit orders. So what the rest contradicts,
the whole history contradicts, whatever was left out.
"""

from collections.abc import Collection, Iterable

import numpy as np

from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.graph.without import SubHistory
from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.history.model import Bools, History
from plume_py.levels import STRONGEST


class Rest:
    """A history without some reads."""

    def __init__(self, part: SubHistory) -> None:
        self.part = part

    @property
    def analysis(self) -> Analysis:
        """Of what is left."""
        return self.part.analysis

    @property
    def history(self) -> History:
        """What is left."""
        return self.analysis.history

    def leave_out(self, gone: Bools) -> None:
        """Leave out these operations, which must be reads."""
        self.part = self.part.without(gone)

    def leave_out_reads(self, violations: Iterable[tuple[Collection[int], Collection[int]]]) -> None:
        """Leave out what the transactions of each violation read of its keys."""
        history = self.history
        gone = np.zeros(history.operations, np.bool_)
        for transactions, keys in violations:
            for t in transactions:
                ops = slice(int(history.txn_start[t]), int(history.txn_start[t + 1]))
                gone[ops] |= (history.op_kind[ops] & 1 == 0) & np.isin(history.op_key[ops], list(keys))
        self.leave_out(gone)

    def leave_out_contested(self) -> None:
        """Leave out reads of versions that several of their readers overwrite: every one is a lost update."""
        layout = SolverColumns(self.analysis, STRONGEST)
        updates = np.flatnonzero(layout.first_read & (layout.also_writes == 1))
        readers = np.bincount(layout.read_version[updates], minlength=len(layout.versions))
        contested = readers[layout.read_version] > 1
        gone = np.zeros(self.history.operations, np.bool_)
        gone[self.analysis.reads.read_op[contested & (layout.also_writes == 1)]] = True
        if np.any(gone):
            self.leave_out(gone)
