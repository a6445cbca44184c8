"""Tiny random workloads, for the package and for the oracles."""

from oracle_runs import Txn

from plume_py.reasoning.allocate import Access, Instance, Program, Workload
from plume_py.reasoning.allocate.control_flow import Fork, execution_paths, flat

KINDS = {"r": "READ", "w": "WRITE", "u": "UPDATE"}


def random_txns(rng, sizes=(3, 3, 4), kinds="rrwu"):
    """Return transactions on a few cells, often in sessions, sometimes with conditional accesses."""
    n, keys = rng.choice(sizes), rng.randint(1, 4)
    sessions = rng.randint(1, n) if rng.random() < 0.7 else n
    session = sorted(rng.randrange(sessions) for _ in range(n)) if sessions < n else list(range(n))
    doubt = rng.choice((0, 0, 0.25))
    return [
        Txn(
            session[t],
            [(rng.choice(kinds), f"k{rng.randrange(keys)}", rng.random() < doubt) for _ in range(rng.randint(1, 3))],
        )
        for t in range(n)
    ]


def workload_of(txns):
    """Return the transactions as a workload of the package."""
    instances = []
    for i, txn in enumerate(txns):
        tree = [_part(*op) for op in txn.ops]
        known = execution_paths(tree) if any(kind == "g" for kind, _, _ in txn.ops) else ()
        instances.append(Instance(f"T{i}", f"T{i}", tuple(flat(tree)), execution_paths=known))
    return Workload(instances, [txn.session for txn in txns])


def _part(kind, cell, maybe):
    if kind == "l":
        return Access("READ", cell, (), maybe, locks=True)
    if kind == "g":
        looked, changed = Access("READ", cell, (), True), Access("UPDATE", cell)
        return Fork((changed,), (looked,), (looked, Access("UPDATE", cell, (), True)))
    return Access(KINDS[kind], cell, (), maybe)


def txns_of(workload):
    """Return the workload as transactions of the oracles."""
    letters = {name: letter for letter, name in KINDS.items()}
    return [
        Txn(workload.session[i], [(letters[a.kind], a.cell, a.conditional) for a in instance.accesses])
        for i, instance in enumerate(workload.instances)
    ]


def random_programs(rng):
    """Return up to three programs with one or two parameters, over two tables."""
    programs = []
    for name in ("P", "Q", "R")[: rng.randint(1, 3)]:
        params = ("a", "b")[: rng.randint(1, 2)]
        parts = [*params, *params, "7"]
        accesses = tuple(
            Access(
                rng.choice(("READ", "READ", "WRITE", "UPDATE")),
                rng.choice("st"),
                (rng.choice(parts),),
                rng.random() < 0.1,
            )
            for _ in range(rng.randint(1, 3))
        )
        programs.append(Program(name, params, accesses))
    return programs
