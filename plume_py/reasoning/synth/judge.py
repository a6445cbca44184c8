"""``judge``: does a history keep a level by its definition, any that can be written down?

A search for a witness: nothing but the definition is known of the level, so only small histories can be decided.
"Holds" is said of a witness alone, for which the definition was evaluated; "violated" comes with the instances of
axioms that contradict each other. All else is not decided.
"""

from dataclasses import dataclass

from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.base.logic import TRUE, Formula
from plume_py.checking.result import NOT_EXPLAINED
from plume_py.history.init_txn import as_ordinary
from plume_py.history.model import History
from plume_py.levels.orders import TIMED
from plume_py.reasoning.synth.concrete_history import ConcreteView
from plume_py.reasoning.synth.definition import Definition, Witness
from plume_py.reasoning.synth.explain import Explanation, Reason
from plume_py.reasoning.synth.from_file import Given, given, kept_order
from plume_py.reasoning.synth.problem import Block, ConcreteWitness, witness_of
from plume_py.reasoning.synth.recheck import DefectError
from plume_py.reasoning.synth.registry import definition
from plume_py.reasoning.synth.renaming import require_equal_treatment

# Transactions of a history that is judged: formulas grow with the third power of it.
MOST_TXNS = 200

UNSPEAKABLE = "some reads are wrong by themselves (TAP a to f), and its definition cannot speak of them"
NO_TIMES = "the history does not say when its transactions began and ended"


@dataclass(frozen=True)
class Judgement:
    """What came of it. ``ok`` is None where that is not decided; ``why`` not, or why there are no reasons.

    ``flaws`` are the patterns of reads that are wrong by themselves: there is no witness then, whatever the level.
    """

    level: str
    form: str
    order: str
    ok: bool | None
    given: Given | None = None
    witness: ConcreteWitness | None = None
    reasons: tuple[Reason, ...] = ()
    flaws: tuple[str, ...] = ()
    why: str = ""


def judge(
    history: History, level: str | Definition, limits: Limits | None = None, *, explain: bool = True
) -> Judgement:
    """Does the history keep the level? If not, why; that takes longer, and need not be asked for.

    >>> from plume_py import HistoryBuilder
    >>> from plume_py.reasoning.synth.judge import judge
    >>> builder = HistoryBuilder(initial=0)
    >>> builder.add("a", [("r", "x", 0), ("w", "x", 1)])
    >>> builder.add("b", [("r", "x", 0), ("w", "x", 2)])
    >>> judge(builder.build(), "NLU").ok
    False
    """
    found, limits = level if isinstance(level, Definition) else definition(level), limits or Limits()
    require_equal_treatment(found)
    if history.transactions > MOST_TXNS:
        size = f"{history.transactions:,} transactions; levels by their definitions are decided up to {MOST_TXNS}"
        return Judgement(found.name, found.form, found.order, None, why=size)
    if found.order in TIMED and history.times is None:
        return Judgement(found.name, found.form, found.order, None, why=NO_TIMES)
    try:
        judged = _judged(found, given(history), limits, explain)
        if judged.ok is False and history.init_guessed:
            return _judged(found, given(as_ordinary(history, declared=True)), limits, explain)
        return judged
    except LimitError as error:
        return Judgement(found.name, found.form, found.order, None, why=str(error))


def _judged(level: Definition, known: Given, limits: Limits, explain: bool) -> Judgement:
    if known.flaws and level.form == "own":
        return Judgement(level.name, level.form, level.order, None, known, why=UNSPEAKABLE)
    if known.flaws:
        return Judgement(level.name, level.form, level.order, False, known, flaws=known.flaws)
    witness = _witness(level, known, limits)
    if witness is None and not explain:
        return Judgement(level.name, level.form, level.order, False, known)
    if witness is None:
        try:
            reasons = Explanation(level, known, limits).reasons()
        except LimitError:
            return Judgement(level.name, level.form, level.order, False, known, why=NOT_EXPLAINED)
        return Judgement(level.name, level.form, level.order, False, known, reasons=reasons)
    _confirm(level, known, witness)
    return Judgement(level.name, level.form, level.order, True, known, witness)


def _witness(level: Definition, known: Given, limits: Limits) -> ConcreteWitness | None:
    """As of any concrete history; and what lists show of the order of transactions is kept."""
    if not known.versions or level.form == "history":
        return witness_of(level, known.concrete, limits=limits)
    with Formula(limits) as formula:
        h = ConcreteView(formula, known.concrete)
        block = Block(level, h)
        formula.require(level.holds(h, block.witness))
        for version in known.versions:
            for literal in kept_order(block.witness, *version):
                formula.require(literal)
        return block.solution() if formula.solve(limits=limits) else None


def _confirm(level: Definition, known: Given, found: ConcreteWitness) -> None:
    """The definition must come out true, all constants, for the witness that was found."""
    with Formula() as formula:
        witness = found.witness(formula) if level.form != "history" else Witness(None)
        kept = all(literal == TRUE for version in known.versions for literal in kept_order(witness, *version))
        if level.holds(ConcreteView(formula, known.concrete), witness) != TRUE or not kept:
            raise DefectError(f"{level.name}: the witness does not show it")
