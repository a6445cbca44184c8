"""Verify a witness: a commit order that claims to satisfy a level.

The order must contain all live transactions, session order, reads-from and real time. It must satisfy the axiom of the
level: if t3 reads x from t1, t2 also writes x, and the premise relates t2 to t3, then t2 precedes t1. Only the newest
such t2 needs to be checked. RC, RA and TCC are checked here, strong and declared levels by ``OrderReplay``.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator

from plume_py.base.text import display, key_text, txn_text
from plume_py.history.init_txn import as_ordinary
from plume_py.history.model import History
from plume_py.history.value_codes import Atom
from plume_py.verify.claims import Id, WitnessClaim
from plume_py.verify.facts import START, HistoryFacts
from plume_py.verify.strong import OrderReplay


def verify_witness(history: History, witness: WitnessClaim) -> list[str]:
    """Return the problems of a commit order; an empty list if it satisfies its level.

    If the order contains a transaction that was guessed to be the initial state, it is verified without this guess.
    """
    if history.init_guessed and history.txn_label[history.init_txn] in witness.order:
        history = as_ordinary(history, witness.level == "declared")
    facts = HistoryFacts(history, witness.between)
    name = [txn.id for txn in facts.txns]
    problems = _membership(witness.order, [name[t] for t in facts.live])
    if problems:
        return problems
    number: dict[Id, int] = {name[t]: t for t in facts.live}
    order = [number[i] for i in witness.order]
    position = {START: -1, **{t: at for at, t in enumerate(order)}}
    problems = [*_flawed_reads(facts), *_order_errors(facts, position), *_list_mismatches(facts, order)]
    if problems or witness.level in ("RC", "RA", "TCC"):
        return problems or list(_axiom_violations(facts, witness.level, order, position))
    return _replay(facts, witness, order)


def _replay(facts: HistoryFacts, witness: WitnessClaim, order: list[int]) -> list[str]:
    """Return the violations of the axioms of strong and declared levels."""
    levels = dict.fromkeys(order, witness.level)
    if witness.level == "declared":
        if len(witness.levels) != len(order):
            return ["the levels do not match the order"]
        levels = dict(zip(order, witness.levels, strict=True))
    replay = OrderReplay(facts, levels.__getitem__)
    problems = [problem for t in order for problem in replay.append(t)]
    if not problems and witness.sees is not None:
        return list(wrong_visibility(replay, witness.sees))
    return problems


def wrong_visibility(replay: OrderReplay, sees: list[list[int]]) -> Iterator[str]:
    """Yield each transaction whose visible positions are not exactly the least set that its level requires."""
    if len(sees) != len(replay.order):
        yield "what is seen does not match the order"
        return
    for t, positions in zip(replay.order, sees, strict=True):
        if set(positions) != replay.visible_positions(t):
            yield f"{replay.facts.name(t)} does not see what its level asks for"


def _membership(order: list[Id], expected: list[Id]) -> list[str]:
    """Return the problems unless the order contains exactly the expected ids, each once."""
    given, live = Counter(order), set(expected)
    if len(live) < len(expected):
        return ["two transactions have the same id, so the order is ambiguous"]
    problems = [f"{txn_text(i)} is not a transaction that counts" for i in given if i not in live]
    problems += [f"{txn_text(i)} is missing from the order" for i in expected if i not in given]
    return problems + [f"{txn_text(i)} stands in the order more than once" for i, times in given.items() if times > 1]


def _flawed_reads(facts: HistoryFacts) -> Iterator[str]:
    """Yield the reads that no commit order allows."""
    for t, flaws in facts.flaws.items():
        for pattern, x in dict.fromkeys((pattern, x) for pattern, x, _ in flaws if pattern != "j"):
            yield f"{facts.name(t)} shows pattern {pattern} on key {display(x)}"


def _order_errors(facts: HistoryFacts, position: dict[int, int]) -> Iterator[str]:
    """Yield the pairs of SO, WR and real time that the order does not contain."""
    for t in facts.live:
        for t1 in facts.predecessors(t):
            if position[t1] > position[t]:
                why = "comes before it in its session" if facts.previous.get(t) == t1 else "was read by it"
                why = "had ended before that began" if facts.precedes_in_real_time(t1, t) else why
                yield f"{facts.name(t1)} stands after {facts.name(t)} in the order, but {why}"


def _list_mismatches(facts: HistoryFacts, order: list[int]) -> Iterator[str]:
    """Yield the reads of lists that differ from a replay of the order."""
    for read, problem in facts.lists.mismatches(order):
        items = " ".join(map(str, read.items[:60]))
        yield f"{facts.name(read.reader)} read list {display(read.key)} as [{display(items)}], which {problem}"


def _axiom_violations(facts: HistoryFacts, level: str, order: list[int], position: dict[int, int]) -> Iterator[str]:
    premise = {"RC": _newest_by_reading, "RA": _newest_direct, "TCC": _newest_causal}[level]
    for t3, x, t1, t2 in premise(facts, order, position):
        if position[t2] > position[t1]:
            yield (
                f"{facts.name(t3)} read {key_text(x)} from {facts.name(t1)}, but {level} wants it to see "
                f"{facts.name(t2)}, which wrote {key_text(x)} too and stands later in the order"
            )


ForcedEdges = Iterator[tuple[int, Atom, int, int]]  # t3, x, t1, and the newest t2 in the order, or START


def _newest_by_reading(facts: HistoryFacts, order: list[int], position: dict[int, int]) -> ForcedEdges:
    """Yield the forced edges of RC: t3 read from t2 before it read x."""
    for t3 in order:
        newest: dict[Atom, int] = {}
        wanted = {x for x, _ in facts.reads[t3]}
        for x, t1 in facts.reads[t3]:
            yield t3, x, t1, newest.get(x, START)
            for y in facts.wrote[t1].keys() & wanted if t1 != START else ():
                newest[y] = max(newest.get(y, START), t1, key=position.__getitem__)


def _newest_direct(facts: HistoryFacts, order: list[int], position: dict[int, int]) -> ForcedEdges:
    """Yield the forced edges of RA: t2 precedes t3 in its session or in real time, or t3 read from t2."""
    by_session: defaultdict[int, dict[Atom, int]] = defaultdict(dict)
    for t3 in order:
        wanted = {x for x, _ in facts.reads[t3]}
        session = by_session[facts.session[t3]]
        newest = {x: session[x] for x in wanted if x in session}
        for x in wanted if facts.ended else ():
            newest[x] = max(newest.get(x, START), *facts.ended_writers(x, t3), START, key=position.__getitem__)
        for t2 in {t1 for _, t1 in facts.reads[t3] if t1 != START}:
            for x in facts.wrote[t2].keys() & wanted:
                newest[x] = max(newest.get(x, START), t2, key=position.__getitem__)
        for x, t1 in facts.reads[t3]:
            yield t3, x, t1, newest.get(x, START)
        session.update(dict.fromkeys(facts.wrote[t3], t3))


def _newest_causal(facts: HistoryFacts, order: list[int], position: dict[int, int]) -> ForcedEdges:
    """Yield the forced edges of TCC: t2 is in the causal past of t3.

    A causal past is stored as its last transaction in each session, and deleted after its last use to save memory.
    """
    last_use = {t: t3 for t3 in order for t in facts.predecessors(t3)}
    past: dict[int, dict[int, int]] = {}
    committed: defaultdict[Atom, list[int]] = defaultdict(list)  # the writers of each key so far
    for t3 in order:
        mine: dict[int, int] = {}
        for t in sorted(facts.predecessors(t3), key=position.__getitem__, reverse=True):
            if mine.get(facts.session[t], START) < t:  # otherwise its past is already included
                mine = {**past[t], **{s: last for s, last in mine.items() if last > past[t].get(s, START)}}
                mine[facts.session[t]] = t
            if last_use[t] == t3:
                del past[t]
        if t3 in last_use:
            past[t3] = mine
        for x, t1 in facts.reads[t3]:
            yield t3, x, t1, _newest_in_past(facts, x, mine, committed[x], position)
        for x in facts.wrote[t3]:
            committed[x].append(t3)


def _newest_in_past(
    facts: HistoryFacts, x: Atom, past: dict[int, int], committed: list[int], position: dict[int, int]
) -> int:
    """Return the newest writer of x in a causal past: usually one of the last committed, else the newest by session."""
    sessions = facts.writers.get(x, {})
    for t2 in committed[: -len(sessions) - 1 : -1]:
        if past.get(facts.session[t2], START) >= t2:
            return t2
    last = [writers[at - 1] for s, writers in sessions.items() if s in past and (at := bisect_right(writers, past[s]))]
    return max(last, key=position.__getitem__, default=START)
