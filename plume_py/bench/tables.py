"""What was measured: rows for people, CSV for programs, lines over the first parameter that was varied."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence

from plume_py.bench.points import CHECK, SHAPE, Value, varied
from plume_py.bench.run import STOPPED, Measured
from plume_py.report.plot import Axis, Points, line_plot

# From this ratio of the largest to the smallest on, equal steps of an axis are equal factors.
WIDE = 50


def stages(found: Sequence[Measured]) -> list[str]:
    """Every stage that some check had, in the order in which checks go through them."""
    return list(dict.fromkeys(name for each in found for name in each.stages))


def as_csv(found: Sequence[Measured]) -> str:
    """All parameters, the answer, and what it cost; the stages in seconds."""
    names = stages(found)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*SHAPE, *CHECK, "seed", "verdict", "seconds", "cpu seconds", "megabytes", *names])
    for each in found:
        costs = [f"{each.seconds:.4f}", f"{each.cpu:.4f}", f"{each.megabytes:.1f}"]
        steps = [f"{each.stages[name]:.4f}" if name in each.stages else "" for name in names]
        writer.writerow([*each.point.values.values(), each.point.seed, each.verdict, *costs, *steps])
    return text.getvalue()


def as_text(found: Sequence[Measured]) -> str:
    """For a terminal: what was varied, and what it cost."""
    shown, names = varied([each.point for each in found]), stages(found)
    lines = [[*shown, "verdict", "seconds", "cpu", "MB", *names]]
    for each in found:
        costs = [_seconds(each), f"{each.cpu:.2f}", f"{each.megabytes:.0f}"]
        steps = [f"{each.stages[name]:.3f}" if name in each.stages else "" for name in names]
        lines.append([*(f"{each.point.values[name]}" for name in shown), each.verdict, *costs, *steps])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    words = len(shown) + 1
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _seconds(each: Measured) -> str:
    return f"> {each.seconds:.0f}" if each.verdict == STOPPED else f"{each.seconds:.2f}"


def plots(found: Sequence[Measured]) -> dict[str, str]:
    """SVG texts by file name: seconds, memory, and the stages of the first line; none without numbers to go along."""
    along = _along(found)
    if along is None:
        return {}
    done = [each for each in found if each.verdict != STOPPED]
    lines = _lines(done, along)
    across = _axis(along, [point[0] for each in lines.values() for point in _points(each, along, lambda m: m.cpu)])
    texts = {}
    for name, title, cost in (
        ("seconds.svg", "CPU seconds of a check", lambda m: m.cpu),
        ("memory.svg", "Megabytes of a check", lambda m: m.megabytes),
    ):
        drawn = {line: _points(each, along, cost) for line, each in lines.items()}
        up = _axis(title.split(" of ")[0], [y for each in drawn.values() for _, y in each])
        texts[name] = line_plot(title, drawn, across, up)
    for line, each in list(lines.items())[:1]:
        parts = {stage: _points(each, along, _stage(stage)) for stage in stages(each)}
        title = f"Stages of a check{', ' if line else ''}{line}"
        texts["stages.svg"] = line_plot(title, parts, across, Axis("seconds"))
    return texts


def _along(found: Sequence[Measured]) -> str | None:
    """The parameter with the most values that are numbers."""
    names = [
        name for name in varied([each.point for each in found]) if not isinstance(found[0].point.values[name], str)
    ]
    return max(names, key=lambda name: len({each.point.values[name] for each in found}), default=None)


def _lines(found: Sequence[Measured], along: str) -> Mapping[str, list[Measured]]:
    """Those that differ in nothing else, by what the others are."""
    others = [name for name in varied([each.point for each in found]) if name != along]
    lines: dict[str, list[Measured]] = {}
    for each in found:
        lines.setdefault(", ".join(_spelled(name, each.point.values[name]) for name in others), []).append(each)
    return lines


def _spelled(name: str, value: Value) -> str:
    return value if isinstance(value, str) else f"{value:g} {name}"


def _points(found: Sequence[Measured], along: str, cost: Callable[[Measured], float]) -> Points:
    return sorted((float(each.point.values[along]), cost(each)) for each in found)


def _stage(name: str) -> Callable[[Measured], float]:
    return lambda measured: measured.stages.get(name, 0.0)


def _axis(name: str, values: Sequence[float]) -> Axis:
    positive = [value for value in values if value > 0]
    return Axis(name, bool(positive) and min(values) > 0 and max(positive) > WIDE * min(positive))
