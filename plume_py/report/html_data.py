"""What the HTML page draws, as plain JSON: texts made harmless, edges tied to the operations they belong to."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from plume_py.base.text import encodable, one_line, shorten, shown, visible
from plume_py.base.version import __version__
from plume_py.checking.result import INITIAL, Id, Result, ShownTransaction, Step, Violation
from plume_py.levels import LEVELS
from plume_py.levels.patterns import PATTERNS, STRONG
from plume_py.report.aliases import aliases
from plume_py.report.dot_layout import supports
from plume_py.report.wording import forbidden, place

NOWHERE = -1  # as a transaction: the initial state; as a cell: the transaction as a whole

# Texts longer than INLINE stand once in a table. A text is cut at LONGEST, and at SPENT once they add up to BUDGET:
# a page must stay small enough to open whatever the values are. Sentences have a limit of their own.
INLINE, LONGEST, SPENT, BUDGET = 64, 20_000, 500, 1_000_000
SENTENCE = 2_000

Text = str | dict[str, int]


def encoded(data: Any) -> str:
    """JSON without any character that could end a script element or start a comment in it."""
    text = msgspec.json.encode(data).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def page_data(results: Sequence[Result]) -> dict[str, Any]:
    """Everything the page shows."""
    texts = _Texts()
    examples = [_example(number, v, texts) for number, result in enumerate(results) for v in result.violations]
    patterns = [tap for tap in PATTERNS if any(tap in result.counts for result in results)]
    patterns += [tap for tap in {v.tap for r in results for v in r.violations} if tap not in patterns]
    return {
        "version": __version__,
        "levels": {name: {"title": level.title, "definition": level.definition} for name, level in LEVELS.items()},
        "patterns": {tap: _pattern(tap) for tap in patterns},
        "histories": [_history(result) for result in results],
        "examples": examples,
        "long": texts.table,
    }


class _Texts:
    """Texts of a history, harmless; the long ones are kept once, in a table."""

    def __init__(self) -> None:
        self.table: list[str] = []
        self._number: dict[str, int] = {}
        self._spent = 0

    def of(self, atom: object) -> Text:
        if isinstance(atom, tuple | list):
            return self._kept(f"[{' '.join('null' if item is None else str(item) for item in atom)}]")
        return self._kept("null" if atom is None else str(atom))

    def _kept(self, raw: str) -> Text:
        if len(raw) <= INLINE and len(text := visible(encodable(raw))) <= INLINE:
            return text
        text = self._cut(raw)
        if text not in self._number:
            self._number[text] = len(self.table)
            self.table.append(text)
            self._spent += len(text)
        return {"long": self._number[text]}

    def _cut(self, raw: str) -> str:
        limit = LONGEST if self._spent < BUDGET else SPENT
        text = visible(encodable(raw[:limit]))[:limit]
        return text if len(raw) <= limit else f"{text}… (cut here: {len(raw):,} characters in all)"


def _sentence(words: str) -> str:
    return shorten(one_line(words[:SENTENCE]), SENTENCE)


def _pattern(tap: str) -> dict[str, Any]:
    known = PATTERNS[tap]
    return {
        "label": f"TAP-{tap}" if len(tap) == 1 else "",
        "name": known.name,
        "aliases": list(known.aliases),
        "level": known.level,
        "description": known.description,
        "condition": known.condition,
        "cause": known.cause,
    }


def _history(result: Result) -> dict[str, Any]:
    return {
        "name": _sentence(result.history),
        "format": result.format,
        "sessions": result.sessions,
        "transactions": result.transactions,
        "operations": result.operations,
        "ok": result.ok,
        "levels": {
            name: {"ok": verdict.ok, "taps": list(verdict.taps), "reason": verdict.reason}
            for name, verdict in result.levels.items()
        },
        "counts": result.counts,
        "exact": result.counts_exact,
        "notes": [_sentence(note) for note in result.notes],
        "seconds": {phase: round(seconds, 4) for phase, seconds in result.seconds.items()},
        "error": None if result.error is None else _sentence(result.error),
    }


def _example(history: int, violation: Violation, texts: _Texts) -> dict[str, Any]:
    at = {txn.id: number for number, txn in reversed(list(enumerate(violation.transactions)))}
    return {
        "history": history,
        "pattern": violation.tap,
        "aliases": list(aliases(violation)),
        "forbidden": forbidden(violation),
        "keys": [texts.of(key) for key in violation.keys],
        "transactions": [_transaction(txn, texts) for txn in violation.transactions],
        "steps": [_step(step, violation.transactions, at, texts) for step in violation.steps],
        "cycle": _is_cycle(violation),
        "blamed": _blamed(violation),
        "end": _sentence(_end(violation)),
    }


def _transaction(txn: ShownTransaction, texts: _Texts) -> dict[str, Any]:
    return {
        "id": texts.of(txn.id),
        "session": texts.of(txn.session),
        "place": _sentence(place(txn)),
        "status": txn.status,
        "ops": [[str(kind), texts.of(key), texts.of(value)] for kind, key, value in txn.ops],
        "hidden": txn.hidden_ops,
    }


def _step(
    step: Step, txns: Sequence[ShownTransaction], at: dict[Id, int], texts: _Texts, deep: bool = True
) -> dict[str, Any]:
    """A step with what it rests on; ``deep``: all of that in one list, so that the page need not nest."""
    cells = _cells(step, txns, at)
    plain: dict[str, Any] = {
        "from": at.get(step.source, NOWHERE),
        "to": at.get(step.target, NOWHERE),
        "cells": cells[:2],
        "relation": step.relation,
        "key": None if step.relation == "SO" or (step.relation == "CM" and step.reader is None) else texts.of(step.key),
        "because": _sentence(step.because),
    }
    if step.assumed:
        plain["assumed"] = True
    if step.reader is not None:
        plain["reader"] = [at.get(step.reader, NOWHERE), cells[2]]
    evidence = [*_read_in_question(step, txns, at), *(supports(step) if deep else ())]
    if evidence or step.reader is not None:
        plain["evidence"] = [_step(inner, txns, at, texts, deep=False) for inner in evidence]
    return plain


def _read_in_question(step: Step, txns: Sequence[ShownTransaction], at: dict[Id, int]) -> list[Step]:
    """A CM step rests on two things: its evidence, and the read that makes the evidence matter."""
    if step.relation != "CM" or step.reader is None:
        return []
    cell = _cells(step, txns, at)[2]
    seen = None if cell == NOWHERE else _ops(step.reader, txns, at)[cell][2]
    whom = "the initial state" if step.target == INITIAL else shown(step.target)
    because = f"{shown(step.reader)} read {shown(step.key)} from {whom}, although {shown(step.source)} wrote it too"
    return [Step(step.target, step.reader, "WR", step.key, because, _last(seen))]


# Which operation of a transaction an edge belongs to


def _cells(step: Step, txns: Sequence[ShownTransaction], at: dict[Id, int]) -> tuple[int, int, int]:
    """The operations at which the step begins and ends, and that of its reader."""
    source, target = _ops(step.source, txns, at), _ops(step.target, txns, at)
    if step.relation == "WR":
        return _write(source, step.key, step.value), _read(target, step.key, step.value), NOWHERE
    if step.relation == "RW":
        return _read(source, step.key, step.value), _write(target, step.key, None), NOWHERE
    if step.relation == "SO":
        return NOWHERE, NOWHERE, NOWHERE
    reader = [] if step.reader is None else _ops(step.reader, txns, at)
    for cell, (kind, key, value) in enumerate(reader):
        if kind == "r" and key == step.key and (written := _written(target, key, value, step)) != NOWHERE:
            return _write(source, key, None), written, cell
    return _write(source, step.key, None), _write(target, step.key, None), _read(reader, step.key, None)


def _ops(txn: Id, txns: Sequence[ShownTransaction], at: dict[Id, int]) -> Sequence[tuple[object, ...]]:
    return txns[at[txn]].ops if txn in at else ()


def _written(ops: Sequence[tuple[object, ...]], key: object, seen: object, step: Step) -> int:
    """The write that a read saw: of a list, any of its elements if the step is about the list's order."""
    seen_values = seen if isinstance(seen, tuple | list) and step.relation == "WW" else [_last(seen)]
    return next((i for value in seen_values for i in [_exact_write(ops, key, value)] if i != NOWHERE), NOWHERE)


