"""Orders of statements (module interleaving) against trying all orders on a simulated database."""

import random

import pytest

from plume_py import HistoryBuilder
from plume_py.base.errors import InputError
from plume_py.history.model import INITIAL
from plume_py.levels.databases import MYSQL, POSTGRESQL, SQLITE
from plume_py.reasoning.predict.confirm.concurrency_control import CURRENT, ConcurrencyControl, concurrency_control
from plume_py.reasoning.predict.confirm.interleaving import COMMITS, Interleavings, Step
from plume_py.reasoning.predict.confirm.script import Expected, Script, ScriptedTransaction, Statement, script


class Simulated:
    """A database that runs one statement after the other; an order that it would not run, or would block, is wrong."""

    def __init__(self, script, how):
        self.script, self.how = script, how
        self.newest, self.log = {}, []  # key -> who committed it last; who committed, in order
        self.begun, self.snapshot, self.wrote, self.read, self.over = set(), {}, {}, {}, set()

    def state(self):
        return dict(self.newest), len(self.log)

    def run(self, step):
        """Does it go well, and see what it should?"""
        t, txn = step.txn, self.script.transactions[step.txn]
        wrote, read = self.wrote.setdefault(t, set()), self.read.setdefault(t, set())
        if step.statement == COMMITS:
            self.over.add(t)
            self.newest |= dict.fromkeys(wrote, t)
            self.log.append((t, wrote))
            return True
        statement = txn.statements[step.statement]
        if statement.kind == "r" or not self.how.late_snapshot:
            self.snapshot.setdefault(t, self.state())
        others = [o for o in self.wrote if o != t and o not in self.over]
        if statement.kind == "r":
            if self.how.read_locks and any(statement.key in self.wrote[o] for o in others):
                return False
            read.add(statement.key)
            expected = txn.expected.get(step.statement)
            shown = self.snapshot[t][0] if self.how.snapshot else self.newest
            return expected is None or shown.get(statement.key, INITIAL) == expected.source
        if any(statement.key in self.wrote[o] or (self.how.one_writer and self.wrote[o]) for o in others):
            return False
        if self.how.read_locks and any(statement.key in self.read[o] for o in others):
            return False
        wrote.add(statement.key)
        if self.how.first_committer_wins and t in self.snapshot:
            since = self.log[self.snapshot[t][1] :]
            return not any(statement.key in keys or (self.how.one_writer and keys) for _, keys in since)
        return True


def steps_of(made, session):
    return [Step(t, n) for t in session for n in (*range(len(made.transactions[t].statements)), COMMITS)]


def can_be_done(made, how):
    """By trying all orders; those that have gone wrong already are not gone on with."""

    def go(done):
        database = Simulated(made, how)
        places = [0] * len(queues)
        for s in done:
            if not database.run(queues[s][places[s]]):
                return False
            places[s] += 1
        if places == [len(queue) for queue in queues]:
            return True
        return any(go([*done, s]) for s in range(len(queues)) if places[s] < len(queues[s]))

    queues = [steps_of(made, session) for session in made.sessions]
    return go([])


def random_script(rng):
    sessions, transactions = [], []
    for s in range(rng.choice((2, 2, 3))):
        sessions.append([])
        for _ in range(rng.choice((1, 1, 2)) if s < 2 else 1):
            ops = [Statement(rng.choice("rw"), rng.choice("xy")) for _ in range(rng.randint(1, 2 if s < 2 else 1))]
            sessions[-1].append(len(transactions))
            transactions.append(ScriptedTransaction(f"T{len(transactions)}", s, ops))
    made = Script(transactions, sessions, False, {"x": "x", "y": "y"})
    for t, txn in enumerate(transactions):
        own = set()
        for number, statement in enumerate(txn.statements):
            if statement.kind == "w":
                own.add(statement.key)
            elif statement.key not in own:
                writers = [INITIAL, *(w for w in made.writers.get(statement.key, ()) if w != t)]
                txn.expected[number] = Expected(rng.choice(writers))
    return made


DISCIPLINES = (
    CURRENT,
    ConcurrencyControl("snapshot", snapshot=True),
    ConcurrencyControl("snapshot isolation", snapshot=True, first_committer_wins=True),
    ConcurrencyControl("as InnoDB", snapshot=True, late_snapshot=True),
    ConcurrencyControl("as SQLite", snapshot=True, first_committer_wins=True, one_writer=True),
    ConcurrencyControl("locks", read_locks=True),
)


