"""Build the steps of counterexamples: edges of the dependency graph, with a sentence that says why each edge exists.

``weak.explain`` and ``strong.proof_steps`` call it. Operations are numbers in the history here; ``violation.complete``
turns them into positions among the operations shown.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plume_py.base.text import display, key_text, txn_text
from plume_py.checking.graph.analysis import Analysis, causal_path
from plume_py.checking.graph.causal import CommitOrder
from plume_py.checking.result import Id, Step
from plume_py.history.model import INITIAL, INITIAL_ID, Int32s
from plume_py.history.value_codes import Atom
from plume_py.levels import visibility_bits
from plume_py.levels.table import AT_COMMIT

# Maximum number of list elements in a sentence.
QUOTED = 8


def list_text(values: Sequence[Atom]) -> str:
    """Return a list for a sentence; of a long list only the end."""
    cut = ["…"] if len(values) > QUOTED else []
    return f"[{' '.join([*cut, *(display(value, 20) for value in values[-QUOTED:])])}]"


def writer_phrase(name: Id) -> str:
    return "the initial state" if name == INITIAL_ID else txn_text(name)


class StepWriter:
    """Builds steps for one history, and collects the transactions and keys that they mention."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.history = analysis.given
        self.reads = analysis.reads
        self.transactions: set[int] = set()
        self.keys: dict[int, None] = {}  # used as an ordered set

    def name(self, t: int) -> Id:
        """Return the id of a transaction, and register it as a participant."""
        if t == INITIAL:
            return INITIAL_ID
        self.transactions.add(t)
        return self.history.txn_label[t]

    def key(self, x: int) -> Atom:
        """Return the key for reports, and register it."""
        self.keys[x] = None
        return self.history.key(x)

    def session_step(self, a: int, b: int) -> Step:
        session = display(self.history.session_label[int(self.history.txn_session[a])])
        names = self.name(a), self.name(b)
        return Step(
            *names,
            "SO",
            because=f"{txn_text(names[0])} comes before {txn_text(names[1])} in session {session}",
        )

    def time_step(self, a: int, b: int) -> Step:
        times = self.history.times
        assert times is not None
        names = self.name(a), self.name(b)
        ended, began = times.spelled(int(times.end[a])), times.spelled(int(times.begin[b]))
        because = f"{txn_text(names[0])} had ended (at {ended}) before {txn_text(names[1])} began (at {began})"
        return Step(*names, "RT", because=because)

    def read_step(self, r: int) -> Step:
        """Return the WR step of read ``r``."""
        o = int(self.reads.read_op[r])
        t1 = int(self.reads.read_source[r])
        source, reader = self.name(t1), self.name(self.reads.reader(r))
        key, version = self.key(int(self.history.op_key[o])), self.reads.version(self.history, r)
        value = self.history.initial_value if version is None else self.history.value(version)
        because = f"{self.read_text(o)} from {writer_phrase(source)}"
        return Step(source, reader, "WR", key, because, value, source_op=self.write_op(t1, version), target_op=o)

    def read_text(self, o: int) -> str:
        """Return a phrase for the read of operation ``o``.

        Of a long list it quotes only the end, and it says which elements the reader appended.
        """
        op, t = self.history.op(o), self.owner(o)
        reads = f"{txn_text(self.history.txn_label[t])} read {key_text(op.key)} ="
        if not isinstance(op.value, tuple):
            return f"{reads} {display(op.value)}"
        own = [value for value, writer in zip(op.value, self.list_writers(o), strict=True) if writer == t]
        return f"{reads} {list_text(op.value)}" + (f" ({list_text(own)} being its own)" if own else "")

    def owner(self, o: int) -> int:
        return int(np.searchsorted(self.history.txn_start, o, side="right")) - 1

    def list_writers(self, o: int) -> list[int]:
        """Return the transactions that appended the elements of the list that operation ``o`` read."""
        writers: list[int] = self.history.version_writer[self._list_versions(o)].tolist()
        return writers

    def _list_versions(self, o: int) -> list[int]:
        lists = self.history.lists
        assert lists is not None
        at = int(np.searchsorted(lists.ops, o))
        versions: list[int] = lists.items[lists.starts[at] : lists.starts[at + 1]].tolist()
        return versions

    def write_op(self, t: int, version: int | None) -> int | None:
        """Return the operation by which t wrote ``version``, or None for the initial state."""
        writes = [] if t == INITIAL or version is None else self._writes(t, self.history.op_version, version)
        return writes[0] if writes else None

    def last_write(self, t: int, x: int) -> int | None:
        """Return the last write of x by t, which is the one visible to others."""
        writes = self._writes(t, self.history.op_key, x)
        return writes[-1] if writes else None

    def _writes(self, t: int, column: Int32s, code: int) -> list[int]:
        begin, end = int(self.history.txn_start[t]), int(self.history.txn_start[t + 1])
        is_write = (self.history.op_kind[begin:end] & 1) == 1
        writes: list[int] = (begin + np.flatnonzero(is_write & (column[begin:end] == code))).tolist()
        return writes

    def forced_step(self, level: str, t2: int, r: int) -> Step:
        """Return the CM step t2 -> source of read ``r`` that ``level`` forces.

        t2 is visible to the reader, as the evidence shows, and wrote the key too.
        """
        t3, t1 = self.reads.reader(r), int(self.reads.read_source[r])
        x = int(self.history.op_key[self.reads.read_op[r]])
        key = self.key(x)
        evidence = self._evidence(level, t2, t3, r)
        first, reader = txn_text(self.name(t2)), txn_text(self.name(t3))
        source, spelled = self.name(t1), key_text(key)
        saw = " and ".join(step.because for step in evidence)
        although = f"{reader} read {spelled} from {writer_phrase(source)}, although {first} wrote it too"
        question = replace(self.read_step(r), because=although)
        if source == INITIAL_ID:
            because = f"{reader} read the initial value of {spelled}, but {first} wrote {spelled}, and {saw}"
        else:
            because = (
                f"{first} must commit before {writer_phrase(source)}: "
                f"{reader} read {spelled} from {writer_phrase(source)}, "
                f"but {first} wrote {spelled} too, and {saw}"
            )
        return Step(
            self.name(t2),
            source,
            "CM",
            key,
            because,
            reader=self.name(t3),
            evidence=tuple(evidence),
            source_op=self.last_write(t2, x),
            target_op=question.source_op,
            reader_op=question.target_op,
            question=question,
        )

    def version_step(self, a: int, b: int, o: int) -> Step:
        """Return the WW step a -> b that the list read by operation ``o`` shows.

        In the list, a's append precedes b's, or b's is missing.
        """
        reader = self.name(self.owner(o))
        x = int(self.history.op_key[o])
        names, key = (self.name(a), self.name(b)), self.key(x)
        late = "before" if b in self.list_writers(o) else "and not"
        shows = f"{txn_text(names[0])}'s append {late} {txn_text(names[1])}'s"
        because = f"{txn_text(reader)}'s read of list {display(key)} shows {shows}"
        return Step(
            *names,
            "WW",
            key,
            because,
            reader=reader,
            source_op=self.last_write(a, x),
            target_op=self._visible_append(b, o),
            reader_op=o,
            question=self._read_of_list(b, o),
        )

    def _visible_append(self, t: int, o: int) -> int | None:
        """Return the first append of t in the list that operation ``o`` read, or else t's last append to the key."""
        versions = [version for version in self._list_versions(o) if self.history.version_writer[version] == t]
        return self.write_op(t, versions[0]) if versions else self.last_write(t, int(self.history.op_key[o]))

    def _read_of_list(self, t: int, o: int) -> Step | None:
        """Return operation ``o`` as a read from t, if the list that it returned ends in an append of t."""
        reader = self.owner(o)
        others = [version for version in self._list_versions(o) if self.history.version_writer[version] != reader]
        if not others or self.history.version_writer[others[-1]] != t:
            return None
        key, value = self.key(int(self.history.op_key[o])), self.history.value(others[-1])
        because = f"{self.read_text(o)} from {txn_text(self.name(t))}"
        names, wrote = (self.name(t), self.name(reader)), self.write_op(t, others[-1])
        return Step(*names, "WR", key, because, value, source_op=wrote, target_op=o)

    def path_steps(self, path: list[int], level: str = "", order: CommitOrder | None = None) -> list[Step]:
        """Return the steps along a path.

        Consecutive session edges become one step, and so do edges through auxiliary nodes.
        """
        steps: list[Step] = []
        i = 0
        while i + 1 < len(path):
            end = i + 1
            while self.analysis.is_moment(path[end]):
                end += 1
            if end > i + 1 or self._only_in_time(path[i], path[end]):
                steps.append(self.time_step(path[i], path[end]))
                i = end
                continue
            end = i
            while end + 1 < len(path) and self.analysis.precedes_in_session(path[end], path[end + 1]):
                end += 1
            if end > i:
                steps.append(self.session_step(path[i], path[end]))
                i = end
            else:
                steps.append(self._edge_step(path[i], path[i + 1], level, order))
                i += 1
        return steps

    def _only_in_time(self, a: int, b: int) -> bool:
        """Return whether real time alone orders a directly before b."""
        read = self._read_from(b, a) is not None
        return not read and not self.analysis.precedes_in_session(a, b) and self.analysis.precedes_in_time(a, b)

    def _edge_step(self, a: int, b: int, level: str, order: CommitOrder | None) -> Step:
        r = self._read_from(b, a)
        if r is not None:
            return self.read_step(r)
        assert order is not None
        into = slice(int(order.extra.start[b]), int(order.extra.start[b + 1]))
        rows = order.extra.row[into][order.extra.source[into] == a]
        reasons = order.forced.edges[rows, 2:].tolist()
        lists = [i for _, i in reasons if i >= 0]
        if lists:
            return self.version_step(a, b, self.list_op(lists[0]))
        return self.forced_step(level, a, reasons[0][0])

    def list_op(self, i: int) -> int:
        assert self.history.lists is not None
        return int(self.history.lists.ops[i])

    def _read_from(self, t: int, source: int, before: int | None = None) -> int | None:
        """Return the first read by which t read from ``source`` (before read ``before``), or None."""
        begin, end = int(self.reads.read_start[t]), int(self.reads.read_start[t + 1])
        for r in range(begin, end if before is None else before):
            if self.reads.read_source[r] == source:
                return r
        return None

    def _evidence(self, level: str, t2: int, t3: int, r: int) -> list[Step]:
        """Return the steps by which t2 is visible to t3 at read ``r``, according to ``level``."""
        if not visibility_bits(level) & AT_COMMIT:  # only earlier reads count
            earlier = self._read_from(t3, t2, before=r)
            assert earlier is not None
            return [self.read_step(earlier)]
        if self.analysis.precedes_in_session(t2, t3):
            return [self.session_step(t2, t3)]
        if self.analysis.precedes_in_time(t2, t3):
            return [self.time_step(t2, t3)]
        direct = self._read_from(t3, t2)
        if direct is not None:
            return [self.read_step(direct)]
        return self.path_steps(causal_path(self.analysis, t2, t3))
