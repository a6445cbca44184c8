"""Replay a prediction: run the program again, and give its reads the predicted versions if the level allows them.

The result says whether the prediction comes true in the program, and where the program diverges from it.
"""

from collections import Counter
from dataclasses import dataclass, field

from plume_py.checking.check import check
from plume_py.checking.result import Result
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import INITIAL, History
from plume_py.levels import STRONGEST
from plume_py.reasoning.predict.predictor.prediction import Prediction, Run, running_order
from plume_py.reasoning.predict.store.legal_reads import Key
from plume_py.reasoning.predict.store.program import SeededProgram, failures, step_id
from plume_py.reasoning.predict.store.store import Conflict, ReadRequest, Store

ReadFrom = tuple[Key, str | None]  # a key, and the id of its writer; None for the initial state


@dataclass(frozen=True)
class Planned:
    """A transaction as predicted: its external reads, and all its writes when observed."""

    session: int
    reads: list[ReadFrom]
    writes: list[Key]


def planned(observed: History, run: Run) -> dict[str, Planned]:
    """Return the transactions of a prediction by id, writers before their readers."""
    plan = {}
    for t in running_order(observed, run):
        start, stop = int(observed.txn_start[t]), int(observed.txn_start[t + 1])
        reads: list[ReadFrom] = []
        wrote: dict[Key, None] = {}
        for o in range(start, stop):
            key = str(observed.key(int(observed.op_key[o])))
            if observed.op_kind[o] & 1:
                wrote[key] = None
            elif key not in wrote and o < run.prefix[t]:
                source = run.sources.get(o, INITIAL)
                reads.append((key, None if source == INITIAL else str(observed.txn_label[source])))
        plan[str(observed.txn_label[t])] = Planned(int(observed.txn_session[t]), reads, list(wrote))
    return plan


class RemainingPrediction:
    """Decides which versions a read may return that the prediction leaves open."""

    def __init__(self, plan: dict[str, Planned], level: str) -> None:
        self._plan, self._level = plan, level

    def leaves_room(self, request: ReadRequest, writer: int) -> bool:
        """Return whether the remaining prediction can still happen if the read returns the version of ``writer``."""
        records = request.store.records
        name = {record.number: record.id for record in records} | {INITIAL: None}
        done = {
            record.id: ([(key, name[w]) for key, w in record.reads], set(record.writes))
            for record in (*records, request.txn)
        }
        own = self._plan[request.txn.id]
        reads, writes = done[request.txn.id]
        done[request.txn.id] = [*reads, (request.key, name[writer])], writes | set(own.writes)
        return self._keeps(done)

    def _keeps(self, done: dict[str, tuple[list[ReadFrom], set[Key]]]) -> bool:
        whole = {id: done.get(id, (step.reads, set(step.writes))) for id, step in self._plan.items()}
        written = set().union(*(writes for _, writes in whole.values()))
        builder = HistoryBuilder(None)
        for id, (reads, writes) in whole.items():
            ops = [("r", key, writer) for key, writer in reads if key in written]
            builder.add(self._plan[id].session, [*ops, *(("w", key, id) for key in sorted(writes))], id=id)
        return check(builder.build(init_txn="none"), self._level, max_examples=0).ok is True


@dataclass
class Validation:
    """The result of a replay."""

    history: History
    keeps_level: bool
    result: Result  # of checking the replayed history for the target
    divergences: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # assertions of the program that failed in it
    refused: bool = False  # the level did not allow a predicted read, or a commit

    @property
    def validated(self) -> bool:
        """Whether the replayed run satisfied the level and violated the target."""
        return self.keeps_level and self.result.ok is False

    @property
    def diverged(self) -> bool:
        """Whether the program did anything else than predicted."""
        return bool(self.divergences)


class PredictedReads:
    """A policy that gives each read its predicted writer if that is legal.

    Other reads get the newest legal version that leaves the remaining prediction possible.
    """

    def __init__(self, script: dict[str, Planned], level: str) -> None:
        self._script, self._remaining = script, RemainingPrediction(script, level)
        self._next: Counter[str] = Counter()
        self.divergences: list[str] = []
        self.refused = False  # whether the level did not allow a predicted read

    def choose(self, request: ReadRequest) -> int:
        """Return the predicted writer; after the end of the prediction, the newest suitable one."""
        name = request.txn.id
        reads, at = self._script[name].reads, self._next[name]
        self._next[name] += 1
        if at < len(reads):
            key, writer = reads[at]
            chosen = self._follow(request, key, writer)
            if chosen is not None:
                return chosen
        legal = [writer for writer in reversed(request.writers) if request.allows(writer)]
        if not legal:
            raise Conflict(f"no version of {request.key} is legal")
        if len(legal) == 1 or self.divergences:
            return legal[0]
        return next((writer for writer in legal if self._remaining.leaves_room(request, writer)), legal[0])

    def _follow(self, request: ReadRequest, key: str, writer: str | None) -> int | None:
        name = request.txn.id
        if key != request.key:
            self.divergences.append(f"{name} reads {request.key}, not {key}")
            return None
        numbers = {request.store.records[w].id: w for w in request.writers if w != INITIAL}
        number = INITIAL if writer is None else numbers.get(writer)
        if number is None:
            self.divergences.append(f"{name} reads {key}, but {writer} has not written it")
        elif not request.allows(number):
            self.divergences.append(f"{name} may not read {key} from {writer or 'the initial state'}")
            self.refused = True
        else:
            return number
        return None

    def unread(self, name: str) -> int:
        """Return the number of predicted reads that the transaction did not execute."""
        return max(0, len(self._script[name].reads) - self._next[name])


def replay(
    workload: SeededProgram, observed: History, prediction: Prediction, level: str, target: str = STRONGEST
) -> Validation:
    """Run the transactions of the prediction again, with writers before their readers.

    Boundary transactions run to their end. Transactions that aborted in the observed run are left out.
    """
    policy = PredictedReads(planned(observed, prediction.run), level)
    store = workload.store(level, policy)
    bodies = {
        step_id(s, i, step): (s + 1, step.body)
        for s, steps in enumerate(workload.plan())
        for i, step in enumerate(steps)
    }
    refused = False
    for t in running_order(observed, prediction.run):
        name = str(observed.txn_label[t])
        session, body = bodies[name]
        record = store.run(session, body, name)
        if not record.committed:
            policy.divergences.append(f"{name} {'is refused by the level' if record.refused else 'aborts'}")
            refused = refused or record.refused
        elif policy.unread(name):
            policy.divergences.append(f"{name} ends {policy.unread(name)} reads early")
        else:
            _compare_writes(observed, prediction, t, store, policy)
    history, failed = store.history(), failures(workload, store)
    kept = check(history, level, max_examples=0).ok is True
    return Validation(
        history, kept, check(history, target, name="replay"), policy.divergences, failed, refused or policy.refused
    )


def _compare_writes(observed: History, prediction: Prediction, t: int, store: Store, policy: PredictedReads) -> None:
    """Record a divergence if the transaction wrote other keys inside the boundary than observed."""
    end = prediction.run.prefix[t]
    ops = range(int(observed.txn_start[t]), end)
    wanted = {str(observed.key(int(observed.op_key[o]))) for o in ops if observed.op_kind[o] & 1}
    name = str(observed.txn_label[t])
    record = next(record for record in reversed(store.records) if record.id == name)
    for key in sorted(wanted - record.writes.keys()):
        policy.divergences.append(f"{name} does not write {key}")
    if end == int(observed.txn_start[t + 1]):
        for key in sorted(record.writes.keys() - wanted):
            policy.divergences.append(f"{name} writes {key}, too")
