"""Write the summary of a scan as one HTML page with sortable tables, and draw each distinct violation.

All text from histories is escaped here; the script of the page only sorts and filters. The results do not contain what
a picture needs, so the smallest history of each shape is checked again before it is drawn.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from plume_py.base.atomic_files import write_atomically
from plume_py.base.errors import IsocheckError
from plume_py.base.limits import Limits
from plume_py.base.text import counted, one_line, shorten, with_letter
from plume_py.base.version import __version__
from plume_py.checking.result import Result
from plume_py.history.load import load_source
from plume_py.history.source import Source
from plume_py.report.dot import render
from plume_py.report.graphviz import Album
from plume_py.report.html import asset, policy
from plume_py.scan.settings import OUTCOMES, VIOLATED, Settings, bytes_text
from plume_py.scan.storage import local_copy
from plume_py.scan.summary import Example, Group, Summary, Tally, pattern, remains_text
from plume_py.scan.violation_signature import shape_of

# Groups on the page. Later groups are small.
GROUPS = 300
# Characters of a text from a history.
TEXT = 300
# The most shapes that are drawn, the most frequent first.
DRAWN = 100

Cell = tuple[str, float | None, str]  # markup, sort key, CSS class


class Links:
    """The links of a page: to pictures by shape, and to histories that are local files."""

    def __init__(self, page: str = "", pictures: Mapping[str, str] | None = None) -> None:
        """``page`` is the path of the page, because links are relative; without it there are no links."""
        self._folder = os.path.dirname(os.path.realpath(page)) if page else ""
        self._pictures = pictures or {}

    def picture(self, shape: str) -> str:
        """Return a link to the picture of a shape, or ""."""
        path = self._pictures.get(shape)
        return f'<p><a class="drawn" href="{self._to(path)}">picture</a></p>' if path and self._folder else ""

    def history(self, path: str) -> str:
        """Return the name of a history, as a link if it is a file."""
        if not self._folder or "://" in path or not os.path.exists(path):
            return _text(path)
        return f'<a href="{self._to(path)}">{_text(path)}</a>'

    def _to(self, path: str) -> str:
        return escape("./" + quote(os.path.relpath(os.path.realpath(path), self._folder)))


def document(summary: Summary, tally: Tally | None = None, links: Links | None = None) -> str:
    """Return the whole page."""
    style, script = asset("report.css") + asset("scan.css"), asset("scan.js")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>isocheck: scan of {counted(summary.histories, 'history')}</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n"
        f'<header class="banner"><h1>isocheck: scan of {counted(summary.histories, "history")}</h1>'
        '<nav><input id="find" type="search" placeholder="filter all tables" aria-label="filter all tables" hidden>'
        "</nav></header>\n"
        f"<main>{_body(summary, tally, links or Links())}</main>\n<footer>isocheck {escape(__version__)}</footer>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _body(summary: Summary, tally: Tally | None, links: Links) -> str:
    parts = [
        _totals(summary, tally),
        '<div class="figures">' + _levels(summary) + _lowest(summary) + "</div>",
        _taps(summary),
        _groups(summary, links),
        _folders(summary),
        '<div class="figures">' + _slowest(summary, links) + _reasons(summary) + "</div>",
        _named("Undecided", summary.undecided, summary.outcomes["undecided"], "reason", links),
        _named(
            "Unreadable",
            summary.unreadable,
            summary.outcomes["unreadable"],
            "what is wrong",
            links,
            remains_text(summary),
        ),
    ]
    return "\n".join(parts)


def _totals(summary: Summary, tally: Tally | None) -> str:
    numbers = "".join(
        f'<div class="total {outcome}"><b>{summary.outcomes[outcome]:,}</b> '
        f"{'hold' if outcome == 'holds' else outcome}</div>"
        for outcome in OUTCOMES
    )
    sizes = (summary.transactions, "transaction"), (summary.operations, "operation")
    size = ", ".join([*(counted(number, what) for number, what in sizes), bytes_text(summary.size)])
    notes = [f"{size}; {summary.seconds:,.1f} s of checking" if summary.seconds else size]
    if tally is not None and tally.skipped:
        why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(tally.skipped.items()))
        names = ", ".join(_text(name, 80) for name in tally.skipped_names[:5])
        notes.append(f"{counted(sum(tally.skipped.values()), 'file')} skipped ({escape(why)}): {names}")
    paragraphs = "".join(f'<p class="note">{note}</p>' for note in notes)
    return _card("", f'<div class="totals">{numbers}</div>{_bar(summary.outcomes, "bar")}{_key()}{paragraphs}')


def _levels(summary: Summary) -> str:
    words = ("holds", "violated", "undecided")
    rows = [
        [_name(level), *(_number(row[word]) for word in words), _drawn(_bar(row, "bar small"))]
        for level, row in summary.levels.items()
    ]
    return _card("By level", _table(["level", *words, ""], rows)) if rows else ""


def _lowest(summary: Summary) -> str:
    most = max(summary.lowest.values(), default=1)
    rows = [
        [_name(level), _number(count), _drawn(_length(count, most, "violated"))]
        for level, count in summary.lowest.items()
    ]
    note = '<p class="note">The weakest level that a history breaks: what it cannot even promise.</p>'
    return _card("Lowest level violated", note + _table(["level", "histories", ""], rows)) if rows else ""


def _taps(summary: Summary) -> str:
    violated = summary.outcomes[VIOLATED] or 1
    most = max((found["histories"] for found in summary.taps.values()), default=1)
    rows = []
    for tap, found in summary.taps.items():
        name, level = pattern(tap)
        share = found["histories"] / violated
        rows.append([
            _name(tap), _name(name), _name(level), _number(found["histories"]),
            (f"{share:.1%}", share, "figure"), _number(found["instances"]),
            _drawn(_length(found["histories"], most, "violated")),
        ])  # fmt: skip
    header = ["pattern", "name", "level", "histories", "of violated", "instances", ""]
    return _card("By pattern", _table(header, rows)) if rows else ""


def _groups(summary: Summary, links: Links) -> str:
    groups = list(summary.groups.values())[:GROUPS]
    if not groups:
        return ""
    rows = [[_number(g.histories), _name(g.tap), _name(pattern(g.tap)[0]), _shape(g, links)] for g in groups]
    total = len(summary.groups)
    note = (
        f'<p class="note">{counted(total, "shape")}{" at least" if summary.ungrouped else ""}'
        f"{f', the {GROUPS} most frequent shown' if total > GROUPS else ''}. Histories of one shape broke in the same "
        "way: the same reads and writes in the same relations, whatever the names.</p>"
    )
    return _card("Shapes of violations", note + _table(["histories", "pattern", "name", "shape"], rows))


def _shape(group: Group, links: Links) -> Cell:
    names = "".join(f'<li class="path">{links.history(name)}</li>' for name in group.examples)
    more = (
        f"<li>and {group.histories - len(group.examples):,} more</li>" if group.histories > len(group.examples) else ""
    )
    example = _example(group.violation, links.history(group.smallest[1])) if group.violation else ""
    seen = f"<details><summary>histories</summary><ul>{names}{more}</ul></details>"
    return f"<code>{_text(group.text, 700)}</code>{links.picture(group.shape)}{example}{seen}", None, "shape"


def _example(violation: Example, history: str) -> str:
    transactions = "".join(
        f"<li><b>{_text(with_letter(t.id), 40)}</b> <span class='tag'>session {_text(t.session, 40)}, "
        f"{_text(t.place, 60)}</span> <span class='op'>{_ops(t.ops)}</span></li>"
        for t in violation.transactions
    )
    steps = "".join(f"<li>{_text(step.because)}</li>" for step in violation.steps)
    why = (f"<ol>{steps}</ol>" if steps else "") + f"<p>{_text(violation.conclusion or violation.explanation)}</p>"
    return f"<details><summary>example</summary><p class='path'>{history}</p><ul>{transactions}</ul>{why}</details>"


def _ops(ops: Iterable[Sequence[Any]]) -> str:
    return " ".join(f"{_text(kind, 8)}({_text(key, 40)}, {_text(value, 40)})" for kind, key, value in ops)


def _folders(summary: Summary) -> str:
    rows = [
        [_path(name), *(_number(row[o]) for o in OUTCOMES), _drawn(_bar(row, "bar small"))]
        for name, row in summary.folders.rows.items()
    ]
    return _card("By folder", _table(["folder", *OUTCOMES, ""], rows)) if len(rows) > 1 else ""


def _slowest(summary: Summary, links: Links) -> str:
    most = max((entry[0] for entry in summary.slowest), default=0.0) or 1.0
    rows = [
        [_path(name, links), (f"{s:.2f}", s, "figure"), _number(ops), _drawn(_length(s, most, "instances"))]
        for s, name, ops in summary.slowest
    ]
    return _card("Slowest", _table(["history", "seconds", "operations", ""], rows)) if rows else ""


def _reasons(summary: Summary) -> str:
    rows = [[_name(reason), _number(count)] for reason, count in list(summary.reasons.items())[:50]]
    return _card("Why undecided", _table(["reason", "histories"], rows)) if rows else ""


def _named(title: str, names: list[tuple[str, str]], total: int, why: str, links: Links, remark: str = "") -> str:
    if not names:
        return ""
    rows = [[_path(name, links), _name(reason)] for name, reason in names]
    note = f'<p class="note">The first {len(names):,} by name.</p>' if total > len(names) else ""
    note += f'<p class="note remark">{remark}</p>' if remark else ""
    return _card(f"{title}: {total:,}", note + _table(["history", why], rows))


def _card(title: str, content: str) -> str:
    return f'<section class="card">{f"<h2>{escape(title)}</h2>" if title else ""}{content}</section>'


def _table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    kinds = [cell[2] for cell in rows[0]]
    head = "".join(
        f'<th scope="col" class="{kind if kind == "figure" else ""}">{escape(name)}</th>'
        for name, kind in zip(header, kinds, strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(cell: Cell) -> str:
    markup, value, kind = cell
    by = "" if value is None else f' data-v="{value:g}"' if isinstance(value, float) else f' data-v="{value}"'
    return f'<td class="{kind}"{by}>{markup}</td>'


def _text(value: object, limit: int = TEXT) -> str:
    """Return text from a history, shortened, on one line and escaped."""
    return escape(shorten(one_line("null" if value is None else str(value)), limit))


def _name(text: str) -> Cell:
    return _text(text), None, ""


def _path(text: str, links: Links | None = None) -> Cell:
    return links.history(text) if links else _text(text), None, "path"


def _number(count: int) -> Cell:
    return f"{count:,}", count, "figure"


def _drawn(picture: str) -> Cell:
    return picture, None, "wide"


def _bar(counts: dict[str, int], kind: str) -> str:
    """Return a bar that shows the share of each count."""
    total = sum(counts.values()) or 1
    label = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    parts, at = [], 0.0
    for name, count in counts.items():
        width = 100 * count / total
        if count:
            parts.append(f'<rect class="fill-{name}" x="{at:.3f}" width="{width:.3f}" height="10"/>')
        at += width
    return _svg(kind, label, "".join(parts))


def _length(value: float, most: float, fill: str) -> str:
    """Return a bar with a length proportional to the value."""
    rect = f'<rect class="fill-{fill}" width="{100 * value / most:.3f}" height="10"/>'
    return _svg("bar small", f"{value:,.4g}", rect)


def _svg(kind: str, label: str, content: str) -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{content}</svg>'
    )


def _key() -> str:
    boxes = "".join(
        f'<span><svg width="11" height="11"><rect class="fill-{outcome}" width="11" height="11"/></svg>{outcome}</span>'
        for outcome in OUTCOMES
    )
    return f'<div class="key">{boxes}</div>'


def write_page(target: str, summary: Summary, tally: Tally, drawn: Mapping[str, str]) -> None:
    """Write the page into a file; ``drawn`` has the files of the pictures by shape."""
    page = document(summary, tally, Links(target, drawn))
    write_atomically(target, [page.encode("utf-8", "backslashreplace")])


def draw_shapes(
    summary: Summary, settings: Settings, folder: str, formats: Sequence[str], paths: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Draw the most frequent shapes into a folder; return the picture of each shape, and notes for the user."""
    album = Album(Path(folder), tuple(formats))
    names = draw(summary.groups.values(), settings, album, paths)
    missing = min(DRAWN, len(summary.groups)) - len(names)
    notes = [*album.notes]
    if missing:
        notes.append(
            f"{missing:,} shapes have no picture: their histories are gone, have changed, or took too long again"
        )
    if len(summary.groups) > DRAWN:
        notes.append(f"the {DRAWN} most frequent of {len(summary.groups):,} shapes are drawn")
    files = {shape: os.path.join(folder, f"{name}.{formats[0]}") for shape, name in names.items()}
    drawn = {
        shape: path if os.path.exists(path) else os.path.splitext(path)[0] + ".dot" for shape, path in files.items()
    }
    return drawn, notes


