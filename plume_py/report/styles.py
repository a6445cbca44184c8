"""The styles of relations in pictures, for Graphviz and the HTML page, and the evidence that pictures show."""

from collections.abc import Iterator
from dataclasses import dataclass

from plume_py.checking.result import Step


@dataclass(frozen=True)
class Look:
    """The style of a relation. Line and arrow head differ as well as colour (palette of Okabe and Ito)."""

    colour: str
    night: str  # the colour in a dark theme
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
    """Return the colours as CSS variables, for light and dark themes."""
    day = " ".join(f"--{name}: {look.colour};" for name, look in LOOKS.items())
    night = " ".join(f"--{name}: {look.night};" for name, look in LOOKS.items())
    return (
        f":root {{ {day} }}\n"
        f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {night} }} }}\n'
        f':root[data-theme="dark"] {{ {night} }}\n'
        f"@media print {{ :root:root:root {{ {day} }} }}\n"
    )


def visible_evidence(step: Step) -> Iterator[Step]:
    """Yield the edges shown in addition to a step: its read in question, and its evidence recursively."""
    if step.question is not None:
        yield step.question
    yield from _supports(step)


def _supports(step: Step) -> Iterator[Step]:
    for inner in step.evidence:
        if inner.assumed and not step.needs_proof:
            continue  # the order follows from causality alone
        if not _overwrites_what_it_read(inner):
            yield inner
        yield from _supports(inner)


def _overwrites_what_it_read(step: Step) -> bool:
    """Return whether a single read shows this version order. The edge of that read suffices then."""
    others = [inner for inner in step.evidence if not inner.assumed]
    if not step.is_proved or len(others) != 1:
        return False
    return others[0].relation == "WR" and (others[0].source, others[0].target) == (step.source, step.target)
