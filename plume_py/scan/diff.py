"""What changed from one scan to the next."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from plume_py.base.text import one_line, shorten
from plume_py.levels import NAMES
from plume_py.scan.results import Reader, ResultLine
from plume_py.scan.settings import HOLDS, VIOLATED

SHOWN = 50
KINDS = ("new", "fixed", "changed", "gone", "added")


class Seen(NamedTuple):
    """What a scan said about one history, without the times."""

    outcome: str
    broken: tuple[str, ...]  # levels
    taps: tuple[str, ...]
    shapes: tuple[str, ...]

    @staticmethod
    def of(line: ResultLine) -> "Seen":
        """Of a line of the results."""
        broken = tuple(level for level, verdict in line.levels.items() if verdict.ok is False)
        return Seen(line.outcome, broken, tuple(sorted(line.counts)), tuple(sorted(line.shapes)))

    def words(self) -> str:
        """For people."""
        if self.outcome != VIOLATED:
            return self.outcome
        return f"violates {' '.join(self.broken)} (TAP {' '.join(self.taps)})"


@dataclass
class Difference:
    """The histories that differ, by kind; ``equal`` are those that do not."""

    equal: int = 0
    levels: tuple[list[str], list[str]] = ([], [])  # those that the two scans asked for
    kinds: dict[str, list[tuple[str, Seen | None, Seen | None]]] = field(
        default_factory=lambda: {kind: [] for kind in KINDS}
    )

    @property
    def worse(self) -> bool:
        """Is there a violation that was not there before?"""
        return bool(self.kinds["new"])


def compare(old: Reader, new: Reader, relative: bool = False) -> Difference:
    """``relative``: histories are matched by their place below the folder that all of a scan's have in common."""
    before = dict(_seen(old, relative))
    found = Difference(levels=(_levels(old), _levels(new)))
    for name, now in _seen(new, relative):
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


def _seen(reader: Reader, relative: bool) -> Iterator[tuple[str, Seen]]:
    common = _common_folder(reader) if relative else 0
    for line in reader:
        yield "/".join(line.history.split("/")[common:]), Seen.of(line)


def _levels(reader: Reader) -> list[str]:
    asked = {level for line in reader for level in line.levels}
    return [level for level in (*NAMES, "declared") if level in asked]


def _common_folder(reader: Reader) -> int:
    """How many parts of their paths all histories share, the last part of each aside."""
    shared: list[str] | None = None
    for line in reader:
        folder = line.history.split("/")[:-1]
        if shared is None:
            shared = folder
        else:
            equal = next((i for i, (a, b) in enumerate(zip(shared, folder, strict=False)) if a != b), None)
            shared = shared[: min(len(shared), len(folder)) if equal is None else equal]
    return len(shared or [])


def _kind(then: Seen | None, now: Seen) -> str | None:
    if now.outcome == VIOLATED and (then is None or then.outcome != VIOLATED):
        return "new"
    if then is None:
        return "added"
    if then.outcome == VIOLATED and now.outcome == HOLDS:
        return "fixed"
    return None if then == now else "changed"


def render(difference: Difference) -> str:
    """For a terminal."""
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


def _change(then: Seen | None, now: Seen | None) -> str:
    if then is None or now is None:
        only = then or now
        return only.words() if only is not None else ""
    if then.words() == now.words():
        return f"{now.words()}, in another shape"
    return f"{then.words()} -> {now.words()}"


def plain(difference: Difference) -> dict[str, Any]:
    """As JSON objects."""

    def one(seen: Seen | None) -> dict[str, Any] | None:
        return None if seen is None else seen._asdict()

    rows = {
        kind: [{"history": name, "old": one(then), "new": one(now)} for name, then, now in difference.kinds[kind]]
        for kind in KINDS
    }
    return {"levels": dict(zip(("old", "new"), difference.levels, strict=True)), "equal": difference.equal, **rows}