def draw(
    groups: Iterable[Group], settings: Settings, album: Album, paths: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Draw the groups; return the name of each picture, without suffix, by shape.

    ``paths`` has the paths of histories by alias.
    """
    wanted: dict[str, list[Group]] = {}
    for group in list(groups)[:DRAWN]:
        wanted.setdefault(group.smallest[1], []).append(group)
    names = {}
    for name, here in wanted.items():
        result = _checked(name, (paths or {}).get(name, name), settings)
        found = {shape_of(violation)[0]: violation for violation in result.violations}
        for group in here:
            if group.shape in found:  # else the history has changed
                names[group.shape] = group.shape
                album.add(group.shape, render(found[group.shape], name))
    return names


def _checked(name: str, path: str, settings: Settings) -> Result:
    from plume_py.checking.check import check

    asked = replace(settings, max_examples=max(1, settings.max_examples))
    limits = Limits(settings.timeout, settings.max_memory, per_level=settings.per_level)
    try:
        with local_copy(path) as local, limits.enforced():
            source = Source(local, name)
            try:
                history = load_source(source, format=asked.input_format, init_txn=asked.init_txn)  # type: ignore[arg-type]
                return check(
                    history,
                    asked.levels,
                    order=asked.order,
                    max_examples=asked.max_examples,
                    name=name,
                    limits=limits,
                )
            finally:
                source.close()
    except (IsocheckError, OSError, MemoryError) as error:
        return Result(name, error=str(error))
