"""Stacked bars as SVG, drawn by hand: one chart does not need a library."""

from dataclasses import dataclass
from html import escape

COLOURS = {"RA": "#8DD3A8", "PC": "#B7DDF2", "PSI": "#6FB1E0", "SI": "#F4C27A", "SER": "#D9705F"}
WIDTH, LABEL, ROW = 900, 200, 34


@dataclass(frozen=True)
class Bar:
    """A label and the parts in per cent."""

    label: str
    parts: dict[str, float]


def bars(rows: list[Bar], title: str) -> str:
    """One bar below the other, with a legend."""
    height = 70 + ROW * len(rows) + 10
    scale = (WIDTH - LABEL - 20) / 100
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"',
        '  font-family="Helvetica" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="22" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for i, (name, colour) in enumerate(COLOURS.items()):
        lines.append(f'<rect x="{LABEL + 90 * i}" y="36" width="14" height="14" fill="{colour}"/>')
        lines.append(f'<text x="{LABEL + 90 * i + 20}" y="48">{name}</text>')
    for number, row in enumerate(rows):
        y, x = 66 + ROW * number, float(LABEL)
        lines.append(f'<text x="{LABEL - 10}" y="{y + 16}" text-anchor="end">{escape(row.label)}</text>')
        for name, colour in COLOURS.items():
            share = row.parts.get(name, 0.0)
            if share <= 0:
                continue
            lines.append(f'<rect x="{x:.1f}" y="{y}" width="{share * scale:.1f}" height="22" fill="{colour}"/>')
            if share >= 4:
                lines.append(
                    f'<text x="{x + share * scale / 2:.1f}" y="{y + 16}" text-anchor="middle">{share:.0f}</text>'
                )
            x += share * scale
    return "\n".join([*lines, "</svg>", ""])
