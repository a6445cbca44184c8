"""Reports of ``isocheck infer`` as text and as plain data for JSON.

The first half reports levels and counterexamples, the second half runs on a real server. Every name and value of the
program passes through ``plume_py.base.text.display``.
"""

from collections.abc import Iterator
from typing import Any

import click

from plume_py.base.terminal import Style
from plume_py.base.text import display, wrapped
from plume_py.reasoning.infer.driver import (
    BOUNDED,
    PROVED,
    UNDECIDED,
    VIOLATED,
    InferenceResult,
    LevelAnswer,
    ReplayedExample,
    TransactionVerdict,
)
from plume_py.reasoning.infer.execution.client import CommittedCall, ExecutedStatement
from plume_py.reasoning.infer.execution.evaluate import State
from plume_py.reasoning.infer.execution.schedule import ScheduleLine
from plume_py.reasoning.infer.execution.server import OPEN, SAFE, UNSAFE, Schedule, ServerRun, initial_state
from plume_py.reasoning.infer.joint_levels import JointLevels
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.program.to_sql import Sql, literal, sql_with_values

_COLOURS = {PROVED: "green", BOUNDED: "green", VIOLATED: "red", UNDECIDED: "yellow"}


def text(result: InferenceResult, style: Style = click.style, examples: bool = True) -> str:
    return "\n".join(_lines(result, style, examples))


def _lines(result: InferenceResult, style: Style, examples: bool) -> Iterator[str]:
    clauses = ", ".join(clause.name for clause in result.program.invariant)
    yield f"{style(display(result.program.name), bold=True)} on {result.store.name}, invariant {display(clauses, 200)}"
    if result.program.enforced:
        names = ", ".join(clause.name for clause in result.program.enforced)
        yield from wrapped("  the database itself enforces: ", display(names, 400), "    ")
    width = max((len(display(txn.name)) for txn in result.transactions), default=0)
    for note in result.program.notes:
        yield from wrapped("  note: ", display(note, 400), "        ", 100)
    # Transactions that violate the invariant alone come first: the other answers are found without them.
    transactions = sorted(result.transactions, key=lambda txn: txn.name not in result.alone)
    for number, txn in enumerate(transactions):
        if number and txn.name not in result.alone and transactions[number - 1].name in result.alone:
            yield from _about_alone(result)
        yield from _summary(result, txn, width, style)
    if transactions and transactions[-1].name in result.alone:
        yield from _about_alone(result)
    if examples:
        for txn in transactions:
            # A transaction that violates a clause alone violates it in the same way at every level.
            alone = [verdict for verdict in txn.levels if verdict.level.is_serial and verdict.examples]
            for verdict in alone or txn.levels:
                if verdict.examples:
                    yield ""
                    yield from example_lines(result, txn, verdict, style)
    yield ""
    engine = "symbolic search (z3)" if result.engine == "z3" else "explicit exploration"
    yield f"{engine}, every counterexample replayed; {result.seconds:.1f} s"


def _summary(result: InferenceResult, txn: TransactionVerdict, width: int, style: Style) -> Iterator[str]:
    weakest = result.headline(txn)
    name = f"  {display(txn.name):<{width}}  "
    if weakest is None:
        none = "no level keeps the invariant" if _always_violated(txn) else "undecided"
        if txn.name in result.alone:
            none += (
                f": it violates {', '.join(display(clause) for clause in txn.levels[-1].examples)} when it runs alone"
            )
        yield name + style(none, fg="red", bold=True)
        if txn.name in result.alone:
            return
    else:
        said = result.store.setting_names.get(weakest.level.name, weakest.level.name)
        label = weakest.level.name if said == weakest.level.name else f"{weakest.level.name} ({said})"
        yield from wrapped(name, style(label, bold=True) + _level_suffix(result, txn, weakest), " " * (width + 4), 100)
    for verdict in txn.levels:
        lead = f"  {'':<{width}}    {verdict.level.name:<4} "
        detail = verdict.note
        answer = style(verdict.answer, fg=_COLOURS[verdict.answer])
        if verdict.answer == BOUNDED:  # the note repeats the answer, with the bounds
            yield from wrapped(lead, style(detail, fg="green"), " " * (width + 12), 100)
        elif verdict.answer == VIOLATED:
            beside = f", {display(detail, 200)}" if detail else ""
            yield f"{lead}{answer}: {', '.join(display(name) for name in verdict.examples)}{beside}"
        else:
            colon = ":" if verdict.answer == UNDECIDED else ""
            yield from wrapped(f"{lead}{answer}{colon}", f" {detail}" if detail else "", " " * (width + 12), 100)