@pytest.mark.parametrize("how", DISCIPLINES, ids=lambda how: how.title)
def test_an_order_is_found_exactly_if_there_is_one(how) -> None:
    rng, found = random.Random(7), 0
    for _ in range(150):
        made = random_script(rng)
        with Interleavings(made, how) as orders:
            steps = orders.find()
        assert (steps is not None) == can_be_done(made, how)
        if steps is not None:
            found += 1
            assert sorted(steps, key=repr) == sorted((s for q in made.sessions for s in steps_of(made, q)), key=repr)
            database = Simulated(made, how)
            assert all(database.run(step) for step in steps)
    assert 20 < found < 150


def test_orders_are_different_and_finite() -> None:
    rng = random.Random(3)
    for _ in range(20):
        made = random_script(rng)
        with Interleavings(made, CURRENT) as orders:
            choices = 0
            while (steps := orders.find()) is not None:
                choices += 1
                database = Simulated(made, CURRENT)
                assert all(database.run(step) for step in steps)
            assert orders.find() is None and choices < 1000


def lost_update():
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("r", "x", 0), ("w", "x", 1)], id="A")
    builder.add("b", [("r", "x", 0), ("w", "x", 2)], id="B")
    return script(builder.build())


def fits(made, database, isolation, settings=None):
    with Interleavings(made, concurrency_control(database, isolation, settings)) as orders:
        return orders.find() is not None


def test_concurrency_controls_differ_in_the_histories_they_permit() -> None:
    made = lost_update()
    assert fits(made, POSTGRESQL, "read committed") and fits(made, MYSQL, "repeatable read")
    assert not fits(made, POSTGRESQL, "repeatable read") and not fits(made, MYSQL, "serializable")
    assert not fits(made, MYSQL, "repeatable read", {"innodb_snapshot_isolation": "ON"})
    assert not fits(made, SQLITE, "serializable")


def test_a_session_cannot_miss_its_own_commit() -> None:
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "x", 1)], id="A")
    builder.add("a", [("r", "x", 0)], id="B")
    with Interleavings(script(builder.build()), CURRENT) as orders:
        assert orders.find() is None
        assert orders.find(all_reads=False) is not None and orders.given_up == [(1, 0)]


def test_a_script_contains_the_history_and_the_later_operations() -> None:
    builder = HistoryBuilder(initial=None)
    builder.add("a", [("w", 1, "one"), ("r", 1, "one")], id="A")
    builder.add("b", [("r", 1, "one"), ("r", "one", None)], id="B")
    builder.add("b", [("w", "z", "two")], id="C", status="aborted")
    made = script(builder.build(), {"B": [["w", "x x", "three"], ["r", "y"], ["r", "ü", "A"]]}, keys=["more"])
    assert [txn.id for txn in made.transactions] == ["A", "B"] and made.sessions == [[0], [1]]
    assert made.transactions[0].statements == [Statement("w", "1", 1), Statement("r", "1")]
    assert made.transactions[1].expected == {0: Expected(0), 1: Expected(INITIAL), 4: Expected(0, firm=False)}
    assert made.transactions[1].statements[2] == Statement("w", "x x", 2)
    assert made.keys == ["1", "one", "x x", "y", "k1", "more"]


def test_transactions_with_changed_reads_continue_last() -> None:
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("r", "x", 0), ("r", "y", 1)], id="A")
    builder.add("b", [("w", "y", 1), ("w", "x", 2)], id="B")
    builder.add("c", [("r", "x", 2)], id="C")
    with Interleavings(script(builder.build(), late=["A"]), CURRENT) as orders:
        steps = orders.find()
    assert steps is not None and [step.txn for step in steps] == [1, 1, 0, 1, 2, 2, 0, 0]


def test_keys_can_be_added_to_a_script() -> None:
    made = lost_update()
    made.add_keys(["y", "X", "k1"])
    assert made.names == {"x": "x", "y": "y", "X": "k1", "k1": "k2"}


def test_keys_that_a_database_might_confuse_are_renamed() -> None:
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("w", "Key", 1), ("w", "key", 2), ("w", "k1 ", 3), ("w", "k1", 4), ("w", "x" * 200, 5)])
    assert script(builder.build()).keys == ["k2", "k3", "k4", "k1", "k5"]


def test_a_read_out_of_thin_air_cannot_be_sent() -> None:
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("r", "x", 7)])
    with pytest.raises(InputError, match="wrong in itself"):
        script(builder.build())


def test_writes_of_lists_are_appends() -> None:
    builder = HistoryBuilder(initial=[])
    builder.add("a", [("append", "x", 1)], id="A")
    builder.add("b", [("r", "x", [1]), ("append", "x", 2), ("r", "x", [1, 2])], id="B")
    made = script(builder.build())
    assert made.lists and made.transactions[1].expected == {0: Expected(0)}
    assert made.transactions[1].statements[1] == Statement("append", "x", 2)
