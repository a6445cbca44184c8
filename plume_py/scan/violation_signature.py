"""Compute the shape of a violation: its counterexample without the names of transactions, keys and values.

``scan`` groups violations by shape, so that a thousand histories with one bug become one line. A chain of session-order
and read steps counts as one causal step (CO), because the length of such a chain is chance. The shape contains only the
transactions and keys that some step names. The names T1, T2, … and x, y, … follow the order of the steps. A cycle can
begin at any step, so all rotations are spelled, and the smallest text is the shape.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice, permutations

from plume_py.checking.result import Ends, Id, ShownTransaction, Step, Violation
from plume_py.history.model import INITIAL_ID

_KEYS = "xyzuvw"
CAUSAL = {"SO", "RT", "WR", "CO"}
# The most rotations of a cycle that are compared. Two longer cycles hardly ever have the same shape.
ROTATIONS = 64
# The most orders of transactions that are compared if there are no steps; then there are only one or two transactions.
PERMUTATIONS = 24
# The most characters of a description.
TEXT = 600


def shape_of(violation: Violation) -> tuple[str, str]:
    """Return the name and the description of the shape; equal names mean equal shapes."""
    text = min(_texts(violation))
    digest = sha256(f"{violation.level} {violation.tap} {text}".encode()).hexdigest()[:12]
    return f"{violation.tap}-{digest}", text if len(text) <= TEXT else text[: TEXT - 1] + "…"


def _texts(violation: Violation) -> Iterator[str]:
    """Yield a text of the shape for each step at which it can begin."""
    closed = violation.ends is Ends.CLOSED  # a cycle can begin at any step
    steps = _merged(violation.steps, closed)
    if not steps:
        for order in islice(permutations(violation.transactions), PERMUTATIONS):
            yield _Namer(violation).text([], order)
        return
    for i in range(min(len(steps), ROTATIONS)) if closed else range(1):
        yield _Namer(violation).text([*steps[i:], *steps[:i]], ())


def _merged(steps: Iterable[Step], closed: bool) -> list[Step]:
    """Merge each chain of causal steps into one step CO; a cycle of only causal steps stays the same."""
    steps = list(steps)
    if closed:
        other = [i for i, step in enumerate(steps) if step.relation not in CAUSAL]
        if not other:
            return steps
        steps = [*steps[other[0] :], *steps[: other[0]]]  # so that the start does not split a chain
    merged: list[Step] = []
    for step in steps:
        last = merged[-1] if merged else None
        if last is not None and last.target == step.source and {last.relation, step.relation} <= CAUSAL:
            merged[-1] = Step(last.source, step.target, "CO")
        else:
            merged.append(step)
    return merged


class _Namer:
    """Names transactions, sessions, keys and values in the order of their first use in the steps."""

    def __init__(self, violation: Violation) -> None:
        self.violation = violation
        self.transactions: dict[Id, str] = {}
        self.keys: dict[object, str] = {}
        self.sessions: dict[Id, int] = {}
        self.values: dict[tuple[str, str], int] = {}

    def text(self, steps: list[Step], order: tuple[ShownTransaction, ...]) -> str:
        """Return the whole shape; ``order`` is the order of the transactions if there are no steps."""
        cycle = "; ".join(self._step(step) for step in steps)
        shown = {t.id: t for t in self.violation.transactions}
        if not steps:
            for t in order:
                self._transaction(t.id)
            for key in self.violation.keys:
                self._key(key)
        parts = [f"{name}: {self._ops(shown[t])}" for t, name in self.transactions.items() if t in shown]
        return " | ".join(part for part in (*parts, cycle) if part)

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
        ops = list(self._operations(transaction))
        session = self.sessions.setdefault(transaction.session, len(self.sessions) + 1)
        aborted = " aborted" if transaction.status == "aborted" else ""
        return f"s{session}{aborted} {' '.join(ops)}".rstrip()

    def _operations(self, transaction: ShownTransaction) -> Iterator[str]:
        """Yield the operations on named keys, without repetitions, because the number of reads is chance."""
        seen = set()
        for kind, key, value in transaction.ops:
            if key not in self.keys:
                continue
            name = self.keys[key]
            number = self.values.setdefault((name, repr(value)), sum(k == name for k, _ in self.values) + 1)
            operation = f"{str(kind)[0]}({name}{number})"
            if operation not in seen:
                seen.add(operation)
                yield operation
