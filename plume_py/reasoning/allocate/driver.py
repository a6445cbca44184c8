"""Allocate levels and decide robustness, from a file or a built-in benchmark to an answer.

The commands ``allocate`` and ``robust``, and programs that use the package, call ``open_workload`` (or ``open_log``)
and then ``answer_allocation`` or ``answer_robustness``. ``draw`` makes instances of templates. The built-in benchmarks
are the three that MixIso measures.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from plume_py.base.errors import InputError, IsocheckError, LimitError
from plume_py.base.limits import Limits
from plume_py.levels import STRONGEST, WEAKEST, visibility_bits
from plume_py.reasoning.allocate.catalogue import CATALOGUES, Catalogue, allocate, find_pins
from plume_py.reasoning.allocate.critical_cycle import CriticalCycle, why_not_weaker
from plume_py.reasoning.allocate.report import Allocation
from plume_py.reasoning.allocate.robust import Robustness, robust
from plume_py.reasoning.allocate.rules import simple_rules
from plume_py.reasoning.allocate.search_space import Space, of_instances, of_programs, of_templates
from plume_py.reasoning.allocate.workload import Instance, Program, Workload, read, require_names, update, write
from plume_py.reasoning.allocate.workload_files import load_workload

if TYPE_CHECKING:
    from plume_py.base.sql.log_programs import LogFile

# Up to this number, each group is explained; beyond it, one for each program and level.
EXPLAINED = 40

# The benchmarks of MixIso, with the read and write sets of its benchmark files; a cell is a column of a row. MixIso's
# SmallBank has no payments; its TPC-C has one row per order and no ranges.
SMALLBANK = (
    Program("Balance", ("N",), (read("Account_C", "N"), read("Savings_B", "N"), read("Checking_B", "N")), share=0.2),
    Program("DepositChecking", ("N",), (read("Account_C", "N"), update("Checking_B", "N")), share=0.2),
    Program("TransactSavings", ("N",), (read("Account_C", "N"), update("Savings_B", "N")), share=0.2),
    Program(
        "Amalgamate",
        ("N1", "N2"),
        (
            read("Account_C", "N1"),
            read("Account_C", "N2"),
            update("Savings_B", "N1"),
            update("Checking_B", "N1"),
            update("Checking_B", "N2"),
        ),
        share=0.2,
    ),
    Program(
        "WriteCheck", ("N",), (read("Account_C", "N"), read("Savings_B", "N"), update("Checking_B", "N")), share=0.2
    ),
)

COURSEWARE = (
    Program("Register", ("SID",), (write("StudentSet_S", "SID"),), share=0.2),
    Program("AddCourse", ("CID",), (write("CourseSet_C", "CID"),), share=0.2),
    Program(
        "Enroll",
        ("SID", "CID"),
        (read("StudentSet_S", "SID"), read("CourseSet_C", "CID"), write("EnrollmentRelation_S", "SID", "CID")),
        share=0.2,
    ),
    Program(
        "RemoveCourse",
        ("SID", "CID"),
        (read("EnrollmentRelation_S", "SID", "CID"), update("CourseSet_C", "CID")),
        share=0.2,
    ),
    Program(
        "Query",
        ("SID", "CID"),
        (read("StudentSet_S", "SID"), read("CourseSet_C", "CID"), read("EnrollmentRelation_S", "SID", "CID")),
        share=0.2,
    ),
)

TPCC = (
    Program(
        "NewOrder",
        ("W", "D", "C", "O", "I"),
        (
            read("Warehouse_Inf", "W"),
            read("District_Inf", "W", "D"),
            update("District_N", "W", "D"),
            read("Customer_Inf", "W", "D", "C"),
            write("Order_C", "W", "D", "O"),
            write("Order_Sta", "W", "D", "O"),
            update("Stock_Qua", "W", "I"),
            write("OrderLine_I", "W", "D", "O"),
            write("OrderLine_Del", "W", "D", "O"),
            write("OrderLine_Qua", "W", "D", "O"),
        ),
        share=0.45,
    ),
    Program(
        "Payment",
        ("W", "D", "C"),
        (update("Warehouse_YTD", "W"), update("District_YTD", "W", "D"), update("Customer_Bal", "W", "D", "C")),
        share=0.43,
    ),
    Program(
        "OrderStatus",
        ("W", "D", "C", "O"),
        (
            read("Customer_Bal", "W", "D", "C"),
            read("Order_C", "W", "D", "O"),
            read("Order_Sta", "W", "D", "O"),
            read("OrderLine_I", "W", "D", "O"),
            read("OrderLine_Del", "W", "D", "O"),
            read("OrderLine_Qua", "W", "D", "O"),
        ),
        share=0.04,
    ),
    Program(
        "Delivery",
        ("W", "D", "C", "O"),
        (
            update("Order_Sta", "W", "D", "O"),
            update("OrderLine_Del", "W", "D", "O"),
            update("Customer_Bal", "W", "D", "C"),
        ),
        share=0.04,
    ),
    Program("StockLevel", ("W", "I"), (read("Stock_Qua", "W", "I"),), share=0.04),
)

BENCHMARKS = {"smallbank": SMALLBANK, "courseware": COURSEWARE, "tpcc": TPCC}


@dataclass(frozen=True)
class Drawing:
    """Instances to draw from templates. Without a number, the answer covers all workloads of the templates."""

    instances: int | None = None
    largest: int = 500
    seed: int = 1


def open_workload(source: str, schema: str | None = None, exclude: Sequence[str] = ()) -> Workload:
    """Return a built-in benchmark, a JSON file, or a SQL file with its schema, without the programs in ``exclude``."""
    if source.lower() not in BENCHMARKS and not Path(source).exists():
        hint = f"give a file, or an example: {', '.join(BENCHMARKS)}"
        raise InputError("no such file, and no example of this name", hint=hint).in_source(source)
    if source.lower() in BENCHMARKS and not Path(source).exists():
        workload = Workload([], [], list(BENCHMARKS[source.lower()]), source)
        return _without(workload, exclude)
    if Path(source).suffix.lower() == ".sql":
        from plume_py.reasoning.allocate.sql import load_sql

        return Workload([], [], load_sql(source, schema, exclude), source)
    return _without(load_workload(source), exclude)


def _without(workload: Workload, exclude: Sequence[str]) -> Workload:
    require_names(exclude, [program.name for program in workload.programs])
    return replace(workload, programs=[program for program in workload.programs if program.name not in exclude])


def open_log(path: str, schema: str | None = None, exclude: Sequence[str] = ()) -> "tuple[Workload, LogFile]":
    """Return the programs of a statement log, and the parsed log."""
    from plume_py.reasoning.allocate.sql import load_sql_log

    programs, log = load_sql_log(path, schema, exclude)
    return Workload([], [], programs, path), log


def of_sql(path: str, log: str | None, exclude: Sequence[str]) -> Workload:
    """Return the transactions of a SQL file, or of a log with the tables of this file, without those in ``exclude``."""
    from plume_py.reasoning.allocate.sql import load_sql, load_sql_log

    programs = load_sql(path, None, exclude) if log is None else load_sql_log(log, path, exclude)[0]
    return Workload([], [], programs, path)


def open_space(workload: Workload, per: str, sessions: bool, drawing: Drawing) -> tuple[Space, list[str], Workload]:
    """Return the groups to allocate levels to, the program of each group, and the workload with drawn instances."""
    if workload.programs and not workload.instances:
        if drawing.instances is None:
            space = of_templates(workload.programs, workload.followers if sessions else ())
            return space, list(space.groups), workload
        drawn = draw(workload.programs, drawing.instances, drawing.largest, drawing.seed)
        workload = Workload(drawn.instances, drawn.session, drawn.programs, f"{workload.source}, {drawn.source}")
    elif drawing.instances is not None:
        raise IsocheckError("--instances draws from templates; this file has instances already")
    if not workload.instances:
        raise InputError("no transactions in it").in_source(workload.source)
    if per == "program":
        space = of_programs(workload)
        return space, list(space.groups), workload
    return of_instances(workload), [instance.program for instance in workload.instances], workload


def draw(programs: tuple[Program, ...] | list[Program], instances: int, largest: int, seed: int) -> Workload:
    """Return ``instances`` instances, divided by the programs' shares, with parameters drawn from 1 to ``largest``."""
    rng = random.Random(seed)
    made: list[Instance] = []
    for program, count in zip(programs, _counts(programs, instances), strict=True):
        for i in range(1, count + 1):
            values = [rng.randint(1, largest) for _ in program.params]
            made.append(program(*values, name=f"{program.name}_{i}"))
    return Workload(made, programs=list(programs), source=f"{instances:,} instances drawn with seed {seed}")


