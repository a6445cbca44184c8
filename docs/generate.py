"""Writes docs/taps.md and its pictures from the table in the code and from what isocheck makes of the examples.

Run it after a change of either: .venv/bin/python docs/generate.py (the pictures need Graphviz's dot).
"""

from pathlib import Path

import plume_py
from plume_py.levels import WEAK
from plume_py.report import dot
from plume_py.report.text import render
from plume_py.weak.taps import TAPS

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "taps.md"
PICTURES = ROOT / "docs" / "pictures"
EXAMPLES = {
    "duplicate-element": "CI/list-duplicate-element",
    "incompatible-order": "CI/list-incompatible-order",
    "version-order-cycle": "CI/list-version-order-cycle",
}

INTRODUCTION = """# The patterns

Plume's 14 transactional anomalous patterns (TAPs), as isocheck decides them, and three defects that only lists can
show. In each, t3 reads x from t1, and t2 is another transaction that writes x; CO is the causal order, CM the commit
order that the pattern's own level forces. A pattern counts against its level and every stronger one.

This page is written by `docs/generate.py`.

| pattern | name | level | what it is |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    rows = [f"| {_label(t.letter)} | {t.name} | {t.level} | {t.description} |" for t in TAPS.values()]
    return INTRODUCTION + "\n".join(rows) + "\n" + "".join(_section(letter) for letter in TAPS)


def _label(letter: str) -> str:
    return f"TAP-{letter}" if len(letter) == 1 else letter


def _section(letter: str) -> str:
    tap = TAPS[letter]
    path = _example(letter)
    source = path.read_text()
    result = plume_py.check(plume_py.load(path), WEAK, name=str(path.relative_to(ROOT)))
    printed = render(result, style=lambda text, **_: text)
    return (
        f"\n## {_label(letter)} {tap.name}\n\n"
        f"{tap.description[0].upper()}{tap.description[1:]}.\n\n"
        f"- Condition: {tap.condition}.\n- Forbidden from {tap.level} on.\n- Usual cause: {tap.cause}.\n\n"
        f"```json\n{source}```\n\n![{tap.name}](pictures/{letter}.svg)\n\n```text\n{printed}\n```\n"
    )


def _example(letter: str) -> Path:
    if letter in EXAMPLES:
        return ROOT / "histories" / f"{EXAMPLES[letter]}.json"
    return next((ROOT / "histories").glob(f"*/tap-{letter}-*.json"))


def draw_all() -> None:
    """The pictures of all patterns, and of the demo."""
    for letter in TAPS:
        _draw(_example(letter), letter, PICTURES / f"{letter}.svg")
    _draw(ROOT / "histories" / "demo.json", "m", PICTURES / "demo.svg")


def _draw(history: Path, letter: str, target: Path) -> None:
    result = plume_py.check(plume_py.load(history), WEAK)
    violation = next(v for v in result.violations if v.tap == letter)
    problem = dot.draw(dot.render(violation, str(history.relative_to(ROOT))), target)
    if problem:
        raise SystemExit(problem)


if __name__ == "__main__":
    TARGET.write_text(page())
    PICTURES.mkdir(exist_ok=True)
    draw_all()
