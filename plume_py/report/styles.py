"""How relations look, in every picture: one table of colours for Graphviz and for the page."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """How a relation is drawn: told apart by line and arrow head as well as by colour (Okabe and Ito's palette)."""

    colour: str
    night: str  # the same colour on a dark ground
    style: str
    head: str
    tail: str
    sample: str  # the line in characters, for the legend
    meaning: str


LOOKS = {
    "SO": Look("#007D5B", "#5FD3AE", "dashed", "normal", "none", "╌╌▶", "session order"),
    "RT": Look("#4B5AA8", "#A9B4FF", "dashed", "normal", "tee", "├╌▶", "had ended before"),
    "WR": Look("#0068A5", "#6FB8F0", "solid", "normal", "none", "──▶", "is read by"),
    "CM": Look("#C24E00", "#FF9A57", "solid", "normal", "odot", "○─▶", "must commit before"),
    "WW": Look("#8A6100", "#E3C04F", "solid", "vee", "none", "──>", "is overwritten by"),
    "RW": Look("#A3457C", "#F29CCB", "dashed", "onormal", "odot", "○╌▷", "reads what is overwritten by"),
}
EXCLUDED = Look("#767676", "#9AA6B5", "dotted", "vee", "none", "· · >", "not: this order leads to a contradiction")


def style_sheet() -> str:
    """The colours as variables of a page, by day and by night."""
    day = " ".join(f"--{name}: {look.colour};" for name, look in LOOKS.items())
    night = " ".join(f"--{name}: {look.night};" for name, look in LOOKS.items())
    return (
        f":root {{ {day} }}\n"
        f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {night} }} }}\n'
        f':root[data-theme="dark"] {{ {night} }}\n'
        f"@media print {{ :root:root:root {{ {day} }} }}\n"
    )
