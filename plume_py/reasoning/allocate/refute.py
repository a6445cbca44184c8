"""Search a real history for a critical cycle: one that satisfies the levels and is not serializable.

The rules only say that a cycle cannot be excluded. Here the instances of the cycle are given to the synthesis of
histories (reasoning.synth). A history that it finds satisfies the declared levels and violates serializability,
according to the checker.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from plume_py.base.limits import Limits
from plume_py.history.builder import HistoryBuilder
from plume_py.history.model import History
from plume_py.levels import STRONGEST, WEAKEST
from plume_py.reasoning.allocate.workload import EVERY, Access, Instance, Workload
from plume_py.reasoning.synth import Program, Scope, synthesize
from plume_py.reasoning.synth.concrete_history import ConcreteHistory

# Limits on instances, on choices of their conditional accesses, and on cells.
MOST_INSTANCES = 8
MOST_OUTCOMES = 256
MOST_CELLS = 26


@dataclass(frozen=True)
class AccessSets:
    """The keys that one instance reads from others and writes, for one choice of its conditional accesses."""

    reads: frozenset[str]
    writes: frozenset[str]


def refute(workload: Workload, levels: Sequence[str], limits: Limits | None = None) -> History | None:
    """Return a non-serializable run of all these instances at these levels, or None.

    All choices of the conditional accesses are tried, up to MOST_OUTCOMES. ``exhaustive`` says whether these are all.
    """
    for outcome in islice(_outcomes(workload.instances), MOST_OUTCOMES):
        found = _search(workload, outcome, levels, limits)
        if found is not None:
            return found
    return None


def exhaustive(workload: Workload, levels: Sequence[str]) -> bool:
    """Return whether the workload is small enough that ``refute`` finds a non-serializable run if there is one.

    That is never so at RC: the order of reads matters there, and each of several reads of a cell counts separately.
    """
    if WEAKEST in levels:
        return False
    choices = 1
    for instance in workload.instances:
        choices *= 2 ** sum(access.conditional for access in instance.accesses)
    whole = any(access.whole_table for instance in workload.instances for access in instance.accesses)
    return not whole and _fits(workload) and choices <= MOST_OUTCOMES


def _fits(workload: Workload) -> bool:
    cells = {access.cell for instance in workload.instances for access in instance.accesses}
    return len(workload.instances) <= MOST_INSTANCES and len(cells) <= MOST_CELLS


def _outcomes(instances: Sequence[Instance]) -> Iterator[tuple[AccessSets, ...]]:
    """Yield choices for the conditional accesses of all instances. In the first, all happen."""
    return product(*(list(islice(_turnouts(instance), MOST_OUTCOMES)) for instance in instances))


def _turnouts(instance: Instance) -> Iterator[AccessSets]:
    accesses = [row for access in instance.accesses for row in _rows(access)]
    maybe = [i for i, access in enumerate(accesses) if access.conditional]
    for chosen in product((True, False), repeat=len(maybe)):
        left_out = {i for i, happens in zip(maybe, chosen, strict=True) if not happens}
        reads, writes = set[str](), set[str]()
        for i, access in enumerate(accesses):
            if i in left_out:
                continue
            if access.reads and access.cell not in writes:
                reads.add(access.cell)
            if access.writes:
                writes.add(access.cell)
        yield AccessSets(frozenset(reads), frozenset(writes))


def _rows(access: Access) -> list[Access]:
    """Return an access to every row as accesses to two rows: it reads both, and may write any of them."""
    if not access.whole_table:
        return [access]
    return [
        replace(
            access,
            key=tuple(part + str(row) if part == EVERY else part for part in access.key),
            conditional=access.conditional or access.writes,
        )
        for row in (1, 2)
    ]


def _search(
    workload: Workload, outcome: Sequence[AccessSets], levels: Sequence[str], limits: Limits | None
) -> History | None:
    kept = [i for i, sets in enumerate(outcome) if sets.reads or sets.writes]
    # a cell matters only if several instances access it and one of them writes it
    cells = [c for c in sorted({c for s in outcome for c in s.reads | s.writes}) if _matters(outcome, c)]
    kept = [i for i in kept if (outcome[i].reads | outcome[i].writes).intersection(cells)]
    if len(kept) < 2 or len(cells) > MOST_CELLS or len(kept) > MOST_INSTANCES:
        return None
    number = {cell: x for x, cell in enumerate(cells)}
    fixed = [
        Program(
            frozenset(number[c] for c in outcome[i].reads if c in number),
            frozenset(number[c] for c in outcome[i].writes if c in number),
            workload.session[i],
            levels[i],
        )
        for i in kept
    ]
    scope = Scope(txns=len(kept), keys=len(cells), values=len(kept) + 1)
    result = synthesize(["declared"], [STRONGEST], scope, fixed=fixed, limits=limits)
    if not result.found:
        return None
    return _named(result.found[0].concrete, workload, kept, cells)


def _matters(outcome: Sequence[AccessSets], cell: str) -> bool:
    users = [sets for sets in outcome if cell in sets.reads | sets.writes]
    return len(users) > 1 and any(cell in sets.writes for sets in users)


def _named(concrete: ConcreteHistory, workload: Workload, numbers: Sequence[int], cells: Sequence[str]) -> History:
    """Return the history with the names of instances and cells. Values count the writers of a cell."""
    builder = HistoryBuilder(initial=0)
    for t in concrete.by_session():
        txn, instance = concrete.txns[t], workload.instances[numbers[int(concrete.name(t)[1:]) - 1]]
        reads = [("r", cells[x], concrete.value(x, writer)) for x, writer in txn.reads]
        writes = [("w", cells[x], concrete.value(x, t)) for x in txn.writes]
        builder.add(txn.session + 1, reads + writes, id=instance.name, level=txn.level)
    return builder.build(init_txn="none")
