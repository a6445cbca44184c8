"""Render results as JSON: one document for all results, or one line per result."""

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from plume_py.base.text import escape_ci_commands_json
from plume_py.base.version import TOOL
from plume_py.checking.result import Evidence, LevelVerdict, Result, Step, Violation
from plume_py.report.throughput import plain as speed
from plume_py.report.wording import aliases

_UNPRINTABLE = re.compile("[^ -~]")


def document(results: Sequence[Result]) -> str:
    return signed(
        {
            "results": [plain(result) for result in results],
            "summary": {
                "histories": len(results),
                "ok": sum(r.ok is True for r in results),
                "violated": sum(r.ok is False for r in results),
                "undecided": sum(r.ok is None and r.error is None for r in results),
                "unreadable": sum(r.error is not None for r in results),
            },
        }
    )


def line(result: Result) -> str:
    return encode(plain(result))


def violation_line(violation: Violation) -> str:
    """Return one violation as one line, in the form it has in a result."""
    return encode(_violation(violation))


def plain(result: Result) -> dict[str, Any]:
    """Return a result as JSON objects, with the names that other programs rely on."""
    return {
        "history": result.history,
        "format": result.format,
        "sessions": result.sessions,
        "transactions": result.transactions,
        "operations": result.operations,
        "ok": result.ok,
        "levels": {name: _verdict(verdict) for name, verdict in result.levels.items()},
        "violations": [_violation(v) for v in result.violations],
        "counts": result.counts,
        "counts_exact": result.counts_exact,
        "notes": list(result.notes),
        "seconds": {phase: round(s, 4) for phase, s in result.seconds.items()},
        "error": result.error,
        **({"evidence": _evidence(result.evidence)} if result.evidence is not None else {}),
        **({"run": result.run} if result.run else {}),
        **({"speed": speed(result.speed)} if result.speed is not None else {}),
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "tried": evidence.tried,
        "noticed": evidence.levels_detecting,
        "seed": evidence.seed,
        "conflicts": evidence.conflicts,
        "conflicts_exact": evidence.conflicts_exact,
        "unseen": [{"anomaly": name, "advice": advice} for name, advice in evidence.unseen],
    }


def _verdict(verdict: LevelVerdict) -> dict[str, Any]:
    plain_verdict: dict[str, Any] = {
        "ok": verdict.ok,
        "taps": list(verdict.taps),
        "reason": verdict.reason,
        "order": verdict.order,
    }
    if verdict.because:
        plain_verdict["because"] = list(verdict.because)
    return plain_verdict | ({"holds_in": verdict.holds_in} if verdict.holds_in is not None else {})


def _violation(violation: Violation) -> dict[str, Any]:
    return {
        "tap": violation.tap,
        "name": violation.name,
        "aliases": list(aliases(violation)),
        "level": violation.level,
        "order": violation.order,
        "keys": list(violation.keys),
        "transactions": [
            {"id": t.id, "session": t.session, "place": t.place, "ops": t.ops, "hidden_ops": t.hidden_ops}
            | ({"level": t.level} if t.level else {})
            | ({"start": t.start, "end": t.end} if t.start is not None else {})
            | ({"node": t.node} if t.node else {})
            | ({"during": t.during} if t.during else {})
            | ({"sql": t.sql} if t.sql else {})
            for t in violation.transactions
        ],
        "steps": [_step(step) for step in violation.steps],
        "headline": violation.headline,
        "conclusion": violation.conclusion,
        "culprits": [{"transaction": violation.transactions[t].id, "op": op} for t, op in violation.culprits],
        "explanation": violation.explanation,
    }


def _step(step: Step) -> dict[str, Any]:
    plain_step: dict[str, Any] = {
        "from": step.source,
        "to": step.target,
        "relation": step.relation,
        "key": step.key,
        "because": step.because,
    }
    if step.relation in ("WR", "RW"):
        plain_step["value"] = step.value
    if step.assumed:
        plain_step["assumed"] = True
    if step.reader is not None:
        plain_step["reader"] = step.reader
    if step.reader is not None or step.evidence:
        plain_step["evidence"] = [_step(inner) for inner in step.evidence]
    return plain_step


def signed(content: dict[str, Any], indent: int = 0) -> str:
    """Return a document that names the program; on one line, or indented."""
    text = encode({"tool": TOOL, **content})
    return msgspec.json.format(text, indent=indent) if indent else text


def encode(value: Any) -> str:
    """Return JSON in which unprintable characters and CI commands are escaped. It may go to a terminal or a CI log."""
    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # a lone surrogate, which Python's own JSON escapes
        text = json.dumps(value, separators=(",", ":"))
    return escape_ci_commands_json(text if text.isprintable() else _UNPRINTABLE.sub(_escape, text))


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return character if character.isprintable() else json.dumps(character)[1:-1]
