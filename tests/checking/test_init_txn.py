"""``auto`` takes a first transaction as the initial state, and never violates more than ``none``."""

import random
from pathlib import Path

import oracle
import pytest

from plume_py import HistoryBuilder, Monitor, check, load
from plume_py.checking.minimize import minimize
from plume_py.checking.witness import write_witness
from plume_py.reasoning.synth.judge import judge
from plume_py.verify import judge_entry, read_claim, verify_witness

FALSE_ALARM = [[[("w", "x", 1)]], [[("w", "x", 2)], [("r", "x", 1)]]]
LEVELS = ("CI", "RC", "RA", "TCC", "PC", "PSI", "SI", "SER")


def build(sessions, choice, levels=None):
    builder = HistoryBuilder(0, declared=False)
    for number, session in enumerate(sessions):
        for ops in session:
            builder.add(number, ops, level=levels and levels.get(number))
    return builder.build(init_txn=choice)


def holding(history, **how):
    return holding_of(check(history, **how))


def holding_of(result):
    return [level for level, verdict in result.levels.items() if verdict.ok]


def with_first(rng):
    """A random history that begins with a transaction that writes every key, some of them serial, others not."""
    keys, value, state, written = "xyz"[: rng.randint(1, 3)], 0, {}, {}
    places = [0, *(rng.randrange(1, 4) for _ in range(rng.randint(2, 5)))]
    rng.shuffle(places)
    wild = rng.choice((0, 0.7))
    sessions = [[], [], [], []]
    for s in places:
        ops = []
        for x in keys if s == 0 else rng.choices(keys, k=rng.randint(1, 3)):
            if s == 0 or rng.random() < 0.5 or x not in state:
                value += 1
                ops.append(("w", x, value))
                state[x] = value
                written.setdefault(x, []).append(value)
            else:
                ops.append(("r", x, rng.choice(written[x]) if rng.random() < wild else state[x]))
        sessions[s].append(ops)
    return [session for session in sessions if session], wild == 0


def test_a_level_holds_if_it_holds_with_the_first_transaction_or_without():
    rng, seen = random.Random(34), {True: 0, False: 0}
    while min(seen.values()) < 25:
        sessions, is_serial = with_first(rng)
        history = build(sessions, "auto")
        if not history.init_guessed:
            continue
        plain = [[("committed", ops) for ops in session] for session in sessions]
        ways = [oracle.Facts(plain, declared=False, first=first) for first in (False, True)]
        expected = [[oracle.satisfies(facts, level) for level in LEVELS] for facts in ways]
        assert all(plain or not first for plain, first in zip(*expected, strict=True)), "first implies none"
        assert [level in holding(history) for level in LEVELS] == expected[0]
        assert not is_serial or all(expected[0])
        seen[all(expected[0])] += 1


def test_reports_of_violations_are_about_the_ordinary_transaction():
    from plume_py.report.json import document

    rng, violated = random.Random(5), 0
    while violated < 15:
        history = build(with_first(rng)[0], "auto")
        result = check(history)
        if history.init_guessed and not result.ok:
            violated += 1
            (entry,) = read_claim(document([result]).encode())
            verdict = judge_entry(history, entry)
            assert (verdict.refuted, verdict.undecided) == ([], [])


def test_the_cases():
    assert holding(build(FALSE_ALARM, "auto")) == list(LEVELS)
    assert holding(build(FALSE_ALARM, "none")) == list(LEVELS)
    assert holding(build(FALSE_ALARM, "first")) == ["CI", "RC"]
    result = check(build(FALSE_ALARM, "auto"))
    assert result.notes == ("T1 may have set up the initial state, and is judged like any other transaction",)
    assert check(build(FALSE_ALARM, "auto"), taps="k").ok and not check(build(FALSE_ALARM, "first"), taps="k").ok
    assert minimize(build(FALSE_ALARM, "auto"), "RA") is None and minimize(build(FALSE_ALARM, "first"), "RA")
    assert judge(build(FALSE_ALARM, "auto"), "UA").ok and not judge(build(FALSE_ALARM, "first"), "UA").ok


