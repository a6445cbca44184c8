"""Does a commit order show its level? t1 -WR(x)-> t3 is the read in question, t2 another writer of x."""

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
    """What is wrong with a commit order; nothing, if it shows its level.

    An order that holds the transaction which only looks initial shows that the level holds without that guess.
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
    place = {START: -1, **{t: at for at, t in enumerate(order)}}
    problems = [*_flawed(facts), *_disordered(facts, place), *_misread(facts, order)]
    if problems or witness.level in ("RC", "RA", "TCC"):
        return problems or list(_disobeyed(facts, witness.level, order, place))
    return _replayed(facts, witness, order)


def _replayed(facts: HistoryFacts, witness: WitnessClaim, order: list[int]) -> list[str]:
    """The axioms of strong and declared levels."""
    levels = dict.fromkeys(order, witness.level)
    if witness.level == "declared":
        if len(witness.levels) != len(order):
            return ["the levels do not match the order"]
        levels = dict(zip(order, witness.levels, strict=True))
    replay = OrderReplay(facts, levels.__getitem__)
    problems = [problem for t in order for problem in replay.put(t)]
    if not problems and witness.sees is not None:
        return list(wrong_visibility(replay, witness.sees))
    return problems


def wrong_visibility(replay: OrderReplay, sees: list[list[int]]) -> Iterator[str]:
    """Is whom each one sees the least that the levels ask for?"""
    if len(sees) != len(replay.order):
        yield "what is seen does not match the order"
        return
    for t, places in zip(replay.order, sees, strict=True):
        if set(places) != replay.seen_places(t):
            yield f"{replay.facts.name(t)} does not see what its level asks for"


def _membership(order: list[Id], expected: list[Id]) -> list[str]:
    """The order holds exactly the transactions that count, each once."""
    given, live = Counter(order), set(expected)
    if len(live) < len(expected):
        return ["two transactions have the same id, so the order is ambiguous"]
    problems = [f"{txn_text(i)} is not a transaction that counts" for i in given if i not in live]
    problems += [f"{txn_text(i)} is missing from the order" for i in expected if i not in given]
    return problems + [f"{txn_text(i)} stands in the order more than once" for i, times in given.items() if times > 1]


def _flawed(facts: HistoryFacts) -> Iterator[str]:
    """Reads that no commit order can mend."""
    for t, flaws in facts.flaws.items():
        for pattern, x in dict.fromkeys((pattern, x) for pattern, x, _ in flaws if pattern != "j"):
            yield f"{facts.name(t)} shows pattern {pattern} on key {display(x)}"


def _disordered(facts: HistoryFacts, place: dict[int, int]) -> Iterator[str]:
    """The order extends SO, WR and, where it counts, real time."""
    for t in facts.live:
        for t1 in facts.before(t):
            if place[t1] > place[t]:
                why = "comes before it in its session" if facts.previous.get(t) == t1 else "was read by it"
                why = "had ended before that began" if facts.in_time(t1, t) else why
                yield f"{facts.name(t1)} stands after {facts.name(t)} in the order, but {why}"


def _misread(facts: HistoryFacts, order: list[int]) -> Iterator[str]:
    """Lists that differ from those that the order makes."""
    for read, problem in facts.lists.misread(order):
        items = " ".join(map(str, read.items[:60]))
        yield f"{facts.name(read.reader)} read list {display(read.key)} as [{display(items)}], which {problem}"


def _disobeyed(facts: HistoryFacts, level: str, order: list[int], place: dict[int, int]) -> Iterator[str]:
    """The axiom: every t2 for which the premise holds commits before t1. The newest such t2 decides."""
    premise = {"RC": _known_by_reading, "RA": _known_directly, "TCC": _known_causally}[level]
    for t3, x, t1, t2 in premise(facts, order, place):
        if place[t2] > place[t1]:
            yield (
                f"{facts.name(t3)} read {key_text(x)} from {facts.name(t1)}, but {level} wants it to see "
                f"{facts.name(t2)}, which wrote {key_text(x)} too and stands later in the order"
            )


ForcedEdges = Iterator[tuple[int, Atom, int, int]]  # t3, x, t1, and the newest t2 (or START)


def _known_by_reading(facts: HistoryFacts, order: list[int], place: dict[int, int]) -> ForcedEdges:
    """RC: t3 read from t2 before it read x."""
    for t3 in order:
        newest: dict[Atom, int] = {}
        wanted = {x for x, _ in facts.reads[t3]}
        for x, t1 in facts.reads[t3]:
            yield t3, x, t1, newest.get(x, START)
            for y in facts.wrote[t1].keys() & wanted if t1 != START else ():
                newest[y] = max(newest.get(y, START), t1, key=place.__getitem__)


def _known_directly(facts: HistoryFacts, order: list[int], place: dict[int, int]) -> ForcedEdges:
    """RA: t2 comes before t3 in its session or in real time, or t3 read from it."""
    by_session: defaultdict[int, dict[Atom, int]] = defaultdict(dict)
    for t3 in order:
        wanted = {x for x, _ in facts.reads[t3]}
        session = by_session[facts.session[t3]]
        newest = {x: session[x] for x in wanted if x in session}
        for x in wanted if facts.ended else ():
            newest[x] = max(newest.get(x, START), *facts.ended_writers(x, t3), START, key=place.__getitem__)
        for t2 in {t1 for _, t1 in facts.reads[t3] if t1 != START}:
            for x in facts.wrote[t2].keys() & wanted:
                newest[x] = max(newest.get(x, START), t2, key=place.__getitem__)
        for x, t1 in facts.reads[t3]:
            yield t3, x, t1, newest.get(x, START)
        session.update(dict.fromkeys(facts.wrote[t3], t3))


def _known_causally(facts: HistoryFacts, order: list[int], place: dict[int, int]) -> ForcedEdges:
    """TCC: t2 is in the causal past of t3, kept as the last transaction of each session; of a session the last counts.

    A past is dropped after its last use, so that not all of them are in memory at once.
    """
    last_use = {t: t3 for t3 in order for t in facts.before(t3)}
    past: dict[int, dict[int, int]] = {}
    placed: defaultdict[Atom, list[int]] = defaultdict(list)  # the writers of each key so far
    for t3 in order:
        mine: dict[int, int] = {}
        for t in sorted(facts.before(t3), key=place.__getitem__, reverse=True):
            if mine.get(facts.session[t], START) < t:  # else its past is known already
                mine = {**past[t], **{s: last for s, last in mine.items() if last > past[t].get(s, START)}}
                mine[facts.session[t]] = t
            if last_use[t] == t3:
                del past[t]
        if t3 in last_use:
            past[t3] = mine
        for x, t1 in facts.reads[t3]:
            yield t3, x, t1, _newest(facts, x, mine, placed[x], place)
        for x in facts.wrote[t3]:
            placed[x].append(t3)


def _newest(facts: HistoryFacts, x: Atom, past: dict[int, int], placed: list[int], place: dict[int, int]) -> int:
    """The newest writer of x in a past: mostly one of the last in the order, else the newest by sessions."""
    sessions = facts.writers.get(x, {})
    for t2 in placed[: -len(sessions) - 1 : -1]:
        if past.get(facts.session[t2], START) >= t2:
            return t2
    known = [writers[at - 1] for s, writers in sessions.items() if s in past and (at := bisect_right(writers, past[s]))]
    return max(known, key=place.__getitem__, default=START)
