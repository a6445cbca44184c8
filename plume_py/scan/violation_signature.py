"""The shape of a violation: what is left of a counterexample without the names of its transactions, keys and values.

Two histories that broke in the same way have the same shape, so that a thousand files of one bug read as one line. A
chain of several session-order and read steps counts as one causal step (CO): how many hops news took on its way is
chance. Of the transactions only those are left that some step speaks of, with their operations on the keys that do.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice, permutations

from plume_py.checking.result import Ends, Id, ShownTransaction, Step, Violation
from plume_py.history.model import INITIAL_ID

_KEYS = "xyzuvw"
CAUSAL = {"SO", "RT", "WR", "CO"}
# Rotations of a cycle that are compared. Longer ones are hardly ever the same anyway.
ROTATIONS = 64
# Orders of transactions that are compared where there are no steps; it is one transaction then, or two.
PERMUTATIONS = 24
# How much of a shape is told in words.
TEXT = 600


def shape_of(violation: Violation) -> tuple[str, str]:
    """(name, description): equal names mean equal shapes."""
    text = min(_spellings(violation))
    digest = sha256(f"{violation.level} {violation.tap} {text}".encode()).hexdigest()[:12]
    return f"{violation.tap}-{digest}", text if len(text) <= TEXT else text[: TEXT - 1] + "…"


def _spellings(violation: Violation) -> Iterator[str]:
    """The shape, told from wherever one may begin; the names depend on that."""
    closed = violation.ends is Ends.CLOSED  # then every step may come first
    steps = _merged(violation.steps, closed)
    if not steps:
        for order in islice(permutations(violation.transactions), PERMUTATIONS):
            yield _Naming(violation).spell([], order)
        return
    for i in range(min(len(steps), ROTATIONS)) if closed else range(1):
        yield _Naming(violation).spell([*steps[i:], *steps[:i]], ())


def _merged(steps: Iterable[Step], closed: bool) -> list[Step]:
    """Chains of SO and WR as one step CO; a cycle of nothing else stays as it is."""
    steps = list(steps)
    if closed:
        other = [i for i, step in enumerate(steps) if step.relation not in CAUSAL]
        if not other:
            return steps
        steps = [*steps[other[0] :], *steps[: other[0]]]  # so that no chain is cut in two
    merged: list[Step] = []
    for step in steps:
        last = merged[-1] if merged else None
        if last is not None and last.target == step.source and {last.relation, step.relation} <= CAUSAL:
            merged[-1] = Step(last.source, step.target, "CO")
        else:
            merged.append(step)
    return merged


class _Naming:
    """Gives transactions, sessions, keys and values names in the order in which the steps come upon them."""

    def __init__(self, violation: Violation) -> None:
        self.violation = violation
        self.transactions: dict[Id, str] = {}
        self.keys: dict[object, str] = {}
        self.sessions: dict[Id, int] = {}
        self.values: dict[tuple[str, str], int] = {}

    def spell(self, steps: list[Step], order: tuple[ShownTransaction, ...]) -> str:
        """The whole shape; ``order`` is that of the transactions where no step names them."""
        argument = "; ".join(self._step(step) for step in steps)
        shown = {t.id: t for t in self.violation.transactions}
        if not steps:
            for t in order:
                self._transaction(t.id)
            for key in self.violation.keys:
                self._key(key)
        parts = [f"{name}: {self._ops(shown[t])}" for t, name in self.transactions.items() if t in shown]
        return " | ".join(part for part in (*parts, argument) if part)

    def _step(self, step: Step) -> str:
        names = f"{self._transaction(step.source)} -{step.relation}"
        on = f"({self._key(step.key)})" if step.key is not None else ""
        line = f"{names}{on}-> {self._transaction(step.target)}"
        why = [self._step(inner) for inner in _merged(step.evidence, step.is_proved)]
        if step.reader is not None:
            why.insert(0, f"{self._transaction(step.reader)} reads")
        return f"{line} [{', '.join(why)}]" if why else line

    def _transaction(self, name: Id) -> str:
        if name == INITIAL_ID:
            return "init"
        return self.transactions.setdefault(name, f"T{len(self.transactions) + 1}")

    def _key(self, key: object) -> str:
        at = len(self.keys)
        return self.keys.setdefault(key, _KEYS[at] if at < len(_KEYS) else f"k{at}")

    def _ops(self, transaction: ShownTransaction) -> str:
        ops = list(self._spelled(transaction))
        session = self.sessions.setdefault(transaction.session, len(self.sessions) + 1)
        aborted = " aborted" if transaction.status == "aborted" else ""
        return f"s{session}{aborted} {' '.join(ops)}".rstrip()

    def _spelled(self, transaction: ShownTransaction) -> Iterator[str]:
        """Operations on the keys that matter, each kind once per key and value: how often it looked is chance."""
        seen = set()
        for kind, key, value in transaction.ops:
            if key not in self.keys:
                continue
            name = self.keys[key]
            number = self.values.setdefault((name, repr(value)), sum(k == name for k, _ in self.values) + 1)
            spelled = f"{str(kind)[0]}({name}{number})"
            if spelled not in seen:
                seen.add(spelled)
                yield spelled
