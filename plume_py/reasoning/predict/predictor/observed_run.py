"""The model of an observed run: its external reads, its writes, and the positions (cuts) where a session may end.

Nodes are the transactions that matter, numbered session by session as in the history. Keys that only the initial state
wrote are left out, and with them most reads of real programs, because such reads cannot change. They remain positions
where a session may end.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from plume_py.base.errors import InputError
from plume_py.checking.graph.reads import Reads, resolve_reads
from plume_py.history.model import INITIAL, NOBODY, READ_LIST, History
from plume_py.levels.patterns import BASE, TAPS

Boundary = Literal["strict", "relaxed"]

# Transaction -> its external reads in program order: operation, and its writer. The writer is a transaction or INITIAL,
# or None if it is unknown.
ExternalReads = dict[int, list[tuple[int, int | None]]]

# Unreadable, aborted, thin-air and intermediate reads: prediction cannot start from such a run.
INVALID_READS = frozenset(BASE)


@dataclass(frozen=True)
class Read:
    """An external read that could have returned another version."""

    number: int
    node: int
    op: int
    key: int
    observed: int | None  # the node it read from, or INITIAL; None if unknown, with the transaction's outcome
    writers: tuple[int, ...]  # possible writers: nodes, and INITIAL


@dataclass(frozen=True)
class Cut:
    """A position where a session may end: after this read (strict), or after its transaction (relaxed)."""

    op: int
    txn: int  # of the history
    node: int  # NOBODY if this transaction has no node


@dataclass
class Observed:
    """One run, reduced to the nodes, reads and writes that prediction needs."""

    history: History
    boundary: Boundary
    txns: list[int] = field(default_factory=list)  # node -> transaction of the history
    sessions: list[list[int]] = field(default_factory=list)  # nodes
    cuts: list[list[Cut]] = field(default_factory=list)  # by session
    reads: list[Read] = field(default_factory=list)
    writes: list[dict[int, int]] = field(default_factory=list)  # node -> key -> its last write, which others read
    first_writes: list[dict[int, int]] = field(default_factory=list)  # node -> key -> its first write
    first_op: list[int] = field(default_factory=list)  # node -> its first write or external read, of any key
    live: list[int] = field(default_factory=list)  # transactions that participate, with or without a node
    notes: list[str] = field(default_factory=list)

    @cached_property
    def node_of(self) -> dict[int, int]:
        """Transaction of the history -> node."""
        return {t: node for node, t in enumerate(self.txns)}

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.txns)

    @cached_property
    def session_of(self) -> list[int]:
        """Node -> session."""
        return [int(self.history.txn_session[t]) for t in self.txns]

    @cached_property
    def writers(self) -> dict[int, list[int]]:
        """Key -> the nodes that write it."""
        found: dict[int, list[int]] = {}
        for node, written in enumerate(self.writes):
            for key in written:
                found.setdefault(key, []).append(node)
        return found

    @cached_property
    def reads_of(self) -> list[list[Read]]:
        """Node -> its reads in program order."""
        found: list[list[Read]] = [[] for _ in self.txns]
        for read in self.reads:
            found[read.node].append(read)
        return found

    def precedes(self, a: int, b: int) -> bool:
        """Return whether node a precedes node b in their session."""
        return a < b and self.session_of[a] == self.session_of[b]

    def cuts_before(self, session: int, op: int) -> int:
        """Return how many cuts of the session end it before operation ``op``."""
        return bisect_right(self._ends[session], op)

    @cached_property
    def _ends(self) -> list[list[int]]:
        """Session -> for each cut, the first operation after it."""
        if self.boundary == "strict":
            return [[cut.op + 1 for cut in cuts] for cuts in self.cuts]
        return [[int(self.history.txn_start[cut.txn + 1]) for cut in cuts] for cuts in self.cuts]


def observe(history: History, boundary: Boundary = "strict", *, conflicts: bool = True) -> Observed:
    """Return the model of a run. ``conflicts`` includes keys that two transactions write and no transaction reads."""
    resolved = resolve_reads(history)
    wrong = [pattern for pattern in resolved.counts if pattern in INVALID_READS]
    if wrong:
        raise InputError(
            f"a read of the observed history is wrong in itself ({TAPS[min(wrong)].name})",
            hint="isocheck shows it; prediction starts from a run that keeps the target",
        )
    observed = Observed(history, boundary, live=np.flatnonzero(resolved.participates).tolist())
    external = _external_reads(history, resolved)
    writes = {t: _writes(history, t) for t in observed.live}
    kept = _relevant_keys(history, external, writes, conflicts)
    _add_nodes(observed, external, writes, kept)
    _add_cuts(observed, external)
    _add_notes(observed, resolved)
    return observed


def _external_reads(history: History, resolved: Reads) -> ExternalReads:
    """Return the external reads of all live transactions.

    A list that ends in own appends also shows what others appended before. Lists count as registers here, so it is an
    own read.
    """
    start, ops, sources = resolved.read_start, resolved.read_op.tolist(), resolved.read_source.tolist()
    own = _own_reads(history)
    return {
        t: [(ops[i], sources[i]) for i in range(int(start[t]), int(start[t + 1])) if ops[i] not in own]
        if resolved.judged[t]
        else [(o, None) for o in _reads_of_others(history, t)]
        for t in np.flatnonzero(resolved.participates).tolist()
    }


def _reads_of_others(history: History, t: int) -> Iterator[int]:
    """Yield the reads of a transaction of unknown outcome, of keys that it has not written before."""
    written = set()
    for o in range(int(history.txn_start[t]), int(history.txn_start[t + 1])):
        if history.op_kind[o] & 1:
            written.add(int(history.op_key[o]))
        elif int(history.op_key[o]) not in written:
            yield o


def _own_reads(history: History) -> set[int]:
    """Return the list reads that follow an own append to the same key."""
    own: set[int] = set()
    if history.lists is None:
        return own
    for t in range(history.transactions):
        written = set()
        for o in range(int(history.txn_start[t]), int(history.txn_start[t + 1])):
            if history.op_kind[o] & 1:
                written.add(int(history.op_key[o]))
            elif history.op_kind[o] == READ_LIST and int(history.op_key[o]) in written:
                own.add(o)
    return own


def _writes(history: History, t: int) -> list[tuple[int, int]]:
    """Return (key, operation) of all writes in program order."""
    ops = np.arange(history.txn_start[t], history.txn_start[t + 1])
    ops = ops[(history.op_kind[ops] & 1) == 1]
    return list(zip(history.op_key[ops].tolist(), ops.tolist(), strict=True))


def _relevant_keys(
    history: History,
    external: ExternalReads,
    writes: dict[int, list[tuple[int, int]]],
    conflicts: bool,
) -> set[int]:
    times = Counter(key for written in writes.values() for key in dict(written))
    read = {int(history.op_key[o]) for reads in external.values() for o, _ in reads}
    return {key for key, count in times.items() if key in read or (conflicts and count > 1)}


def _add_nodes(
    observed: Observed,
    external: ExternalReads,
    writes: dict[int, list[tuple[int, int]]],
    keys: set[int],
) -> None:
    history = observed.history
    observed.sessions = [[] for _ in range(history.sessions)]
    node_of: dict[int, int] = {}
    for t in observed.live:
        written = [(key, o) for key, o in writes[t] if key in keys]
        reads = external.get(t, ())
        if written or any(int(history.op_key[o]) in keys for o, _ in reads):
            node_of[t] = observed.size
            observed.sessions[int(history.txn_session[t])].append(observed.size)
            observed.txns.append(t)
            observed.writes.append(dict(written))
            observed.first_writes.append(dict(reversed(written)))
            observed.first_op.append(min([*(o for _, o in writes[t]), *(o for o, _ in reads)]))
    for t, node in node_of.items():
        for o, source in external.get(t, ()):
            key = int(history.op_key[o])
            if key in keys:
                seen = source if source is None or source == INITIAL else node_of[source]
                choices = tuple(_possible_writers(observed, node, key, seen))
                observed.reads.append(Read(len(observed.reads), node, o, key, seen, choices))


def _possible_writers(observed: Observed, reader: int, key: int, seen: int | None) -> Iterator[int]:
    if seen == INITIAL or has_initial_state(observed.history):
        yield INITIAL
    for writer in observed.writers[key]:
        if writer != reader and not observed.precedes(reader, writer):
            yield writer


def has_initial_state(history: History) -> bool:
    """Return whether there is an initial state that a read can return."""
    return history.initial is not None or history.init_txn != NOBODY


def _add_cuts(observed: Observed, external: ExternalReads) -> None:
    """Add the cuts.

    Reads of a node share a cut if there is no relevant operation between them; so do adjacent transactions without a
    node.
    """
    history = observed.history
    node_of = observed.node_of
    kept = {read.op for read in observed.reads}
    kept.update(*(written.values() for written in (*observed.writes, *observed.first_writes)))
    observed.cuts = [[] for _ in range(history.sessions)]
    for t, reads in external.items():
        cuts, node = observed.cuts[int(history.txn_session[t])], node_of.get(t, NOBODY)
        for o, _ in reads:
            place = Cut(o, t, node)
            if cuts and cuts[-1].node == node and _same_place(observed, cuts[-1], place, kept, node_of):
                continue
            cuts.append(place)


def _same_place(observed: Observed, last: Cut, new: Cut, keys: set[int], node_of: dict[int, int]) -> bool:
    if new.node == NOBODY:
        return not any(t in node_of for t in range(last.txn + 1, new.txn))
    if observed.boundary == "relaxed":
        return True
    return new.op not in keys and not any(o in keys for o in range(last.op, new.op))


def _add_notes(observed: Observed, resolved: Reads) -> None:
    history = observed.history
    if history.lists is not None:
        observed.notes.append("lists are taken as registers: a read of a list reads from whoever appended last")
    unknown = [t for t in observed.txns if not resolved.judged[t]]
    if unknown:
        count = f"{len(unknown)} transaction{'s' if len(unknown) > 1 else ''} of unknown outcome"
        observed.notes.append(f"{count} {'are' if len(unknown) > 1 else 'is'} assumed to commit")
