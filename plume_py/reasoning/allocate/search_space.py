"""Groups that get a level, and the cases (workloads) in which each group must be safe.

For a workload, the groups are its instances or its programs, and there is one case. For templates, the groups are the
programs, and each must be safe in all workloads of the templates, with any number of instances. Small workloads decide
this:

A critical cycle at P2 needs P1, P3, and a path back from P3 to P1 that avoids P2. A second instance with the parameters
of P2 shares with P1 and P3 all that P2 shares with them. So in some workload the path back always exists, and it only
matters which parameters P1 and P3 share with P2. The case of P2 (``_neighbourhood``) therefore has two instances of
every program with every choice of parameters: one of P2's values, a constant of a program, or a fresh value. A session
predecessor precedes P2. An instance that is not a pivot there is not a pivot in any workload. If P2 accesses every row,
it also meets P1 and P3 in rows that nothing else accesses, so there are two fresh values.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, product

import numpy as np

from plume_py.base.errors import LimitError
from plume_py.history.model import Bools, Int8s
from plume_py.reasoning.allocate.control_flow import expand_paths
from plume_py.reasoning.allocate.read_write_sets import Sets, gather
from plume_py.reasoning.allocate.rules import RefinedRules, guards
from plume_py.reasoning.allocate.workload import EVERY, Instance, Program, Workload

# A neighbourhood with more instances is an error.
MOST_INSTANCES = 200_000

# Placeholders for two different values that neither the pivot nor a program uses.
FRESH = ("", "'")


@dataclass
class WorkloadCase:
    """A workload, the group of each of its instances, and the instances that are judged in it."""

    workload: Workload
    group: list[int]
    judged: list[int]
    as_given: bool = True  # exactly these instances: each comes with its session predecessors
    follows: list[bool] | None = None  # of instances: may have a session predecessor; None: as in ``workload``

    def __post_init__(self) -> None:
        self.rules = RefinedRules(self._sets(self.workload))

    def _sets(self, workload: Workload, owner: Sequence[int] | None = None) -> Sets:
        """Return the read and write sets of the workload, or of its execution paths in their owners' sessions."""
        sets = gather(workload)
        if owner is not None:
            sets.place = self.rules.sets.place[np.array(owner, np.int64)]
            sets.follows = sets.place > 0
        if self.follows is not None:
            sets.follows = np.array([self.follows[i] for i in owner or range(len(self.follows))], np.bool_)
        return sets

    @cached_property
    def _by_path(self) -> "tuple[RefinedRules, list[int]] | None":
        """The rules for all execution paths and the instance of each path; None if every instance has one path."""
        expanded = expand_paths(self.workload)
        return None if expanded is None else (RefinedRules(self._sets(*expanded)), expanded[1])

    def safe(self, levels: Sequence[str]) -> Bools:
        """Return a table [instance, level]: whether it is not a pivot there, as a whole or on each of its paths."""
        table = self.rules.safe(levels)
        if table[np.array(self.judged, np.int64)].all() or self._by_path is None:
            return table
        rules, owner = self._by_path
        on_all_paths = np.ones_like(table)
        np.logical_and.at(on_all_paths, np.array(owner, np.int64), rules.safe(levels))
        safe: Bools = table | on_all_paths
        return safe

    def pivot(self, p: int, level: str, guarded: Int8s) -> bool:
        """Return whether p is the pivot of a critical cycle at this level. ``rules.cycle`` then describes it."""
        if not self.rules.pivot(p, level, guarded):
            return False
        if self._by_path is None:
            return True
        rules, owner = self._by_path
        by_owner: Int8s = guarded[np.array(owner, np.int64)]
        own = range(bisect_left(owner, p), bisect_right(owner, p))
        return any(rules.pivot(path, level, by_owner) for path in own)

    def partners(self, pivots: Sequence[int], guarded: Int8s) -> set[int]:
        """Return all partners of these pivots in pairs of RW edges."""
        if self._by_path is None:
            return set(self.rules.partners(pivots, guarded))
        rules, owner = self._by_path
        chosen, by_owner = set(pivots), guarded[np.array(owner, np.int64)]
        return {owner[path] for path in rules.partners((w for w, i in enumerate(owner) if i in chosen), by_owner)}

    def run_with(self, chosen: Collection[int]) -> list[int]:
        """Return these instances and their session predecessors, in session order."""
        if not self.as_given:
            return sorted(chosen)
        session, place = self.rules.sets.session.tolist(), self.rules.sets.place.tolist()
        last: dict[int, int] = {}
        for i in chosen:
            last[session[i]] = max(last.get(session[i], 0), place[i])
        return [i for i in range(len(session)) if place[i] <= last.get(session[i], -1)]

    def guards(self, levels: Sequence[str]) -> Int8s:
        """Return how the instances detect concurrent writes if the groups run at ``levels``."""
        by_group: Int8s = guards(levels)[np.array(self.group, np.int64)]
        return by_group


