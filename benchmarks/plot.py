"""Horizontal stacked bars as SVG: enough for our plots, and nothing to install."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

# Distinct also in greyscale and for colour-blind readers (the palette of Okabe and Ito).
COLOURS = (
    "#999999", "#0072B2", "#56B4E9", "#E69F00", "#F0E442", "#009E73", "#D55E00", "#CC79A7", "#000000", "#DDDDDD",
)  # fmt: skip
LABELS, BARS, ROW, TOP = 330, 560, 20, 62
NUMBER = 22  # a part as wide as that can hold a number


@dataclass(frozen=True)
class Bar:
    """One bar: its parts, and optionally a mark to compare with."""

    label: str
    parts: Mapping[str, float]
    mark: float | None = None
    total: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", sum(self.parts.values()))


def save_bars(path: Path, title: str, bars: Sequence[Bar], mark_name: str = "", *, shares: bool = False) -> None:
    """Draw the bars below each other, on one linear scale: of seconds, or of ``shares`` in per cent."""
    names = list(dict.fromkeys(name for bar in bars for name in bar.parts))
    colours = dict(zip(names, COLOURS[1 if shares else 0 :], strict=False))
    longest = max(max(bar.total, bar.mark or 0) for bar in bars) or 1.0
    scale = BARS / longest
    width, height = LABELS + BARS + 80, TOP + ROW * len(bars) + 16
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="10" y="22" font-size="15">{escape(title)}</text>',
        *_legend(colours, mark_name),
    ]
    for i, bar in enumerate(bars):
        lines += _bar(bar, TOP + ROW * i, scale, colours, shares)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, "</svg>"]) + "\n")


def _legend(colours: Mapping[str, str], mark_name: str) -> list[str]:
    lines, x = [], 10
    for name, colour in colours.items():
        lines.append(f'<rect x="{x}" y="36" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{x + 16}" y="46">{escape(name)}</text>')
        x += 34 + 7 * len(name)
    if mark_name:
        lines.append(f'<path d="M{x + 6} 35v14" stroke="black" stroke-width="2"/>')
        lines.append(f'<text x="{x + 14}" y="46">{escape(mark_name)}</text>')
    return lines


def _bar(bar: Bar, y: int, scale: float, colours: Mapping[str, str], shares: bool) -> list[str]:
    lines = [f'<text x="{LABELS - 8}" y="{y + 13}" text-anchor="end">{escape(bar.label)}</text>']
    x = float(LABELS)
    for name, size in bar.parts.items():
        wide, exact = size * scale, f"{size:.1f} %" if shares else f"{size:.3f} s"
        lines.append(
            f'<rect x="{x:.1f}" y="{y + 2}" width="{wide:.1f}" height="{ROW - 5}" fill="{colours[name]}">'
            f"<title>{escape(name)} {exact}</title></rect>"
        )
        if shares and wide > NUMBER:
            lines.append(f'<text x="{x + wide / 2:.1f}" y="{y + 13}" text-anchor="middle">{size:.0f}</text>')
        x += wide
    end = max(x, LABELS + (bar.mark or 0) * scale)
    if not shares:  # which add up to 100
        lines.append(f'<text x="{end + 6:.1f}" y="{y + 13}">{bar.total:.2f} s</text>')
    if bar.mark:
        lines.append(f'<path d="M{LABELS + bar.mark * scale:.1f} {y}v{ROW - 1}" stroke="black" stroke-width="2"/>')
    return lines
