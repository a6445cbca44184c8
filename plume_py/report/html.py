"""HTML: one page that works from disk, with every counterexample as a picture and a proof to walk through.

Python decides what is shown and which operation an edge belongs to; ``assets/`` only draws. Everything from a history
travels as JSON that cannot end its script element, and the page inserts it as text, never as markup.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
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
from plume_py.report.wording import aliases, by_name, clock, evidence_sentences, forbidden, home, place, weaker_order

# Of a page without scripts: that many verdicts in words.
PLAIN_VERDICTS = 50


# Pixels that a page is high within another one, such as a notebook; the reader can drag its lower edge.
FRAME = 640

NOWHERE = -1  # as a transaction: the initial state; as a cell: the transaction as a whole

# Texts longer than INLINE stand once in a table. A text is cut at LONGEST, and at SPENT once they add up to BUDGET:
# a page must stay small enough to open whatever the values are. Sentences have a limit of their own.
INLINE, LONGEST, SPENT, BUDGET = 64, 20_000, 500, 1_000_000
SENTENCE = 2_000

Text = str | dict[str, int]


def framed(results: Sequence[Result]) -> str:
    """Return the page as an element for another page: an isolated frame, of which nothing reaches the page around it.

    Scripts of the frame run with an origin of their own. Its links are relative to itself, not to the page around it.
    """
    page = document(results).replace("<head>\n", '<head>\n<base href="about:srcdoc">\n', 1)
    return (
        f'<iframe title="{escape(_title(results))}" sandbox="allow-scripts" srcdoc="{escape(page)}" '
        f'style="display: block; width: 100%; height: {FRAME}px; border: 0; resize: vertical; overflow: auto"></iframe>'
    )


def document(results: Sequence[Result]) -> str:
    """Return the whole page."""
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
        f'<div id="page"></div>\n{_speeds(results)}'
        f'<script type="application/json" id="data">{encoded(page_data(results))}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _speeds(results: Sequence[Result]) -> str:
    """How fast runs went that were seen running: drawn here, and nothing of it is a history's."""
    drawn = [(i, result.speed) for i, result in enumerate(results) if result.speed is not None]
    return "".join(f"{section(speed, f'speed-{i}')}\n" for i, speed in drawn)


def asset(name: str) -> str:
    """A file of ``assets/``."""
    return (files("plume_py.report") / "assets" / name).read_text("utf-8")


def policy(style: str, script: str) -> str:
    """Only our own style and script count, and nothing is fetched: a second lock behind the escaping."""
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
    lines = "".join(f"<li>{escape(_in_words(result))}</li>" for result in results[:PLAIN_VERDICTS])
    return (
        "<noscript><p>This report draws its pictures with JavaScript, which is switched off here. The verdicts are "
        f"below; <code>isocheck --format text</code> prints the proofs.</p><ul>{lines}</ul>"
        f"<p>isocheck {escape(__version__)}</p></noscript>"
    )


def _in_words(result: Result) -> str:
    name = shorten(one_line(result.history), 200) or "history"
    if result.error is not None:
        return f"{name}: not read: {shorten(one_line(result.error), 500)}"
    words = {True: "holds", False: "violated", None: "undecided"}
    return f"{name}: " + ", ".join(f"{level} {words[verdict.ok]}" for level, verdict in result.levels.items())


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
        "relations": {name: look.meaning for name, look in LOOKS.items()},
        "patterns": {tap: _pattern(tap) for tap in patterns},
        "histories": [_history(result, texts) for result in results],
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
            return self._stored(f"[{' '.join('null' if item is None else str(item) for item in atom)}]")
        return self._stored("null" if atom is None else str(atom))

    def _stored(self, raw: str) -> Text:
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


def _evidence(result: Result) -> Iterator[str]:
    if result.evidence is not None:
        yield from evidence_sentences(result.evidence)


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
        "notes": [_sentence(note) for note in (*result.notes, *_evidence(result))],
        "seconds": {phase: round(seconds, 4) for phase, seconds in result.seconds.items()},
        "error": None if result.error is None else _sentence(result.error),
        "run": [[name, _sentence(words)] for name, words in result.run.items()],
        "lanes": [
            [texts.of(lane.session), [[texts.of(id), status] for id, status in lane.transactions]]
            for lane in result.lanes
        ],
    }


def _example(history: int, violation: Violation, texts: _Texts) -> dict[str, Any]:
    at = {txn.id: number for number, txn in reversed(list(enumerate(violation.transactions)))}
    sessions = sorted({txn.session for txn in violation.transactions}, key=by_name)
    return {
        "history": history,
        "pattern": violation.tap,
        "aliases": list(aliases(violation)),
        "forbidden": forbidden(violation),
        "keys": [texts.of(key) for key in violation.keys],
        "sessions": [texts.of(session) for session in sessions],
        "transactions": [_transaction(txn, texts) for txn in violation.transactions],
        "steps": [_step(step, at, texts) for step in violation.steps],
        "cycle": violation.ends is not Ends.OPEN,
        "culprits": [list(culprit) for culprit in violation.culprits],
        "cause": violation.cause,
        "headline": _sentence(violation.headline),
        "conclusion": _sentence(violation.conclusion),
    } | ({"homes": _homes(violation, sessions)} if any(txn.node for txn in violation.transactions) else {})


def _homes(violation: Violation, sessions: list[Id]) -> list[str]:
    """Of each session the node that it stayed at."""
    return [_sentence(home(txn for txn in violation.transactions if txn.session == session)) for session in sessions]


def _transaction(txn: ShownTransaction, texts: _Texts) -> dict[str, Any]:
    return {
        "id": texts.of(with_letter(txn.id)),
        "session": texts.of(txn.session),
        "place": _sentence(f"{place(txn)}, on {txn.node}" if txn.node else place(txn)),
        "status": txn.status,
        "nth": txn.nth,
        "sql": list(txn.sql),
        "clock": _clock(txn),
        "time": None if txn.start is None or txn.end is None else [txn.start, txn.end],
        "ops": [[str(kind), texts.of(key), texts.of(value)] for kind, key, value in txn.ops],
        "hidden": txn.hidden_ops,
    }


def _clock(txn: ShownTransaction) -> str:
    """When it ran, and what happened meanwhile."""
    if txn.start is None or txn.end is None:
        return ""
    during = f", during {txn.during}" if txn.during else ""
    return _sentence(f"{clock(txn.start)} to {clock(txn.end)}{during}")


def _step(step: Step, at: dict[Id, int], texts: _Texts, deep: bool = True) -> dict[str, Any]:
    """A step with what it rests on; ``deep``: all of that in one list, so that the page need not nest."""
    plain: dict[str, Any] = {
        "from": at.get(step.source, NOWHERE),
        "to": at.get(step.target, NOWHERE),
        "cells": [_cell(step.source_op), _cell(step.target_op)],
        "relation": step.relation,
        "key": texts.of(step.key) if step.has_key else None,
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
