"""Render results as GitHub workflow commands, which become annotations on the history files.

GitHub shows at most ten errors and ten warnings of a step as annotations. The log contains all of them.
"""

import os
from collections.abc import Iterator
from dataclasses import replace

from plume_py.base.terminal import plain
from plume_py.base.text import encodable, one_line
from plume_py.checking.result import LevelVerdict, Result, Violation
from plume_py.levels.patterns import PATTERNS
from plume_py.report.text import render as render_text
from plume_py.report.wording import size_of


def render(result: Result) -> str:
    """Return one command per line: errors for violations, warnings for undecided levels, a notice with all verdicts."""
    return "\n".join(_commands(result))


def _commands(result: Result) -> Iterator[str]:
    if result.error is not None:
        yield _command("error", result, "cannot be read", result.error)
        return
    for violation in result.violations:
        proof = _proof(result, violation)
        yield _command("error", result, violation.pattern.title, proof, _line(violation))
    shown = {violation.tap for violation in result.violations}
    for name, verdict in result.levels.items():
        if verdict.ok is None:
            yield _command("warning", result, f"{name} undecided", verdict.reason or "undecided")
        elif not verdict.ok and not shown.intersection(verdict.taps):  # no example above is of this level
            yield _command("error", result, f"{name} violated", _verdict(name, verdict))
    verdicts = "; ".join(_verdict(name, verdict) for name, verdict in result.levels.items())
    yield _command("notice", result, "isocheck", f"{verdicts} ({size_of(result)})")


def _command(kind: str, result: Result, title: str, message: str, line: int = 0) -> str:
    properties = {"file": relative(result.history), "line": str(line), "title": title}
    if not line:
        del properties["line"]
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {listed}::{_data(message)}"


def _data(text: str) -> str:
    """Return an escaped message. GitHub reverts these three escapes; a command ends at the end of its line."""
    return _printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Return an escaped message in which the separators of properties are also escaped."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _printable(text: str) -> str:
    return "".join(c if c in "\r\n" else one_line(c) for c in encodable(text))


def relative(path: str) -> str:
    """Return a path relative to the current folder if it is below. CI systems expect that, and run at the top."""
    if not os.path.isabs(path):
        return path
    inside = os.path.relpath(path)
    return path if inside.split(os.sep)[0] == os.pardir else inside


def _proof(result: Result, violation: Violation) -> str:
    return render_text(replace(result, levels={}, notes=(), violations=(violation,)), style=plain)


def _line(violation: Violation) -> int:
    """Return the line where the last transaction of the example begins. The annotation is then below all of them."""
    return max((transaction.line for transaction in violation.transactions), default=0)


def _verdict(name: str, verdict: LevelVerdict) -> str:
    if verdict.ok is None:
        return f"{name} undecided: {verdict.reason}"
    if verdict.ok:
        return f"{name} holds"
    labels = ", ".join(PATTERNS[tap].label for tap in verdict.taps) or verdict.reason
    return f"{name} violated: {labels}" if labels else f"{name} violated"