def test_patterns_are_those_of_the_levels():
    """Under the guess the triple is TAP-k, because the initial state is causally before everything."""
    sessions = [
        [[("w", "x", 1), ("w", "y", 1)]],
        [[("w", "x", 2), ("w", "y", 2)]],
        [[("r", "x", 1), ("r", "y", 2)]],
        [[("r", "y", 1), ("r", "x", 2)]],
    ]
    history = build(sessions, "auto")
    assert history.init_guessed
    assert check(history, "RA").levels["RA"].taps == ("l",)
    for letter in "kl":
        assert check(history, taps=letter).ok is (letter == "k")


def test_real_time_is_checked_where_only_the_guess_violates_a_level():
    def timed(begin, end):
        builder = HistoryBuilder(0, declared=False)
        builder.add(0, [("w", "x", 1)], begin=begin, end=end)
        builder.add(1, [("w", "x", 2)], begin=10, end=20)
        builder.add(1, [("r", "x", 1)], begin=30, end=40)
        history = builder.build()
        assert history.init_guessed
        return check(history)

    concurrent, before = timed(0, 100), timed(0, 5)
    assert concurrent.ok and list(concurrent.levels) == [*LEVELS, "StrongSI", "SSER"]
    assert before.ok is False and holding_of(before) == list(LEVELS)
    assert [level for level, verdict in before.levels.items() if verdict.ok is False] == ["StrongSI", "SSER"]


def test_real_time_is_checked_also_if_the_guess_is_given_up():
    """Serializable without the guess only, and not in real time."""
    in_time = {}
    for choice in ("auto", "none"):
        builder = HistoryBuilder(0, declared=False)
        builder.add(0, [("w", "x", 1)], begin=0, end=1)
        builder.add(1, [("w", "x", 2)], begin=2, end=3)
        builder.add(1, [("r", "x", 1)], begin=4, end=5)
        in_time[choice] = {name: verdict.ok for name, verdict in check(builder.build(init_txn=choice)).levels.items()}
    assert in_time["auto"] == in_time["none"] == dict.fromkeys(LEVELS, True) | {"StrongSI": False, "SSER": False}


def test_verdicts_in_real_time_are_those_without_the_guess():
    rng, seen = random.Random(8), {True: 0, False: 0}
    while min(seen.values()) < 20:
        sessions, _ = with_first(rng)
        results = {}
        for choice in ("auto", "none"):
            builder, clock = HistoryBuilder(0, declared=False), random.Random(len(sessions))
            for number, session in enumerate(sessions):
                now = 0
                for ops in session:
                    begin = now + clock.randrange(4)
                    now = begin + 1 + clock.randrange(4)
                    builder.add(number, ops, begin=begin, end=now)
            results[choice] = builder.build(init_txn=choice)
        if not results["auto"].init_guessed:
            continue
        guessed, plain = (check(results[choice]) for choice in ("auto", "none"))
        verdicts = [{name: verdict.ok for name, verdict in result.levels.items()} for result in (guessed, plain)]
        assert verdicts[0] == verdicts[1], sessions
        seen[bool(plain.levels["SER"].ok and not plain.levels["SSER"].ok)] += 1


def test_the_first_transaction_needs_no_declared_level():
    levels = {1: "RA"}
    assert check(build(FALSE_ALARM, "auto", levels), "declared").ok
    assert check(build(FALSE_ALARM, "first", levels), "declared").ok is False
    read_before = [[[("w", "x", 1)]], [[("r", "x", 1)], [("w", "x", 2)], [("r", "x", 1)]]]
    assert check(build(read_before, "auto", levels), "declared").ok is False


@pytest.mark.parametrize(("choice", "holds"), [("auto", True), ("none", True), ("first", False)])
def test_a_monitor_agrees(choice, holds):
    monitor = Monitor(["RA", "TCC"], initial=0, declared=False, init_txn=choice)
    for number, session in enumerate(FALSE_ALARM):
        for ops in session:
            monitor.feed(number, ops)
    assert monitor.close().ok is holds


def test_a_witness_is_verified(tmp_path):
    path, order = tmp_path / "h.json", str(tmp_path / "order.json")
    path.write_text('{"sessions":[[{"ops":[["w","x",1]]}],[{"ops":[["w","x",2]]},{"ops":[["r","x",1]]}]]}')
    write_witness(load(path), "SER", order)
    witness = read_claim(Path(order).read_bytes())
    assert verify_witness(load(path), witness) == []
    assert verify_witness(load(path, init_txn="first"), witness)
