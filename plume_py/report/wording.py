"""Words that several reports share."""

from plume_py.checking.result import ShownTransaction, Violation
from plume_py.levels import LEVELS, STRONGEST, weaker_levels
from plume_py.levels.patterns import Kind


def forbidden(violation: Violation) -> str:
    """From which level on the example is a violation."""
    if violation.level not in LEVELS:
        return "forbidden by the levels that these transactions run at"
    stronger = "" if violation.level == STRONGEST else " and every stronger level"
    return f"forbidden by {LEVELS[violation.level].title} ({violation.level}){stronger}"


def counts_against(violation: Violation, level: str) -> bool:
    """Does it break ``level``? Of what is no level of the lattice, every violation is."""
    return level not in LEVELS or violation.level in {level, *weaker_levels(level)}


def argument(violation: Violation) -> str:
    """The whole argument in sentences, where there is no room for its steps one by one."""
    by_steps = violation.pattern.kind in (Kind.REREAD, Kind.CYCLE, Kind.TRIPLE)  # else the conclusion says it all
    return f"{violation.explanation}. {violation.conclusion}" if by_steps else violation.conclusion


def place(transaction: ShownTransaction) -> str:
    """Where it stands in its file, and its level if it was judged by one of its own."""
    return f"{transaction.place}, at {transaction.level}" if transaction.level else transaction.place