def _counts(programs: tuple[Program, ...] | list[Program], instances: int) -> list[int]:
    """Return the number of instances per program, by share or evenly; the first programs get what rounding leaves."""
    shares = [1 / len(programs) if program.share is None else program.share for program in programs]
    if not shares or sum(shares) <= 0:
        raise InputError("no program has a share of the instances", hint="give one of them a `percentage` above 0")
    counts = [int(instances * share / sum(shares) + 1e-9) for share in shares]
    for i in range(instances - sum(counts)):
        counts[i % len(counts)] += 1
    return counts


def answer_allocation(
    workload: Workload,
    *,
    rules: str = "refined",
    catalogue: str = "mixiso",
    per: str = "instance",
    sessions: bool = True,
    drawing: Drawing | None = None,
    pins: Mapping[str, str] | None = None,
    costs: Mapping[str, float] | None = None,
    explain: bool = True,
    limits: Limits | None = None,
) -> Allocation:
    """Return a level for each group, with explanations.

    If the limits end the explanations, the levels remain valid and some explanations are missing. Pins, costs and
    engine catalogues need the refined rules.
    """
    limits = limits or Limits()
    space, programs, workload = open_space(workload, per, sessions, drawing or Drawing())
    chosen = CATALOGUES[catalogue]
    if rules != "refined" and (catalogue != "mixiso" or pins or costs):
        raise IsocheckError(f"the {rules} rules know no catalogue, pins or weights; use the refined ones")
    answer = Allocation(workload.source, space, programs, chosen, rules, [], templates=workload.programs)
    answer.notes += _notes(workload.programs)
    if rules == "refined":
        _by_refined_rules(answer, find_pins(space, programs, pins or {}), costs or {}, limits)
        if explain:
            _explain(answer, limits)
    else:
        _by_simple_rules(answer, limits, repaired=rules == "repaired")
    return answer


