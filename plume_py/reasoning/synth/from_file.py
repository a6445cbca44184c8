"""A history from a file as definitions see it: who counts, what they read from whom, and what they wrote.

As everywhere: who committed counts, and who has an unknown outcome and was read from; reads of the latter are not
judged. Reads that are wrong by themselves have nobody to be read from, so definitions cannot speak of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from plume_py.base.logic import Literal
from plume_py.base.text import key_text, txn_text
from plume_py.history.model import INITIAL, History, Transaction
from plume_py.history.value_codes import Atom
from plume_py.reasoning.synth.concrete_history import KEYS, Concrete, ConcreteTxn
from plume_py.reasoning.synth.definition import Witness
from plume_py.reasoning.synth.structures import kept
from plume_py.verify.facts import HistoryFacts
from plume_py.verify.lists import START

# Before and after all times that a history has.
_EVER = 1 << 62


@dataclass(frozen=True)
class Given:
    """A history of which all is known.

    ``flaws``: the patterns of reads that are wrong by themselves. ``versions``: two transactions whose order lists of
    a key show, and the key.
    """

    concrete: Concrete
    txns: tuple[Transaction, ...]
    keys: tuple[Atom, ...]
    flaws: tuple[str, ...]
    versions: frozenset[tuple[int, int, int]]
    timed: bool

    def txn(self, t: int) -> str:
        """A transaction for people."""
        return "the initial state" if t == INITIAL else self.concrete.names[t]

    def key(self, x: int) -> str:
        """A key for people."""
        return key_text(self.keys[x])


def given(history: History) -> Given:
    """All that definitions can ask of a history."""
    facts = HistoryFacts(history)
    number = {t: at for at, t in enumerate(facts.live)} | {START: INITIAL}
    keys = list(dict.fromkeys(op.key for t in facts.live for op in facts.txns[t].ops))
    at = {x: place for place, x in enumerate(keys)}
    txns = []
    for t in facts.live:
        txn = facts.txns[t]
        end = txn.end if txn.status == "committed" else None  # what is unknown may take effect at any later time
        span = (-_EVER if txn.begin is None else txn.begin, _EVER if end is None else end)
        reads = tuple((at[x], number[u]) for x, u in facts.reads[t])
        txns.append(ConcreteTxn(facts.session[t], reads, tuple(at[x] for x in facts.wrote[t]), txn.level, span=span))
    names = tuple(txn_text(facts.txns[t].id) for t in facts.live)
    flaws = {pattern for found in facts.flaws.values() for pattern, _, _ in found if pattern != "j"}
    if any(len(reads) > 1 for reads in facts.lists.orders.values()):
        flaws.add("incompatible-order")
    return Given(
        Concrete(tuple(txns), names),
        tuple(facts.txns[t] for t in facts.live),
        tuple(keys),
        tuple(sorted(flaws)),
        frozenset((number[a], number[b], at[x]) for a, b, x in _versions(facts)),
        history.times is not None,
    )


def as_given(concrete: Concrete) -> Given:
    """A history that was found; its transactions and keys keep their numbers."""
    made = dict(zip(concrete.by_session(), chain.from_iterable(concrete.history()), strict=True))
    everyone = range(len(concrete.txns))
    named = replace(concrete, names=tuple(map(concrete.name, everyone)))
    return Given(named, tuple(made[t] for t in everyone), tuple(KEYS), (), frozenset(), concrete.timed)


def _versions(facts: HistoryFacts) -> Iterator[tuple[int, int, Atom]]:
    """The order that the longest list of a key shows; whoever appended and is not in it comes after all who are."""
    for x, reads in facts.lists.orders.items():
        shown = facts.lists.writers(reads[0])
        others = [t for t in facts.live if x in facts.lists.appends[t] and t not in shown]
        for place, a in enumerate(shown):
            yield from ((a, b, x) for b in (*shown[place + 1 :], *others))


def kept_order(witness: Witness, a: int, b: int, x: int) -> Iterator[Literal]:
    """Literals for a before b in every order of a witness, both having written x."""
    if witness.order is not None:
        yield witness.order[a, b]
    yield from kept(witness.declared, a, b, x)