def _exact_write(ops: Sequence[tuple[object, ...]], key: object, value: object) -> int:
    return next((i for i, op in enumerate(ops) if op[0] != "r" and op[1] == key and op[2] == value), NOWHERE)


def _write(ops: Sequence[tuple[object, ...]], key: object, value: object) -> int:
    """The write of ``value``, else the last write of ``key``."""
    exact = _exact_write(ops, key, value)
    if exact != NOWHERE:
        return exact
    return max((i for i, op in enumerate(ops) if op[0] != "r" and op[1] == key), default=NOWHERE)


def _read(ops: Sequence[tuple[object, ...]], key: object, value: object) -> int:
    """The read that saw ``value``, else the first read of ``key``."""
    reads = [i for i, op in enumerate(ops) if op[0] == "r" and op[1] == key]
    return next((i for i in reads if _last(ops[i][2]) == value), reads[0] if reads else NOWHERE)


def _last(value: object) -> Any:
    """A list is read from the writer of its last element."""
    if isinstance(value, tuple | list):
        return value[-1] if value else None
    return value


def _blamed(violation: Violation) -> list[list[int]]:
    """Of a pattern that is one read rather than a cycle: the reads that its explanation quotes."""
    if _is_cycle(violation):
        return []
    return [
        [number, cell]
        for number, txn in enumerate(violation.transactions)
        for cell, op in enumerate(txn.ops)
        if op[0] == "r" and _quoted(op, shown(txn.id), violation.explanation)
    ]


def _quoted(op: tuple[object, ...], reader: str, explanation: str) -> bool:
    _, key, value = op
    seen = f"[{shown(' '.join(map(str, value)))}]" if isinstance(value, tuple | list) else shown(value)
    return re.search(re.escape(f"{reader} read {shown(key)} = {seen}") + r"(?!\w)", explanation) is not None


# How the proof ends


def _is_cycle(violation: Violation) -> bool:
    steps = violation.steps
    return bool(steps) and steps[-1].target in (steps[0].source, INITIAL)


def _end(violation: Violation) -> str:
    if violation.tap in STRONG:
        return f"That is, {violation.explanation}."
    if _is_cycle(violation):
        first, last = violation.steps[0].source, violation.steps[-1].target
        if last == INITIAL:
            return f"Hence {shown(first)} would have to come before the initial state: a contradiction."
        return f"Hence {shown(first)} would have to come before itself: a contradiction."
    if violation.explanation and violation.explanation != "; ".join(step.because for step in violation.steps):
        return f"{violation.explanation}."
    return f"That is the pattern: {PATTERNS[violation.tap].description}."
