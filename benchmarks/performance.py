"""docs/performance.md, and the README's lines on speed, from what was measured: ``python -m benchmarks.performance``.

Reads the CSV files of ``peers``, ``strong_peers`` and ``before_after``; a file that is missing is a section less.
"""

import csv
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).parent.parent
RESULTS = HERE / "benchmarks" / "results"
MARKS = ("<!-- speed: written by benchmarks/performance.py -->", "<!-- /speed -->")

PAGE = """# Performance

Measured in turns on one machine, medians; written by `make bench-peers` (see the end). Machine: {machine}.

{sections}
## To repeat it

```sh
make bench-peers AWDIT=path/to/awdit PLUME=path/to/Plume.jar VERISTRONG=path/to/checker POLYSI=path/to/PolySI.jar \\
    OLD=path/to/another/checkout
```

Who is not given is left out. The others are built from their public sources. `make bench` has the growth with
sessions, keys, sizes of transactions and violations ({growth}) and everything else of this tree alone.
"""

WEAK = """## Weak levels

Whole commands, from the start of the process to the verdict: wall seconds / CPU seconds / megabytes; a text file in
Plume's format that keeps TCC, kernels compiled before. "before" is isocheck at an earlier commit. Where wall and CPU
seconds differ much, others were at work on the machine. A cell that is empty was not run: at TCC AWDIT needs
gigabytes beyond 2 M operations, Plume at all levels.

{table}

Where we lose: below some 400,000 operations the start of Python and numpy alone takes longer than AWDIT's whole check.

"""
STRONG = """## Strong levels

CPU seconds of whole commands by number of transactions (10 operations each, 20 sessions, 10,000 keys), on histories
made at one level and judged at another; one that was made at a weaker level breaks the stronger one. Empty: not within
120 CPU seconds and 8 GB (6 GB for PolySI), or not asked: others beyond 20,000, whoever failed at a smaller size, and at
SER PolySI, which judges SI alone.
"growth" is the exponent from the last size but one to the last: 1 is linear.

{table}

"""
LOAD = """## Loading

2 M operations, kernels warm, two cores: megabytes of the file per second of the clock, and per CPU second; the peak of
the process.

{table}

"""
START = """## Starting

Warm: kernels in the cache; "python" is `python -c "import numpy, click"`. Cold: the cache is empty, as in a container.

{table}

"""


def rows(name: str) -> list[dict[str, str]]:
    """What was measured, or nothing."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def table(lines: Iterable[Sequence[str]]) -> str:
    """As Markdown; the first line is the head."""
    head, *body = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body))


def spell(text: str) -> str:
    """Two or three digits that matter."""
    try:
        number = float(text)
    except ValueError:
        return text
    if number >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def plain(found: list[dict[str, str]]) -> str:
    """Every column as it is."""
    return table([list(found[0]), *([spell(cell) for cell in row.values()] for row in found)])


def weak(found: list[dict[str, str]]) -> str:
    """Three figures to a cell."""
    who = [name.removesuffix(" cpu s") for name in found[0] if name.endswith(" cpu s")]
    lines = [["history", "level", "runs", *who]]
    for row in found:
        cells = (" / ".join(spell(row[f"{each} {unit}"]) for unit in ("s", "cpu s", "MB")) for each in who)
        lines.append([row["history"], row["level"], row["runs"], *(cell.strip(" /") for cell in cells)])
    return table(lines)


def speed(found: list[dict[str, str]]) -> str:
    """For the README: three best and the worst ratio to AWDIT, by the clock."""
    compared = [row for row in found if row.get("AWDIT s")]
    if not compared:
        return ""
    ranked = sorted(compared, key=lambda row: float(row["isocheck s"]) / float(row["AWDIT s"]))
    lines = [["history (transactions x operations)", "level", "isocheck", "AWDIT"]]
    for row in (*ranked[:3], ranked[-1]):
        cells = (f"{spell(row[f'{who} s'])} s, {spell(row[f'{who} MB'])} MB" for who in ("isocheck", "AWDIT"))
        lines.append([row["history"], row["level"], *cells])
    return table(lines)


def page() -> str:
    """The page for people."""
    growth = rows("growth")
    worst = max((float(row["exponent"]) for row in growth if row.get("exponent")), default=None)
    parts = (
        (WEAK, rows("peers"), weak),
        (STRONG, rows("strong-peers"), plain),
        (LOAD, rows("load-before"), plain),
        (START, rows("start-before"), plain),
    )
    return PAGE.format(
        machine=machine(),
        sections="".join(text.format(table=render(found)) for text, found, render in parts if found),
        growth="1 is linear" if worst is None else f"worst exponent {worst:.2f}; 1 is linear",
    )


def machine() -> str:
    """What figures were measured on."""
    return f"{os.cpu_count()} cores, {_processor()}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def main() -> None:
    """Write both."""
    (HERE / "docs" / "performance.md").write_text(page())
    readme = HERE / "README.md"
    before, _, rest = readme.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    if after:
        readme.write_text(f"{before}{MARKS[0]}\n\n{speed(rows('peers'))}\n\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