def _about_alone(result: InferenceResult) -> Iterator[str]:
    """Yield the advice about transactions that violate the invariant alone."""
    several = len(result.alone) > 1
    yield from wrapped(
        "  note: ",
        f"no isolation level helps {'these transactions' if several else 'this transaction'}. If callers never pass"
        " such arguments, state what they promise: `-- assume: CONDITION` below `-- transaction: NAME(…)`. If a"
        " transaction only fills the tables, leave it out with --exclude NAME. The others are judged without"
        f" {'them' if several else 'it'}, so run this again afterwards.",
        "        ",
        100,
    )


def serializable_text(result: InferenceResult, levels: dict[str, str] | None) -> list[str]:
    """Return the note that these levels keep only the invariant. ``levels`` serialize the program, if known."""
    found = {txn.name: result.headline(txn) for txn in (*result.transactions, *result.others)}
    weaker = [name for name, verdict in found.items() if verdict is not None and not verdict.level.is_serial]
    if not weaker:
        return []
    said = "These levels keep the invariant and nothing else: runs may still differ from every serial run. "
    if levels is None:
        said += "For serializability, see `isocheck allocate`, or use --serializability."
    else:
        listed = ", ".join(
            f"{display(name)} {result.store.setting_names.get(level, level)}" for name, level in levels.items()
        )
        said += f"For serializability, `isocheck allocate` finds {listed}."
    return ["", *wrapped("", said, "  ", 100)]


def _level_suffix(result: InferenceResult, txn: TransactionVerdict, headline: LevelAnswer) -> str:
    """Return the words after a level: why it was raised, whether it is proved, and a weaker unproved candidate."""
    suffix = ""
    if txn.weakest is not None and headline.level.name != txn.weakest.level.name:
        suffix += f" instead of {txn.weakest.level.name}: this store's SERIALIZABLE watches only its own kind"
    if not result.proves:
        return suffix
    suffix += ", proved" if headline.answer == PROVED else ", a candidate only, not proved"
    other = txn.candidate
    if headline.answer == PROVED and other is not None and other.answer != PROVED:
        suffix += f"; candidate: {other.level.name}, {other.note}"
    return suffix


def _always_violated(txn: TransactionVerdict) -> bool:
    return all(verdict.answer == VIOLATED for verdict in txn.levels)


def example_lines(
    result: InferenceResult, txn: TransactionVerdict, verdict: LevelAnswer, style: Style = click.style
) -> Iterator[str]:
    """Yield the counterexample of one level, statement by statement."""
    clause, found = shortest_example(verdict)
    program = result.program
    others = [name for name in verdict.examples if name != clause]
    also = f" (other schedules break {', '.join(display(name) for name in others)})" if others else ""
    alone = verdict.level.is_serial
    where = "even alone, at" if alone else "at"
    title = f"{display(txn.name)} {where} {verdict.level.name} breaks {display(clause)}"
    yield f"  {style(title, fg='red', bold=True)}{also}"
    yield from wrapped("    first:  ", rows_text(program, found.example.initial), "            ", 100)
    yield f"    {style(call_text(found.example.transaction, found.example.args), bold=True)}"
    for line in found.replay.lines:
        yield from _line_text(program, line, style)
    yield from wrapped("    last:   ", rows_text(program, found.replay.final), "            ", 100)
    broken = next(item for item in program.invariant if item.name == clause)
    yield from wrapped(f"    broken: {display(clause)}: ", clause_meaning(program, broken), " " * 12, 100)


def clause_meaning(program: ir.Application, clause: ir.Clause) -> str:
    """Return the meaning of a clause: the author's words, or its condition as SQL."""
    return display(clause.words or Sql(program).expr(clause.condition, {}), 600)


