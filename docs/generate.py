"""Writes docs/taps.md, docs/strong.md, docs/hierarchy.md and their pictures, docs/databases.md, the tables of what
databases offer in docs/collect.md and docs/allocate.md, and the list of files in docs/architecture.md, from the code.

Run it after a change of either: .venv/bin/python docs/generate.py (the pictures need Graphviz's dot).
"""

import ast
import re
from pathlib import Path

import plume_py
from plume_py.history.samples import example_of
from plume_py.levels import WEAK
from plume_py.levels.databases import (
    DATABASES,
    DUCKDB,
    ETCD,
    FIREBIRD,
    MYSQL,
    POSTGRESQL,
    REDIS,
    SQLALCHEMY,
    SQLITE,
    Database,
    Setting,
)
from plume_py.levels.patterns import STRONG, TAPS, Pattern
from plume_py.reasoning.allocate.catalogue import CATALOGUES
from plume_py.reasoning.synth import Scope
from plume_py.reasoning.synth.comparison import USUAL, USUAL_IN_ORDERS, Hierarchy, hierarchy, in_all_orders
from plume_py.reasoning.synth.formulas import DEFINITIONS
from plume_py.reasoning.synth.picture import hierarchy_picture
from plume_py.report.dot import render as render_picture
from plume_py.report.graphviz import draw
from plume_py.report.text import render

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "taps.md"
STRONG_TARGET = ROOT / "docs" / "strong.md"
HIERARCHY_TARGET = ROOT / "docs" / "hierarchy.md"
DATABASES_TARGET = ROOT / "docs" / "databases.md"
FILES = "<!-- files -->\n"
PICTURES = ROOT / "docs" / "pictures"
# The strong patterns that have a picture.
PICTURED = [pattern for pattern in STRONG if example_of(pattern) is not None]

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
it would lead to a cycle, too. Such cases may lie within each other; in pictures, excluded orders are
dotted edges or, beside another edge that leads the same way, words: "not WW(x)".
An argument speaks of few transactions: in general, without any one of them, the rest could be ordered.

An argument is called after those of its cycles that take the strongest level to forbid, and told at a weakest level
that it breaks. If other patterns are there, too, weak ones or several strong ones, each level names what counts against
it: the reads behind one violation are left out, and the rest is looked at, for a bounded time.

