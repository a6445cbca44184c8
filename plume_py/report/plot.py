"""Draw line plots as SVG: measurements along one parameter, or over the time of a run.

Written by hand, because a plotting library would be a large dependency for this one kind of plot. Colours and dashes
distinguish lines also in print.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

# Distinct also in greyscale and for colour-blind readers (the palette of Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES = ("", "6 3", "2 3", "8 3 2 3")
WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 66, 52
TICKS = 5

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """An axis: its label, and whether its scale is logarithmic."""

    name: str
    logarithmic: bool = False


@dataclass(frozen=True)
class Band:
    """A labelled interval of the horizontal axis, for example a fault."""

    start: float
    end: float
    what: str


@dataclass(frozen=True)
class _Scale:
    """Maps values of an axis to coordinates."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    def place(self, value: float) -> float:
        low, high, at = (math.log10(each) if self.logarithmic else each for each in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.logarithmic:
            exponents = range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)
            return [10.0**each for each in exponents]
        step = (self.high - self.low) / TICKS
        return [self.low + step * i for i in range(TICKS + 1)]


def line_plot(title: str, lines: Mapping[str, Points], across: Axis, up: Axis, bands: Sequence[Band] = ()) -> str:
    """Return the plot. Points without a place on a logarithmic axis, and lines without points, are left out."""
    shown = {name: _drawable(points, across, up) for name, points in lines.items()}
    shown = {name: points for name, points in shown.items() if points}
    every = [point for points in shown.values() for point in points] or [(1.0, 1.0)]
    x = _scale([point[0] for point in every], across, LEFT, WIDTH - RIGHT)
    y = _scale([point[1] for point in every], up, HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="10" y="20" font-size="15">{escape(title)}</text>',
        *(_band(band, x) for band in bands),
        *_grid(x, y, across, up),
    ]
    at = 10.0
    for i, (name, points) in enumerate(shown.items()):
        parts += _line(points, x, y, i)
        parts += _legend(name, at, i)
        at += 40 + 7 * len(name)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _band(band: Band, x: _Scale) -> str:
    """Return the visible part of a band, at least two pixels wide."""
    start, end = (min(max(at, x.low), x.high) for at in (band.start, band.end))
    left, right = x.place(start), x.place(end)
    where = f'x="{left:.1f}" y="{TOP}" width="{max(right - left, 2):.1f}" height="{HEIGHT - BOTTOM - TOP}"'
    return f'<rect {where} fill="#E69F00" fill-opacity="0.25"><title>{escape(band.what)}</title></rect>'


def _drawable(points: Points, across: Axis, up: Axis) -> Points:
    return [
        (x, y)
        for x, y in points
        if math.isfinite(x) and math.isfinite(y) and (x > 0 or not across.logarithmic) and (y > 0 or not up.logarithmic)
    ]


def _scale(values: Sequence[float], axis: Axis, start: float, end: float) -> _Scale:
    """Return a non-empty scale, from zero or between powers of ten."""
    if axis.logarithmic:
        low, high = (
            10.0 ** way(math.log10(value)) for way, value in ((math.floor, min(values)), (math.ceil, max(values)))
        )
        return _Scale(low, high if high > low else low * 10, start, end, True)
    low, high = min(0.0, *values), _round_up(max(values))
    return _Scale(low, high if high > low else low + 1, start, end, False)


def _round_up(value: float) -> float:
    """Return the next number of which a fifth is a short decimal."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10) if factor * power >= value * (1 - 1e-9))


def _grid(x: _Scale, y: _Scale, across: Axis, up: Axis) -> list[str]:
    lines = []
    for tick in x.ticks():
        at = x.place(tick)
        lines.append(f'<path d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        lines.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{short_number(tick)}</text>')
    for tick in y.ticks():
        at = y.place(tick)
        lines.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{short_number(tick)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    lines.append(f'<text x="{middle[0]}" y="{HEIGHT - 12}" text-anchor="middle">{escape(across.name)}</text>')
    turned = f'transform="translate(16 {middle[1]}) rotate(-90)"'
    lines.append(f'<text {turned} text-anchor="middle">{escape(up.name)}</text>')
    return lines


def _line(points: Points, x: _Scale, y: _Scale, i: int) -> list[str]:
    colour, dash = COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]
    places = [(x.place(px), y.place(py)) for px, py in points]
    path = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    marks = [
        f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}">'
        f"<title>{short_number(a)}: {short_number(b)}</title></circle>"
        for (px, py), (a, b) in zip(places, points, strict=True)
    ]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashed}/>', *marks]


def _legend(name: str, at: float, i: int) -> list[str]:
    colour = COLOURS[i % len(COLOURS)]
    return [
        f'<path d="M{at:.0f} 42h18" stroke="{colour}" stroke-width="3"/>',
        f'<text x="{at + 23:.0f}" y="46">{escape(name)}</text>',
    ]


def short_number(value: float) -> str:
    """Return a short text for a number: 0.05, 7.5, 2 k, 1.5 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