def shortest_example(verdict: LevelAnswer) -> tuple[str, ReplayedExample]:
    """Return the clause and example with the shortest schedule."""
    return min(verdict.examples.items(), key=lambda item: (len(item[1].example.events), item[0]))


def _line_text(program: ir.Application, line: ScheduleLine, style: Style) -> Iterator[str]:
    if line.call is not None:
        title = style(call_text(line.call.transaction, line.call.args), bold=True)
        yield f"        {style('meanwhile', fg='cyan')} {title}{_snapshots_text(line)}"
        for inner in line.inner:
            yield from wrapped("          ", _executed(program, inner), " " * 14, 100)
        yield "          COMMIT"
        return
    if line.stmt is None:
        yield "      COMMIT"
        return
    yield from wrapped("      ", _executed(program, line), " " * 10, 100)


def _snapshots_text(line: ScheduleLine) -> str:
    """Return the states that the statements of a partner at its own level read, as text."""
    assert line.call is not None
    if line.call.level is None:
        return ""
    seen = ", ".join(map(str, line.call.moments))
    return f" at {line.call.level.name}, its statements after {seen} of these commits"


def _executed(program: ir.Application, line: ScheduleLine) -> str:
    assert line.stmt is not None
    return f"{statement_text(line)}  →  {result_text(program, line)}"


def statement_text(line: ScheduleLine | ExecutedStatement) -> str:
    """Return a statement as SQL, with the values it was executed with."""
    assert line.stmt is not None
    assert line.shape is not None
    return display(sql_with_values(line.shape, line.frame).statement(line.stmt), 400)


def result_text(program: ir.Application, line: ScheduleLine) -> str:
    """Return the rows or values that a statement returned or wrote, as text."""
    stmt, result = line.stmt, line.result
    if isinstance(stmt, ir.Let | ir.If | ir.Require):
        return ", ".join(literal(value) for value in (result if isinstance(result, list) else [result]))
    table = program.table(stmt.table)  # type: ignore[union-attr]
    if not result:
        return "no row"
    texts = [row_text(table, row) for _, row in result]
    return ("removes " if isinstance(stmt, ir.Delete) else "") + ", ".join(texts)


def row_text(table: ir.Table, row: tuple[ir.Value, ...]) -> str:
    inside = ", ".join(f"{name}={literal(value)}" for name, value in zip(table.names, row, strict=True))
    return display(f"{table.name}({inside})", 200)


def rows_text(program: ir.Application, state: State) -> str:
    rows = [row_text(table, row) for table, rows in zip(program.tables, state, strict=True) for _, row in rows]
    return "; ".join(rows) or "no rows at all"


def call_text(name: str, args: tuple[tuple[str, Any], ...]) -> str:
    return display(f"{name}({', '.join(f'{key}={_argument(value)}' for key, value in args)})", 200)


def _argument(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join('(' + ', '.join(literal(v) for v in row) + ')' for _, row in value)}]"
    return literal(value)


def data(result: InferenceResult) -> dict[str, Any]:
    return {
        "program": result.program.name,
        "store": result.store.name,
        "invariant": [clause.name for clause in result.program.invariant],
        "enforced": [clause.name for clause in result.program.enforced],
        "engine": result.engine,
        "alone": list(result.alone),
        "bounds": {"rows": result.rows, "steps": result.steps},
        "transactions": [_transaction_data(result, txn) for txn in result.transactions],
        "seconds": round(result.seconds, 3),
    }


def _transaction_data(result: InferenceResult, txn: TransactionVerdict) -> dict[str, Any]:
    weakest = result.headline(txn)
    return {
        "name": txn.name,
        "candidate": txn.candidate.level.name if txn.candidate else None,
        "level": weakest.level.name if weakest else None,
        "answer": weakest.answer if weakest else VIOLATED if _always_violated(txn) else UNDECIDED,
        "levels": {
            verdict.level.name: {
                "answer": verdict.answer,
                "note": verdict.note,
                "proved": list(verdict.proved),
                "counterexamples": [_example_data(result.program, found) for found in verdict.examples.values()],
            }
            for verdict in txn.levels
        },
    }