@dataclass
class Space:
    """The groups by name, and all cases."""

    groups: list[str]
    cases: list[WorkloadCase]
    scope: str  # which workloads the answer covers, for reports
    of_workload: bool = True  # False: all workloads of templates

    def safe(self, levels: Sequence[str]) -> Bools:
        """Return a table [group, level]: whether the group is safe there in all cases."""
        table = np.ones((len(self.groups), len(levels)), np.bool_)
        for case in self.cases:
            judged = np.array(case.judged, np.int64)
            np.logical_and.at(table, np.array(case.group, np.int64)[judged], case.safe(levels)[judged])
        return table

    def pivot(self, group: int, level: str, levels: Sequence[str]) -> "tuple[WorkloadCase, int] | None":
        """Return a case and an instance of the group that is a pivot of a critical cycle in it, or None.

        The rules of the case then describe the cycle.
        """
        for case in self.cases:
            guarded = case.guards(levels)
            for p in case.judged:
                if case.group[p] == group and case.pivot(p, level, guarded):
                    return case, p
        return None

    def partners(self, pivots: Sequence[int], levels: Sequence[str]) -> set[int]:
        """Return the groups of all partners of instances of these groups in pairs of RW edges."""
        found: set[int] = set()
        chosen = set(pivots)
        for case in self.cases:
            judged = [p for p in case.judged if case.group[p] in chosen]
            found |= {case.group[q] for q in case.partners(judged, case.guards(levels))}
        return found


def of_instances(workload: Workload) -> Space:
    """Return the space with a level for each instance."""
    numbers = list(range(len(workload.instances)))
    names = [instance.name for instance in workload.instances]
    return Space(names, [WorkloadCase(workload, numbers, numbers)], f"this workload of {len(numbers):,} instances")


def of_programs(workload: Workload) -> Space:
    """Return the space with a level for each program of one workload."""
    names = list(dict.fromkeys(instance.program for instance in workload.instances))
    number = {name: g for g, name in enumerate(names)}
    group = [number[instance.program] for instance in workload.instances]
    case = WorkloadCase(workload, group, list(range(len(group))))
    return Space(names, [case], f"this workload of {len(group):,} instances")


def of_templates(programs: Sequence[Program], followers: Collection[str] | None = None) -> Space:
    """Return the space with a level for each program, for all workloads.

    The programs in ``followers`` may have a session predecessor; None allows it to all.
    """
    types = _types(programs)
    follows = [followers is None or program.name in followers for program in programs]
    cases = [
        _neighbourhood(programs, types, g, values, follows)
        for g, program in enumerate(programs)
        for values in _patterns(program, types)
    ]
    scope = "every workload of these programs, of any number of instances"
    if followers is not None:
        scope += f", in which {', '.join(followers) or 'none'} may follow another in a session"
    return Space([program.name for program in programs], cases, scope, of_workload=False)


