"""What an allocation ranges over: the groups that get a level, and the workloads in which each must be safe.

For a workload the groups are its instances, or its programs. For templates the groups are the programs, and every
workload of theirs counts, however many instances it has. That is decided on small ones: a critical cycle at P2 needs
P1 and P3, and a way back that avoids P2; a second instance with the parameters of P2 shares with P1 and P3 whatever P2
shares with them, so in all workloads together the way back always exists. What is left depends only on which of their
parameters P1 and P3 share with P2. So P2 is judged in the company of every program with every choice of parameters,
each one of P2's, one that a program names, or a fresh one, twice over, and after a session predecessor: whoever is no
pivot there is none anywhere. Where P2 accesses every row it also meets P1 and P3 in rows of their own, so there are two
fresh values then.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, product

import numpy as np

from plume_py.base.errors import LimitError
from plume_py.history.model import Bools, Int8s
from plume_py.reasoning.allocate.control_flow import outcomes
from plume_py.reasoning.allocate.read_write_sets import Sets, gather
from plume_py.reasoning.allocate.rules import Refined, guards
from plume_py.reasoning.allocate.workload import EVERY, Instance, Program, Workload

# A neighbourhood beyond this is not looked at: "too large" is said instead.
MOST_INSTANCES = 200_000

# In place of a value: one that neither the pivot has nor a program names, and another such.
FRESH = ("", "'")


@dataclass
class WorkloadCase:
    """A workload, the group of each of its instances, and those that are judged in it."""

    workload: Workload
    group: list[int]
    judged: list[int]
    as_given: bool = True  # these instances and no others, so that none comes without those before it in its session

    follows: list[bool] | None = None  # may another run before it in its session? if that is not to be seen here

    def __post_init__(self) -> None:
        self.rules = Refined(self._sets(self.workload))

    def _sets(self, workload: Workload, owner: Sequence[int] | None = None) -> Sets:
        """The sets of the workload, or of the ways of its instances, which stand at the places of their owners."""
        sets = gather(workload)
        if owner is not None:
            sets.place = self.rules.sets.place[np.array(owner, np.int64)]
            sets.follows = sets.place > 0
        if self.follows is not None:
            sets.follows = np.array([self.follows[i] for i in owner or range(len(self.follows))], np.bool_)
        return sets

    @cached_property
    def _by_way(self) -> "tuple[Refined, list[int]] | None":
        """The rules for all ways of all instances, and whose they are; None where each has one."""
        apart = outcomes(self.workload)
        return None if apart is None else (Refined(self._sets(*apart)), apart[1])

    def safe(self, levels_by_cost: Sequence[str]) -> Bools:
        """For each instance and each level: no pivot, or none on any of its ways?"""
        table = self.rules.safe(levels_by_cost)
        if table[np.array(self.judged, np.int64)].all() or self._by_way is None:
            return table
        rules, owner = self._by_way
        apart = np.ones_like(table)
        np.logical_and.at(apart, np.array(owner, np.int64), rules.safe(levels_by_cost))
        both: Bools = table | apart
        return both

    def pivot(self, p: int, level: str, guarded: Int8s) -> bool:
        """Is p the pivot of a critical cycle at this level? The rules then describe it."""
        if not self.rules.pivot(p, level, guarded):
            return False
        if self._by_way is None:
            return True
        rules, owner = self._by_way
        by_owner: Int8s = guarded[np.array(owner, np.int64)]
        own = range(bisect_left(owner, p), bisect_right(owner, p))
        return any(rules.pivot(way, level, by_owner) for way in own)

    def dangerous(self, pivots: Sequence[int], guarded: Int8s) -> set[int]:
        """All partners in the pairs of RW edges at these pivots."""
        if self._by_way is None:
            return set(self.rules.dangerous(pivots, guarded))
        rules, owner = self._by_way
        chosen, by_owner = set(pivots), guarded[np.array(owner, np.int64)]
        return {owner[way] for way in rules.dangerous((w for w, i in enumerate(owner) if i in chosen), by_owner)}

    def run_with(self, chosen: Collection[int]) -> list[int]:
        """These instances and what has to run before them, in the order of the sessions. All others may run later."""
        if not self.as_given:
            return sorted(chosen)
        session, place = self.rules.sets.session.tolist(), self.rules.sets.place.tolist()
        last: dict[int, int] = {}
        for i in chosen:
            last[session[i]] = max(last.get(session[i], 0), place[i])
        return [i for i in range(len(session)) if place[i] <= last.get(session[i], -1)]

    def guards(self, levels: Sequence[str]) -> Int8s:
        """How the instances guard what they write when the groups run at ``levels``."""
        by_group: Int8s = guards(levels)[np.array(self.group, np.int64)]
        return by_group


@dataclass
class Space:
    """The groups by name, and all cases."""

    groups: list[str]
    cases: list[WorkloadCase]
    scope: str  # what the answer is about, for people
    of_workload: bool = True  # one workload, not all workloads of templates

    def safe(self, levels_by_cost: Sequence[str]) -> Bools:
        """For each group and each level: safe in all cases?"""
        table = np.ones((len(self.groups), len(levels_by_cost)), np.bool_)
        for case in self.cases:
            judged = np.array(case.judged, np.int64)
            np.logical_and.at(table, np.array(case.group, np.int64)[judged], case.safe(levels_by_cost)[judged])
        return table

    def pivot(self, group: int, level: str, levels: Sequence[str]) -> "tuple[WorkloadCase, int] | None":
        """Where an instance of the group is the pivot of a critical cycle (described by the case's rules)."""
        for case in self.cases:
            guarded = case.guards(levels)
            for p in case.judged:
                if case.group[p] == group and case.pivot(p, level, guarded):
                    return case, p
        return None

    def partners(self, pivots: Sequence[int], levels: Sequence[str]) -> set[int]:
        """The groups of all partners in pairs of RW edges at instances of these groups."""
        found: set[int] = set()
        chosen = set(pivots)
        for case in self.cases:
            judged = [p for p in case.judged if case.group[p] in chosen]
            found |= {case.group[q] for q in case.dangerous(judged, case.guards(levels))}
        return found


def of_instances(workload: Workload) -> Space:
    """A level for each instance."""
    everyone = list(range(len(workload.instances)))
    names = [instance.name for instance in workload.instances]
    return Space(names, [WorkloadCase(workload, everyone, everyone)], f"this workload of {len(everyone):,} instances")


def of_programs(workload: Workload) -> Space:
    """A level for each program of one workload."""
    names = list(dict.fromkeys(instance.program for instance in workload.instances))
    number = {name: g for g, name in enumerate(names)}
    group = [number[instance.program] for instance in workload.instances]
    case = WorkloadCase(workload, group, list(range(len(group))))
    return Space(names, [case], f"this workload of {len(group):,} instances")


def of_templates(programs: Sequence[Program], followers: Collection[str] | None = None) -> Space:
    """A level for each program, for all workloads; ``followers`` may follow another in a session (None: all may)."""
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
    """Two parameters are of one type when they stand at the same place in the key of a table."""

    of: dict[tuple[str, str], str]  # a representative for each (program, parameter)
    constants: dict[str, set[str]]  # by type: values that programs name themselves
    named: set[str]  # all of these


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
    """Which of its parameters may be equal: values by parameter, each way once."""

    def extend(values: dict[str, str], rest: tuple[str, ...]) -> Iterator[dict[str, str]]:
        if not rest:
            yield values
            return
        kind = types.of[program.name, rest[0]]
        same = {value for param, value in values.items() if types.of[program.name, param] == kind}
        fresh = _fresh(rest[0], {*values.values(), *types.named})
        for value in [fresh, *sorted(same | types.constants.get(kind, set()))]:
            yield from extend({**values, rest[0]: value}, rest[1:])

    return extend({}, program.params)


def _neighbourhood(
    programs: Sequence[Program], types: Types, g: int, values: dict[str, str], follows: Sequence[bool]
) -> WorkloadCase:
    """An instance of program g with these values, after a copy of itself, among all that can share cells with it."""
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
    """The values of this type that the pivot has or a program names, and what stands for any other."""
    own = {value for param, value in values.items() if types.of[pivot.name, param] == kind}
    ranges = any(access.whole_table for access in pivot.accesses)
    return [*sorted(own | types.constants.get(kind, set())), *FRESH[: 2 if ranges else 1]]


def _filled(params: tuple[str, ...], chosen: tuple[str, ...], taken: set[str]) -> list[str]:
    """Values that neither the pivot has nor a program names, where none of those was chosen."""
    filled: list[str] = []
    for param, value in zip(params, chosen, strict=True):
        filled.append(_fresh(param + value, {*taken, *filled}) if value in FRESH else value)
    return filled


def _fresh(param: str, taken: Iterable[str]) -> str:
    """A value named after the parameter."""
    names = (param.lower() + suffix for suffix in chain([""], map(str, count(2))))
    return next(name for name in names if name not in taken)
