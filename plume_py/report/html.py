"""Render results as an HTML page that works from disk, with pictures and steps to walk through.

Python decides what to show and which operation an edge belongs to; ``assets/`` only draws. All text of a history is in
JSON that cannot end its script element. The page inserts it as text, never as markup.
"""

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

import msgspec

from plume_py.base.text import encodable, one_line, shorten, visible, with_letter
from plume_py.base.version import __version__
from plume_py.checking.result import Ends, Id, Result, ShownTransaction, Step, Violation
from plume_py.levels import LEVELS
from plume_py.levels.patterns import PATTERNS
from plume_py.report.styles import LOOKS, style_sheet, visible_evidence
from plume_py.report.throughput import section
from plume_py.report.wording import (
    aliases,
    clock,
    evidence_sentences,
    forbidden,
    place,
    session_node,
    session_sort_key,
    weaker_order,
)

# Number of verdicts shown in a browser without JavaScript.
PLAIN_VERDICTS = 50


# Initial height of the frame in pixels. The reader can drag its lower edge.
FRAME = 640

NOWHERE = -1  # number of the initial state among transactions, and of the whole transaction among cells

# Texts longer than INLINE are stored once, in a table. A text is cut at LONGEST characters, and at SPENT once all texts
# exceed BUDGET, so that the page stays small enough to open. SENTENCE is the limit for sentences.
INLINE, LONGEST, SPENT, BUDGET = 64, 20_000, 500, 1_000_000
SENTENCE = 2_000

Text = str | dict[str, int]


def framed(results: Sequence[Result]) -> str:
    """Return the page as an isolated frame for another page, such as a notebook.

    Scripts in the frame have an origin. Links are relative to the frame.
    """
    page = document(results).replace("<head>\n", '<head>\n<base href="about:srcdoc">\n', 1)
    return (
        f'<iframe title="{escape(_title(results))}" sandbox="allow-scripts" srcdoc="{escape(page)}" '
        f'style="display: block; width: 100%; height: {FRAME}px; border: 0; resize: vertical; overflow: auto"></iframe>'
    )


def document(results: Sequence[Result]) -> str:
    style = style_sheet() + asset("report.css")
    script = "\n".join(asset(name) for name in ("graph.js", "timeline.js", "lists.js", "report.js"))
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(_title(results))}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"{_without_scripts(results)}\n"
        f'<div id="page"></div>\n{_throughput_sections(results)}'
        f'<script type="application/json" id="data">{encoded(page_data(results))}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _throughput_sections(results: Sequence[Result]) -> str:
    """Return a throughput section for each result with measurements. They contain no text of a history."""
    drawn = [(i, result.speed) for i, result in enumerate(results) if result.speed is not None]
    return "".join(f"{section(speed, f'speed-{i}')}\n" for i, speed in drawn)


def asset(name: str) -> str:
    return (files("plume_py.report") / "assets" / name).read_text("utf-8")


