"""A summary for a terminal."""

from collections.abc import Iterator, Sequence

from plume_py.base.text import counted, one_line, shorten, wrapped
from plume_py.scan.run import Tally
from plume_py.scan.settings import OUTCOMES, VIOLATED, spell_bytes
from plume_py.scan.summary import Summary, pattern, told_remains

# Rows of a table before the rest is only counted; the page and the JSON have more.
ROWS = 15
PATH = 100


def render(summary: Summary, tally: Tally | None = None) -> str:
    """All of it, as tables."""
    return "\n".join(_lines(summary, tally))


def _lines(summary: Summary, tally: Tally | None) -> Iterator[str]:
    counts = ", ".join(f"{summary.outcomes[outcome]:,} {_word(outcome)}" for outcome in OUTCOMES)
    size = f"{counted(summary.operations, 'operation')}, {spell_bytes(summary.size)}"
    yield f"{counted(summary.histories, 'history')} ({size}): {counts}"
    if tally is not None:
        yield from _run(tally, summary.histories)
    yield from _levels(summary)
    yield from _taps(summary)
    yield from _groups(summary)
    yield from _folders(summary)
    yield from _slowest(summary)
    yield from _named("Undecided", summary.undecided, summary.outcomes["undecided"])
    yield from _named("Unreadable", summary.unreadable, summary.outcomes["unreadable"], told_remains(summary))


def _word(outcome: str) -> str:
    return "hold" if outcome == "holds" else outcome


def _run(tally: Tally, histories: int) -> Iterator[str]:
    if tally.same:
        yield f"{tally.same:,} were there already, {tally.checked:,} checked now"
    others = histories - tally.same - tally.checked
    if others > 0:
        yield f"also counted: {counted(others, 'history')} that only the results contain"
    if tally.skipped:
        total = sum(tally.skipped.values())
        why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(tally.skipped.items()))
        names = ", ".join(shorten(one_line(name), PATH) for name in tally.skipped_names[:3])
        yield from wrapped("", f"{counted(total, 'file')} skipped ({why}): {names}{' …' if total > 3 else ''}", "  ")


def _levels(summary: Summary) -> Iterator[str]:
    if summary.levels:
        rows = [
            [level, *(f"{row[word]:,}" for word in ("holds", "violated", "undecided")), _lowest(summary, level)]
            for level, row in summary.levels.items()
        ]
        yield from _table("By level", ["level", "holds", "violated", "undecided", "lowest violated"], rows)


def _lowest(summary: Summary, level: str) -> str:
    return f"{summary.lowest.get(level, 0):,}"


def _taps(summary: Summary) -> Iterator[str]:
    broken = summary.outcomes[VIOLATED] or 1
    rows = [
        [tap, *pattern(tap), f"{found['histories']:,}", f"{found['histories'] / broken:.1%}", f"{found['instances']:,}"]
        for tap, found in summary.taps.items()
    ]
    if rows:
        header = ["TAP", "name", "level", "histories", "of violated", "instances"]
        yield from _table("By pattern", header, rows, name_columns=3)


def _groups(summary: Summary) -> Iterator[str]:
    groups = list(summary.groups.values())
    if not groups:
        return
    yield from ("", f"Shapes of violations: {len(groups):,}" + (" at least" if summary.ungrouped else ""))
    for group in groups[:ROWS]:
        count = f"  {group.histories:>7,}  "
        tap = f"{group.tap} {pattern(group.tap)[0]}".strip()
        yield from wrapped(count, f"{tap}: {one_line(group.text)}", " " * 11, 110)
        yield f"{' ' * 11}for example {shorten(one_line(group.smallest[1]), PATH)}"
    yield from _more(len(groups))


def _folders(summary: Summary) -> Iterator[str]:
    rows = sorted(summary.folders.rows.items(), key=lambda row: (-row[1][VIOLATED], row[0]))
    if len(rows) > 1:
        cells = [[*(f"{row[o]:,}" for o in OUTCOMES), shorten(one_line(name), PATH)] for name, row in rows[:ROWS]]
        yield from _table("By folder", [*OUTCOMES, "folder"], cells, name_columns=0)
        yield from _more(len(rows))


def _slowest(summary: Summary) -> Iterator[str]:
    if summary.slowest:
        rows = [
            [f"{seconds:.2f}", f"{ops:,}", shorten(one_line(history), PATH)]
            for seconds, history, ops in summary.slowest[:5]
        ]
        yield from _table("Slowest", ["seconds", "operations", "history"], rows, name_columns=0)


def _named(title: str, names: list[tuple[str, str]], total: int, remark: str = "") -> Iterator[str]:
    if names:
        yield from ("", f"{title}: {total:,}" + (f" ({remark})" if remark else ""))
        for history, why in names[:ROWS]:
            yield from wrapped("  ", f"{shorten(one_line(history), PATH)}: {shorten(one_line(why), 200)}", "    ", 110)
        yield from _more(total)


def _more(count: int) -> Iterator[str]:
    if count > ROWS:
        yield f"  … and {count - ROWS:,} more"


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], name_columns: int = 1) -> Iterator[str]:
    """Columns: the first ``name_columns`` and a last one of names to the left, numbers to the right."""
    yield from ("", title)
    names = header[-1] in ("folder", "history")
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        cells = []
        for i, cell in enumerate(row):
            last = i == len(header) - 1
            cells.append(cell.ljust(widths[i]) if i < name_columns or (last and names) else cell.rjust(widths[i]))
        yield "  " + "  ".join(cells).rstrip()
