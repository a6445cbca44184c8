"""Random programs: bounded_search agrees with explorer, every counterexample replays, no false proof."""

import random

import pytest

from plume_py.reasoning.infer.bounded.bounded_search import UNKNOWN, BoundedSearch
from plume_py.reasoning.infer.embed import App, Id, Int, by, else_, for_each, if_, require
from plume_py.reasoning.infer.execution.explorer import Explorer
from plume_py.reasoning.infer.execution.replay import replay
from plume_py.reasoning.infer.program.load import validate
from plume_py.reasoning.infer.proof.prove import prove
from plume_py.reasoning.infer.statement_models import ALONE, STORES

LEVELS = (*STORES["literal"].levels, STORES["postgresql"].levels[0], STORES["ansi"].levels[1])


def random_program(seed):
    """Return a program with two tables, two transactions and an invariant that the empty database satisfies."""
    draw = random.Random(seed)
    app = App(f"random{seed}")
    a = app.table("a", key="k", k=Id, x=Int)
    b = app.table("b", y=Int)

    def statement(i, found):
        kind = draw.choice(
            ["get", "lock", "count", "sum", "update", "set", "insert", "key", "delete", "require", "if", "each", "copy"]
        )
        if kind in ("get", "lock"):
            found.append((a.get_for_update if kind == "lock" else a.get)(k=i).x)
        elif kind == "count":
            found.append(b.count(lambda row: row.y >= draw.choice([0, 1])))
        elif kind == "sum":
            found.append(a.sum(lambda row: row.x))
        elif kind == "update":
            a.update(draw.choice([by(k=i), lambda row: row.x <= 1]), x=lambda row: row.x + draw.choice([-1, 1]))
        elif kind == "set":
            a.update(by(k=i), x=draw.choice(found) if found else 1)
        elif kind == "insert":
            b.insert(y=draw.choice(found) if found else 1)
        elif kind == "key":
            a.insert(k=i, x=draw.choice(found) if found else 1)
        elif kind == "copy":
            rows = a.where(lambda row: row.x >= 1)
            with for_each(rows) as row:
                b.insert(y=row.x)
        elif kind == "delete":
            draw.choice([lambda: b.delete(y=draw.choice([0, 1])), lambda: a.delete(k=i)])()
        elif kind == "require":
            require((draw.choice(found) if found else i) >= 1)
        elif kind == "if":
            with if_((draw.choice(found) if found else i) >= 1):
                b.insert(y=1)
            if draw.random() < 0.5:
                with else_():
                    b.insert(y=0)
        else:
            rows = b.where(lambda row: row.y >= 1)
            with for_each(rows):
                a.update(by(k=i), x=lambda row: row.x + 1)

    def body(i):
        found = []
        for _ in range(draw.randint(2, 4)):
            statement(i, found)

    def first(i):
        body(i)

    def second(i):
        body(i)

    app.txn(i=Id)(first)
    app.txn(i=Id)(second)
    choices = [
        lambda: a.all(lambda row: row.x >= 0),
        lambda: b.unique("y"),
        lambda: b.count() <= 2,
        lambda: a.sum(lambda row: row.x) >= b.count(),
        lambda: b.all(lambda row: a.exists(lambda other: other.x >= row.y)),
    ]

    def kept():
        return draw.choice(choices)()

    app.invariant(kept)
    app.explore(rows={"a": 2, "b": 1}, a__k=(1, 2), a__x=(0, 1), b__y=(0, 1), first__i=(1, 2), second__i=(1, 2))
    return validate(app.program())


def compare(seed):
    program = random_program(seed)
    explorer = Explorer(program, 2, 1, seconds=20)
    (clause,) = program.invariant
    name = "first"
    # A proof rests on the others keeping the invariant, at least when they run alone.
    sound = all(BoundedSearch(program, txn, ALONE, 2, 0).search(clause).example is None for txn in ("first", "second"))
    for level in LEVELS:
        explored = explorer.explore(name, level)
        answer = BoundedSearch(program, name, level, 2, 1).search(clause)
        assert answer.outcome != UNKNOWN
        for example in (*explored.examples.values(), *([answer.example] if answer.example else ())):
            assert clause.name in replay(program, example).broken
        if explored.examples:
            assert answer.example is not None, (seed, level.name, "only the explorer finds a violation")
        if answer.example is not None and sound:
            assert not prove(program, name, level, 1).proved, (seed, level.name, "proved, but false")


@pytest.mark.parametrize("seed", range(30))
def test_solver_and_explorer_agree_on_a_random_program(seed):
    compare(seed)


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(10))
def test_solver_and_explorer_agree_on_many_random_programs(chunk):
    for seed in range(1000 + 100 * chunk, 1100 + 100 * chunk):
        compare(seed)
