"""Tiny histories for the tests of synthesis: random ones, and all within a scope, made without the code under test."""

from functools import cache
from itertools import chain, combinations, product

import oracle

from plume_py.history.model import INITIAL
from plume_py.reasoning.synth.concrete_history import ConcreteHistory, ConcreteTxn

MIXABLE = ("RC", "RA", "TCC", "PC", "PSI", "SI", "SER")


def random_concrete(rng, *, txns=(2, 5), keys=(1, 3), rereads=0.15, levels=False):
    """Return a random history in which transactions read from earlier ones only."""
    count, names = rng.randint(*txns), range(rng.randint(*keys))
    sessions = rng.randint(1, count)
    share = rng.choice((0.3, 0.5, 0.7))
    made = []
    for t in range(count):
        writes = tuple(x for x in names if rng.random() < share)
        reads = []
        for x in names:
            sources = [INITIAL, *(u for u in range(t) if x in made[u].writes)]
            for _ in range(1 + (rng.random() < rereads)):
                if rng.random() < 0.6:
                    reads.append((x, rng.choice(sources)))
        reads = list(dict.fromkeys(reads)) or ([] if writes else [(0, INITIAL)])
        rng.shuffle(reads)
        made.append(ConcreteTxn(rng.randrange(sessions), tuple(reads), writes, rng.choice(MIXABLE) if levels else None))
    return ConcreteHistory(tuple(made))


def plain(concrete):
    """Return the history in the form that the oracle takes."""
    sessions = {}
    for t in concrete.by_session():
        sessions.setdefault(concrete.txns[t].session, []).append(("committed", concrete.ops(t)))
    return list(sessions.values())


@cache
def verdicts(concrete):
    return oracle.verdicts(plain(concrete))


@cache
def every_history(txns, keys, values, blind=True):
    """Return one history per isomorphism class without reads of a key from two others, by canonical form."""
    found = {}
    for sessions in _growing(txns):
        for writes in product(list(_subsets(range(keys))), repeat=txns):
            if any(sum(x in w for w in writes) > values - 1 for x in range(keys)):
                continue
            for reads in product(*(list(_reads(t, writes, keys)) for t in range(txns))):
                if any(not w and not r for w, r in zip(writes, reads, strict=True)):
                    continue
                if not blind and any(set(w) - {x for x, _ in r} for w, r in zip(writes, reads, strict=True)):
                    continue
                concrete = ConcreteHistory(tuple(map(ConcreteTxn, sessions, reads, writes)))
                found.setdefault(concrete.canonical(), concrete)
    return found


def _growing(count):
    """Return all assignments of sessions in which each new session has the next number."""
    sequences = [()]
    for _ in range(count):
        sequences = [(*s, new) for s in sequences for new in range(max(s, default=-1) + 2)]
    return sequences


def _subsets(things):
    return chain.from_iterable(combinations(things, size) for size in range(len(things) + 1))


def _reads(t, writes, keys):
    choices = [[None, INITIAL, *(u for u in range(t) if x in writes[u])] for x in range(keys)]
    for sources in product(*choices):
        yield tuple((x, u) for x, u in enumerate(sources) if u is not None)
