"""Plain tables for people, CSV for programs."""

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

Cell = str | int | float | None
Row = Mapping[str, Cell]


def show(title: str, rows: Sequence[Row]) -> None:
    """Print rows as a table; numbers to the right."""
    names = list(rows[0])
    cells = [[spell(row[name]) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    numeric = [all(not isinstance(row[name], str) for row in rows) for name in names]
    print(f"\n{title}")
    for line in (names, ["-" * width for width in widths], *cells):
        pieces = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        )
        print("  " + "  ".join(pieces).rstrip())


def progress(text: str) -> None:
    """What is being measured; a whole run takes minutes."""
    print(f"... {text}", file=sys.stderr, flush=True)


def save(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow(f"{cell:.4f}" if isinstance(cell, float) else cell for cell in row.values())


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file as they are written there; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def spell(cell: Cell) -> str:
    """Three digits that matter, and whole thousands grouped."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.3f}" if cell < 1 else f"{cell:.2f}" if cell < 100 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell
