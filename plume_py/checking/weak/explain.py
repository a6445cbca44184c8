"""Counterexamples of weak levels: for each pattern that occurs, a small instance with its argument.

``verdicts`` calls ``examples``. Triples and cycles become steps; patterns of one read become one sentence.
"""

from typing import TypeVar

import numpy as np

from plume_py.base.text import display, key_text, txn_text
from plume_py.checking.graph.analysis import Analysis, causal_path, cycle_path
from plume_py.checking.graph.causal import CommitOrder, Forced
from plume_py.checking.graph.reads import faults, version_sources
from plume_py.checking.result import Step, Violation
from plume_py.checking.steps import StepWriter, list_text
from plume_py.checking.violation import Argument, complete
from plume_py.checking.weak.classify import PatternCounts, Triple
from plume_py.checking.weak.decide import WeakLevels
from plume_py.history.model import APPEND, INITIAL, READ_LIST
from plume_py.history.value_codes import Atom
from plume_py.levels.patterns import DUPLICATE, INCOMPATIBLE, TORN, TRIPLES, VERSION_CYCLE

T = TypeVar("T")

# Number of instances built per pattern, of which the smallest are shown.
TRIED = 24

_LEVEL_OF = {letter: level for level, letters in TRIPLES.items() for letter in letters}


def examples(weak: WeakLevels, named: PatternCounts, pattern: str, limit: int) -> list[Violation]:
    """Return up to ``limit`` instances of ``pattern``, the smallest first."""
    analysis = weak.analysis
    if limit == 0:
        return []
    if pattern in named.triples:
        triples = _spread(named.triples[pattern], max(TRIED, limit))
        made = [_triple(weak, pattern, triple) for triple in triples]
    elif pattern == "g":
        made = [_causal_cycle(analysis, r) for r in _spread(analysis.reads_on_cycles.tolist(), max(TRIED, limit))]
    elif pattern == VERSION_CYCLE:
        made = [_version_cycle(analysis)]
    else:
        ops = sorted(analysis.reads.examples[pattern], key=lambda o: _length(analysis, o))
        made = [_single(analysis, pattern, o) for o in ops[:limit]]
    return sorted(made, key=_size)[:limit]


