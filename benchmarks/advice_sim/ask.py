"""The advice itself: what allocate and infer say of an application."""

from dataclasses import dataclass, field, replace

from plume_py.base.errors import IsocheckError
from plume_py.base.limits import Limits
from plume_py.reasoning.allocate.driver import answer_allocation, open_workload
from plume_py.reasoning.infer.driver import BOUNDED, PROVED, InferOptions, TransactionVerdict, infer, is_safe
from plume_py.reasoning.infer.joint_levels import check_joint_levels
from plume_py.reasoning.infer.program.load import load
from plume_py.reasoning.infer.statement_models import STORES

STRONGEST = "SER"


def allocated(path, store, workload=None):
    """A level for each transaction; InnoDB's REPEATABLE READ is called by its name."""
    answer = answer_allocation(workload or open_workload(str(path)), catalogue=store, explain=False)
    levels = dict(zip(answer.space.groups, answer.levels, strict=True))
    return {name: "RR" if (store, level) == ("mysql", "PC") else level for name, level in levels.items()}


@dataclass
class Inferred:
    """Assignments of levels that infer gives, each under the name of its claim."""

    vectors: dict[str, dict[str, str]] = field(default_factory=dict)
    open: str = ""  # why there is none


def inferred(path, store, seconds):
    """What infer says by default and with ``--prove``, and all transactions at their weakest proved levels."""
    found = Inferred()
    try:
        limits = Limits(seconds)
        options = InferOptions(prove=True, seconds=seconds, limits=limits)
        with limits.enforced():
            program = load(str(path))
            if not program.invariant:
                found.open = "no invariant"
                return found
            result = infer(program, STORES[store], options=options)
            if not all(txn.candidate for txn in result.transactions):
                found.open = "a transaction has no level"
                return found
            proved = {txn.name: _proved(txn) for txn in result.transactions}
            found.vectors |= _headlines(_unproved(result), replace(options, prove=False), "by default")
            if any(proved.values()):
                found.vectors |= _headlines(result, options, "with --prove")
            # SERIALIZABLE among weaker ones is another level there, so what is proved of it says nothing
            if all(proved.values()) and (store == "mysql" or STRONGEST not in proved.values()):
                found.vectors["proved"] = proved
    except IsocheckError as error:
        found.open = str(error)
    return found


def _unproved(result):
    """The result as it is without ``--prove``."""
    transactions = [
        TransactionVerdict(
            txn.name, [replace(v, answer=BOUNDED) if v.answer == PROVED else replace(v) for v in txn.levels]
        )
        for txn in result.transactions
    ]
    return replace(result, transactions=transactions, proves=False, joint_answers={})


def _headlines(result, options, claim):
    """All headlines, if each is one to act on."""
    check_joint_levels(result, options)
    headlines = {txn.name: result.headline(txn) for txn in result.transactions}
    if not all(h is not None and is_safe(h) for h in headlines.values()):
        return {}
    return {claim: {name: h.level.name for name, h in headlines.items()}}


def _proved(txn):
    return next((verdict.level.name for verdict in txn.levels if verdict.answer == PROVED), None)