Beside our names stand Adya's and Jepsen's (Elle's), where one fits. Of a cycle it depends on the cycle: G0 has only WW;
G1c SO, WR and WW; G-single one RW; G-nonadjacent several, no two of them in a row; G2-item any. With a step of session
order it is `G-single-process`, and so on.

This page is written by `docs/generate.py`.

| pattern | level | also called | what it is | condition |
|---|---|---|---|---|
"""

HIERARCHY = """# How the levels relate

Found by `isocheck hierarchy`, not typed: every pair of levels was compared on all histories of up to
{scope}, with sessions of any kind, blind writes, and transactions that read a key from
several others. Where one level implies another there is no history to the contrary within that scope; where it does
not, a smallest one is shown. Sessions are apart by "|", transactions of one session by ";".

![The hierarchy](pictures/hierarchy.svg)

This page is written by `docs/generate.py`.

| weaker | stronger | allowed by the weaker one only |
|---|---|---|
{rows}

## Which order counts

Every level exists with several orders between transactions ([levels.md](levels.md#which-order-counts)): `SER` keeps
that of each session, `SER@none` none at all, `SSER` (and what is called strong, like `StrongSI`) that of sessions and
real time. `isocheck hierarchy --orders` compares them. A level in an order implies another one exactly if the level
does and the order does: SSER is above SER and SER above SER@none, but StrongSI and SER are incomparable, and SER@none
does not even imply RC. Real time per key, not shown here, stands between session order and real time at every level.
"[0,1]" says when a transaction began and ended, by one clock; where real time does not matter there are no times.

![The hierarchy with orders](pictures/hierarchy-orders.svg)

| weaker | stronger | allowed by the weaker one only |
|---|---|---|
{order_rows}

## All definitions

The same comparison for every definition that [synth](synth.md) knows: commit-order forms (SI), forms with visibility
(SI@vis), isocheck's patterns (RA@tap) and Plume's (TapRA). Those on one line are equivalent within the scope.

| definitions | directly above |
|---|---|
{classes}

| weaker | stronger | allowed by the weaker one only |
|---|---|---|
{all_rows}

## What they are

| name | form | definition |
|---|---|---|
{definitions}

In form `co` it is a premise: t3 reads x from t1, t2 writes x too; if it holds, then t2 commits before t1.
"""

DATABASES_INTRODUCTION = """# What databases make of the levels

Three questions are asked of a database's setting, and they have three answers. What does it promise? That is what
[test](collect.md) checks. What may be counted on? That is what [allocate](allocate.md) works with. And how does it run
statements? That is the model of [infer](infer.md). A dash: none of our levels, or not asked.

This page is written by `docs/generate.py`, from `plume_py/levels/databases.py` and `stores.py`. What documentation says
is no proof: the promises are there to be tested.

| database | setting | promises | counted on | statements | why | source |
|---|---|---|---|---|---|---|
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

Plume's 14 transactional anomalous patterns (TAPs), as isocheck decides them, and four defects that only lists can
show. In each, t3 reads x from t1, and t2 is another transaction that writes x; CO is the causal order, CM the commit
order that the pattern's own level forces. A pattern counts against its level and every stronger one. Triples
(t1, t2, t3, x) whose t2 CO t1 are neither counted nor shown: what t3 read is right, and they close a cycle only because
something else is wrong.

"Also called" are the names of Adya and Jepsen (Elle) where one fits; of a cycle it depends on the cycle, and with a
step of session order it is `G-single-process`, and so on (see [strong.md](strong.md)).

This page is written by `docs/generate.py`.

| pattern | name | level | also called | what it is |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    rows = [f"| {_label(t.id)} | {t.name} | {t.level} | {_also_called(t)} | {t.description} |" for t in TAPS.values()]
    sections = "".join(_section(letter) for letter in TAPS if _example(letter).exists())
    return INTRODUCTION + "\n".join(rows) + "\n" + sections


def strong_page() -> str:
    """The page of the strong patterns."""
    rows = [f"| {t.id} | {t.level} | {_also_called(t)} | {t.description} | {t.condition} |" for t in STRONG.values()]
    sections = "".join(_strong_section(pattern) for pattern in PICTURED)
    return STRONG_INTRODUCTION + "\n".join(rows) + "\n" + sections + _mixed_section()


def hierarchy_page(usual: Hierarchy, in_orders: Hierarchy) -> str:
    """The page of the relations between levels."""
    every = hierarchy([name for name in DEFINITIONS if name != "declared"], usual.scope)
    classes = []
    for number in reversed(range(len(every.classes))):
        below = ", ".join(every.classes[step.below][0] for step in every.steps if step.above == number)
        classes.append(f"| {', '.join(every.classes[number])} | {below} |")
    definitions = [f"| {d.name} | {d.form} | {d.text} |" for d in DEFINITIONS.values()]
    return HIERARCHY.format(
        scope=usual.scope,
        rows="\n".join(_steps(usual)),
        order_rows="\n".join(_steps(in_orders)),
        classes="\n".join(classes),
        all_rows="\n".join(_steps(every)),
        definitions="\n".join(definitions),
    )


def _steps(found: Hierarchy) -> list[str]:
    rows = []
    for step in found.steps:
        below, above = found.classes[step.below][0], found.classes[step.above][0]
        history = step.separation.found[0].concrete.short().replace("|", r"\|")  # a bar would end the cell
        rows.append(f"| {below} | {above} | `{history}` |")
    return rows


def databases_page() -> str:
    """The page of what databases make of the levels."""
    rows = []
    for database in DATABASES.values():
        for setting in database.settings:
            cells = (
                f"{database.title}, `{database.name}`" if setting is database.settings[0] else "",
                _spelled(database, setting),
                setting.promises or "–",
                _counted_on(setting),
                setting.model.title if setting.model else "–",
                setting.why,
                setting.source,
            )
            rows.append(f"| {' | '.join(cells)} |\n")
    return DATABASES_INTRODUCTION + "".join(rows)


def promises_table() -> str:
    """Of docs/collect.md: what is checked."""
    rows = ["| database | isolation | level | why |\n|---|---|---|---|\n"]
    for database in (POSTGRESQL, MYSQL, SQLITE, DUCKDB, ETCD, REDIS, FIREBIRD, SQLALCHEMY):
        for setting in database.settings:
            title = database.title if setting is database.settings[0] else ""
            name = _spelled(database, setting).lower()
            rows.append(f"| {title} | {name} | {setting.promises or '–'} | {setting.why} |\n")
    return "".join(rows)


def catalogues_table() -> str:
    """Of docs/allocate.md: what may be counted on."""
    rows = ["| catalogue | levels | taken into account |\n|---|---|---|\n"]
    for catalogue in CATALOGUES.values():
        levels = ", ".join(
            level if spelled == level else f"{spelled} ({_counted_on(DATABASES[catalogue.name][spelled])})"
            for level, spelled in catalogue.levels.items()
        )
        rows.append(f"| {catalogue.name} | {levels} | {catalogue.note} |\n")
    return "".join(rows)


def _spelled(database: Database, setting: Setting) -> str:
    return f"{setting.name} (default)" if setting.name == database.default else setting.name


def _counted_on(setting: Setting) -> str:
    if setting.safe_as is None:
        return "–"
    return f"{setting.safe_as}, readers only" if setting.readers_only else setting.safe_as


def with_table(page: Path, table: str) -> str:
    """The page with the table that has this head."""
    head = table[: table.index("\n") + 1]
    return re.sub(rf"{re.escape(head)}(\|.*\n)*", lambda _: table, page.read_text())


def _strong_section(pattern: str) -> str:
    tap, (path, (level,)) = STRONG[pattern], example_of(pattern)
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


def _also_called(tap: Pattern) -> str:
    return ", ".join(tap.aliases)


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
    return example_of(letter).path


def draw_all() -> None:
    """The pictures of all patterns, and of the demo."""
    for letter in (letter for letter in TAPS if _example(letter).exists()):
        _draw(_example(letter), letter, PICTURES / f"{letter}.svg")
    _draw(ROOT / "histories" / "demo.json", "m", PICTURES / "demo.svg")
    for pattern in PICTURED:
        path, levels = example_of(pattern)
        _draw(path, pattern, PICTURES / f"{pattern}.svg", levels)


def _draw(history: Path, letter: str, target: Path, levels: str | tuple[str, ...] = WEAK) -> None:
    result = plume_py.check(plume_py.load(history), levels)
    violation = next(v for v in result.violations if v.tap == letter)
    problem = draw(render_picture(violation, str(history.relative_to(ROOT))), target)
    if problem:
        raise SystemExit(problem)


def files_list() -> str:
    """Return the packages and modules with the first sentence of each, for docs/architecture.md."""
    package = ROOT / "plume_py"
    lines = []
    for folder in [package, *sorted(path.parent for path in package.rglob("*/__init__.py"))]:
        name = folder.relative_to(package).as_posix()
        lines += [
            f"### `{name}/`" if folder != package else "### `plume_py/`",
            "",
            _first_sentence(folder / "__init__.py"),
            "",
        ]
        modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
        lines += [*(f"- `{path.name}`: {_first_sentence(path)}" for path in modules), *([""] if modules else [])]
    return "\n".join(lines)


def _first_sentence(path: Path) -> str:
    paragraph = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split(">>>")[0]
    text = " ".join(paragraph.replace("``", "`").split())
    return re.split(r"(?<=[.?!])\s+(?=[A-Z`])", text)[0]


def architecture_page() -> str:
    """Return docs/architecture.md with the list of files written anew."""
    path = ROOT / "docs" / "architecture.md"
    return path.read_text().split(FILES)[0] + FILES + "\n" + files_list()


if __name__ == "__main__":
    (ROOT / "docs" / "architecture.md").write_text(architecture_page())
    TARGET.write_text(page())
    STRONG_TARGET.write_text(strong_page())
    DATABASES_TARGET.write_text(databases_page())
    for name, table in (("collect", promises_table()), ("allocate", catalogues_table())):
        (ROOT / "docs" / f"{name}.md").write_text(with_table(ROOT / "docs" / f"{name}.md", table))
    PICTURES.mkdir(exist_ok=True)
    draw_all()
    usual, in_orders = (hierarchy(names, Scope(4, 2, 4)) for names in (USUAL, in_all_orders(USUAL_IN_ORDERS)))
    HIERARCHY_TARGET.write_text(hierarchy_page(usual, in_orders))
    for found, name in ((usual, "hierarchy"), (in_orders, "hierarchy-orders")):
        problem = draw(hierarchy_picture(found), PICTURES / f"{name}.svg")
        if problem:
            raise SystemExit(problem)
