"""Tests of verify on lists: impossible orders and false proofs are refuted, correct ones are confirmed.

No engine takes part: orders are judged against a naive replay, proofs are made here, step by step.
"""

import random
from itertools import permutations

import pytest
from replay_naive import INITIAL, LEVELS, Naive, closure, random_lists
from test_verify import built

from plume_py.verify import WitnessClaim, verify_entry, verify_witness
from plume_py.verify.claims import HistoryClaim, LevelClaim, StepClaim, TransactionClaim, ViolationClaim
from plume_py.verify.facts import HistoryFacts
from plume_py.verify.violations import ClaimCheck, RefutedError

START = "(initial state)"
LEVEL_OF = {"j": "CI", "k": "RA", "l": "RA", "m": "TCC", "n": "TCC"}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")


def committed(*sessions):
    """A history in which every session is one committed transaction."""
    return built([[("committed", list(ops))] for ops in sessions])


def append(x, *values):
    return [("append", x, value) for value in values]


def read(x, *items):
    return [("r", x, list(items))]


def shown(history, *names):
    transactions = {txn.id: (t, txn) for t, txn in enumerate(txn for session in history for txn in session)}
    for name in names:
        t, txn = transactions[name]
        ops = [(op.kind, op.key, list(op.value) if isinstance(op.value, tuple) else op.value) for op in txn.ops]
        yield TransactionClaim(id=name, session=txn.session, place=history.place(t), ops=ops)


def step(source, relation, target, key=None, **more):
    return StepClaim(source=source, target=target, relation=relation, key=key, **more)


def claim_of(transactions, tap, steps, keys, level):
    level = level or LEVEL_OF.get(tap, "RC")
    return ViolationClaim(tap=tap, level=level, keys=list(keys), transactions=list(transactions), steps=list(steps))


def refuted(history, tap, names, *steps, keys=("x",), level=None):
    """What ``verify`` says against one violation."""
    claim = claim_of(shown(history, *names.split()), tap, steps, keys, level)
    return verify_entry(
        history, HistoryClaim(history="h", levels={claim.level: LevelClaim(ok=False)}, violations=[claim])
    )


def showing(history, order):
    """The levels that an order is confirmed for."""
    return {level for level in LEVELS if not verify_witness(history, WitnessClaim(level=level, order=order.split()))}


# Witnesses are replayed


