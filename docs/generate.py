"""Writes docs/taps.md, docs/strong.md and their pictures: from the tables in the code, and what the examples show.

Run it after a change of either: .venv/bin/python docs/generate.py (the pictures need Graphviz's dot).
"""

from pathlib import Path

import plume_py
from plume_py.levels import WEAK
from plume_py.report import dot
from plume_py.report.text import render
from plume_py.strong.patterns import STRONG
from plume_py.weak.taps import TAPS

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "taps.md"
STRONG_TARGET = ROOT / "docs" / "strong.md"
PICTURES = ROOT / "docs" / "pictures"
EXAMPLES = {
    "duplicate-element": "CI/list-duplicate-element",
    "incompatible-order": "CI/list-incompatible-order",
    "version-order-cycle": "CI/list-version-order-cycle",
}

# Of the strong patterns that have a picture: the example, and the level at which it is shown.
STRONG_EXAMPLES = {
    "lost-update": ("TCC/lost-update", "SI"),
    "long-fork": ("TCC/long-fork", "SI"),
    "write-skew": ("SI/write-skew", "SER"),
    "read-only-anomaly": ("SI/read-only-anomaly", "SER"),
}

STRONG_INTRODUCTION = """# What breaks the strong levels

PC, PSI, SI and SER are broken by whatever breaks TCC (see [taps.md](taps.md)), and by cycles of dependencies:

- **SO** and **WR** as ever: a earlier in b's session, b read from a.
- **WW(x)**: a's version of x is older than b's.
- **RW(x)**: t read a version of x that b overwrote, so t did not see b.

What a cycle must look like for a level to forbid it:

| level | forbids a cycle if |
|---|---|
| PC | every RW in it comes right after SO or WR |
| PSI | it has at most one RW |
| SI | no two RW follow each other |
| SER | always |

Nobody sees version orders, unless lists show them. Where one matters, the argument says why its opposite is impossible:
it would lead to a cycle, too. Such cases may lie within each other; the pictures show excluded orders as dotted edges.
An argument speaks of few transactions: in general, without any one of them, the rest could be ordered.

This page is written by `docs/generate.py`.

| pattern | level | what it is | condition |
|---|---|---|---|
"""

MIXED = """
## A level per transaction

With `--level declared` each transaction is judged by its own level, and the argument says whose level makes a step
count. Here T1 and T2 run at SER, and T3's level is left open. At PC it may miss T2's x and overwrite it; at SI it may
not.

```json
{source}```

```console
$ isocheck {path} --level declared --assume PC
{fine}
$ isocheck {path} --level declared --assume SI
{broken}
```
"""

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


def strong_page() -> str:
    """The page of the strong patterns."""
    rows = [f"| {t.letter} | {t.level} | {t.description} | {t.condition} |" for t in STRONG.values()]
    sections = "".join(_strong_section(pattern) for pattern in STRONG_EXAMPLES)
    return STRONG_INTRODUCTION + "\n".join(rows) + "\n" + sections + _mixed_section()


def _strong_section(pattern: str) -> str:
    tap, (example, level) = STRONG[pattern], STRONG_EXAMPLES[pattern]
    path = ROOT / "histories" / f"{example}.json"
    return (
        f"\n## {tap.name}\n\n{tap.description[0].upper()}{tap.description[1:]}.\n\n"
        f"- Forbidden from {tap.level} on.\n- Usual cause: {tap.cause}.\n\n"
        f"```json\n{path.read_text()}```\n\n![{tap.name}](pictures/{pattern}.svg)\n\n"
        f"```text\n{_printed(path, level)}\n```\n"
    )


def _mixed_section() -> str:
    path = ROOT / "histories" / "PC" / "mixed-lost-update.json"
    fine, broken = (_printed(path, "declared", assume=level) for level in ("PC", "SI"))
    return MIXED.format(source=path.read_text(), path=path.relative_to(ROOT), fine=fine, broken=broken)


def _printed(path: Path, level: str, assume: str | None = None) -> str:
    result = plume_py.check(plume_py.load(path), level, name=str(path.relative_to(ROOT)), assume=assume)
    return render(result, style=lambda text, **_: text)


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
    for pattern, (example, level) in STRONG_EXAMPLES.items():
        _draw(ROOT / "histories" / f"{example}.json", pattern, PICTURES / f"{pattern}.svg", level)


def _draw(history: Path, letter: str, target: Path, levels: str | tuple[str, ...] = WEAK) -> None:
    result = plume_py.check(plume_py.load(history), levels)
    violation = next(v for v in result.violations if v.tap == letter)
    problem = dot.draw(dot.render(violation, str(history.relative_to(ROOT))), target)
    if problem:
        raise SystemExit(problem)


if __name__ == "__main__":
    TARGET.write_text(page())
    STRONG_TARGET.write_text(strong_page())
    PICTURES.mkdir(exist_ok=True)
    draw_all()
