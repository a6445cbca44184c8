"""Check all transactions at their inferred levels against each other (``infer --partners``).

``infer`` judges a transaction against partners that run one after the other. Partners at weak levels can do more, so a
level that was safe then may fail now. This module raises levels until no violation is found.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from plume_py.base.errors import LimitError
from plume_py.reasoning.infer.driver import (
    BOUNDED,
    PROVED,
    VIOLATED,
    InferenceResult,
    InferOptions,
    LevelAnswer,
    SymbolicSearch,
    TransactionVerdict,
    is_safe,
    with_proof,
)
from plume_py.reasoning.infer.execution.schedule import Commit
from plume_py.reasoning.infer.statement_models import LevelModel

# Chooses the answer whose level a transaction gets.
ChooseAnswer = Callable[[TransactionVerdict], LevelAnswer | None]


@dataclass
class JointLevels:
    """Levels at which all transactions were checked together, and the violations that raised levels on the way."""

    levels: dict[str, LevelModel]
    raised: dict[str, str]  # transaction -> its level before its partners required a stronger one
    raising_violations: list[tuple[str, LevelAnswer]]  # the violations that raised levels to the strongest
    verdicts: dict[str, LevelAnswer]


def mixes_serializable(result: InferenceResult) -> bool:
    """Return whether SERIALIZABLE runs with weaker partners on a store where it then guarantees less."""
    everyone = (*result.transactions, *result.others)
    levels = [txn.weakest.level for txn in everyone if txn.weakest is not None]
    weaker = any(not level.is_serial for level in levels)
    return weaker and any(
        level.is_serial and result.store.beside_weaker_partners(level) is not level for level in levels
    )


def check_joint_levels(result: InferenceResult, options: InferOptions) -> JointLevels:
    """Check each transaction at its inferred level with partners at theirs; raise levels until no violation is found.

    With ``--prove`` the candidate levels are checked first. If a transaction fails, its level is unsafe and it gets the
    next safe level. If only a serializable transaction's weaker partners are the cause, these become serializable too.
    """
    if result.proves:
        _raise_until_safe(result, options, lambda txn: txn.candidate)
    return _raise_until_safe(result, options, lambda txn: txn.weakest)


def _raise_until_safe(result: InferenceResult, options: InferOptions, pick: ChooseAnswer) -> JointLevels:
    everyone = (*result.transactions, *result.others)
    picked = {txn.name: pick(txn) for txn in everyone}
    levels = {name: verdict.level for name, verdict in picked.items() if verdict is not None}
    alone, raising = dict(levels), list[tuple[str, LevelAnswer]]()
    strongest = result.store.levels[-1]
    options = replace(options, rows=result.rows, prove=False)
    while True:
        verdicts = _with_partners(result, levels, options)
        broken = [(name, verdict) for name, verdict in verdicts.items() if verdict.examples]
        higher = {name: _next_level(result, levels, name, verdict, pick) for name, verdict in broken}
        if any(higher.values()):
            levels |= {name: level for name, level in higher.items() if level is not None}
            alone |= {name: level for name, level in higher.items() if level is not None}
            continue
        partners = {
            event.transaction
            for name, verdict in broken
            for found in verdict.examples.values()
            for event in (*found.example.events, Commit(name, ()))
            if event is not None
        }
        raised = {name for name in partners if levels.get(name, strongest) != strongest}
        if not raised:
            changed = {name: alone[name].name for name in levels if levels[name] != alone[name]}
            result.joint_answers = {
                name: _joint_answer(result, everyone, name, levels[name], verdict, options)
                for name, verdict in verdicts.items()
            }
            return JointLevels(levels, changed, raising, result.joint_answers)
        raising += broken
        levels.update(dict.fromkeys(raised, strongest))


def _joint_answer(
    result: InferenceResult,
    everyone: Sequence[TransactionVerdict],
    name: str,
    level: LevelModel,
    found: LevelAnswer,
    options: InferOptions,
) -> LevelAnswer:
    """Return the answer with these partners, as a proof where there is one.

    A proof from ``infer`` remains valid with any partners. Only SERIALIZABLE beside weaker levels is proved again, as
    the level that it then provides.
    """
    by_itself = next(v for txn in everyone if txn.name == name for v in txn.levels if v.level.name == level.name)
    if found.answer != BOUNDED or not result.proves:
        return found
    if found.level == level:
        return by_itself if by_itself.answer == PROVED else found
    try:
        return with_proof(found, result.analysed_program, name, options)
    except LimitError:
        return found


def _next_level(
    result: InferenceResult, levels: dict[str, LevelModel], name: str, found: LevelAnswer, pick: ChooseAnswer
) -> LevelModel | None:
    """Record that a transaction violates the invariant with these partners; return its next level, or None."""
    txn = next(txn for txn in (*result.transactions, *result.others) if txn.name == name)
    beside = {event.transaction for item in found.examples.values() for event in item.example.events if event}
    if any(
        result.store.beside_weaker_partners(levels[other]) is not levels[other]
        for other in {name, *beside} & levels.keys()
    ):
        return None  # the level is not too weak: SERIALIZABLE only ignores partners at weaker levels
    refused = pick(txn)
    assert refused is not None
    place = txn.levels.index(refused)
    if refused.level != levels[name] or not any(is_safe(verdict) for verdict in txn.levels[place + 1 :]):
        return None
    note = ", ".join(f"beside {other} at {levels[other].name}" for other in sorted(beside & levels.keys()))
    txn.levels[place] = LevelAnswer(levels[name], VIOLATED, found.examples, note=note)
    now = pick(txn)
    assert now is not None
    return now.level


def _with_partners(
    result: InferenceResult, levels: dict[str, LevelModel], options: InferOptions
) -> dict[str, LevelAnswer]:
    all_serial = all(level.is_serial for level in levels.values())
    mixed = (
        levels if all_serial else {name: result.store.beside_weaker_partners(level) for name, level in levels.items()}
    )
    search = SymbolicSearch(result.analysed_program, options, mixed)
    return {name: search.verdict(name, level) for name, level in mixed.items()}