def policy(style: str, script: str) -> str:
    """Return a content security policy that allows only our style and script. It backs up the escaping."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _title(results: Sequence[Result]) -> str:
    what = one_line(results[0].history) if len(results) == 1 else f"{len(results)} histories"
    return f"isocheck: {shorten(what or 'history', 80)}"


def _without_scripts(results: Sequence[Result]) -> str:
    lines = "".join(f"<li>{escape(_verdict_line(result))}</li>" for result in results[:PLAIN_VERDICTS])
    return (
        "<noscript><p>This report draws its pictures with JavaScript, which is switched off here. The verdicts are "
        f"below; <code>isocheck --format text</code> prints the proofs.</p><ul>{lines}</ul>"
        f"<p>isocheck {escape(__version__)}</p></noscript>"
    )


def _verdict_line(result: Result) -> str:
    name = shorten(one_line(result.history), 200) or "history"
    if result.error is not None:
        return f"{name}: not read: {shorten(one_line(result.error), 500)}"
    words = {True: "holds", False: "violated", None: "undecided"}
    return f"{name}: " + ", ".join(f"{level} {words[verdict.ok]}" for level, verdict in result.levels.items())


def encoded(data: Any) -> str:
    """Return JSON without characters that could end a script element or start a comment in it."""
    text = msgspec.json.encode(data).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def page_data(results: Sequence[Result]) -> dict[str, Any]:
    """Return all data that the page shows."""
    texts = _Texts()
    examples = [_example(number, v, texts) for number, result in enumerate(results) for v in result.violations]
    patterns = [tap for tap in PATTERNS if any(tap in result.counts for result in results)]
    patterns += [tap for tap in {v.tap for r in results for v in r.violations} if tap not in patterns]
    return {
        "version": __version__,
        "levels": {name: {"title": level.title, "definition": level.definition} for name, level in LEVELS.items()},
        "relations": {name: look.meaning for name, look in LOOKS.items()},
        "patterns": {tap: _pattern(tap) for tap in patterns},
        "histories": [_history(result, texts) for result in results],
        "examples": examples,
        "long": texts.table,
    }


class _Texts:
    """Escaped texts of a history. Long ones are stored once, in a table."""

    def __init__(self) -> None:
        self.table: list[str] = []
        self._number: dict[str, int] = {}
        self._spent = 0

    def stored(self, atom: object) -> Text:
        if isinstance(atom, tuple | list):
            return self._store(f"[{' '.join('null' if item is None else str(item) for item in atom)}]")
        return self._store("null" if atom is None else str(atom))

    def _store(self, raw: str) -> Text:
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
        "label": known.label if known.has_letter else "",
        "name": known.name,
        "aliases": list(known.aliases),
        "level": known.level,
        "description": known.description,
        "condition": known.condition,
        "cause": known.cause,
    }


def _history(result: Result, texts: _Texts) -> dict[str, Any]:
    evidence = () if result.evidence is None else evidence_sentences(result.evidence)
    return {
        "name": _sentence(result.history),
        "format": result.format,
        "sessions": result.sessions,
        "transactions": result.transactions,
        "operations": result.operations,
        "ok": result.ok,
        "levels": {
            name: {"ok": verdict.ok, "taps": list(verdict.taps), "reason": verdict.reason or weaker_order(verdict)}
            for name, verdict in result.levels.items()
        },
        "counts": result.counts,
        "exact": result.counts_exact,
        "notes": [_sentence(note) for note in (*result.notes, *evidence)],
        "seconds": {phase: round(seconds, 4) for phase, seconds in result.seconds.items()},
        "error": None if result.error is None else _sentence(result.error),
        "run": [[name, _sentence(words)] for name, words in result.run.items()],
        "lanes": [
            [texts.stored(lane.session), [[texts.stored(id), status] for id, status in lane.transactions]]
            for lane in result.lanes
        ],
    }


def _example(history: int, violation: Violation, texts: _Texts) -> dict[str, Any]:
    at = {txn.id: number for number, txn in reversed(list(enumerate(violation.transactions)))}
    sessions = sorted({txn.session for txn in violation.transactions}, key=session_sort_key)
    return {
        "history": history,
        "pattern": violation.tap,
        "aliases": list(aliases(violation)),
        "forbidden": forbidden(violation),
        "keys": [texts.stored(key) for key in violation.keys],
        "sessions": [texts.stored(session) for session in sessions],
        "transactions": [_transaction(txn, texts) for txn in violation.transactions],
        "steps": [_step(step, at, texts) for step in violation.steps],
        "cycle": violation.ends is not Ends.OPEN,
        "culprits": [list(culprit) for culprit in violation.culprits],
        "cause": violation.cause,
        "headline": _sentence(violation.headline),
        "conclusion": _sentence(violation.conclusion),
    } | ({"homes": _session_nodes(violation, sessions)} if any(txn.node for txn in violation.transactions) else {})


def _session_nodes(violation: Violation, sessions: list[Id]) -> list[str]:
    """Return, per session, the node that all its transactions ran on, or ""."""
    return [
        _sentence(session_node(txn for txn in violation.transactions if txn.session == session)) for session in sessions
    ]


def _transaction(txn: ShownTransaction, texts: _Texts) -> dict[str, Any]:
    return {
        "id": texts.stored(with_letter(txn.id)),
        "session": texts.stored(txn.session),
        "place": _sentence(f"{place(txn)}, on {txn.node}" if txn.node else place(txn)),
        "status": txn.status,
        "nth": txn.nth,
        "sql": list(txn.sql),
        "clock": _clock(txn),
        "time": None if txn.start is None or txn.end is None else [txn.start, txn.end],
        "ops": [[str(kind), texts.stored(key), texts.stored(value)] for kind, key, value in txn.ops],
        "hidden": txn.hidden_ops,
    }


def _clock(txn: ShownTransaction) -> str:
    """Return the time span of a transaction, and the faults during it."""
    if txn.start is None or txn.end is None:
        return ""
    during = f", during {txn.during}" if txn.during else ""
    return _sentence(f"{clock(txn.start)} to {clock(txn.end)}{during}")


def _step(step: Step, at: dict[Id, int], texts: _Texts, deep: bool = True) -> dict[str, Any]:
    """Return a step with its evidence. ``deep``: all evidence as one flat list."""
    plain: dict[str, Any] = {
        "from": at.get(step.source, NOWHERE),
        "to": at.get(step.target, NOWHERE),
        "cells": [_cell(step.source_op), _cell(step.target_op)],
        "relation": step.relation,
        "key": texts.stored(step.key) if step.has_key else None,
        "because": _sentence(step.because),
    }
    if step.assumed:
        plain["assumed"] = True
    if step.reader is not None:
        plain["reader"] = [at.get(step.reader, NOWHERE), _cell(step.reader_op)]
    evidence = list(visible_evidence(step)) if deep else []
    if evidence or step.reader is not None:
        plain["evidence"] = [_step(inner, at, texts, deep=False) for inner in evidence]
    return plain


def _cell(op: int | None) -> int:
    return NOWHERE if op is None else op