def _notes(programs: Sequence[Program]) -> list[str]:
    """Return each note once, with the names of its programs."""
    about: dict[str, list[str]] = {}
    for program in programs:
        for note in program.notes:
            about.setdefault(note, []).append(program.name)
    return [note if note.startswith("schema: ") else f"{', '.join(names)}: {note}" for note, names in about.items()]


def _by_refined_rules(answer: Allocation, pins: Mapping[int, str], costs: Mapping[str, float], limits: Limits) -> None:
    """Fill in the levels of the refined rules. With pins, decide also whether the result is robust."""
    catalogue, space = answer.catalogue, answer.space
    unknown = sorted({level for level in pins.values() if level not in catalogue.levels})
    if unknown:
        raise IsocheckError(
            f"--pin: {unknown[0]} is not offered by {catalogue.name}; use {', '.join(catalogue.levels)}"
        )
    answer.levels = allocate(space, catalogue, pins, costs)
    missing = [name for name, level in zip(space.groups, answer.levels, strict=True) if level not in catalogue.levels]
    if missing:
        some = ", ".join(missing[:3]) + (f" and {len(missing) - 3:,} more" if len(missing) > 3 else "")
        answer.notes.append(f"no level of {catalogue.name} is enough for {some}: lock what they read")
    if pins:
        robustness = _robustness(space, catalogue, answer.levels, limits)
        answer.robustness = None if robustness.ok else robustness


