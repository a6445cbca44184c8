"""Print the measurements of ``isocheck bench`` as text and CSV, and plot them over a parameter that was varied."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence

from plume_py.bench.run import CHECK, SHAPE, STOPPED, Measured, Value, varied
from plume_py.report.plot import Axis, Points, line_plot

# An axis is logarithmic if its largest value is more than this many times its smallest.
WIDE = 50


def stages(found: Sequence[Measured]) -> list[str]:
    """Return the stages of all checks, in the order in which a check runs them."""
    return list(dict.fromkeys(name for each in found for name in each.stages))


def as_csv(found: Sequence[Measured]) -> str:
    """Return all parameters, verdicts and costs; stages are in seconds."""
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
    """Return the parameters that were varied, the verdicts and the costs, for a terminal."""
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
    """Return SVG texts by file name: seconds, memory, and the stages of the first line; none without an x axis."""
    along = _x_parameter(found)
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


def _x_parameter(found: Sequence[Measured]) -> str | None:
    """Return the numeric parameter with the most values, or None if no numeric parameter was varied."""
    names = [
        name for name in varied([each.point for each in found]) if not isinstance(found[0].point.values[name], str)
    ]
    return max(names, key=lambda name: len({each.point.values[name] for each in found}), default=None)


def _lines(found: Sequence[Measured], along: str) -> Mapping[str, list[Measured]]:
    """Group the measurements by all other varied parameters; each group is one line of a plot."""
    others = [name for name in varied([each.point for each in found]) if name != along]
    lines: dict[str, list[Measured]] = {}
    for each in found:
        lines.setdefault(", ".join(_label(name, each.point.values[name]) for name in others), []).append(each)
    return lines


def _label(name: str, value: Value) -> str:
    return value if isinstance(value, str) else f"{value:g} {name}"


def _points(found: Sequence[Measured], along: str, cost: Callable[[Measured], float]) -> Points:
    return sorted((float(each.point.values[along]), cost(each)) for each in found)


def _stage(name: str) -> Callable[[Measured], float]:
    return lambda measured: measured.stages.get(name, 0.0)


def _axis(name: str, values: Sequence[float]) -> Axis:
    positive = [value for value in values if value > 0]
    return Axis(name, bool(positive) and min(values) > 0 and max(positive) > WIDE * min(positive))