IMPOSSIBLE = {
    "first append missing": [append("x", 1, 2), read("x", 2)],
    "one of two appends missing": [append("x", 1, 2), append("x", 3), read("x", 1, 3)],
    "swapped": [append("x", 1, 2), append("x", 3), read("x", 2, 1, 3)],
    "middle append missing": [append("x", 1, 2, 3), read("x", 1, 3)],
    "split": [append("x", 1, 2), append("x", 3), read("x", 1, 3, 2)],
    "last append missing": [append("x", 1, 2), read("x", 1)],
    "own append before it is made": [append("x", 1) + read("x", 2, 1) + append("x", 2)],
    "own append not at the end": [append("x", 1), append("x", 2) + read("x", 2, 1)],
    "own append missing": [append("x", 1, 2) + read("x", 2)],
    "own append nowhere": [append("x", 1), append("x", 2) + read("x", 1)],
    "twice": [append("x", 1), read("x", 1, 1)],
    "nobody's": [append("x", 1), read("x", 7, 1)],
    "a cycle of appends that are not shown": [
        append("x", 1) + append("y", 1),
        append("x", 2) + append("y", 2),
        read("x", 1, 2),
        read("y", 2),
    ],
    "two that both come right after the initial state": [append("x", 1) + read("x", 1), append("x", 2) + read("x", 2)],
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_no_order_produces_an_impossible_list(name):
    sessions = [ops if isinstance(ops, list) else [ops] for ops in IMPOSSIBLE[name]]
    history = committed(*sessions)
    for order in permutations(f"T{i + 1}" for i in range(len(sessions))):
        assert showing(history, " ".join(order)) == set(), order


def test_aborted_elements_and_incomplete_unknown_appends_are_refuted():
    reader = ("committed", read("x", 1, 2))
    history = built([[("aborted", append("x", 1))], [("committed", append("x", 2))], [reader]])
    assert showing(history, "T2 T3") == set()
    history = built([[("unknown", append("x", 1, 3))], [("committed", append("x", 2))], [reader]])
    assert showing(history, "T1 T2 T3") == set()
    history = built([[("unknown", append("x", 1))], [("committed", append("x", 2))], [reader]])
    assert showing(history, "T1 T2 T3") == set(LEVELS)
    assert showing(history, "T2 T3") == set()  # the unknown one counts: its element is shown


def test_an_append_missing_in_a_list_comes_after_it_at_every_level():
    history = committed(append("x", 1), append("x", 2), read("x", 2))
    assert showing(history, "T2 T1 T3") == set(LEVELS) - {"SER"}
    assert showing(history, "T2 T3 T1") == set(LEVELS)
    assert showing(history, "T1 T2 T3") == set()
    # so a session that appended it and reads on sees too little from RA on
    history = built([[("committed", append("x", 1)), ("committed", read("x", 2))], [("committed", append("x", 2))]])
    assert showing(history, "T3 T1 T2") == {"RC"}


def test_a_list_that_ends_in_an_own_append_is_read_from_the_previous_appender():
    # T1 saw T2 only through the list that ends in its own append, and then not what T2 had read
    history = committed(append("z", 2) + read("z", 1, 2) + read("y"), read("y", 1) + append("z", 1), append("y", 1))
    assert showing(history, "T3 T2 T1") == {"RC", "RA"}
    # and it tells who came just before
    history = committed(append("x", 1), append("x", 2) + read("x", 1, 2), append("x", 3))
    assert showing(history, "T1 T2 T3") == set(LEVELS)
    assert showing(history, "T3 T1 T2") == showing(history, "T1 T3 T2") == set()


def test_a_value_appended_twice_by_one_transaction():
    history = committed(append("x", 1, 1), append("x", 2), read("x", 1, 1, 2))
    assert showing(history, "T1 T2 T3") == set(LEVELS)
    assert showing(committed(append("x", 1, 1), read("x", 1)), "T1 T2") == set()
    assert showing(committed(append("x", 1, 1), read("x", 1, 1, 1)), "T1 T2") == set()


def test_list_mismatches_are_reported_in_one_line():
    history = committed(append("x", 1), append("x", 2), read("x", 1, 2))
    assert verify_witness(history, WitnessClaim(level="RC", order=["T2", "T1", "T3"])) == [
        "T3 read list x as [1 2], which is not what the order makes of it"
    ]
    history = committed(append("x", 1) + read("x", 1), append("x", 2))
    assert verify_witness(history, WitnessClaim(level="RC", order=["T2", "T1"])) == [
        "T1 read list x as [1], which lacks what comes just before its own appends in the order"
    ]


def compare_orders(seeds, txns, most):
    """Every order of every history, at every level, against the naive replay."""
    judged = {True: 0, False: 0}
    for seed in seeds:
        sessions = random_lists(random.Random(seed), txns)
        naive = Naive(sessions)
        if len(naive.live) > most:
            continue
        history = built(sessions)
        for order in permutations(naive.live):
            expected = naive.shows(order)
            assert showing(history, " ".join(f"T{t + 1}" for t in order)) == expected, (seed, order)
            judged[True] += len(expected)
            judged[False] += len(LEVELS) - len(expected)
    return judged


def test_every_order_agrees_with_a_naive_replay():
    assert min(compare_orders(range(250), (2, 5), 4).values()) > 1000


@pytest.mark.full
@pytest.mark.parametrize("block", range(10))
def test_every_order_of_many_histories_agrees_with_a_naive_replay(block):
    compare_orders(range(1000 * block + 1000, 1000 * block + 2000), (2, 6), 5)


# Violations: the steps that are true are just those that prove what no order can mend


class Claims:
    """Claims about one history, as anyone could make them."""

    def __init__(self, sessions):
        self.history, self.naive = built(sessions), Naive(sessions)
        self.history_facts = HistoryFacts(self.history)
        self.names = {t: f"T{t + 1}" for t in self.naive.live} | {INITIAL: START}
        self.shown = {t: next(shown(self.history, self.names[t])) for t in self.naive.live}
        self.keys = {op[1] for _, ops in self.naive.txns for op in ops}

    def problem(self, tap, *steps, only=None, x="x", level=None):
        """What is said against a violation that shows everyone."""
        claim = claim_of(self.shown.values() if only is None else [self.shown[only]], tap, steps, [x], level)
        try:
            ClaimCheck(self.history_facts, claim).check()
        except RefutedError as error:
            return str(error)
        return ""

    def flawed(self):
        """Is a pattern of one or two reads confirmed?"""
        single = (*"abcdef", "duplicate-element", "torn-append")
        return any(
            not self.problem("incompatible-order", x=x)
            or any(not self.problem(tap, only=t, x=x) for tap in single for t in self.naive.live)
            for x in self.keys
        )

    def true(self, made):
        """Is this step true? It is, if it can be part of a chain: what does not fit then is the chain."""
        return "is not so in the history" not in self.problem("version-order-cycle", made)

    def facts(self):
        """All SO, WR and WW steps that are true."""
        for a in (INITIAL, *self.naive.live):
            for b in self.naive.live:
                if a == b:
                    continue
                if a != INITIAL and self.true(made := step(self.names[a], "SO", self.names[b])):
                    yield a, b, made
                for x in self.keys:
                    if self.true(made := step(self.names[a], "WR", self.names[b], x)):
                        yield a, b, made
                    for t in self.naive.live if a != INITIAL else ():
                        if self.true(made := step(self.names[a], "WW", self.names[b], x, reader=self.names[t])):
                            yield a, b, made

    def forced(self, level, facts):
        """All CM steps that are true at a weak level."""
        direct = {(a, b): made for a, b, made in facts if made.relation != "WW" and a != INITIAL}
        reads = [(a, b, made.key) for a, b, made in facts if made.relation == "WR"]
        for t1, t3, x in reads:
            for t2 in self.naive.live:
                if level == "RC":
                    paths = [[made] for a, b, made in facts if (a, b, made.relation) == (t2, t3, "WR")]
                else:
                    paths = [_path(direct, t2, t3, 1 if level == "RA" else len(self.names))]
                for path in filter(None, paths):
                    made = step(self.names[t2], "CM", self.names[t1], x, reader=self.names[t3], evidence=path)
                    if not self._wrong(level, made):
                        yield t2, t1, made

    def _wrong(self, level, made):
        tap = {"RC": "h", "RA": "k", "TCC": "m"}[level]
        return "-CM->" in (problem := self.problem(tap, made)) or "is not so" in problem


def _path(direct, a, b, most):
    """A shortest path of at most so many steps."""
    paths = {a: []}
    for _ in range(most):
        for (c, d), made in direct.items():
            if c in paths and d not in paths:
                paths[d] = [*paths[c], made]
                if d == b:
                    return paths[d]
    return None


def compare_proofs(seeds, txns=(2, 4), most=4):
    """RC, RA and TCC: some chain of true steps is a contradiction if and only if no order shows the level."""
    counted = {}
    for seed in seeds:
        sessions = random_lists(random.Random(seed), txns)
        claims = Claims(sessions)
        if len(claims.naive.live) > most:
            continue
        possible = set().union(*(claims.naive.shows(order) for order in permutations(claims.naive.live)))
        flawed = claims.flawed()
        facts = list(claims.facts())
        for level in ("RC", "RA", "TCC"):
            edges = {(a, b) for a, b, _ in facts if a != INITIAL}
            edges |= {(a, b) for a, b, _ in claims.forced(level, facts)}
            broken = flawed or any(a == b or b == INITIAL for a, b in closure(edges))
            assert broken == (level not in possible), (seed, level)
            counted[level, flawed, broken] = counted.get((level, flawed, broken), 0) + 1
    return counted


def test_true_steps_prove_violations_that_no_order_avoids():
    counted = compare_proofs(range(400))
    assert min(counted[level, False, True] for level in ("RC", "RA", "TCC")) > 5


@pytest.mark.full
@pytest.mark.parametrize("block", range(10))
def test_true_steps_of_many_histories_prove_violations(block):
    compare_proofs(range(1000 * block + 1000, 1000 * block + 2000), (2, 5), 5)


def compare_strong(seeds, txns=(2, 5), most=4):
    """PC and above: all transactions together are a counterexample if and only if no order shows the level."""
    for seed in seeds:
        sessions = random_lists(random.Random(seed), txns)
        claims = Claims(sessions)
        if len(claims.naive.live) > most or claims.flawed():
            continue
        possible = set().union(*(claims.naive.shows(order) for order in permutations(claims.naive.live)))
        for level in LEVELS:
            assert bool(claims.problem("cycle", level=level)) == (level in possible), (seed, level)


def test_all_transactions_together_prove_strong_violations():
    compare_strong(range(300))


@pytest.mark.full
@pytest.mark.parametrize("block", range(10))
def test_all_transactions_together_prove_strong_violations_in_many_histories(block):
    compare_strong(range(1000 * block + 1000, 1000 * block + 2000), (3, 6), 5)
