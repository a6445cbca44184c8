"""Turn an argument into a ``Violation``: choose the operations to show, and write the headline and the conclusion.

``weak.explain`` and ``strong.counterexample`` call ``complete`` last. Until then, steps refer to operations by their
numbers in the history. Here these become positions among the operations shown, which depend on all steps.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from plume_py.base.text import key_text, txn_text
from plume_py.checking.result import Ends, ShownTransaction, Step, Violation
from plume_py.checking.steps import StepWriter, writer_phrase
from plume_py.history.model import INITIAL_ID, STATUS_NAMES
from plume_py.levels.patterns import PATTERNS, VERSION_CYCLE, Kind, Pattern

# Maximum number of operations shown per transaction, plus those in a step.
SHOWN_OPS = 30


@dataclass(frozen=True)
class Argument:
    """The contents of a future violation; operations are numbers in the history."""

    steps: Sequence[Step]
    words: str = ""  # the argument in a sentence, if it is more than its steps
    culprits: Sequence[int] = ()  # reads that are wrong without a cycle
    rule: str = ""  # the rule of the level that forbids it

    @property
    def whole(self) -> str:
        return f"{self.words}: {self.rule}" if self.rule else self.words

    def renumbered(self, numbers: Callable[[int], int]) -> "Argument":
        """Return the argument with operation ``o`` renumbered to ``numbers(o)``."""
        return replace(
            self,
            steps=[_renumbered(s, numbers) for s in self.steps],
            culprits=[numbers(o) for o in self.culprits],
        )


def complete(
    writer: StepWriter,
    pattern: str,
    argument: Argument,
    level: str | None = None,
    own_levels: Mapping[int, str] | None = None,
) -> Violation:
    """Return the violation that ``argument`` shows, at ``level`` or the weakest level that forbids the pattern.

    ``own_levels`` maps transactions to their levels, if levels are declared.
    """
    known, steps = PATTERNS[pattern], argument.steps
    touched = {*_operations(steps), *argument.culprits}
    members = sorted(writer.transactions)
    ops = {t: _relevant(writer, t, touched) for t in members}
    place = {o: at for relevant in ops.values() for at, o in enumerate(relevant)}
    ends = _ends(known, steps)
    return Violation(
        pattern=known,
        level=level or known.level,
        keys=tuple(writer.history.key(x) for x in writer.keys),
        transactions=tuple(_excerpt(writer, t, ops[t], None if own_levels is None else own_levels[t]) for t in members),
        steps=tuple(_renumbered(step, place.__getitem__) for step in steps),
        ends=ends,
        headline=headline(known, steps, argument.words),
        conclusion=_conclusion(known, ends, argument),
        explanation=argument.whole or "; ".join(step.because for step in steps),
        culprits=tuple((members.index(writer.owner(o)), place[o]) for o in argument.culprits),
    )


# Conclusion


def _ends(pattern: Pattern, steps: Sequence[Step]) -> Ends:
    if not steps or pattern.kind in (Kind.READ, Kind.REREAD, Kind.LIST):
        return Ends.OPEN
    return Ends.BEFORE_START if steps[-1].target == INITIAL_ID else Ends.CLOSED


def _conclusion(pattern: Pattern, ends: Ends, argument: Argument) -> str:
    steps = argument.steps
    if pattern.kind is Kind.ARGUMENT:
        return f"That is, {argument.whole}."
    if pattern.kind is Kind.REREAD:
        first, second = (writer_phrase(step.source) for step in steps)
        read = f"{txn_text(steps[0].target)} read {key_text(steps[0].key)}"
        return f"Hence {read} first from {first} and then from {second}."
    if ends is Ends.OPEN:
        return f"{argument.words}."
    before = "the initial state" if ends is Ends.BEFORE_START else "itself"
    return f"Hence {txn_text(steps[0].source)} would have to come before {before}: a contradiction."


# Operations shown, and their positions


def _operations(steps: Iterable[Step]) -> Iterator[int]:
    """Yield the operations of the steps and, recursively, of their evidence."""
    for step in steps:
        yield from (o for o in (step.source_op, step.target_op, step.reader_op) if o is not None)
        yield from _operations(step.evidence if step.question is None else (step.question, *step.evidence))


def _relevant(writer: StepWriter, t: int, touched: set[int]) -> list[int]:
    """Return the operations of t on the keys involved: the first ``SHOWN_OPS``, and those in a step."""
    history = writer.history
    ops = range(int(history.txn_start[t]), int(history.txn_start[t + 1]))
    on_keys = [o for o in ops if int(history.op_key[o]) in writer.keys]
    return [o for at, o in enumerate(on_keys) if at < SHOWN_OPS or o in touched]


def _renumbered(step: Step, numbers: Callable[[int], int]) -> Step:
    def at(o: int | None) -> int | None:
        return None if o is None else numbers(o)

    return replace(
        step,
        source_op=at(step.source_op),
        target_op=at(step.target_op),
        reader_op=at(step.reader_op),
        question=None if step.question is None else _renumbered(step.question, numbers),
        evidence=tuple(_renumbered(inner, numbers) for inner in step.evidence),
    )


def _excerpt(writer: StepWriter, t: int, ops: Sequence[int], level: str | None) -> ShownTransaction:
    history = writer.history
    return ShownTransaction(
        id=history.txn_label[t],
        session=history.session_label[int(history.txn_session[t])],
        place=history.place(t),
        line=int(history.txn_line[t]) if history.txn_line is not None else 0,
        status=STATUS_NAMES[history.txn_status[t]],
        ops=tuple(tuple(history.op(o)) for o in ops),
        hidden_ops=int(history.txn_start[t + 1] - history.txn_start[t]) - len(ops),
        level=level,
        index=None if history.txn_index is None else int(history.txn_index[t]),
        start=None if history.times is None else history.times.seconds(int(history.times.begin[t])),
        end=None if history.times is None else history.times.seconds(int(history.times.end[t])),
        nth=t - int(history.session_start[int(history.txn_session[t])]),
    )


# Headlines


def headline(pattern: Pattern, steps: Sequence[Step], words: str) -> str:
    """Return the violation in one sentence. ``words`` is the argument in a sentence, if it has one."""
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
    """Return a sentence like "t3 read x from t1, although t2, which it had seen, had overwritten it"."""
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
    """Return how the transaction that should have been read was visible to the reader."""
    if len(forced.evidence) > 1:
        return "in its causal past"
    (saw,) = forced.evidence
    if saw.is_given:
        return "earlier in its own session" if saw.relation == "SO" else "which had ended before it began"
    return f"from which it read {key_text(saw.key)}"


def _disagreement(steps: Sequence[Step]) -> str:
    """Return the sentence for steps that are each an order visible to some reader."""
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


NAMED = 6  # maximum number of transactions in a sentence


def _and(names: list[str]) -> str:
    if len(names) > NAMED:
        names = [*names[: NAMED - 1], f"{len(names) - NAMED + 1} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
