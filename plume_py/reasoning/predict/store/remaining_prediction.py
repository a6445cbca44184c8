"""What is still to come of a prediction that is being replayed.

Behind a strict boundary a transaction reads on, and the prediction does not say what. If such a read saw just any legal
version, it could take from the rest of the prediction what makes it legal: its own commit, or a read of another
transaction. The order that shows that the prediction keeps its level always leaves something to see that does not.
"""

from dataclasses import dataclass

from plume_py.checking.check import check
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import INITIAL, History
from plume_py.reasoning.predict.predictor.prediction import Run, running_order
from plume_py.reasoning.predict.store.records import Key
from plume_py.reasoning.predict.store.store import ReadRequest

ReadFrom = tuple[Key, str | None]  # a key, and the id of the transaction from which it is read: None for nobody


@dataclass(frozen=True)
class Planned:
    """A transaction as predicted: its external reads, and all that it wrote when it was observed."""

    session: int
    reads: list[ReadFrom]
    writes: list[Key]


def planned(observed: History, run: Run) -> dict[str, Planned]:
    """The transactions of a prediction by their ids, writers before their readers."""
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


class Foreseen:
    """Judges what a read that the prediction leaves open may see."""

    def __init__(self, plan: dict[str, Planned], level: str) -> None:
        self._plan, self._level = plan, level

    def leaves_room(self, request: ReadRequest, writer: int) -> bool:
        """If the read sees ``writer``, can all the rest still come as predicted?"""
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
