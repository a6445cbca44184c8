"""The axioms of all levels as literals: what a transaction sees, and which reads contradict that.

Every level has the same axiom: a transaction reads a key from the writer that commits last among the writers that it
sees. Levels differ in what is seen (docs/levels.md, "a level per transaction"). So one definition serves one level for
all transactions and a level for each. It also serves an order that is a variable, when searching runs, and one that is
given, when refuting them.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from plume_py.base.logic import FALSE, TRUE, Literal, Order
from plume_py.history.model import INITIAL
from plume_py.levels import visibility_bits
from plume_py.levels.table import AT_COMMIT
from plume_py.reasoning.predict.predictor.observed_run import Read
from plume_py.reasoning.predict.predictor.run_encoding import RunView, direct
from plume_py.reasoning.synth.visibility import Sees, Visibility


class OneSidedVisibility(Visibility):
    """Visibility between nodes, for given levels; the order may be given or variable.

    Visibility through other transactions gets variables that are true at least where they must be. That suffices,
    because the axioms only use visibility as a premise.
    """

    def __init__(self, view: RunView, levels: Sequence[str], order: Order) -> None:
        def both_write(a: int, b: int) -> Literal:
            writes, all_of = view.observed.writes, view.formula.all_of
            shared = sorted(writes[a].keys() & writes[b].keys())
            return view.formula.any_of(all_of((view.writes(a, key), view.writes(b, key))) for key in shared)

        self.bits = [visibility_bits(level) for level in levels]
        each = {bits: Sees.of(bits) for bits in self.bits}
        super().__init__(
            view.formula, [each[bits] for bits in self.bits], order.before, lambda a, b: direct(view, a, b), both_write
        )
        size = len(levels)
        closed = [b for b in range(size) if self.levels[b].closed == TRUE]
        for b in closed:
            self._seen |= {(a, b): self.formula.variable() for a in range(size) if a != b}
        for b in closed:
            self._close(b, uniform=len(closed) == size)

    def _close(self, b: int, uniform: bool) -> None:
        """Require that node b sees its near nodes and all that they see.

        If all nodes have a transitive level, following near steps suffices; otherwise any visible node passes on.
        """
        near, size = self.near(b), len(self.bits)
        for s, literal in near.items():
            self.formula.require(-literal, self._seen[s, b])
        through = near if uniform else {s: self._seen[s, b] for s in range(size) if s != b}
        for s, literal in through.items():
            self._pass_on(literal, s, b)

    def _pass_on(self, sees: Literal, s: int, b: int) -> None:
        """Require that b sees all that s sees if b sees s."""
        for a in range(len(self.bits)):
            if a not in (s, b):
                self.formula.require(-sees, -self.sees(a, s), self._seen[a, b])


def contradictions(view: RunView, levels: Sequence[str], order: Order) -> Iterator[tuple[Literal, ...]]:
    """Yield every way to violate the levels, as literals that must not all be true."""
    observed = view.observed
    visibility = OneSidedVisibility(view, levels, order)
    for nodes in observed.sessions:
        for a, b in combinations(nodes, 2):
            yield (-order.before(a, b),)
    for read in observed.reads:
        for writer in read.writers:
            if writer != INITIAL:
                yield (view.selects(read, writer), -order.before(writer, read.node))
            yield from _stale(view, visibility, read, writer)


def _stale(view: RunView, visibility: OneSidedVisibility, read: Read, writer: int) -> Iterator[tuple[Literal, ...]]:
    """Yield contradictions: the read returns the value of ``writer`` although its transaction sees a later writer."""
    for other in view.observed.writers[read.key]:
        if other in (writer, read.node):
            continue
        earlier = FALSE if writer == INITIAL else visibility.before(other, writer)
        if earlier == TRUE:
            continue
        if visibility.bits[read.node] & AT_COMMIT:
            seen = visibility.sees(other, read.node)
        else:
            seen = _read_before(view, read, other)
        if seen != FALSE:
            yield view.selects(read, writer), view.writes(other, read.key), seen, -earlier


def _read_before(view: RunView, read: Read, other: int) -> Literal:
    """Return whether the transaction has read from ``other`` before this read (RC)."""
    earlier = (r for r in view.observed.reads_of[read.node] if r.op < read.op and other in r.writers)
    return view.formula.any_of(view.selects(r, other) for r in earlier)