def _example_data(program: ir.Application, confirmed: ReplayedExample) -> dict[str, Any]:
    return {
        "clause": confirmed.example.clause,
        "arguments": arguments_data(confirmed.example.args),
        "initial": state_data(program, confirmed.example.initial),
        "schedule": [_line_data(program, line) for line in confirmed.replay.lines],
        "final": state_data(program, confirmed.replay.final),
    }


def _line_data(program: ir.Application, line: ScheduleLine) -> dict[str, Any]:
    if line.call is not None:
        steps = [statement_text(inner) for inner in line.inner]
        return {"by": line.call.transaction, "arguments": arguments_data(line.call.args), "statements": steps}
    if line.stmt is None:
        return {"statement": "COMMIT"}
    return {
        "statement": statement_text(line),
        "line": line.stmt.line,
        "result": result_text(program, line),
    }


def arguments_data(args: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return {
        key: [[_json_number(v) for v in row] for _, row in value] if isinstance(value, tuple) else _json_number(value)
        for key, value in args
    }


def _json_number(value: ir.Value) -> ir.Value:
    """Return the value, or its text if it exceeds the 64 bits of a JSON number."""
    return str(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def state_data(program: ir.Application, state: State) -> dict[str, Any]:
    return {
        table.name: [dict(zip(table.names, map(_json_number, row), strict=True)) for _, row in rows]
        for table, rows in zip(program.tables, state, strict=True)
        if rows
    }


def joint_levels_text(result: InferenceResult, together: JointLevels, examples: bool) -> str:
    """Return the report of the check with partners at their inferred levels."""
    lines = ["", "together, each transaction at its own level:"]
    for name, verdict in together.raising_violations if examples else ():
        lines += list(example_lines(result, TransactionVerdict(name, [verdict]), verdict))
    for name, verdict in together.verdicts.items():
        was = f" instead of {together.raised[name]}" if name in together.raised else ""
        answer = verdict.note if verdict.answer != VIOLATED else f"violated: {', '.join(verdict.examples)}"
        lines.append(f"  {display(name)} at {together.levels[name].name}{was}: {answer}")
        if verdict.examples and examples:
            lines += list(example_lines(result, TransactionVerdict(name, [verdict]), verdict))
    if together.raised:
        weaker = ", ".join(display(name) for name in together.raised)
        why = f"{weaker} must be serializable too: this store's SERIALIZABLE watches only its own kind."
        lines += wrapped("  ", why, "  ", 100)
    return "\n".join(lines)


def joint_levels_data(result: InferenceResult, together: JointLevels) -> dict[str, Any]:
    return {
        "levels": {name: level.name for name, level in together.levels.items()},
        "raised": together.raised,
        "answers": {name: verdict.answer for name, verdict in together.verdicts.items()},
        "counterexamples": [
            _example_data(result.program, item)
            for verdict in (*(verdict for _, verdict in together.raising_violations), *together.verdicts.values())
            for item in verdict.examples.values()
        ],
    }


# The runs on a server: one per assignment of levels, with the expectation (found safe, found unsafe, undecided).
Runs = list[tuple[ServerRun, str]]

# At most this many calls of a schedule are printed.
MOST_CALLS = 12


def run_line(run: ServerRun, expectation: str) -> str:
    """Return the line about one assignment of levels."""
    levels = " ".join(f"{display(name)}={level}" for name, level in run.levels.items())
    verdict = f"broken: {', '.join(map(display, run.broken))}" if run.broken else "holds"
    counts = f"{run.commits} commits, {run.rollbacks} rollbacks, {run.refused} refused"
    trouble = "".join(f"; {count} times: {display(text, 120)}" for text, count in run.problems.items())
    return f"  {levels}  [{expectation}]  {verdict}  ({counts}{trouble})"


def run_summary(version: str, runs: Runs) -> str:
    """Return the line that counts the assignments that violated the invariant, by expectation."""
    groups = {kind: [run for run, expected in runs if expected == kind] for kind in (SAFE, UNSAFE, OPEN)}
    broken = {kind: sum(bool(run.broken) for run in group) for kind, group in groups.items()}
    undecided = f"; of {len(groups[OPEN])} undecided ones, {broken[OPEN]} did" if groups[OPEN] else ""
    return (
        f"{display(version)}: {len(runs)} assignments of levels; of {len(groups[SAFE])} where every transaction is at "
        f"a level found safe, {broken[SAFE]} broke the invariant; of the {len(groups[UNSAFE])} others, "
        f"{broken[UNSAFE]} did{undecided}"
    )


def disproved(runs: Runs) -> list[ServerRun]:
    """Return the runs that were expected to be safe and violated the invariant on the server."""
    return [run for run, expectation in runs if expectation == SAFE and run.broken]


def schedule_text(program: ir.Application, run: ServerRun, style: Style = click.style) -> Iterator[str]:
    """Yield the schedule in which the server violated the invariant at levels that were found safe."""
    schedule = run.schedule
    assert schedule is not None
    levels = " ".join(f"{display(name)}={level}" for name, level in run.levels.items())
    clauses = ", ".join(map(display, schedule.broken))
    yield ""
    yield "  " + style(f"found safe, but the server breaks {clauses} at {levels}", fg="red", bold=True)
    yield from wrapped("    first:  ", rows_text(program, initial_state(program)), "            ", 100)
    shown = schedule.called[:MOST_CALLS]
    number = {id(called): n for n, called in enumerate(shown, 1)}
    for called in shown:
        yield f"    {number[id(called)]}  {call_text(called.transaction, called.args)} at {display(called.level)}"
    if len(shown) < len(schedule.called):
        yield f"    and {len(schedule.called) - len(shown)} more calls, which are not shown"
    for _, called, step in _by_answer(shown):
        lead = f"    {number[id(called)]:<3} "
        yield from wrapped(lead, _step_text(program, step), " " * 12, 100)
    yield from wrapped("    last:   ", rows_text(program, schedule.final), "            ", 100)
    for clause in program.invariant:
        if clause.name in schedule.broken:
            yield from wrapped(f"    broken: {display(clause.name)}: ", clause_meaning(program, clause), " " * 12, 100)


def _by_answer(calls: list[CommittedCall]) -> list[tuple[float, CommittedCall, ExecutedStatement]]:
    """Return the statements of all calls in the order in which they were answered."""
    steps = [(step.answered, called, step) for called in calls for step in called.statements]
    return sorted(steps, key=lambda item: item[0])


def _step_text(program: ir.Application, step: ExecutedStatement) -> str:
    if step.stmt is None:
        return "COMMIT"
    return f"{statement_text(step)}  →  {_outcome(program, step)}"


def _outcome(program: ir.Application, step: ExecutedStatement) -> str:
    if isinstance(step.stmt, ir.SelectOne | ir.SelectAll):
        table = program.table(step.stmt.table)
        return ", ".join(row_text(table, row) for _, row in step.result) or "no row"
    if isinstance(step.stmt, ir.Insert | ir.Update | ir.Delete):
        return f"{step.result} row{'' if step.result == 1 else 's'}"
    return ", ".join(literal(value) for value in (step.result if isinstance(step.result, list) else [step.result]))


def run_data(program: ir.Application, version: str, runs: Runs) -> dict[str, Any]:
    return {"server": version, "vectors": [_vector(program, run, expectation) for run, expectation in runs]}


def _vector(program: ir.Application, run: ServerRun, expectation: str) -> dict[str, Any]:
    data = {
        "levels": run.levels,
        "found safe": expectation == SAFE,
        "standing": expectation,
        "broken": run.broken,
        "commits": run.commits,
        "rollbacks": run.rollbacks,
        "refused": run.refused,
        "problems": dict(run.problems),
    }
    if expectation == SAFE and run.schedule is not None:
        data["schedule"] = _schedule_data(program, run.schedule)
    return data


def _schedule_data(program: ir.Application, schedule: Schedule) -> dict[str, Any]:
    number = {id(called): n for n, called in enumerate(schedule.called, 1)}
    return {
        "broken": schedule.broken,
        "initial": state_data(program, initial_state(program)),
        "calls": [
            {"by": called.transaction, "level": called.level, "arguments": arguments_data(called.args)}
            for called in schedule.called
        ],
        "statements": [
            {
                "call": number[id(called)],
                "statement": "COMMIT" if step.stmt is None else statement_text(step),
                "result": "" if step.stmt is None else _outcome(program, step),
            }
            for _, called, step in _by_answer(schedule.called)
        ],
        "final": state_data(program, schedule.final),
    }
