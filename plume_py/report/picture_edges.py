"""What a picture shows beside the steps of an argument: all that they rest on, as edges."""

from collections.abc import Iterator

from plume_py.checking.result import Step


def visible_evidence(step: Step) -> Iterator[Step]:
    """The read in question, where there is one, what a step rests on, and what that rests on in turn."""
    if step.question is not None:
        yield step.question
    yield from _supports(step)


def _supports(step: Step) -> Iterator[Step]:
    for inner in step.evidence:
        if inner.assumed and not step.needs_proof:
            continue  # where an order follows from causality alone, its opposite is not worth being shown
        if not _overwrites_what_it_read(inner):
            yield inner
        yield from _supports(inner)


def _overwrites_what_it_read(step: Step) -> bool:
    """Is this a version order that a single read shows by itself? Then the edge of that read suffices."""
    others = [inner for inner in step.evidence if not inner.assumed]
    if not step.is_proved or len(others) != 1:
        return False
    return others[0].relation == "WR" and (others[0].source, others[0].target) == (step.source, step.target)
