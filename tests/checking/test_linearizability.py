"""Strict serializability of transactions of one operation each is linearizability: a plain checker of that says so.

The checker is a search after Wing and Gong: of the operations that are not placed yet, any may come next that no other
of them had to come before; it must fit the register; states that led nowhere are remembered.
"""

import random

import pytest
from small_histories import build

from plume_py import check


def drawn(rng):
    """(sessions, times): a register under a few clients, mostly as it should be, now and then with a stale read."""
    clients = rng.randint(1, 4)
    sessions, times = [[] for _ in range(clients)], [[] for _ in range(clients)]
    running, state, written, now = {}, 0, 0, 0
    for _ in range(rng.randint(2, 16)):
        now += rng.choice((0, 1, 1, 2))
        client = rng.randrange(clients)
        if client not in running:
            kind = rng.choice("rw")
            written += kind == "w"
            running[client] = kind, written if kind == "w" else state, now
            state = written if kind == "w" and rng.random() < 0.5 else state
        else:
            kind, value, began = running.pop(client)
            if kind == "w":
                state = value if rng.random() < 0.8 else state
            else:
                value = state if rng.random() < 0.5 else value
                value = rng.randint(0, written) if rng.random() < 0.1 else value
            status = "unknown" if rng.random() < 0.1 else "committed"
            sessions[client].append((status, [(kind, "x", value)]))
            times[client].append((began, now))
    return sessions, [span for several in times for span in several]


def linearizable(sessions, times):
    """Is there an order of the operations, each within its time, in which every read shows the last write?

    An operation of unknown outcome has no end, and may be left out; a read of unknown outcome says nothing.
    """
    spans, operations = iter(times), []
    for session in sessions:
        ended = None
        for status, [(kind, _, value)] in session:
            begin, end = next(spans)
            known = status == "committed"
            if known or kind == "w":
                operations.append((kind, value, begin, end if known else None, ended, known))
                ended = len(operations) - 1  # who comes next in the session comes later
    dead = set()

    def placed_before(i, left):
        """May i come next: has nobody else of those left ended before it began, or run before it in its session?"""
        begin, earlier = operations[i][2], operations[i][4]
        while earlier is not None:
            if earlier in left and operations[earlier][5]:
                return False
            earlier = operations[earlier][4]
        return all(operations[j][3] is None or operations[j][3] >= begin for j in left)

    def search(left, register):
        if not any(operations[i][5] for i in left):
            return True
        if (left, register) in dead:
            return False
        for i in left:
            kind, value = operations[i][:2]
            fits = (kind == "w" or value == register) and placed_before(i, left - {i}) and in_turn(i, left)
            if fits and search(left - {i}, value if kind == "w" else register):
                return True
        dead.add((left, register))
        return False

    def in_turn(i, left):
        """A write of unknown outcome that is left out so far cannot come after one that its session ran later."""
        later = [j for j in range(len(operations)) if j not in left and _follows(operations, j, i)]
        return not later

    return search(frozenset(range(len(operations))), 0)


def _follows(operations, j, i):
    earlier = operations[j][4]
    while earlier is not None and earlier != i:
        earlier = operations[earlier][4]
    return earlier == i


def compare(seed, count):
    rng = random.Random(seed)
    answers = {True: 0, False: 0}
    for _ in range(count):
        sessions, times = drawn(rng)
        expected = linearizable(sessions, times)
        history = build(sessions, 0, times)
        if history.times is not None:
            found = check(history, "SSER", max_examples=0).ok
            assert found == expected, (sessions, times)
            answers[expected] += 1
    return answers


def test_single_operations_in_real_time_are_linearizable_or_not():
    answers = compare(1, 1_000)
    assert min(answers.values()) > 100, answers


@pytest.mark.full
def test_twenty_thousand_registers():
    compare(2, 20_000)
