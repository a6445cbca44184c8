"""Format allocations and answers about robustness as text and as JSON."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import click

from plume_py.base.terminal import Style
from plume_py.base.text import display, wrapped
from plume_py.checking.check import check
from plume_py.history.model import History
from plume_py.levels import NAMES, STRONGEST
from plume_py.reasoning.allocate.catalogue import Catalogue
from plume_py.reasoning.allocate.critical_cycle import CriticalCycle
from plume_py.reasoning.allocate.robust import Robustness
from plume_py.reasoning.allocate.search_space import Space
from plume_py.reasoning.allocate.workload import Program
from plume_py.report.json import signed
from plume_py.report.text import example, operation

# Up to this number of groups, the table has a line per group; beyond it, counts per program.
LISTED = 40


@dataclass
class Allocation:
    """An allocation with its explanations."""

    source: str
    space: Space
    programs: list[str]  # of each group
    catalogue: Catalogue
    rules: str
    levels: list[str]
    critical: dict[int, CriticalCycle] = field(default_factory=dict)  # why the group is not at the next cheaper level
    robustness: Robustness | None = None  # unless the rules guarantee that the allocation is robust
    notes: list[str] = field(default_factory=list)
    templates: list[Program] = field(default_factory=list)
    stopped: str = ""  # the limit that ended the explanations


def allocation_text(answer: Allocation, style: Style = click.style) -> Iterator[str]:
    """Yield the lines of the report: a table of levels, then the reasons."""
    yield f"{style(display(answer.source), bold=True)}: {answer.space.scope}"
    yield f"  {answer.rules} rules; {answer.catalogue.name}: {answer.catalogue.note}"
    for note in _notes(answer):
        yield from wrapped("  note: ", note, "        ")
    yield ""
    yield from _table(answer, style)
    for group, critical in answer.critical.items():
        yield ""
        yield from _reason(answer, group, critical, style)
    if answer.robustness is not None:
        yield ""
        yield from robust_text(answer.robustness, style)


def _notes(answer: Allocation) -> list[str]:
    return [*answer.notes, *([answer.stopped] if answer.stopped else [])]


def _table(answer: Allocation, style: Style) -> Iterator[str]:
    engine_name = answer.catalogue.engine_name
    if len(answer.levels) <= LISTED:
        width = max((len(display(name)) for name in answer.space.groups), default=0)
        for name, level in zip(answer.space.groups, answer.levels, strict=True):
            engine = "" if engine_name(level) == level else f"  {engine_name(level)}"
            yield f"  {display(name):<{width}}  {style(f'{level:<3}', bold=True)}{engine}"
        return
    counts = Counter(zip(answer.programs, answer.levels, strict=True))
    used = [level for level in NAMES if level in answer.levels]
    width = max(len(display(program)) for program in answer.programs)
    yield f"  {'':<{width}}" + "".join(f"{level:>9}" for level in used)
    for program in dict.fromkeys(answer.programs):
        yield f"  {display(program):<{width}}" + "".join(_count(counts[program, level]) for level in used)
    total = Counter(answer.levels)
    yield f"  {'all':<{width}}" + "".join(_count(total[level]) for level in used)


def _count(number: int) -> str:
    return f"{number:>9,}" if number else f"{'':>9}"


def _reason(answer: Allocation, group: int, critical: CriticalCycle, style: Style) -> Iterator[str]:
    name, level = display(answer.space.groups[group]), answer.levels[group]
    yield f"{style(name, bold=True)} needs {level}: at {critical.level} it can be the pivot of a cycle"
    offered = answer.catalogue.levels_by_cost({})
    between = offered[offered.index(critical.level) + 1 : offered.index(level)] if level in offered else []
    if between and answer.catalogue.adjustments:
        yield from wrapped(f"  {' and '.join(between)} would do, but ", f"{answer.catalogue.note}.", "  ")
    yield from critical_text(critical)


def critical_text(critical: CriticalCycle) -> Iterator[str]:
    """The cycle, and the history if there is one."""
    for line in critical.words():
        yield f"    {display(line, 200)}"
    name, meaning = critical.form
    yield f"  {f'form {name}' if name else 'none'} of MixIso's: {meaning}"
    if critical.history is not None:
        yield "  as in this history, which keeps the levels and is not serializable:"
        yield from history_lines(critical.history)
    elif critical.decided:
        yield "  No history of these instances alone shows it; the rules cannot exclude it in larger company."
    else:
        yield "  The search for a history was not finished."


def history_lines(history: History) -> Iterator[str]:
    """Yield one transaction per line."""
    for session in history:
        for txn in session:
            ops = " ".join(operation(tuple(op)) for op in txn.ops)
            yield from wrapped(
                f"    {display(txn.id)} at {txn.level}  [session {display(txn.session)}]  ", ops, "        "
            )


def robust_text(answer: Robustness, style: Style = click.style) -> Iterator[str]:
    """Yield the lines of the verdict, with the argument, or with cycle, history and counterexample."""
    words = {
        True: style("robust", fg="green"),
        False: style("not robust", fg="red", bold=True),
        None: style("undecided", fg="yellow"),
    }
    yield f"{words[answer.ok]}: {answer.because}"
    if answer.ok:
        yield "Every run at these levels is serializable."
        return
    if answer.critical is not None:
        yield from critical_text(answer.critical)
    if answer.history is not None:
        if answer.critical is None or answer.critical.history is None:
            yield from history_lines(answer.history)
        for violation in check(answer.history, STRONGEST).violations:
            yield ""
            yield from example(violation, style)


def allocation_document(answer: Allocation, log: str = "") -> str:
    """Return the allocation as JSON. ``log`` is the text of the programs that were read from a log."""
    groups = [
        {
            "name": name,
            "program": program,
            "level": level,
            "engine_level": answer.catalogue.engine_name(level),
            "danger": _critical_cycle(answer.critical.get(g)),
        }
        for g, (name, program, level) in enumerate(
            zip(answer.space.groups, answer.programs, answer.levels, strict=True)
        )
    ]
    return signed(
        {
            "workload": answer.source,
            "scope": answer.space.scope,
            "rules": answer.rules,
            "catalogue": answer.catalogue.name,
            "notes": _notes(answer),
            "counts": dict(Counter(answer.levels)),
            "groups": groups,
            "robust": None if answer.robustness is None else _robustness(answer.robustness),
            **({"programs": log} if log else {}),
        }
    )


def robust_document(source: str, scope: str, levels: dict[str, str], answer: Robustness) -> str:
    """Return an answer about robustness as JSON."""
    return signed({"workload": source, "scope": scope, "levels": levels} | _robustness(answer))


def _robustness(answer: Robustness) -> dict[str, Any]:
    return {
        "ok": answer.ok,
        "because": answer.because,
        "danger": _critical_cycle(answer.critical),
        **_history(answer.history),
    }


def _critical_cycle(critical: CriticalCycle | None) -> dict[str, Any] | None:
    if critical is None:
        return None
    names = [instance.name for instance in critical.workload.instances]
    cycle = [
        {"from": names[e.source], "to": names[e.target], "relation": e.relation, "cell": e.cell}
        for e in critical.cycle.edges
    ]
    return {"level": critical.level, "form": critical.form[0] or None, "cycle": cycle, **_history(critical.history)}


def _history(history: History | None) -> dict[str, Any]:
    """Return the fields of a native history document."""
    if history is None:
        return {"history": None}
    sessions = [[{"id": t.id, "level": t.level, "ops": [list(op) for op in t.ops]} for t in s] for s in history]
    return {"history": {"initial": 0, "sessions": sessions}}
