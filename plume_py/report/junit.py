"""Render results as JUnit XML: a test suite per history, a test case per level.

A violation is a ``failure``. An undecided level or an unreadable history is an ``error``, never ``skipped``: CI servers
such as Jenkins and GitLab let a skipped test pass.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from plume_py.base.terminal import plain
from plume_py.base.text import one_line
from plume_py.base.version import __version__
from plume_py.checking.result import LevelVerdict, Result
from plume_py.levels.patterns import PATTERNS
from plume_py.report.text import render
from plume_py.report.wording import counts_against

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def document(results: Sequence[Result]) -> str:
    """Return the whole file. It is ASCII with character references, so that no terminal or locale can damage it."""
    root = Element("testsuites")
    for number, result in enumerate(results):
        _suite(root, number, result)
    indent(root)
    body: bytes = tostring(root, encoding="us-ascii", xml_declaration=False)
    return DECLARATION + body.decode()


def _suite(root: Element, number: int, result: Result) -> None:
    """Add the test suite of one history. Ant's schema requires every attribute and element; Jenkins needs fewer."""
    seconds = result.seconds.get("load", 0.0) + result.seconds.get("check", 0.0)
    verdicts = [verdict.ok for verdict in result.levels.values()]
    suite = SubElement(
        root,
        "testsuite",
        name=_name(result),
        id=str(number),
        package="isocheck",
        timestamp=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        hostname="localhost",  # the schema's value for an unknown host
        tests=str(len(verdicts) + (result.error is not None)),
        failures=str(verdicts.count(False)),
        errors=str(verdicts.count(None) + (result.error is not None)),
        time=f"{seconds:.3f}",
    )
    _properties(suite, result)
    for name, verdict in result.levels.items():
        # All levels are decided together. Each gets an equal share, so that the sum is right.
        _verdict(_case(suite, result, name, seconds / len(verdicts)), result, name, verdict)
    if result.error is not None:
        _mark(_case(suite, result, "read", 0.0), "error", "unreadable", result.error, result.error)
    SubElement(suite, "system-out")
    SubElement(suite, "system-err").text = _lines("\n".join(result.notes))


def _properties(suite: Element, result: Result) -> None:
    properties = SubElement(suite, "properties")  # Jenkins' schema requires at least one
    SubElement(properties, "property", name="isocheck", value=__version__)
    facts = {
        "format": result.format,
        "sessions": result.sessions,
        "transactions": result.transactions,
        "operations": result.operations,
    }
    for name, value in facts.items() if result.error is None else ():
        SubElement(properties, "property", name=name, value=one_line(str(value)))


def _case(suite: Element, result: Result, name: str, seconds: float) -> Element:
    return SubElement(suite, "testcase", name=name, classname=_name(result), time=f"{seconds:.3f}")


def _verdict(case: Element, result: Result, name: str, verdict: LevelVerdict) -> None:
    if verdict.ok is None:
        reason = verdict.reason or "undecided"
        _mark(case, "error", "undecided", f"{name} undecided: {reason}", reason)
    elif not verdict.ok:
        patterns = ", ".join(PATTERNS[tap].name for tap in verdict.taps)
        message = f"{name} violated: {patterns}" if patterns else f"{name} violated"
        _mark(case, "failure", patterns or name, message, _proof(result, name, verdict))


def _mark(case: Element, tag: str, kind: str, message: str, text: str) -> None:
    SubElement(case, tag, message=one_line(message), type=one_line(kind)).text = _lines(text)


def _proof(result: Result, name: str, verdict: LevelVerdict) -> str:
    """Return the text report of this level alone."""
    mine = tuple(v for v in result.violations if v.tap in verdict.taps and counts_against(v, name))
    return render(replace(result, levels={name: verdict}, violations=mine), style=plain)


def _lines(text: str) -> str:
    """Return text without characters that XML 1.0 forbids. Unprintable ones are escaped."""
    return "\n".join(one_line(line) for line in text.split("\n"))


def _name(result: Result) -> str:
    return one_line(result.history) or "history"  # a name may not be empty
