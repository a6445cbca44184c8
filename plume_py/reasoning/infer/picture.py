"""Draw a counterexample in Graphviz's language (``infer --out``).

The picture has two lanes: the analysed transaction on the left, other transactions on the right. Time runs downwards.
"""

from collections.abc import Iterator

from plume_py.base.text import display, wrapped
from plume_py.reasoning.infer.driver import InferenceResult, LevelAnswer, ReplayedExample, TransactionVerdict
from plume_py.reasoning.infer.execution.evaluate import State
from plume_py.reasoning.infer.execution.schedule import ScheduleLine
from plume_py.reasoning.infer.program import ir
from plume_py.reasoning.infer.report import (
    call_text,
    clause_meaning,
    result_text,
    row_text,
    shortest_example,
    statement_text,
)
from plume_py.report.graphviz import FONT, MONO, PALE, Graph, Markup, bold, cell, font, lines, table, text

WIDTH = 46  # characters in a lane
NOTHING = text("")
LEFT = {"align": "left", "balign": "left"}
OWN, OTHER, STATE, BROKEN = "#E8F1FA", "#FFF3E0", "#EFEFEF", "#FFC9C9"


def render(result: InferenceResult, txn: TransactionVerdict, verdict: LevelAnswer) -> str:
    """Return the picture of the shortest counterexample at one level."""
    clause, found = shortest_example(verdict)
    title = f"{txn.name} at {verdict.level.name} on {result.store.name} breaks {clause}"
    rows = [[_full_row(bold(font(display(title, 120), point_size=15)), "white")], *_rows(result.program, found, clause)]
    graph = Graph("schedule")
    graph.defaults("node", fontname=FONT, fontsize=12, shape="plain")
    graph.node("schedule", table(rows, border=0, cellborder=0, cellspacing=0, cellpadding=5))
    return graph.source


def _rows(program: ir.Application, confirmed: ReplayedExample, clause: str) -> Iterator[list[Markup]]:
    example, replay = confirmed.example, confirmed.replay
    yield [_full_row(_state_cell(program, "at first", example.initial), STATE)]
    own = bold(font(call_text(example.transaction, example.args), point_size=12))
    yield [cell(own, align="left", bgcolor=OWN), cell(font("others", color=PALE), align="left")]
    for number, line in enumerate(replay.lines, 1):
        counter = font(f"{number}. ", point_size=10)
        if line.call is not None:
            title = f"{number}. {call_text(line.call.transaction, line.call.args)}"
            inner = [_statement_cell(program, part) for part in line.inner]
            yield _lanes(NOTHING, lines([bold(font(title, point_size=12)), *inner, _monospace("COMMIT")]))
        else:
            code = _monospace("COMMIT") if line.stmt is None else _statement_cell(program, line)
            yield _lanes(Markup(counter + code), NOTHING)
    yield [_full_row(_state_cell(program, "at the end", replay.final), STATE)]
    broken = next(item for item in program.invariant if item.name == clause)
    words = [font(line, point_size=11) for line in wrapped("", clause_meaning(program, broken), "", 2 * WIDTH)]
    yield [_full_row(lines([bold(font(f"{display(clause)} is broken", point_size=12)), *words]), BROKEN)]


def _lanes(own: Markup, other: Markup) -> list[Markup]:
    """Return a row with what the analysed transaction does, or what others do in between."""
    right = {} if other == NOTHING else {"bgcolor": OTHER}
    return [cell(own, **LEFT, bgcolor=OWN), cell(other, **LEFT, **right)]


def _full_row(content: Markup, colour: str) -> Markup:
    return cell(content, colspan=2, **LEFT, bgcolor=colour)


def _monospace(words: str) -> Markup:
    return font(words, face=MONO, point_size=10)


def _statement_cell(program: ir.Application, line: ScheduleLine) -> Markup:
    words = [_monospace(line) for line in wrapped("", statement_text(line), "  ", WIDTH)]
    results = wrapped("  → ", result_text(program, line), "    ", WIDTH)
    return lines([*words, *(font(line, face=MONO, point_size=10, color="#0068A5") for line in results)])


def _state_cell(program: ir.Application, title: str, state: State) -> Markup:
    rows = [row_text(of, row) for of, rows in zip(program.tables, state, strict=True) for _, row in rows]
    return lines([bold(font(title, point_size=11)), *(_monospace(row) for row in rows or ["no rows"])])
