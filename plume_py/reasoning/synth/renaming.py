"""Keys and transactions are names: a definition that treats them unequally is refused.

The search numbers keys in one way only, and takes the numbering of transactions for a commit order. If a level could
tell numbers apart, histories would be missed, and two levels called equivalent that are not. So each level of a user's
is evaluated on random tiny histories and witnesses, and again after renaming; both must come out alike.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from plume_py.base.errors import IsocheckError
from plume_py.base.logic import FALSE, TRUE, Formula, Literal
from plume_py.history.model import INITIAL
from plume_py.levels import RUNNABLE
from plume_py.reasoning.synth.concrete_history import Concrete, ConcreteTxn, ConcreteView
from plume_py.reasoning.synth.definition import Definition
from plume_py.reasoning.synth.problem import ConcreteWitness
from plume_py.reasoning.synth.structures import at_random, renumbered, with_keys

# Histories on which a definition is tried, and how large they are at most.
TRIALS, MOST_TXNS, MOST_KEYS = 150, 5, 4


@cache
def require_equal_treatment(level: Definition) -> None:
    """IsocheckError if a renaming of keys or transactions makes a difference to a level of a user's."""
    if level.written is None:
        return
    rng = random.Random(0)
    with Formula() as formula:
        for _ in range(TRIALS):
            history = _random_history(rng)
            witness = _random_witness(rng, level, history)
            value = _value(level, formula, history, witness)
            keys, order = list(history.keys), list(range(len(history.txns)))
            rng.shuffle(keys)
            rng.shuffle(order)
            place = dict(enumerate(keys))
            if _value(level, formula, history.with_keys(place), _with_keys(witness, place)) != value:
                what = "keys"
            elif _value(level, formula, history.renumbered(order), _renumbered(witness, order)) != value:
                what = "transactions"
            else:
                continue
            again = {_value(level, formula, history, witness) for _ in range(2)}
            raise _unequal(level, what, history) if again == {value} else _fickle(level, history)


def _fickle(level: Definition, history: Concrete) -> IsocheckError:
    return IsocheckError(f"{level.written}: level {level.name} says now this, now that of {history.short()}")


def _unequal(level: Definition, what: str, history: Concrete) -> IsocheckError:
    return IsocheckError(
        f"{level.written}: level {level.name} treats {what} unequally: of {history.short()} it says something else if"
        f" its {what} are renamed; numbers are names, so say the same of all of them"
    )


def _value(level: Definition, formula: Formula, history: Concrete, witness: ConcreteWitness) -> Literal:
    value = level.holds(ConcreteView(formula, history), witness.witness(formula))
    if value not in (TRUE, FALSE):
        raise IsocheckError(
            f"{level.written}: level {level.name} is neither true nor false of a history and a witness;"
            " use no variables besides them"
        )
    return value


def _random_history(rng: random.Random) -> Concrete:
    """Everything goes forward: reads, sessions and time. In some, reads mostly return the last write."""
    size, keys = rng.randint(2, MOST_TXNS), range(rng.randint(1, MOST_KEYS))
    share, serial = rng.choice((0.3, 0.5, 0.7)), rng.choice((0.0, 0.5, 0.9))
    txns: list[ConcreteTxn] = []
    begin, ended = 0, dict[int, int]()
    for t in range(size):
        writes = tuple(x for x in keys if rng.random() < share)
        reads = []
        for x in keys:
            sources = [INITIAL, *(u for u in range(t) if x in txns[u].writes)]
            for _ in range(rng.choice((0, 1, 1, 2))):
                reads.append((x, sources[-1] if rng.random() < serial else rng.choice(sources)))
        rng.shuffle(reads)
        session = rng.randrange(size)
        begin = max(begin + rng.randint(0, 1), ended.get(session, -1) + 1)
        ended[session] = begin + rng.randint(0, 3)
        span = begin, ended[session]
        txns.append(ConcreteTxn(session, tuple(dict.fromkeys(reads)), writes, rng.choice(RUNNABLE), t, span))
    return _with_all_keys(Concrete(tuple(txns)), len(keys))


def _with_all_keys(history: Concrete, keys: int) -> Concrete:
    """Someone touches each key, so that renaming does not change how many there seem to be."""
    unused = tuple((x, INITIAL) for x in range(keys) if x not in history.keys)
    first, *others = history.txns
    return Concrete((replace(first, reads=first.reads + unused), *others))


def _random_witness(rng: random.Random, level: Definition, history: Concrete) -> ConcreteWitness:
    """Well-formed: an order that contains what it must, here the numbering, and some visibility within it."""
    size = len(history.txns)
    if level.form == "own":
        declared = at_random(rng, size, len(history.keys), level.structure)
        return ConcreteWitness(level.name, tuple(range(size)), declared=declared)
    if level.form != "vis":
        return ConcreteWitness(level.name, tuple(range(size)))
    share = rng.choice((0.0, 0.3, 0.7, 1.0))
    sees = set()
    for b in range(size):
        sources = {u for _, u in history.txns[b].reads}
        for a in range(b):
            must = a in sources or history.precedes(a, b) or history.ended_before(a, b)
            if must or rng.random() < share:
                sees.add((a, b))
    return ConcreteWitness(level.name, tuple(range(size)), frozenset(sees))


def _renumbered(witness: ConcreteWitness, order: Sequence[int]) -> ConcreteWitness:
    place = {t: at for at, t in enumerate(order)}
    sees = witness.sees
    return replace(
        witness,
        order=tuple(place[t] for t in witness.order),
        sees=None if sees is None else frozenset((place[a], place[b]) for a, b in sees),
        declared=tuple((name, kind, renumbered(value, kind, place)) for name, kind, value in witness.declared),
    )


def _with_keys(witness: ConcreteWitness, place: Mapping[int, int]) -> ConcreteWitness:
    declared = ((name, kind, with_keys(value, kind, place)) for name, kind, value in witness.declared)
    return replace(witness, declared=tuple(declared))