def _by_simple_rules(answer: Allocation, limits: Limits, *, repaired: bool) -> None:
    """Fill in the theorem's levels, the strongest over all cases; test the paper's rules for robustness."""
    strongest = [WEAKEST] * len(answer.space.groups)
    for case in answer.space.cases:
        levels = simple_rules(case.rules.sets, repaired=repaired)
        for p in case.judged:
            g = case.group[p]
            strongest[g] = max(strongest[g], levels[p], key=visibility_bits)
    answer.levels = strongest
    if not repaired:
        robustness = robust(answer.space, strongest, limits)
        if not robustness.ok:
            answer.robustness = robustness
            answer.notes.append("the paper's rules are unsound here: they ignore sessions and conditional writes")


def _explain(answer: Allocation, limits: Limits) -> None:
    """Fill in the critical cycles, until the limits are reached."""
    try:
        for group, critical in _critical_cycles(answer, limits):
            answer.critical[group] = critical
    except LimitError as error:
        answer.stopped = f"{error}: not every level is explained"


def _critical_cycles(answer: Allocation, limits: Limits) -> Iterator[tuple[int, CriticalCycle]]:
    """Yield groups with the reason why each is not at a cheaper level.

    Of more than EXPLAINED groups, yield one for each program and level.
    """
    seen: set[tuple[str, str]] = set()
    for g, kind in enumerate(zip(answer.programs, answer.levels, strict=True)):
        if len(answer.levels) > EXPLAINED and kind in seen:
            continue
        seen.add(kind)
        limits.check()
        critical = why_not_weaker(answer.space, answer.catalogue, g, answer.levels, limits)
        if critical is not None:
            yield g, critical


@dataclass(frozen=True)
class RobustnessAnswer:
    """An answer about robustness, with its subject."""

    source: str
    scope: str
    levels: dict[str, str]
    answer: Robustness


def answer_robustness(
    workload: Workload,
    by_name: Mapping[str, str] | None,
    *,
    catalogue: str = "mixiso",
    per: str = "instance",
    sessions: bool = True,
    drawing: Drawing | None = None,
    limits: Limits | None = None,
) -> RobustnessAnswer:
    """Decide whether every run is serializable at the levels in ``by_name``, by default at the declared levels."""
    space, programs, workload = open_space(workload, per, sessions, drawing or Drawing())
    chosen = CATALOGUES[catalogue]
    if by_name is None:
        by_name = _declared(workload)
    levels = _levels_of(space, programs, chosen, by_name)
    answer = _robustness(space, chosen, levels, limits)
    return RobustnessAnswer(workload.source, space.scope, dict(zip(space.groups, levels, strict=True)), answer)


def _robustness(space: Space, catalogue: Catalogue, levels: list[str], limits: Limits | None) -> Robustness:
    """Return the answer of the rules; undecided where an engine guarantees less than they assume.

    An engine's level may guarantee less than ours if other transactions run at weaker levels.
    """
    answer = robust(space, levels, limits)
    if not answer.ok or not catalogue.adjustments:
        return answer
    needed = catalogue.adjust(space, levels)
    low = [name for name, own, least in zip(space.groups, levels, needed, strict=True) if own != least]
    if not low:
        return answer
    return Robustness(None, f"{catalogue.note}; {low[0]} would have to be at {STRONGEST}")


def _declared(workload: Workload) -> dict[str, str]:
    declaring: list[Instance | Program] = [*workload.instances] or [*workload.programs]
    missing = [one.name for one in declaring if one.level is None]
    if missing:
        raise IsocheckError(f"{missing[0]} declares no level; give one with --levels NAME=LEVEL, or *=LEVEL for all")
    return {one.name: one.level for one in declaring if one.level is not None}


def _levels_of(space: Space, programs: Sequence[str], catalogue: Catalogue, by_name: Mapping[str, str]) -> list[str]:
    """Return a level for each group, from levels by name. ``*`` is the level of all groups that are not named."""
    default = by_name.get("*")
    named = find_pins(space, programs, {name: level for name, level in by_name.items() if name != "*"}, "--levels")
    levels = []
    for g, name in enumerate(space.groups):
        level = named.get(g, default)
        if level is None:
            raise IsocheckError(f"--levels gives no level for {name}; name it, or give one for all others with *=LEVEL")
        if level not in catalogue.engine_names:
            raise IsocheckError(f"--levels: {level} is not offered by {catalogue.name}")
        levels.append(level)
    return levels
