"""Render results as SARIF 2.1.0: a rule per pattern, a result per counterexample, with its steps as a code flow."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from plume_py.base.errors import ExitCode, combined, exit_code
from plume_py.base.text import display, escape_ci_commands_json, one_line, txn_text
from plume_py.base.version import __version__
from plume_py.checking.result import Id, LevelVerdict, Result, ShownTransaction, Step, Violation
from plume_py.levels import LEVELS
from plume_py.levels.patterns import PATTERNS, Pattern
from plume_py.report.github import relative
from plume_py.report.text import operation
from plume_py.report.wording import argument, bracketed

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

LEVEL_RULE = "isolation-level"  # for a violated level without a pattern
NOTIFICATIONS = {
    "unreadable": "The history could not be read.",
    "undecided": "It could not be decided whether a level holds.",
    "note": "A remark on how the history was read.",
}
EXITS = {
    ExitCode.HOLDS: "every level holds for every history",
    ExitCode.VIOLATION: "some violation",
    ExitCode.UNDECIDED: "undecided",
    ExitCode.BAD_INPUT: "some input could not be read",
}

Object = dict[str, Any]


def document(results: Sequence[Result]) -> str:
    """Return one run over all histories. ASCII only, so that no locale can damage it."""
    run = {
        "tool": {"driver": _driver()},
        "invocations": [_invocation(results)],
        "artifacts": [{"location": {"uri": uri(path)}, "roles": ["analysisTarget"]} for path in _paths(results)],
        "results": [found for result in results for found in _results(result)],
        "columnKind": "unicodeCodePoints",
    }
    return escape_ci_commands_json(json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}))


def uri(path: str) -> str:
    """Return the URI of a path, relative if it is below the current folder. Invalid bytes are percent-encoded."""
    place = relative(os.path.normpath(path)) if path else "-"
    scheme = "file://" if os.path.isabs(place) else ""
    return scheme + quote(os.fsencode(PurePath(place).as_posix()))


def _paths(results: Sequence[Result]) -> list[str]:
    return list({uri(result.history): result.history for result in results}.values())


# Tool


def _driver() -> Object:
    rules = [_rule(tap) for tap in PATTERNS.values()]
    return {
        "name": "isocheck",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [*rules, _level_rule()],
        "notifications": [{"id": name, **_described(text)} for name, text in NOTIFICATIONS.items()],
    }


def _rule(tap: Pattern) -> Object:
    forbidden = f"Forbidden from {LEVELS[tap.level].title} ({tap.level}) on."
    paragraphs = [
        _sentence(tap.description),
        f"Condition: {tap.condition}.",
        forbidden,
        f"Usual cause: {tap.cause}.",
    ]
    marked = [paragraphs[0], f"**Condition:** {tap.condition}.", forbidden, f"**Usual cause:** {tap.cause}."]
    if tap.aliases:
        paragraphs.append(f"Also called: {', '.join(tap.aliases)}.")
        marked.append(f"**Also called:** {', '.join(tap.aliases)}.")
    return {
        "id": tap.label,
        "name": tap.name,
        "shortDescription": {"text": _sentence(tap.description)},
        "fullDescription": {"text": f"{_sentence(tap.description)} {forbidden}"},
        "help": {"text": "\n\n".join(paragraphs), "markdown": "\n\n".join(marked)},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["isolation", tap.level]},
    }


def _level_rule() -> Object:
    text = "The history does not keep the isolation level, and no single pattern shows why."
    return {
        "id": LEVEL_RULE,
        "name": "IsolationLevelViolated",
        **_described(text),
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["isolation"]},
    }


def _described(text: str) -> Object:
    """Return a text as all three descriptions, because GitHub requires all."""
    return {"shortDescription": {"text": text}, "fullDescription": {"text": text}, "help": {"text": text}}


def _rule_index(rule: str) -> int:
    return [*(pattern.label for pattern in PATTERNS.values()), LEVEL_RULE].index(rule)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# Run


def _invocation(results: Sequence[Result]) -> Object:
    """Return the invocation. It is successful only if every level of every history was decided."""
    code = combined(exit_code(result.ok, result.error) for result in results)
    undecided = any(verdict.ok is None for result in results for verdict in result.levels.values())
    return {
        "executionSuccessful": not undecided and all(result.error is None for result in results),
        "exitCode": int(code),
        "exitCodeDescription": EXITS[code],
        "toolExecutionNotifications": [n for result in results for n in _notifications(result)],
    }


def _notifications(result: Result) -> Iterator[Object]:
    if result.error is not None:
        yield _notification(result, "unreadable", "error", result.error)
    for name, verdict in result.levels.items():
        if verdict.ok is None:
            yield _notification(result, "undecided", "warning", f"{name} undecided: {verdict.reason}")
    for note in result.notes:
        yield _notification(result, "note", "note", note)


def _notification(result: Result, name: str, level: str, text: str) -> Object:
    return {
        "descriptor": {"id": name, "index": list(NOTIFICATIONS).index(name)},
        "level": level,
        "message": _message(text),
        "locations": [_file(result)],
    }


# Results


def _results(result: Result) -> Iterator[Object]:
    for violation in result.violations:
        yield _result(result, violation)
    with_example = {violation.tap for violation in result.violations}
    for tap in {tap: None for verdict in result.levels.values() for tap in verdict.taps}:
        if tap not in with_example:  # no example was asked for
            text = f"{PATTERNS[tap].name}: {PATTERNS[tap].description}."
            yield _bare_result(result, PATTERNS[tap].label, text)
    for name, verdict in result.levels.items():
        if verdict.ok is False and not verdict.taps:
            yield _bare_result(result, LEVEL_RULE, _unexplained(name, verdict))


def _unexplained(name: str, verdict: LevelVerdict) -> str:
    return f"The history does not keep {name}{f': {verdict.reason}' if verdict.reason else ''}."


def _bare_result(result: Result, rule: str, text: str) -> Object:
    return {
        "ruleId": rule,
        "ruleIndex": _rule_index(rule),
        "level": "error",
        "message": _message(text),
        "locations": [_file(result)],
        "partialFingerprints": _fingerprints([rule, text]),
    }


def _result(result: Result, violation: Violation) -> Object:
    main = _main_transaction(violation)
    others = [t for t in violation.transactions if t is not main]
    found = _bare_result(result, violation.pattern.label, _full_message(violation))
    found["partialFingerprints"] = _fingerprints(_identity(violation))
    if main is not None:
        found["locations"] = [_place(result, main)]
    related = [{"id": n, **_place(result, t), "message": _message(_operations(t))} for n, t in enumerate(others, 1)]
    if related:
        found["relatedLocations"] = related
    found["properties"] = _properties(violation)
    if violation.steps:
        found["codeFlows"] = [{"threadFlows": [{"locations": list(_flow(result, violation))}]}]
    return found


def _full_message(violation: Violation) -> str:
    """Return pattern, argument and usual cause. Some viewers show only the first sentence."""
    pattern = violation.pattern
    name = f"{pattern.name}{bracketed(violation)}"
    return f"{name}: {violation.headline}. {argument(violation)} Usual cause: {violation.cause}."


def _properties(violation: Violation) -> Object:
    """Return the conclusion of the proof and the wrong reads, for other programs."""
    members = violation.transactions
    culprits = [
        {"transaction": members[t].id, "operation": operation(members[t].ops[op])} for t, op in violation.culprits
    ]
    return {"conclusion": violation.conclusion, "culprits": culprits}


def _main_transaction(violation: Violation) -> ShownTransaction | None:
    """Return the transaction that best locates the violation: a culprit, the reader of the last edge, or its target."""
    if violation.culprits:
        return violation.transactions[violation.culprits[-1][0]]
    known = {transaction.id: transaction for transaction in violation.transactions}
    for step in reversed(violation.steps):
        for name in (step.reader, step.target):
            if name in known:
                return known[name]
    return violation.transactions[-1] if violation.transactions else None


def _operations(transaction: ShownTransaction) -> str:
    ops = " ".join(operation(op) for op in transaction.ops)
    return f"{txn_text(transaction.id)} (session {display(transaction.session)}): {ops}"


def _flow(result: Result, violation: Violation) -> Iterator[Object]:
    """Yield the steps in order, each followed by its evidence one level deeper."""
    known = {transaction.id: transaction for transaction in violation.transactions}
    for step in violation.steps:
        yield _flow_location(result, known, step, 0)
        for inner in step.evidence:
            yield _flow_location(result, known, inner, 1)


def _flow_location(result: Result, known: dict[Id, ShownTransaction], step: Step, depth: int) -> Object:
    at = known.get(step.source) or known.get(step.target)
    place = _file(result) if at is None else _place(result, at)
    arrow = f"{txn_text(step.source)} -{step.relation}-> {txn_text(step.target)}"
    message = _message(f"{arrow}: {step.because}")
    return {"location": {**place, "message": message}, "nestingLevel": depth, "importance": "essential"}


# Locations, messages, fingerprints


def _file(result: Result) -> Object:
    return {"physicalLocation": {"artifactLocation": {"uri": uri(result.history)}}}


def _place(result: Result, transaction: ShownTransaction) -> Object:
    """Return the line and the logical location. All formats have transactions, but some have no lines."""
    place = _file(result)
    if transaction.line > 0:
        place["physicalLocation"]["region"] = {"startLine": transaction.line}
    name = txn_text(transaction.id)
    where = one_line(transaction.place) or name
    place["logicalLocations"] = [{"name": name, "fullyQualifiedName": where, "kind": "transaction"}]
    return place


def _message(text: str) -> Object:
    """Return an escaped message. SARIF reads {0} as a placeholder and [text](target) as a link."""
    safe = one_line(text).replace("{", "{{").replace("}", "}}")
    return {"text": re.sub(r"\](?=\()", r"\\]", safe)}


def _identity(violation: Violation) -> list[Any]:
    """Return the data that identifies the violation across runs: no lines, times or wording."""
    steps = [[step.source, step.relation, step.target, step.key] for step in violation.steps]
    members = [[t.id, t.session, t.ops] for t in violation.transactions]
    return [violation.tap, violation.keys, members, steps]


def _fingerprints(identity: list[Any]) -> dict[str, str]:
    """Return our fingerprint, and the one that GitHub uses (otherwise derived from the text of the line)."""
    digest = sha256(json.dumps(identity).encode()).hexdigest()
    return {"isocheckViolation/v1": digest, "primaryLocationLineHash": f"{digest[:16]}:1"}
