"""A counterexample as a picture: two lanes, the transaction in question and the others, and time runs downwards."""

from collections.abc import Iterator

from plume_py.base.text import shown, wrapped
from plume_py.infer.driver import Inference, LevelVerdict, TransactionVerdict
from plume_py.infer.language import ir
from plume_py.infer.report import call, chosen, meaning, outcome, row_text, statement
from plume_py.infer.run.evaluate import State
from plume_py.infer.run.schedule import Moment
from plume_py.report.dot import FONT, MONO, PALE, attribute_list, font

WIDTH = 46  # characters in a lane
OWN, OTHER, STATE, BROKEN = "#E8F1FA", "#FFF3E0", "#EFEFEF", "#FFC9C9"


def render(result: Inference, txn: TransactionVerdict, verdict: LevelVerdict) -> str:
    """The picture of one level's counterexample in Graphviz's language."""
    clause, found = chosen(verdict)
    title = f"{txn.name} at {verdict.level.name} on {result.store.name} breaks {clause}"
    rows = "".join(
        _rows(result.program, found.replay.moments, found.example.initial, found.replay.final, clause, found)
    )
    table = (
        f'<table border="0" cellborder="0" cellspacing="0" cellpadding="5">'
        f"{_wide(f'<b>{font(shown(title, 120), point_size=15)}</b>', 'white')}{rows}</table>"
    )
    return (
        "digraph schedule {\n"
        f'  graph [fontname="{FONT}" bgcolor=white pad=0.2]\n'
        f'  node [fontname="{FONT}" fontsize=12 shape=plain]\n'
        f"  schedule {attribute_list(label=table)}\n"
        "}\n"
    )


def _rows(
    program: ir.Program, moments: list[Moment], initial: State, final: State, clause: str, found: object
) -> Iterator[str]:
    example = found.example  # type: ignore[attr-defined]
    yield _wide(_state(program, "at first", initial), STATE)
    own = f"<b>{font(call(example.transaction, example.args), point_size=12)}</b>"
    yield f'<tr><td align="left" bgcolor="{OWN}">{own}</td><td align="left">{font("others", color=PALE)}</td></tr>'
    for number, moment in enumerate(moments, 1):
        if moment.call is not None:
            lines = [f"<b>{font(f'{number}. ' + call(moment.call.transaction, moment.call.args), point_size=12)}</b>"]
            lines += [_code(program, inner) for inner in moment.inner]
            yield _lane("", "<br/>".join([*lines, _mono("COMMIT")]))
        elif moment.stmt is None:
            yield _lane(font(f"{number}. ", point_size=10) + _mono("COMMIT"), "")
        else:
            yield _lane(font(f"{number}. ", point_size=10) + _code(program, moment), "")
    yield _wide(_state(program, "at the end", final), STATE)
    broken = next(item for item in program.invariant if item.name == clause)
    words = "<br/>".join(font(line, point_size=11) for line in wrapped("", meaning(program, broken), "", 2 * WIDTH))
    yield _wide(f"<b>{font(f'{shown(clause)} is broken', point_size=12)}</b><br/>{words}", BROKEN)


def _lane(own: str, other: str) -> str:
    left = f'<td align="left" balign="left" bgcolor="{OWN}">{own or " "}</td>'
    right = (
        f'<td align="left" balign="left"{f" bgcolor={chr(34)}{OTHER}{chr(34)}" if other else ""}>{other or " "}</td>'
    )
    return f"<tr>{left}{right}</tr>"


def _wide(content: str, colour: str) -> str:
    return f'<tr><td colspan="2" align="left" balign="left" bgcolor="{colour}">{content}</td></tr>'


def _mono(text: str) -> str:
    return font(text, face=MONO, point_size=10)


def _code(program: ir.Program, moment: Moment) -> str:
    lines = [_mono(line) for line in wrapped("", statement(program, moment), "  ", WIDTH)]
    lines += [font(line, face=MONO, point_size=10, color="#0068A5") for line in _result(program, moment)]
    return "<br/>".join(lines)


def _result(program: ir.Program, moment: Moment) -> list[str]:
    return wrapped("  → ", outcome(program, moment), "    ", WIDTH)


def _state(program: ir.Program, title: str, state: State) -> str:
    rows = [row_text(table, row) for table, rows in zip(program.tables, state, strict=True) for _, row in rows]
    return "<br/>".join([f"<b>{font(title, point_size=11)}</b>", *(_mono(row) for row in rows or ["no rows"])])