def _spread(candidates: list[T], count: int) -> list[T]:
    """Return at most ``count`` candidates, spread over the list."""
    return candidates[:: max(1, len(candidates) // count)][:count]


def _size(violation: Violation) -> tuple[int, int, int]:
    shown_ops = sum(len(t.ops) for t in violation.transactions)
    return len(violation.transactions), len(violation.steps), shown_ops


def _length(analysis: Analysis, o: int) -> int:
    start = analysis.history.txn_start
    t = int(np.searchsorted(start, o, side="right")) - 1
    return int(start[t + 1] - start[t])


def _triple(weak: WeakLevels, pattern: str, triple: Triple) -> Violation:
    """Return the violation of a triple: t1 comes before t2, and yet the level forces t2 before t1."""
    analysis = weak.analysis
    writer = StepWriter(analysis)
    level = _LEVEL_OF[pattern]
    forced = writer.forced_step(level, triple.t2, triple.r)
    if triple.t1 == INITIAL:
        return complete(writer, pattern, Argument([forced]))
    order = weak.commit_order(level)
    if pattern in "hkm":
        path = causal_path(analysis, triple.t1, triple.t2)
    else:
        path = cycle_path(analysis, order.extra, order.ordering, triple.t1, triple.t2)
    return complete(writer, pattern, Argument([*writer.path_steps(path, level, order), forced]))


def _causal_cycle(analysis: Analysis, r: int) -> Violation:
    writer = StepWriter(analysis)
    reader, source = analysis.reads.reader(r), int(analysis.reads.read_source[r])
    back = cycle_path(analysis, analysis.time_predecessors, analysis.causal, reader, source)
    return complete(writer, "g", Argument([writer.read_step(r), *writer.path_steps(back)]))


def _version_cycle(analysis: Analysis) -> Violation:
    """Return a cycle through a version order: one pair of appends, and a path back."""
    writer = StepWriter(analysis)
    rows, component = analysis.reads.version_order, analysis.version_ordering.component
    inside = (component[rows[:, 0]] >= 0) & (component[rows[:, 0]] == component[rows[:, 1]])
    a, b, _, i = rows[np.flatnonzero(inside)[0]].tolist()
    extra = analysis.edges_into(rows)
    order = CommitOrder(Forced(rows, 0), extra, analysis.version_ordering)
    back = cycle_path(analysis, extra, analysis.version_ordering, b, a)
    first = writer.version_step(a, b, writer.list_op(i))
    return complete(writer, VERSION_CYCLE, Argument([first, *writer.path_steps(back, "", order)]))


def _single(analysis: Analysis, pattern: str, o: int) -> Violation:
    """Return the violation of one read: the reader and, if there is one, the writer of the value."""
    history = analysis.history
    writer = StepWriter(analysis)
    t, version = writer.owner(o), int(history.op_version[o])
    key, value = writer.key(int(history.op_key[o])), history.value(version)
    reader, source = writer.name(t), int(history.version_writer[version])
    if pattern == "j":
        return complete(writer, "j", _two_sources(analysis, writer, t, o))
    if history.op_kind[o] == READ_LIST:
        return complete(writer, pattern, list_argument(writer, pattern, o))
    read, other = writer.read_text(o), txn_text(history.txn_label[source]) if source >= 0 else ""
    why = {
        "a": f"{read}, which nobody wrote",
        "b": f"{read} from {other}, which aborted",
        "c": f"{read}, which it wrote itself only afterwards",
        "d": f"{read}, although it had itself written {key_text(key)} before",
        "e": f"{read}, its own write, although it had overwritten it",
        "f": f"{read}, which {other} overwrote before it committed",
    }[pattern]
    steps = []
    if source >= 0 and source != t and source != history.init_txn:
        wrote = writer.write_op(source, version)
        steps = [Step(writer.name(source), reader, "WR", key, read, value, source_op=wrote, target_op=o)]
    return complete(writer, pattern, Argument(steps, why, [o]))


def _two_sources(analysis: Analysis, writer: StepWriter, t: int, o: int) -> Argument:
    """Return the first read of the key, and the one from another transaction."""
    reads, key = analysis.reads, analysis.history.op_key
    span = range(int(reads.read_start[t]), int(reads.read_start[t + 1]))
    of_key = [r for r in span if key[reads.read_op[r]] == key[o]]
    second = next(r for r in of_key if reads.read_op[r] == o)
    both = [of_key[0], second]
    return Argument([writer.read_step(r) for r in both], culprits=[int(reads.read_op[r]) for r in both])


# Lists


def list_argument(writer: StepWriter, pattern: str, o: int) -> Argument:
    """Return the fault of the list that operation ``o`` read."""
    history = writer.history
    assert history.lists is not None
    read, t, x = writer.read_text(o), writer.owner(o), int(history.op_key[o])
    if pattern == INCOMPATIBLE:
        other = writer.list_op(int(writer.reads.list_reference[x]))
        writer.name(writer.owner(other))
        return Argument([], f"{writer.read_text(other)}, but {read}", [other, o])
    i = int(history.lists.ops.searchsorted(o))
    place = faults(history, writer.reads.judged, version_sources(history), i)[pattern]
    if pattern in "de":
        own = list_text(_appended(writer, t, x, before=o))
        wrong = "does not end in any of these" if pattern == "d" else "does not end in exactly these"
        had = f"{txn_text(writer.name(t))} had appended {own} to {key_text(history.key(x))}"
        return Argument([], f"{had}, but {read}, which {wrong}", [o])
    version = int(history.lists.items[place])
    element, source = display(history.value(version)), int(history.version_writer[version])
    if pattern in (TORN, "f"):
        return _incomplete(writer, pattern, o, version)
    aborted = txn_text(history.txn_label[source]) if pattern == "b" else ""
    why = {
        "a": f"nobody appended {element}",
        "b": f"{element} was appended by {aborted}, which aborted",
        "c": f"{element} is its own, and it appended it only afterwards",
        DUPLICATE: f"{element} is there more than once",
    }[pattern]
    return Argument([], f"{read}: {why}", [o])


def _incomplete(writer: StepWriter, pattern: str, o: int, version: int) -> Argument:
    """Return the argument that the list lacks, separates or reorders appends of the writer of ``version``."""
    history = writer.history
    source, value = int(history.version_writer[version]), history.value(version)
    appended = _appended(writer, source, int(history.op_key[o]))
    items = history.op(o).value
    assert isinstance(items, tuple)
    visible = [v for v, t in zip(items, writer.list_writers(o), strict=True) if t == source]
    missing = [v for v in appended if v not in visible]
    names, key = (writer.name(source), writer.name(writer.owner(o))), writer.key(int(history.op_key[o]))
    theirs = f"{txn_text(names[0])}'s append"
    if pattern == "f":
        how = (
            f"{theirs} of {display(value)}, but not of {display(missing[0])}, which followed it" if missing else theirs
        )
    elif missing:
        how = f"{theirs} of {display(visible[0])} but not of {display(missing[0])}"
    elif visible == appended:
        how = f"{theirs}s {list_text(appended)} apart"
    else:
        how = f"{theirs}s {list_text(appended)} in another order"
    read, wrote = writer.read_text(o), writer.write_op(source, version)
    step = Step(*names, "WR", key, read, value, source_op=wrote, target_op=o)
    return Argument([step], f"{read}: that shows {how}", [o])


def _appended(writer: StepWriter, t: int, x: int, before: int | None = None) -> list[Atom]:
    """Return the values that t appended to x, in program order, up to operation ``before``."""
    history = writer.history
    ops = range(int(history.txn_start[t]), int(history.txn_start[t + 1]) if before is None else before)
    mine = [o for o in ops if history.op_kind[o] == APPEND and history.op_key[o] == x]
    return [history.value(int(history.op_version[o])) for o in mine]
