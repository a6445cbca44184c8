"""What others call a violation: Adya's names, and Jepsen's (Elle's).

Most names belong to a pattern and stand in its table. Those of cycles depend on the cycle: how many of its steps are
RW, and whether two of them follow each other. As with Elle, a cycle with a step of session order is one of processes,
and one with a step of real time one of that.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from plume_py.checking.result import Step, Violation
from plume_py.levels.patterns import Kind

# By what they need, the least first.
CYCLES = ("G0", "G1c", "G-single", "G-nonadjacent", "G2-item")


def aliases(violation: Violation) -> tuple[str, ...]:
    """Other names of this violation; none where none fits."""
    known = violation.pattern.aliases
    fixed = tuple(name for name in known if name not in CYCLES)
    cycle = _cycle_name(violation) if len(fixed) < len(known) else None
    return fixed if cycle is None else (*fixed, cycle)


def bracketed(violation: Violation) -> str:
    """`` [write-skew, G2-item]``, to stand behind a name; nothing if there are no other names."""
    names = aliases(violation)
    return f" [{', '.join(names)}]" if names else ""


def _cycle_name(violation: Violation) -> str | None:
    if violation.pattern.kind is Kind.TRIPLE:
        # t3 read what t2 overwrote, and saw t2: one RW, whichever of the orders of t1 and t2 one looks at
        name: str | None = "G-single"
    else:
        names = [_name(cycle) for cycle in _cycles(violation.steps)]
        # Whatever the order of the writers, there is one of these cycles: none needs more than this one.
        name = None if not names or None in names else max((n for n in names if n), key=CYCLES.index)
    relations = {step.relation for step in violation.all_steps()}
    by = "-realtime" if "RT" in relations else "-process" if "SO" in relations else ""
    return f"{name}{by}" if name else None


def _name(cycle: Sequence[Step]) -> str | None:
    relations = [step.relation for step in cycle]
    if not set(relations) <= {"SO", "RT", "WR", "WW", "RW"}:
        return None  # a commit order says nothing of a key
    missed = relations.count("RW")
    if not missed:
        return "G1c" if "WR" in relations else "G0"
    if missed == 1:
        return "G-single"
    adjacent = any(a == b == "RW" for a, b in pairwise([relations[-1], *relations]))
    return "G2-item" if adjacent else "G-nonadjacent"


def _cycles(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    """The cycle of an argument, and those that exclude other orders."""
    if steps:
        yield steps
    for step in steps:
        for order in (step, *step.evidence[1:]) if step.relation == "RW" else (step,):
            if order.is_proved:
                yield from _cycles(order.evidence)
