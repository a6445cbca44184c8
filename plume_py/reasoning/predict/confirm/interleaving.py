"""Find orders of all sessions' statements in which every read returns its expected version, on a given database.

Statements and commits are events. Fixed edges: sessions keep their order, and a read follows the commit that it should
see. Choices: another writer of the key commits before the expected one or after the read; of two writers of a key, one
commits before the other writes. A solver chooses; each cycle among chosen edges becomes a clause.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from plume_py.base.limits import Limits
from plume_py.base.logic import FALSE, Formula, Literal
from plume_py.history.model import INITIAL
from plume_py.reasoning.predict.confirm.concurrency_control import ConcurrencyControl
from plume_py.reasoning.predict.confirm.script import Script

# In place of a statement's number.
COMMITS = -1

Edge = tuple[int, int]  # of events: the first precedes the second


@dataclass(frozen=True)
class Step:
    """One statement to send: a statement of a transaction by its number, or COMMIT."""

    txn: int
    statement: int


class Interleavings:
    """The orders of one script under one concurrency control, one after the other."""

    def __init__(self, script: Script, concurrency_control: ConcurrencyControl, limits: Limits | None = None) -> None:
        self.script, self.concurrency_control = script, concurrency_control
        self._limits = limits or Limits()
        self._formula = Formula(self._limits)
        self._steps = [Step(t, s) for t, txn in enumerate(script.transactions) for s in self._numbers(t)]
        self._event = {step: event for event, step in enumerate(self._steps)}
        self._after: list[list[int]] = [[] for _ in self._steps]  # event -> fixed direct successors
        self._edges: dict[Edge, Literal] = {}
        self._reads: dict[Literal, tuple[int, int]] = {}  # guard -> (transaction, statement)
        self._optional: set[Literal] = set()  # guards of reads that the prediction leaves open
        self.given_up: list[tuple[int, int]] = []  # reads that no order can satisfy together with the others
        self._keep_sessions()
        self._keep_reads()
        self._keep_writes()
        if concurrency_control.read_locks:
            self._lock_reads()

    def __enter__(self) -> "Interleavings":
        return self

    def __exit__(self, *_: object) -> None:
        self._formula.close()

    def _numbers(self, t: int) -> list[int]:
        return [*range(len(self.script.transactions[t].statements)), COMMITS]

    def _commit(self, t: int) -> int:
        return self._event[Step(t, COMMITS)]

    def _write(self, t: int, key: str) -> int:
        return self._event[Step(t, self.script.transactions[t].writes[key])]

    def _snapshot(self, t: int) -> int:
        """Return the event at which its snapshot is taken; its commit if it takes none."""
        txn = self.script.transactions[t]
        number = txn.first_read if self.concurrency_control.late_snapshot else 0
        return self._commit(t) if number is None or not txn.statements else self._event[Step(t, number)]

    def _keep_sessions(self) -> None:
        for members in self.script.sessions:
            events = [self._event[Step(t, s)] for t in members for s in self._numbers(t)]
            for a, b in pairwise(events):
                self._after[a].append(b)

    def _keep_reads(self) -> None:
        for t, txn in enumerate(self.script.transactions):
            for number, expected in txn.expected.items():
                writers = [w for w in self.script.writers.get(txn.statements[number].key, ()) if w != t]
                if not writers:
                    continue  # no transaction can have changed it
                guard = self._formula.variable()
                self._reads[guard] = t, number
                if not expected.firm:
                    self._optional.add(guard)
                at = self._snapshot(t) if self.concurrency_control.snapshot else self._event[Step(t, number)]
                if expected.source != INITIAL:
                    self._formula.require(-guard, self._before(self._commit(expected.source), at))
                for other in writers:
                    if other != expected.source:
                        self._formula.require(-guard, *self._is_not_seen(other, expected.source, at))

    def _is_not_seen(self, other: int, source: int, at: int) -> Iterator[Literal]:
        yield self._before(at, self._commit(other))
        if source != INITIAL:
            yield self._before(self._commit(other), self._commit(source))

    def _keep_writes(self) -> None:
        for key, writers in self.script.writers.items():
            for a, b in combinations(writers, 2):
                self._one_of(self._commit(a), self._write(b, key), self._commit(b), self._write(a, key))
        if self.concurrency_control.first_committer_wins:
            for a, b in self._conflicts():
                self._one_of(self._commit(a), self._snapshot(b), self._commit(b), self._snapshot(a))

    def _conflicts(self) -> Iterator[tuple[int, int]]:
        written = [txn.writes.keys() for txn in self.script.transactions]
        for a, b in combinations(range(len(written)), 2):
            if written[a] & written[b] or (self.concurrency_control.one_writer and written[a] and written[b]):
                yield a, b

    def _lock_reads(self) -> None:
        for t, txn in enumerate(self.script.transactions):
            for number, statement in enumerate(txn.statements):
                if statement.kind == "r":
                    for other in self.script.writers.get(statement.key, ()):
                        if other != t:
                            read = self._event[Step(t, number)]
                            self._one_of(self._commit(other), read, self._commit(t), self._write(other, statement.key))

    def _one_of(self, a: int, b: int, c: int, d: int) -> None:
        """Require that event a precedes b, or c precedes d."""
        self._formula.require(self._before(a, b), self._before(c, d))

    def _before(self, a: int, b: int) -> Literal:
        if (
            a,
            b,
        ) not in self._edges:  # negated: the solver prefers true variables, and we prefer edges that are not chosen
            self._edges[a, b] = -self._formula.variable()
        return self._edges[a, b]

    def find(self, *, all_reads: bool = True) -> list[Step] | None:
        """Return another order of the steps, or None if none is left.

        Optional reads that cannot be satisfied are given up; with ``all_reads=False``, other reads as well.
        """
        guards = dict(self._reads)
        while True:
            chosen = self._solve(list(guards))
            if chosen is not None:
                break
            core = [guard for guard in self._formula.core() if guard in guards]
            optional = [guard for guard in core if guard in self._optional]
            if optional:
                del guards[max(optional)]
            elif all_reads or not core:
                return None
            else:
                self.given_up.append(guards.pop(max(core)))
        self._formula.require(FALSE, *(-self._edges[edge] for edge in chosen))
        return self._sorted(chosen)

    def _solve(self, guards: list[Literal]) -> list[Edge] | None:
        """Return the chosen edges of an order."""
        while self._formula.solve(guards):
            self._limits.check()
            chosen = [edge for edge, literal in self._edges.items() if self._formula.value(literal)]
            cycles = list(self._cycles(chosen))
            if not cycles:
                return chosen
            for cycle in cycles:
                self._formula.require(*(-self._edges[edge] for edge in cycle))
        return None

    def _cycles(self, chosen: list[Edge]) -> Iterator[list[Edge]]:
        """Yield the chosen edges of each cycle found; several cycles per call, each only once."""
        picked = set(chosen)
        after: dict[int, list[int]] = {}
        for a, b in chosen:
            after.setdefault(a, []).append(b)
        state = bytearray(len(self._steps))  # 0: not seen; 1: on the path; 2: done
        for root in range(len(self._steps)):
            if state[root]:
                continue
            path = [root]
            pending = [iter((*self._after[root], *after.get(root, ())))]
            state[root] = 1
            while path:
                target = next(pending[-1], None)
                if target is None:
                    state[path.pop()] = 2
                    pending.pop()
                elif state[target] == 1:
                    cycle = [*path[path.index(target) :], target]
                    yield [edge for edge in pairwise(cycle) if edge in picked and edge[1] not in self._after[edge[0]]]
                elif not state[target]:
                    state[target] = 1
                    path.append(target)
                    pending.append(iter((*self._after[target], *after.get(target, ()))))

    def _is_late(self, event: int) -> bool:
        return self.script.transactions[self._steps[event].txn].is_late

    def _sorted(self, chosen: list[Edge]) -> list[Step]:
        """Return all steps in an order that contains the edges.

        A transaction continues as long as it can; late transactions come last.
        """
        after = [list(later) for later in self._after]
        for a, b in chosen:
            after[a].append(b)
        missing = [0] * len(self._steps)
        for later in after:
            for event in later:
                missing[event] += 1
        ready = sorted((e for e, count in enumerate(missing) if not count), reverse=True)
        order: list[Step] = []
        while ready:
            event = ready.pop(max((i for i, e in enumerate(ready) if not self._is_late(e)), default=-1))
            order.append(self._steps[event])
            for then in after[event]:
                missing[then] -= 1
            free = [then for then in after[event] if not missing[then]]
            # The next event of the same transaction is last in ``ready``, so it is taken first.
            ready += sorted(set(free), key=lambda e: self._steps[e].txn == order[-1].txn)
        return order
