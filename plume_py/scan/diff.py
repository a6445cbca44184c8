"""Compare the results of two scans: new, fixed and changed violations, and histories in only one of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from plume_py.base.text import one_line, shorten
from plume_py.levels import NAMES
from plume_py.scan.results import Reader, ResultLine
from plume_py.scan.settings import HOLDS, VIOLATED

SHOWN = 50
KINDS = ("new", "fixed", "changed", "gone", "added")


class HistoryVerdict(NamedTuple):
    """The verdict of a scan on one history, without times."""

    outcome: str
    broken: tuple[str, ...]  # levels
    taps: tuple[str, ...]
    shapes: tuple[str, ...]

    @staticmethod
    def of(line: ResultLine) -> "HistoryVerdict":
        broken = tuple(level for level, verdict in line.levels.items() if verdict.ok is False)
        return HistoryVerdict(line.outcome, broken, tuple(sorted(line.counts)), tuple(sorted(line.shapes)))

    def words(self) -> str:
        if self.outcome != VIOLATED:
            return self.outcome
        return f"violates {' '.join(self.broken)} (TAP {' '.join(self.taps)})"


@dataclass
class Difference:
    """The histories with different verdicts, by kind; ``equal`` counts all others."""

    equal: int = 0
    levels: tuple[list[str], list[str]] = ([], [])  # that the two scans checked
    kinds: dict[str, list[tuple[str, HistoryVerdict | None, HistoryVerdict | None]]] = field(
        default_factory=lambda: {kind: [] for kind in KINDS}
    )

    @property
    def worse(self) -> bool:
        """Whether some history is violated now that was not before."""
        return bool(self.kinds["new"])


def compare(old: Reader, new: Reader, relative: bool = False) -> Difference:
    """Compare two files of results; ``relative`` matches histories by path below the common folder of each scan."""
    before = dict(_verdicts(old, relative))
    found = Difference(levels=(_levels(old), _levels(new)))
    for name, now in _verdicts(new, relative):
        then = before.pop(name, None)
        kind = _kind(then, now)
        if kind is None:
            found.equal += 1
        else:
            found.kinds[kind].append((name, then, now))
    found.kinds["gone"] = [(name, then, None) for name, then in before.items()]
    for rows in found.kinds.values():
        rows.sort(key=lambda row: row[0])
    return found


def _verdicts(reader: Reader, relative: bool) -> Iterator[tuple[str, HistoryVerdict]]:
    common = _common_folder(reader) if relative else 0
    for line in reader:
        yield "/".join(line.history.split("/")[common:]), HistoryVerdict.of(line)


def _levels(reader: Reader) -> list[str]:
    asked = {level for line in reader for level in line.levels}
    return [level for level in (*NAMES, "declared") if level in asked]


def _common_folder(reader: Reader) -> int:
    """Return how many folders at the start of the path all histories share."""
    shared: list[str] | None = None
    for line in reader:
        folder = line.history.split("/")[:-1]
        if shared is None:
            shared = folder
        else:
            equal = next((i for i, (a, b) in enumerate(zip(shared, folder, strict=False)) if a != b), None)
            shared = shared[: min(len(shared), len(folder)) if equal is None else equal]
    return len(shared or [])


def _kind(then: HistoryVerdict | None, now: HistoryVerdict) -> str | None:
    if now.outcome == VIOLATED and (then is None or then.outcome != VIOLATED):
        return "new"
    if then is None:
        return "added"
    if then.outcome == VIOLATED and now.outcome == HOLDS:
        return "fixed"
    return None if then == now else "changed"


def render(difference: Difference) -> str:
    """Return the difference as text for a terminal."""
    words = {
        "new": "violated now, and not before",
        "fixed": "hold now, and were violated before",
        "changed": "otherwise changed",
        "gone": "only in the old results",
        "added": "only in the new results, and not violated",
    }
    lines = [
        ", ".join(f"{len(difference.kinds[kind]):,} {kind}" for kind in KINDS) + f", {difference.equal:,} as before"
    ]
    old, new = (" ".join(levels) for levels in difference.levels)
    if old and new and old != new:
        lines.append(f"The two scans did not ask for the same levels: {old}, and {new}")
    for kind in KINDS:
        rows = difference.kinds[kind]
        if rows:
            lines += ["", f"{kind.capitalize()}: {len(rows):,} {words[kind]}"]
            lines += [f"  {shorten(one_line(name), 120)}: {_change(then, now)}" for name, then, now in rows[:SHOWN]]
            if len(rows) > SHOWN:
                lines.append(f"  … and {len(rows) - SHOWN:,} more")
    return "\n".join(lines)


def _change(then: HistoryVerdict | None, now: HistoryVerdict | None) -> str:
    if then is None or now is None:
        only = then or now
        return only.words() if only is not None else ""
    if then.words() == now.words():
        return f"{now.words()}, in another shape"
    return f"{then.words()} -> {now.words()}"


def plain(difference: Difference) -> dict[str, Any]:
    """Return the difference as JSON objects."""

    def one(verdict: HistoryVerdict | None) -> dict[str, Any] | None:
        return None if verdict is None else verdict._asdict()

    rows = {
        kind: [{"history": name, "old": one(then), "new": one(now)} for name, then, now in difference.kinds[kind]]
        for kind in KINDS
    }
    return {"levels": dict(zip(("old", "new"), difference.levels, strict=True)), "equal": difference.equal, **rows}
