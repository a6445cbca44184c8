"""Expected answers per level, transaction and invariant: tests of explorer, bounded_search and prove."""

import pytest

from plume_py.reasoning.infer.bounded.bounded_search import NONE, VIOLATED, BoundedSearch
from plume_py.reasoning.infer.execution.explorer import Explorer
from plume_py.reasoning.infer.execution.replay import replay
from plume_py.reasoning.infer.program.load import load
from plume_py.reasoning.infer.proof.prove import prove
from plume_py.reasoning.infer.statement_models import STORES

LEVELS = STORES["literal"].levels  # RC0 RC RRf RRi SI SER

# v: violated, .: not. The columns are RC0 (as printed in the paper), RC, RRf (as printed), RRi (InnoDB), SI, SER.
SAFE = "......"
TABLE = {
    "courseware": {
        ("register", "I1"): SAFE,
        ("register", "I2"): SAFE,
        ("add_course", "I1"): SAFE,
        ("add_course", "I2"): SAFE,
        ("enroll", "I1"): "vvvvv.",
        ("enroll", "I2"): "vv.v..",
        ("cancel_course", "I1"): "vvvv..",
        ("cancel_course", "I2"): SAFE,
        ("deregister", "I1"): "vvvvv.",
        ("deregister", "I2"): SAFE,
    },
    "tpcc_lite": {
        ("new_order", "I1"): "v.v...",
        ("new_order", "I2_I3"): "vvvv..",
        ("new_order", "I4"): "vvvv..",
        ("new_order", "delivered"): "vvvv..",
        ("payment", "I1"): "v.....",
        ("payment", "I2_I3"): "v.v...",
        ("payment", "I4"): SAFE,
        ("payment", "delivered"): "v.v...",
        ("delivery", "I1"): SAFE,
        ("delivery", "I2_I3"): SAFE,
        ("delivery", "I4"): SAFE,
        ("delivery", "delivered"): "vv.v..",
    },
    "bank": {("withdraw", "not_overdrawn"): "vvvvv.", ("deposit", "not_overdrawn"): "v.v..."},
    "withdrawal": {("withdraw", "not_negative"): "vv.v.."},
    "savings": {(name, "not_negative"): SAFE for name in ("withdraw", "deposit", "save")},
    "add_interest": {(name, "not_negative"): SAFE for name in ("add_interest", "deposit")},
    "doctors": {("leave", "someone_on_call"): "vvvvv.", ("come", "someone_on_call"): SAFE},
    "unique_ids": {
        ("new_ticket", "tickets"): "vvvvv.",
        ("new_ticket", "invoices"): SAFE,
        ("new_invoice", "tickets"): SAFE,
        ("new_invoice", "invoices"): "vvvv..",
    },
    "counters": {("read_and_write", "counted"): "vvvv..", ("in_place", "counted"): "v.v..."},
}
# Safe, but not proved: the frame does not know that enroll also writes the course, or that one row is deleted.
UNPROVED = {
    ("courseware", "cancel_course", "I1", "SI"),
    ("tpcc_lite", "payment", "I1", "RRf"),
    *(("tpcc_lite", "delivery", "delivered", level) for level in ("RRf", "SI", "SER")),
}


def by_explorer(program, name):
    explorer = Explorer(program, 2, 2)
    cells = {clause.name: "" for clause in program.invariant}
    for level in LEVELS:
        result = explorer.explore(name, level)
        assert result.complete
        for clause in cells:
            cells[clause] += "v" if clause in result.examples else "."
        for example in result.examples.values():
            assert example.clause in replay(program, example).broken
    return cells


def by_solver(program, name, rows):
    cells = {clause.name: "" for clause in program.invariant}
    for level in LEVELS:
        formula = BoundedSearch(program, name, level, rows, 2)
        for clause in program.invariant:
            answer = formula.search(clause)
            assert answer.outcome in (VIOLATED, NONE)
            if answer.example is not None:
                assert clause.name in replay(program, answer.example).broken
            cells[clause.name] += "v" if answer.example else "."
    return cells


def expected(app, name):
    return {clause: cells for (txn, clause), cells in TABLE[app].items() if txn == name}


CASES = sorted({(app, txn) for app, rows in TABLE.items() for txn, _ in rows})


@pytest.mark.parametrize(("app", "name"), CASES)
def test_the_explorer_finds_the_expected_violations(app, name):
    assert by_explorer(load(app), name) == expected(app, name)


@pytest.mark.parametrize(("app", "name"), CASES)
def test_the_solver_finds_the_expected_violations(app, name):
    # With two rows the solver finds more at RRf, a level that no store has: see the next test.
    assert by_solver(load(app), name, 1 if app == "tpcc_lite" else 2) == expected(app, name)


def test_two_pending_orders_break_the_printed_repeatable_read():
    """Two other deliveries commit, and the stale count overwrites theirs. One pending order is not enough."""
    assert by_solver(load("tpcc_lite"), "delivery", 2)["delivered"] == "vvvv.."


@pytest.mark.parametrize(("app", "name"), CASES)
def test_safe_levels_are_proved_and_violated_ones_are_not(app, name):
    program = load(app)
    for place, level in enumerate(LEVELS):
        proof = prove(program, name, level, 5)
        for clause in program.invariant:
            is_safe = TABLE[app][name, clause.name][place] == "."
            wanted = is_safe and (app, name, clause.name, level.name) not in UNPROVED
            assert (clause.name in proof.proved) == wanted, (clause.name, level.name)


@pytest.mark.full
@pytest.mark.parametrize("name", ["new_order", "delivery", "payment", "order_status", "stock_level"])
def test_explorer_and_solver_agree_on_tpcc(name):
    program = load("tpcc")
    assert by_explorer(program, name) == by_solver(program, name, 1)
