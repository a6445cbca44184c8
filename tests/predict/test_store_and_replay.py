"""The store with controlled reads, its programs, replay and exploration (package store)."""

import random
from itertools import product

import pytest
from oracle import Facts, satisfies

from plume_py import check
from plume_py.base.errors import LimitError
from plume_py.base.limits import Limits
from plume_py.history.model import INITIAL
from plume_py.reasoning.predict.predictor.predictor import predict
from plume_py.reasoning.predict.store.application import PlannedTransaction
from plume_py.reasoning.predict.store.exploration import explore
from plume_py.reasoning.predict.store.legal_reads import CheckedRules, SerialRules, WeakRules, rules_for
from plume_py.reasoning.predict.store.program import PROGRAMS, SeededProgram, observed_run, program, run
from plume_py.reasoning.predict.store.replay import replay
from plume_py.reasoning.predict.store.store import Conflict, Latest, RandomLegal, Rollback, Store


def test_the_store_returns_written_values_and_records_a_history() -> None:
    store = Store("TCC", Latest(), initial=lambda key: 7)
    with store.begin("a") as txn:
        assert txn.read("x") == 7
        txn.write("x", 8)
        assert txn.read("x") == 8
    with store.begin("b") as txn:
        assert txn.read("x") == 8
    history = store.history()
    assert [[op.value for op in txn.ops] for session in history for txn in session] == [
        [None, "8 (T1)", "8 (T1)"],
        ["8 (T1)"],
    ]
    assert check(history, "SER").ok


def test_rollback_removes_all_writes() -> None:
    store = Store("TCC")
    with store.begin("a") as txn:
        txn.write("x", 1)
        raise Rollback
    assert store.records == [] and [record.id for record in store.aborted] == ["T1"]
    txn = store.begin("a")
    txn.rollback()
    with pytest.raises(ValueError, match="is over"):
        txn.read("x")
    with pytest.raises(KeyError), store.begin("a"):
        raise KeyError


def test_only_one_transaction_runs_at_a_time() -> None:
    store = Store("TCC")
    first, second = store.begin("a"), store.begin("b")
    first.commit()
    with pytest.raises(ValueError, match="one at a time"):
        second.commit()


class Fixed:
    """Chooses what it is told, legal or not."""

    def __init__(self, writers):
        self.writers = list(writers)

    def choose(self, request):
        return self.writers.pop(0)


def test_the_store_rejects_an_illegal_choice_of_a_policy() -> None:
    store = Store("TCC", Fixed([0, INITIAL]))
    with store.begin("a") as txn:
        txn.write("x", 1)
    with store.begin("b") as txn:
        assert txn.read("x") == 1
    with pytest.raises(ValueError, match="illegal"):
        store.begin("b").read("x")


def test_snapshot_isolation_refuses_the_second_writer() -> None:
    store = Store("SI", Fixed([INITIAL, INITIAL]))
    with store.begin("a") as txn:
        txn.read("x")
        txn.write("x", 1)
    txn = store.begin("b")
    txn.read("x")
    txn.write("x", 2)
    with pytest.raises(Conflict):
        txn.commit()
    assert len(store.records) == 1


def test_each_level_has_its_rules() -> None:
    assert isinstance(rules_for("RA"), WeakRules)
    assert isinstance(rules_for("SER"), SerialRules)
    assert isinstance(rules_for("PC"), CheckedRules)


@pytest.mark.parametrize("level", ["RC", "RA", "TCC", "PC", "PSI", "SI", "SER"])
def test_a_read_is_legal_exactly_if_the_history_satisfies_the_level(level: str) -> None:
    """Every writer that the store calls legal keeps the level by the oracle, every other one breaks it."""
    rng = random.Random(level)
    asked = set()
    for _ in range(12 if level in ("PC", "PSI", "SI") else 40):
        store = Store(level, RandomLegal(rng.randrange(10**6)))

        class Watched:
            def __init__(self, policy):
                self.policy = policy

            def choose(self, request):
                for writer in request.writers:
                    legal = request.allows(writer)
                    if level != "SER":  # a serial store is stricter than SER: only the newest version
                        assert legal == _keeps(request, writer, level)
                    asked.add(legal)
                return self.policy.choose(request)

        store.policy = Watched(store.policy)
        for _ in range(6):
            with store.begin(rng.randrange(3)) as txn:
                for _ in range(rng.randint(1, 3)):
                    key = rng.choice("xy")
                    if rng.random() < 0.5:
                        txn.read(key)
                    else:
                        txn.write(key, 0)
        assert check(store.history(), level).ok
    assert asked == {True, False}


def _keeps(request, writer: int, level: str) -> bool:
    """By the brute-force oracle: the history so far, with this read, without the transaction's own writes."""
    sessions = {}
    for record in request.store.records:
        ops = [("r", key, 0 if w == INITIAL else w + 1) for key, w in record.reads]
        ops += [("w", key, record.number + 1) for key in record.writes]
        sessions.setdefault(record.session, []).append(("committed", ops))
    reads = [*request.txn.reads, (request.key, writer)]
    ops = [("r", key, 0 if w == INITIAL else w + 1) for key, w in reads]
    sessions.setdefault(request.txn.session, []).append(("committed", ops))
    return satisfies(Facts(list(sessions.values()), 0), level)


