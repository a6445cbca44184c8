"""Recheck a predicted run independently of the search: by the checker, and by the rules of the boundary.

The rules of docs/predict.md are checked on the observed history, operation by operation. The code shares nothing with
the formula.
"""

from collections.abc import Iterator, Mapping

from plume_py.base.limits import Limits
from plume_py.checking.check import check
from plume_py.checking.declared import DECLARED
from plume_py.history.model import COMMITTED, INITIAL, NOBODY, UNKNOWN, History
from plume_py.levels import WEAKEST
from plume_py.reasoning.predict.predictor.observed_run import Observed
from plume_py.reasoning.predict.predictor.prediction import Prediction, PredictionResult, Run, changes, history_of


class PredictionDefectError(Exception):
    """The checker or the rules reject a prediction. This is a defect of isocheck, not a finding."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"a prediction is refuted: {problem}")


def recheck_prediction(
    observed: Observed, run: Run, outcome: PredictionResult, levels: Mapping[int, str], limits: Limits | None = None
) -> tuple[Prediction, list[str]]:
    """Return the prediction and the reasons against it, if any.

    ``levels`` are of transactions, for level "declared".
    """
    declared = levels if outcome.level == DECLARED else None
    # Transactions that neither read nor write anything have no level.
    assume = WEAKEST if outcome.level == DECLARED else None
    history = history_of(observed, run, declared)
    committed = history_of(observed, run, declared, committed=True)
    kept = check(committed, outcome.level, assume=assume, max_examples=0, limits=limits).levels[outcome.level]
    result = check(history, outcome.target, name="prediction", limits=limits)
    problems = recheck(observed.history, run)
    if not kept.ok:
        problems.append(f"it does not keep {outcome.level}: {', '.join(kept.taps) or kept.reason}")
    if result.ok is not False:
        problems.append(f"it does not break {outcome.target}")
    return Prediction(run, changes(observed, run), history, result), problems


def recheck(history: History, run: Run) -> list[str]:
    """Return every violation of the rules by the run."""
    facts = _Facts(history)
    problems = []
    for t, end in run.prefix.items():
        problems += _is_prefix(facts, run, t, end)
        for o in facts.external_reads(t, end):
            problems += _reads_properly(facts, run, t, o)
    problems += _closed(facts, run)
    return problems


class _Facts:
    """Reads, writes and sessions of a history as plain Python values."""

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

    def external_reads(self, t: int, end: int) -> Iterator[int]:
        """Yield the reads of ``t`` before operation ``end`` of keys that it has not written before."""
        wrote = set()
        for o in range(self.ops[t].start, end):
            if self.is_write[o]:
                wrote.add(self.key[o])
            elif self.key[o] not in wrote:
                yield o

    def observed_source(self, o: int) -> int | None:
        """Return the writer that the read returned, INITIAL, or None if unknown."""
        if self.history.txn_status[self.txn_of[o]] == UNKNOWN:
            return None
        version = int(self.history.op_version[o])
        writer = int(self.history.version_writer[version])
        return INITIAL if writer in (NOBODY, self.history.init_txn) else writer


def _is_prefix(facts: _Facts, run: Run, t: int, end: int) -> list[str]:
    """Check that the kept part of a session is a prefix that ends at the boundary."""
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
    """Check that only reads at the boundary change, and that the writer is in the run and not later in the session."""
    what = f"the read of {facts.history.key(facts.key[o])} by {facts.history.txn_label[t]}"
    source = run.sources.get(o, facts.observed_source(o))
    boundary = run.ends[facts.session[t]]
    free = boundary != NOBODY and (o == boundary if run.boundary == "strict" else facts.txn_of[boundary] == t)
    if source != facts.observed_source(o) and not free:
        return [f"{what} is before the boundary, and changed"]
    if source is None or source == INITIAL:
        return []
    written = facts.last_write(source, facts.key[o])
    if source not in run.prefix or written is None or written >= run.prefix[source]:
        return [f"{what} sees a write that is not inside the boundary"]
    if source == t or (facts.session[source] == facts.session[t] and source > t):
        return [f"{what} sees its own future"]
    return []


def _closed(facts: _Facts, run: Run) -> list[str]:
    """Check that no kept transaction happens after a boundary transaction."""
    history, cut = facts.history, {facts.txn_of[o] for o in run.ends if o != NOBODY}
    problems = []
    gone: dict[int, str] = {}  # session -> why nothing more of it may be kept
    for t, s in enumerate(facts.session):
        name = history.txn_label[t]
        if t in run.prefix and s in gone:
            problems.append(f"{name} is kept, but {gone[s]}")
        if t in cut:
            gone[s] = f"it happens after the boundary transaction {name}"
        elif t not in run.prefix and history.txn_status[t] == COMMITTED and t != history.init_txn:
            gone[s] = f"{name} is missing from its session"
    for o, source in run.sources.items():
        if source in cut and facts.txn_of[o] in run.prefix:
            reader, writer = history.txn_label[facts.txn_of[o]], history.txn_label[source]
            problems.append(f"{reader} is kept, but it happens after the boundary transaction {writer}")
    return problems
