"""Does a predicted run keep to the rules of the boundary? Judged from the observed history, operation by operation.

Nothing here is shared with the search: the rules of docs/predict.md are read off again.
"""

from plume_py.history.model import COMMITTED, NOBODY, UNKNOWN, History
from plume_py.predict.prediction import Run

INITIAL = -1


class PredictionDefectError(Exception):
    """A prediction that the checker or the rules refute: a defect in isocheck, never a finding."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"a prediction is refuted: {problem}")


class _Facts:
    """Reads, writes and sessions as plain Python."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.session = history.txn_session.tolist()
        start = history.txn_start.tolist()
        self.ops = [range(start[t], start[t + 1]) for t in range(history.transactions)]
        self.txn_of = {o: t for t, ops in enumerate(self.ops) for o in ops}
        self.key = history.op_key.tolist()
        self.is_write = [bool(kind & 1) for kind in history.op_kind.tolist()]

    def last_write(self, t: int, key: int) -> int | None:
        return max((o for o in self.ops[t] if self.is_write[o] and self.key[o] == key), default=None)

    def is_external_read(self, o: int) -> bool:
        earlier = range(self.ops[self.txn_of[o]].start, o)
        return not self.is_write[o] and not any(self.is_write[e] and self.key[e] == self.key[o] for e in earlier)

    def observed_source(self, o: int) -> int:
        version = int(self.history.op_version[o])
        writer = int(self.history.version_writer[version])
        return INITIAL if writer in (NOBODY, self.history.init_txn) else writer


def recheck(history: History, run: Run) -> list[str]:
    """Everything that is wrong with the run; empty if all is well."""
    facts = _Facts(history)
    problems = []
    for t, end in run.kept.items():
        problems += _kept_properly(facts, run, t, end)
        if history.txn_status[t] == UNKNOWN:
            continue
        for o in range(facts.ops[t].start, end):
            if facts.is_external_read(o):
                problems += _reads_properly(facts, run, t, o)
    problems += _closed(facts, run)
    return problems


def _kept_properly(facts: _Facts, run: Run, t: int, end: int) -> list[str]:
    """What is kept of a session is its beginning, up to the boundary."""
    name, ops = facts.history.txn_label[t], facts.ops[t]
    boundary = run.ends[facts.session[t]]
    if facts.history.txn_status[t] not in (COMMITTED, UNKNOWN) or t == facts.history.init_txn:
        return [f"{name} is no transaction that counts"]
    whole = ops.stop
    if boundary != NOBODY and facts.txn_of[boundary] < t:
        return [f"{name} comes after the boundary of its session"]
    if boundary != NOBODY and facts.txn_of[boundary] == t and run.boundary == "strict":
        whole = boundary + 1
    return [] if end == whole else [f"{name} is cut at the wrong place"]


def _reads_properly(facts: _Facts, run: Run, t: int, o: int) -> list[str]:
    what = f"the read of {facts.history.key(facts.key[o])} by {facts.history.txn_label[t]}"
    source = run.sources.get(o, facts.observed_source(o))
    boundary = run.ends[facts.session[t]]
    free = boundary != NOBODY and (o == boundary if run.boundary == "strict" else facts.txn_of[boundary] == t)
    if source != facts.observed_source(o) and not free:
        return [f"{what} is before the boundary, and changed"]
    if source == INITIAL:
        return []
    written = facts.last_write(source, facts.key[o])
    if source not in run.kept or written is None or written >= run.kept[source]:
        return [f"{what} sees a write that is not inside the boundary"]
    if source == t or (facts.session[source] == facts.session[t] and source > t):
        return [f"{what} sees its own future"]
    return []


def _closed(facts: _Facts, run: Run) -> list[str]:
    """Nothing that is kept happens after a boundary transaction."""
    cut = {facts.txn_of[o] for o in run.ends if o != NOBODY}
    problems = []
    for t in run.kept:
        before = {s for s in run.kept if facts.session[s] == facts.session[t] and s < t}
        before |= {source for o, source in run.sources.items() if facts.txn_of[o] == t and source != INITIAL}
        problems += [
            f"{facts.history.txn_label[t]} happens after the boundary transaction {facts.history.txn_label[s]}"
            for s in before & cut
        ]
        missing = [
            s
            for s in range(int(facts.history.session_start[facts.session[t]]), t)
            if s not in run.kept and facts.history.txn_status[s] == COMMITTED and s != facts.history.init_txn
        ]
        problems += [f"{facts.history.txn_label[s]} is missing from its session" for s in missing]
    return problems