def test_histories_with_mixed_levels_satisfy_them() -> None:
    rng = random.Random(5)
    for mix in (("RC", "TCC"), ("RC", "RA", "TCC"), ("TCC", "SI")):
        for seed in range(8):
            store = Store("TCC", RandomLegal(seed), rules=CheckedRules() if "SI" in mix else WeakRules())
            for _ in range(7):
                with store.begin(rng.randrange(3), level=rng.choice(mix)) as txn:
                    for key, write in product("xy", (False, True)):
                        if rng.random() < 0.6:
                            txn.write(key, 0) if write else txn.read(key)
            assert check(store.history(levels=True), "declared").ok


def test_rules_reject_unsupported_levels() -> None:
    """The rules of RC, RA and TCC would let a transaction at SI lose updates."""
    with pytest.raises(ValueError, match="do not judge SI"):
        Store("TCC").begin("a", level="SI")
    with pytest.raises(ValueError, match="do not judge none"):
        Store("none").begin("a")
    assert Store("tcc").begin("a", level="rc").record.level == "RC"


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_deterministic_and_serial(name: str) -> None:
    workload = SeededProgram(program(name), 3)
    first, again = observed_run(workload), observed_run(workload)
    assert list(first) == list(again)
    assert check(first, "SER").ok
    assert first.transactions <= 12


def test_programs_are_about_as_large_as_the_published_ones() -> None:
    """Reads, writes, commits of 10 small runs, within a factor of two; Voter has one writer."""
    published = {
        "smallbank": (669.7, 14.7, 11.0),
        "voter": (763.0, 6.0, 12.0),
        "tpcc": (3297.3, 763.0, 11.9),
        "wikipedia": (1067.7, 55.1, 9.9),
    }
    for name, expected in published.items():
        histories = [observed_run(SeededProgram(program(name), seed)) for seed in range(10)]
        reads = sum(int((h.op_kind == 0).sum()) for h in histories) / 10
        writes = sum(int((h.op_kind == 1).sum()) for h in histories) / 10
        commits = sum(h.transactions for h in histories) / 10
        for found, wanted in zip((reads, writes, commits), expected, strict=True):
            assert wanted / 2 < found < wanted * 2, (name, found, wanted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_predictions_come_true_when_replayed(name: str) -> None:
    """Strict predictions do not diverge unless a transaction aborts; Voter under TCC has none."""
    found = 0
    for seed, level in product(range(3), ("TCC", "RC")):
        workload = SeededProgram(program(name), seed)
        observed = observed_run(workload)
        outcome = predict(observed, level)
        assert name != "voter" or bool(outcome.ok) == (level == "TCC")
        for prediction in outcome.predictions:
            validation = replay(workload, observed, prediction, level)
            assert validation.keeps_level
            assert validation.validated or any("aborts" in line for line in validation.divergences)
            assert all("aborts" in line for line in validation.divergences)
            found += validation.validated
    assert found


@pytest.mark.parametrize("level", ["PSI", "SI"])
def test_replayed_predictions_are_legal_at_their_level(level: str) -> None:
    """What a boundary transaction goes on to write counts, and what it goes on to read leaves its commit possible."""
    for seed, boundary in product(range(10), ("strict", "relaxed")):
        workload = SeededProgram(program("smallbank"), seed)
        observed = observed_run(workload)
        for prediction in predict(observed, level, boundary=boundary).predictions:
            validation = replay(workload, observed, prediction, level)
            assert validation.validated and not validation.diverged


class Withdrawal:
    """Figure 9 of the paper: two deposits in one session, between them a withdrawal that needs the first one."""

    name = "withdrawal"

    def initial(self, key):
        return 0

    def plan(self, seed, sessions, transactions):
        def deposit(txn):
            txn.write("balance", txn.read("balance") + 50)

        def withdraw(txn):
            balance = txn.read("balance")
            if balance < 30:
                raise Rollback
            txn.write("balance", balance - 30)

        return [
            [PlannedTransaction("Deposit", deposit), PlannedTransaction("Deposit", deposit)],
            [PlannedTransaction("Withdraw", withdraw)],
        ]


def test_a_prediction_that_aborts_does_not_come_true() -> None:
    workload = SeededProgram(Withdrawal(), 0)
    seed = next(s for s in range(100) if [r.id[:2] for r in run(workload, seed=s).records] == ["s1", "s2", "s1"])
    observed = run(workload, seed=seed).history()
    assert predict(observed, "TCC", exact=True).ok is True
    (prediction,) = predict(observed, "TCC", boundary="relaxed").predictions
    validation = replay(workload, observed, prediction, "TCC")
    assert validation.diverged and not validation.validated
    assert "s2.1 Withdraw aborts" in validation.divergences


def test_exploration_finds_anomalies_and_is_deterministic() -> None:
    first, again = (explore(program("smallbank"), "TCC", runs=10) for _ in range(2))
    assert first.broken == again.broken > 0
    assert first.anomalies == again.anomalies and first.first is not None
    assert explore(program("smallbank"), "SER", runs=5).broken == 0


def test_exploration_checks_limits_within_a_run() -> None:
    class Limited(Limits):
        asked = 0

        def check(self, progress=str) -> None:
            self.asked += 1
            if self.asked > 20:
                raise LimitError("stopped")

    found = explore(program("tpcc"), "RC", runs=1, limits=Limited())
    assert found.runs == 0 and found.reason == "stopped"


def test_exploration_at_si_finds_no_lost_update() -> None:
    found = explore(program("smallbank"), "SI", runs=4)
    assert found.runs == 4 and "LostUpdate" not in found.anomalies