@dataclass(frozen=True)
class Types:
    """Types of parameters: two have the same type if they occur at the same position in the key of a table."""

    of: dict[tuple[str, str], str]  # (program, parameter) -> representative of its type
    constants: dict[str, set[str]]  # type -> values that programs name
    named: set[str]  # all constants


def _types(programs: Sequence[Program]) -> Types:
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    constants: list[tuple[str, str]] = []
    for program in programs:
        for access in program.accesses:
            for at, part in enumerate(access.key):
                place = f"{access.table} {at}"
                if part in program.params:
                    parent[find(f"{program.name} {part}")] = find(place)
                elif part != EVERY:
                    constants.append((place, part))
    by_type: dict[str, set[str]] = {}
    for place, value in constants:
        by_type.setdefault(find(place), set()).add(value)
    of = {(program.name, param): find(f"{program.name} {param}") for program in programs for param in program.params}
    return Types(of, by_type, set[str]().union(*by_type.values()))


def _patterns(program: Program, types: Types) -> Iterator[dict[str, str]]:
    """Yield the values of the parameters, once for each way in which they may equal each other or constants."""

    def extend(values: dict[str, str], remaining: tuple[str, ...]) -> Iterator[dict[str, str]]:
        if not remaining:
            yield values
            return
        kind = types.of[program.name, remaining[0]]
        same = {value for param, value in values.items() if types.of[program.name, param] == kind}
        fresh = _fresh(remaining[0], {*values.values(), *types.named})
        for value in [fresh, *sorted(same | types.constants.get(kind, set()))]:
            yield from extend({**values, remaining[0]: value}, remaining[1:])

    return extend({}, program.params)


def _neighbourhood(
    programs: Sequence[Program], types: Types, g: int, values: dict[str, str], follows: Sequence[bool]
) -> WorkloadCase:
    """Return the case of program g with these values: two instances of each program per choice of parameters."""
    pivot = programs[g]
    before = [pivot(*values.values())] if follows[g] else []
    rows: list[tuple[Instance, int, int]] = [(instance, g, 0) for instance in before] + [
        (pivot(*values.values()), g, 0)
    ]
    taken = {*values.values(), *types.named}
    for q, program in enumerate(programs):
        choices = [_choices(types, pivot, values, types.of[program.name, param]) for param in program.params]
        if len(rows) + 2 * int(np.prod([len(c) for c in choices], dtype=float)) > MOST_INSTANCES:
            raise LimitError(f"program {program.name} has too many parameters to decide for all workloads")
        for chosen in product(*choices):
            for _ in range(2):
                rows.append((program(*_filled(program.params, chosen, taken)), q, len(rows)))
    workload = Workload([row[0] for row in rows], [row[2] for row in rows])
    groups = [row[1] for row in rows]
    return WorkloadCase(workload, groups, [len(before)], as_given=False, follows=[follows[q] for q in groups])


def _choices(types: Types, pivot: Program, values: dict[str, str], kind: str) -> list[str]:
    """Return the values of this type: the pivot's, programs' constants, and placeholders for fresh values."""
    own = {value for param, value in values.items() if types.of[pivot.name, param] == kind}
    ranges = any(access.whole_table for access in pivot.accesses)
    return [*sorted(own | types.constants.get(kind, set())), *FRESH[: 2 if ranges else 1]]


def _filled(params: tuple[str, ...], chosen: tuple[str, ...], taken: set[str]) -> list[str]:
    """Replace placeholders by values that neither the pivot nor a program uses."""
    filled: list[str] = []
    for param, value in zip(params, chosen, strict=True):
        filled.append(_fresh(param + value, {*taken, *filled}) if value in FRESH else value)
    return filled


def _fresh(param: str, taken: Iterable[str]) -> str:
    """Return a value that is named after the parameter and not taken."""
    names = (param.lower() + suffix for suffix in chain([""], map(str, count(2))))
    return next(name for name in names if name not in taken)
