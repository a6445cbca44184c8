"""All transactions at their own levels: what is fine beside others that run one after the other need not be so."""

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
    proved,
)
from plume_py.reasoning.infer.execution.schedule import Commit
from plume_py.reasoning.infer.statement_models import LevelModel

# Which of its answers a transaction goes by.
Pick = Callable[[TransactionVerdict], LevelAnswer | None]


@dataclass
class Together:
    """Levels at which all were checked with partners at their own levels, and what was wrong on the way."""

    levels: dict[str, LevelModel]
    raised: dict[str, str]  # transaction -> the level it would have alone
    troubles: list[tuple[str, LevelAnswer]]  # what made us raise levels
    verdicts: dict[str, LevelAnswer]


def mixes_serializable(result: InferenceResult) -> bool:
    """Is SERIALIZABLE used beside weaker levels, on a store where it then promises less?"""
    everyone = (*result.transactions, *result.others)
    levels = [txn.weakest.level for txn in everyone if txn.weakest is not None]
    weaker = any(not level.is_serial for level in levels)
    return weaker and any(level.is_serial and result.store.mixed(level) is not level for level in levels)


def check_together(result: InferenceResult, options: InferOptions) -> Together:
    """Each transaction at its inferred level, its partners at theirs; first at those not proved.

    Where that fails, the transaction cannot have that level and gets the next one; if it is serializable already, its
    partners become so, too.
    """
    if result.proves:
        _settle(result, options, lambda txn: txn.candidate)
    return _settle(result, options, lambda txn: txn.weakest)


def _settle(result: InferenceResult, options: InferOptions, pick: Pick) -> Together:
    everyone = (*result.transactions, *result.others)
    picked = {txn.name: pick(txn) for txn in everyone}
    levels = {name: verdict.level for name, verdict in picked.items() if verdict is not None}
    alone, troubles = dict(levels), list[tuple[str, LevelAnswer]]()
    strongest = result.store.levels[-1]
    options = replace(options, rows=result.rows, prove=False)
    while True:
        verdicts = _with_partners(result, levels, options)
        broken = [(name, verdict) for name, verdict in verdicts.items() if verdict.examples]
        higher = {name: _refused(result, levels, name, verdict, pick) for name, verdict in broken}
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
            result.settled = {
                name: _settled(result, everyone, name, levels[name], verdict, options)
                for name, verdict in verdicts.items()
            }
            return Together(levels, changed, troubles, result.settled)
        troubles += broken
        levels.update(dict.fromkeys(raised, strongest))


def _settled(
    result: InferenceResult,
    everyone: Sequence[TransactionVerdict],
    name: str,
    level: LevelModel,
    found: LevelAnswer,
    options: InferOptions,
) -> LevelAnswer:
    """The answer beside these partners. What was proved assumes nothing of their levels, unless it is SERIALIZABLE."""
    by_itself = next(v for txn in everyone if txn.name == name for v in txn.levels if v.level.name == level.name)
    if found.answer != BOUNDED or not result.proves:
        return found
    if found.level == level:
        return by_itself if by_itself.answer == PROVED else found
    try:
        return proved(found, result.judged, name, options)
    except LimitError:
        return found


def _refused(
    result: InferenceResult, levels: dict[str, LevelModel], name: str, found: LevelAnswer, pick: Pick
) -> LevelModel | None:
    """Note that a transaction breaks the invariant beside such partners; the level that it gets now, if any."""
    txn = next(txn for txn in (*result.transactions, *result.others) if txn.name == name)
    beside = {event.transaction for item in found.examples.values() for event in item.example.events if event}
    if any(result.store.mixed(levels[other]) is not levels[other] for other in {name, *beside} & levels.keys()):
        return None  # it is not its level that is too weak, but that SERIALIZABLE does not watch it
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
    mixed = levels if all_serial else {name: result.store.mixed(level) for name, level in levels.items()}
    search = SymbolicSearch(result.judged, options, mixed)
    return {name: search.verdict(name, level) for name, level in mixed.items()}
