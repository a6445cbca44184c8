"""The table of a matrix: for terminals, as Markdown, HTML and JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from plume_py.base.text import one_line
from plume_py.base.version import TOOL
from plume_py.matrix.rows import ANOMALIES, STALE, Row

HEAD = ("database", "isolation", "promises", "held", "verdict", "seen", "transactions/s", "first after", "evidence")
_HELD = "held: the strongest levels that every run kept."
_SEEN = "seen: anomalies that happened; what is not named did not happen here, which is no proof."
_COLUMNS = (
    "The columns from G0 to stale: a workload whose run showed the anomaly, with a picture. An empty cell means that "
    "the anomaly did not happen here, which is no proof."
)
_OTHERS = (
    "evidence: had one read been one version stale, how often the promised level would have "
    "noticed, at least. first after: from the beginning of a run to the end of its first violation."
)
NOTE = f"{_HELD} {_SEEN} {_OTHERS}"


def _cells(row: Row) -> list[str]:
    seen = ", ".join(row.anomalies)
    return [
        f"{row.target} ({row.version})" if row.version else row.target,
        row.isolation,
        row.promise or "nothing",
        " ".join(row.held) or "none" if row.transactions else "",
        row.verdict,
        seen or ("none" if row.transactions else "; ".join(row.errors)),
        f"{row.rate:,}" if row.rate else "",
        "" if row.first_violation is None else f"{row.first_violation:.0f} s",
        "" if row.noticed is None else f"{row.noticed} %",
    ]


def text(rows: Sequence[Row]) -> str:
    """Columns for a terminal."""
    lines = [list(HEAD), *([one_line(cell) for cell in _cells(row)] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown(rows: Sequence[Row]) -> str:
    """A table of Hermitage's kind: a column for each anomaly, with a picture of each that was seen."""
    names = [*ANOMALIES, STALE]
    head = [*HEAD[:5], *names, *HEAD[6:]]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        cells = [_plain(cell) for cell in _cells(row)]
        seen = [_linked(row, name) for name in names]
        lines.append([*cells[:5], *seen, *cells[6:]])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    problems = "".join(
        f"\n- {_plain(row.target)}, {_plain(row.isolation)}: {_plain(e)}" for row in rows for e in row.errors
    )
    return f"{table}\n\n{_HELD} {_COLUMNS} {_OTHERS}\n{problems}"


def _linked(row: Row, name: str) -> str:
    if name not in row.anomalies:
        return ""
    workload, picture = row.anomalies[name]
    return f"[{workload}](<{picture}>)" if picture else workload


def _plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    kept = one_line(text)
    for mark in "\\`*_[]<>|#":
        kept = kept.replace(mark, f"\\{mark}")
    return kept


def html(rows: Sequence[Row]) -> str:
    """A page with the pictures in it."""
    head = "".join(f"<th>{escape(name)}</th>" for name in HEAD)
    body = "".join(
        f'<tr class="{escape(row.verdict.replace(" ", "-"))}">'
        + "".join(f"<td>{escape(one_line(cell))}</td>" for cell in _cells(row))
        + "</tr>"
        for row in rows
    )
    figures = "".join(
        f'<figure><img src="{escape(picture)}" alt=""><figcaption>{escape(one_line(row.target))}, '
        f"{escape(row.isolation)}: {escape(name)} ({escape(workload)})</figcaption></figure>"
        for row in rows
        for name, (workload, picture) in row.anomalies.items()
        if picture
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>isocheck matrix</title><style>'
        "body{font:15px/1.4 system-ui,sans-serif;margin:2rem;max-width:100rem}table{border-collapse:collapse}"
        "th,td{border:1px solid #ccc;padding:.3rem .6rem;text-align:left;vertical-align:top}"
        ".broken td:nth-child(5){background:#fbd5d0}.kept td:nth-child(5){background:#d8f0d8}"
        "figure{display:inline-block;margin:1rem;max-width:30rem}img{max-width:100%}</style>"
        f"<h1>What each setting keeps</h1><table><tr>{head}</tr>{body}</table><p>{escape(NOTE)}</p>{figures}</html>\n"
    )


def plain(rows: Sequence[Row]) -> dict[str, Any]:
    """For programs."""
    return {"tool": TOOL, "rows": [asdict(row) | {"verdict": row.verdict} for row in rows]}
