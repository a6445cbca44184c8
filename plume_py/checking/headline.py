"""A violation in one sentence about this history: who read what, and what is wrong with that."""

from collections.abc import Sequence

from plume_py.base.text import key_text, txn_text
from plume_py.checking.result import Step
from plume_py.history.model import INITIAL_ID
from plume_py.levels.patterns import VERSION_CYCLE, Kind, Pattern


def headline(pattern: Pattern, steps: Sequence[Step], words: str) -> str:
    """``words`` is the argument in a sentence, where it has one of its own."""
    if pattern.kind is Kind.TRIPLE:
        return _triple(steps)
    if pattern.kind is Kind.REREAD:
        first, second = steps
        read = f"{txn_text(first.target)} read {key_text(first.key)}"
        return f"{read} {_from(first.source)}, and then {_from(second.source)}"
    if pattern.kind is Kind.CYCLE:
        return _cycle(pattern, steps)
    return words


def _from(source: object) -> str:
    return "as it was initially" if source == INITIAL_ID else f"from {txn_text(source)}"


def _triple(steps: Sequence[Step]) -> str:
    """t3 read x from t1, although it had seen t2, whose x is newer."""
    forced = steps[-1]
    if len(steps) > 1 and all(step.relation == "CM" for step in steps):
        return _disagreement(steps)
    read = f"{txn_text(forced.reader)} read {_what(forced)}"
    settled = any(step.relation == "CM" for step in steps[:-1])
    after = "whose write is newer, as other reads show" if settled else "had overwritten it"
    return f"{read}, although {txn_text(forced.source)}, {_how(forced)}, {after}"


def _what(forced: Step) -> str:
    if forced.target == INITIAL_ID:
        return f"the initial value of {key_text(forced.key)}"
    return f"{key_text(forced.key)} from {txn_text(forced.target)}"


def _how(forced: Step) -> str:
    """How the reader had seen the one that it should have read from."""
    if len(forced.evidence) > 1:
        return "in its causal past"
    (saw,) = forced.evidence
    return "earlier in its own session" if saw.relation == "SO" else f"from which it read {key_text(saw.key)}"


def _disagreement(steps: Sequence[Step]) -> str:
    """Each step is the order that some reader saw."""
    first, last = steps[0], steps[-1]
    if len(steps) == 2 and first.key == last.key:
        return (
            f"{txn_text(first.reader)} and {txn_text(last.reader)} disagree on who wrote {key_text(first.key)} first, "
            f"{txn_text(first.source)} or {txn_text(last.source)}"
        )
    readers = dict.fromkeys(txn_text(step.reader) for step in steps)
    writers = dict.fromkeys(txn_text(step.source) for step in steps)
    return f"what {_and(list(readers))} read puts the writes of {_and(list(writers))} in a circle"


def _cycle(pattern: Pattern, steps: Sequence[Step]) -> str:
    names = list(dict.fromkeys(txn_text(step.source) for step in steps))
    if pattern.id == VERSION_CYCLE:
        return f"the lists that were read put {_and(names)} in a circle"
    if len(names) == 2 and all(step.relation == "WR" for step in steps):
        return f"{_and(names)} each read what the other one wrote"
    return f"{_and(names)} each come before the next, and the last before the first"


NAMED = 6  # transactions that a sentence names


def _and(names: list[str]) -> str:
    if len(names) > NAMED:
        names = [*names[: NAMED - 1], f"{len(names) - NAMED + 1} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
