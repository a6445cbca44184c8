"""Allocation and robustness against oracles that try all runs (modules rules, search_space, robust, catalogue)."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from engine_runs import anomaly, random_run
from oracle_runs import Txn, bad_run
from random_workloads import random_programs, random_txns, txns_of, workload_of

from plume_py import check
from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.kernels import dispatch
from plume_py.reasoning.allocate import (
    Program,
    Workload,
    block_kernels,
    pivot_kernels,
    read,
    update,
    write,
)
from plume_py.reasoning.allocate.catalogue import CATALOGUES, allocate
from plume_py.reasoning.allocate.driver import (
    BENCHMARKS,
    COURSEWARE,
    SMALLBANK,
    TPCC,
    Drawing,
    answer_allocation,
    answer_robustness,
    draw,
)
from plume_py.reasoning.allocate.read_write_sets import gather
from plume_py.reasoning.allocate.rules import simple_rules
from plume_py.reasoning.allocate.search_space import of_instances, of_programs, of_templates

MIXISO = CATALOGUES["mixiso"]
# One step down in the lattice, as far as MixIso's levels go.
WEAKER = {"SER": ["SI"], "SI": ["PSI", "PC"], "PSI": ["TCC"], "PC": ["TCC"], "TCC": ["RA"]}


def by_rules(txns, rules):
    workload = workload_of(txns)
    if rules == "refined":
        return allocate(of_instances(workload), MIXISO)
    return simple_rules(gather(workload), repaired=rules == "repaired")


def attack(rules, count, seed):
    """How many of so many random workloads have a bad run, and how many levels of each kind were given."""
    rng = random.Random(seed)
    bad, given = 0, Counter()
    for _ in range(count):
        txns = random_txns(rng)
        levels = by_rules(txns, rules)
        given.update(levels)
        run = bad_run(txns, levels, left=rules != "paper")
        if run is not None and rules != "paper":
            raise AssertionError(f"{rules}: {levels} for {[(t.session, t.ops) for t in txns]}: {run}")
        bad += run is not None
    return bad, given


@pytest.mark.parametrize("rules", ["refined", "repaired"])
def test_every_run_of_a_tiny_workload_at_its_levels_is_serializable(rules) -> None:
    _, given = attack(rules, 400, seed=11)
    assert set(given) >= {"RA", "PC", "PSI", "SER"}


@pytest.mark.full
@pytest.mark.parametrize("rules", ["refined", "repaired", "paper"])
def test_twenty_thousand_tiny_workloads(rules) -> None:
    bad, given = attack(rules, 20_000, seed=5)
    assert (bad > 0) == (rules == "paper")
    assert given["SI"] > 0 or rules != "refined"


def test_the_papers_rules_admit_a_non_serializable_run() -> None:
    bad, _ = attack("paper", 400, seed=11)
    assert bad > 0


def test_refined_levels_are_never_above_repaired_ones_and_often_below() -> None:
    rng, order = random.Random(3), {"RA": 0, "PC": 1, "PSI": 1, "SI": 2, "SER": 3}
    below = 0
    for _ in range(500):
        txns = random_txns(rng)
        pairs = list(zip(by_rules(txns, "refined"), by_rules(txns, "repaired"), strict=True))
        assert all(order[mine] <= order[theirs] for mine, theirs in pairs)
        below += sum(order[mine] < order[theirs] for mine, theirs in pairs)
    assert below > 100


def test_most_lower_levels_have_a_non_serializable_history() -> None:
    """The share is what the rules lack in precision; it must not get worse unnoticed."""
    rng = random.Random(8)
    refuted = tried = 0
    for _ in range(150):
        txns = random_txns(rng)
        levels = by_rules(txns, "refined")
        for i, level in enumerate(levels):
            for weaker in WEAKER.get(level, ()):
                tried += 1
                refuted += bad_run(txns, [*levels[:i], weaker, *levels[i + 1 :]], left=True) is not None
    assert tried > 100 and refuted / tried > 0.75


@pytest.mark.parametrize("seed", range(6))
def test_template_levels_are_safe_in_random_workloads_of_the_templates(seed) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        programs = random_programs(rng)
        space = of_templates(programs)
        level = dict(zip(space.groups, allocate(space, MIXISO), strict=True))
        for _ in range(6):
            chosen = [rng.choice(programs) for _ in range(rng.choice((3, 3, 4)))]
            instances = [program(*(rng.choice("178") for _ in program.params)) for program in chosen]
            workload = Workload(instances, sorted(rng.randrange(3) for _ in instances))
            run = bad_run(txns_of(workload), [level[i.program] for i in instances], left=True)
            assert run is None, (programs, level, [str(i) for i in instances], workload.session, run)


ENGINES = {"postgresql": "ssi", "mysql": "locks", "sqlserver": "locks"}


@pytest.mark.parametrize("kinds", ["rrwu", "rwugl", "rggl"])
@pytest.mark.parametrize(("engine", "serializable"), ENGINES.items())
def test_every_run_of_a_small_engine_at_its_levels_is_serializable(engine, serializable, kinds) -> None:
    rng = random.Random(9)
    weak = 0
    for _ in range(150):
        txns = random_txns(rng, kinds=kinds)
        levels = allocate(of_instances(workload_of(txns)), CATALOGUES[engine])
        runs = [random_run(rng, txns, levels, serializable) for _ in range(15)]
        bad = [run for run in runs if run is not None and anomaly(run)]
        assert not bad, (levels, [(t.session, t.ops) for t in txns], bad[0].reads)
        lowest = (random_run(rng, txns, ["RC"] * len(txns), serializable) for _ in range(5))
        weak += any(run is not None and anomaly(run) for run in lowest)
    assert weak > 10  # the engine does show anomalies where it is let


def test_example_of_figure_5_gets_the_published_levels() -> None:
    balance, deposit, transact, amalgamate, check_ = SMALLBANK
    workload = Workload([balance(1), balance(2), check_(1), transact(1), deposit(1), amalgamate(1, 2)])
    levels = answer_allocation(workload, rules="paper").levels
    assert levels == ["PC", "PC", "SER", "PSI", "PSI", "PSI"]


def test_the_papers_theorem_is_unsound_with_sessions() -> None:
    """One key, three transactions: a reader that follows another in its session sees less than the other did."""
    w, a, b = Program("W", (), (write("k"),)), Program("A", (), (read("k"),)), Program("B", (), (read("k"),))
    workload = Workload.of_sessions([[w()], [a(), b()]])
    paper = answer_allocation(workload, rules="paper")
    assert paper.levels == ["RA", "RA", "RA"] and paper.robustness is not None and paper.robustness.ok is False
    history = paper.robustness.history
    assert history is not None
    levels = check(history, ["declared", "SER"]).levels
    assert levels["declared"].ok and levels["SER"].ok is False
    assert answer_allocation(workload, rules="repaired").levels == ["RA", "RA", "PC"]
    assert answer_allocation(workload).levels == ["RA", "RA", "PC"]


def test_a_conditional_write_does_not_protect() -> None:
    p = Program("P", (), (read("y"), write("z"), write("x", conditional=True)))
    q = Program("Q", (), (read("z"), write("y"), write("x", conditional=True)))
    workload = Workload([p(), q()])
    paper = answer_allocation(workload, rules="paper")
    assert paper.levels == ["PSI", "PSI"] and paper.robustness is not None and paper.robustness.ok is False
    assert answer_allocation(workload, rules="repaired").levels == ["SER", "SER"]
    refined = answer_allocation(workload).levels
    assert bad_run(txns_of(workload), refined) is None and refined == ["SER", "SER"]


COUNTS = {
    "smallbank": (SMALLBANK, [56, 67, 64, 84, 63], {"PC": 200}),
    "courseware": (COURSEWARE, [138, 145, 137, 147, 150], {"PC": 200, "RA": 400}),
    "tpcc": (TPCC, [0, 0, 0, 0, 0], {"PC": 40, "RA": 40, "PSI": 920}),
}


@pytest.mark.parametrize("name", COUNTS)
def test_benchmark_counts_match_the_published_ones(name) -> None:
    programs, serializable, others = COUNTS[name]
    for seed, expected in enumerate(serializable, 1):
        sets = gather(draw(programs, 1000, 500, seed))
        counts = Counter(simple_rules(sets, repaired=False))
        assert counts["SER"] == expected
        assert all(counts[level] == count for level, count in others.items())


def test_compiled_and_interpreted_kernels_agree() -> None:
    workload = draw(SMALLBANK, 300, 40, 1)
    plain = allocate(of_instances(workload), MIXISO)
    try:
        dispatch.prepare(1 << 40, block_kernels, pivot_kernels)
        compiled = allocate(of_instances(workload), MIXISO)
    finally:
        dispatch.uncompile(block_kernels, pivot_kernels)
    assert plain == compiled and len(set(plain)) > 3


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_level_below_the_allocated_one_has_a_history(name) -> None:
    answer = answer_allocation(Workload([], [], list(BENCHMARKS[name])))
    assert {answer.levels[g] for g in answer.critical} == set(answer.levels) - {"RA"}
    for danger in answer.critical.values():
        assert danger.history is not None
        levels = check(danger.history, ["declared", "SER"]).levels
        assert levels["declared"].ok and levels["SER"].ok is False
        sources = [edge.source for edge in danger.cycle.edges]
        assert [edge.target for edge in danger.cycle.edges] == [*sources[1:], sources[0]]


def test_smallbank_levels_for_each_engine() -> None:
    by_engine = {
        name: dict(zip([p.name for p in SMALLBANK], allocate(of_templates(SMALLBANK), c), strict=True))
        for name, c in CATALOGUES.items()
    }
    assert by_engine["postgresql"]["WriteCheck"] == by_engine["postgresql"]["Balance"] == "SER"
    assert by_engine["postgresql"]["DepositChecking"] == "RC"
    assert by_engine["mysql"]["Balance"] == "PC" and by_engine["mysql"]["WriteCheck"] == "SER"
    assert by_engine["oracle"]["WriteCheck"] == "SER"  # which Oracle does not have
    notes = answer_allocation(Workload([], [], list(SMALLBANK)), catalogue="oracle").notes
    assert any("no level of oracle" in note for note in notes)


def test_robust_is_true_false_or_undecided() -> None:
    programs = Workload([], [], list(SMALLBANK))
    safe = answer_allocation(programs)
    levels = dict(zip(safe.space.groups, safe.levels, strict=True))
    assert answer_robustness(programs, levels).answer.ok
    assert answer_robustness(programs, {"*": "SER"}).answer.ok
    broken = answer_robustness(programs, {**levels, "WriteCheck": "SI"}).answer
    assert broken.ok is False and broken.history is not None
    tracked = answer_robustness(programs, {"WriteCheck": "SER", "*": "SI"}, catalogue="postgresql").answer
    assert tracked.ok is None and "SERIALIZABLE only tracks" in tracked.because


def test_robust_agrees_with_an_oracle_that_tries_all_runs() -> None:
    rng = random.Random(4)
    seen = Counter()
    for _ in range(60):
        txns = random_txns(rng, sizes=(2, 3))
        workload = workload_of(txns)
        levels = [rng.choice(("RA", "PC", "PSI", "SI", "SER")) for _ in txns]
        names = {f"T{i}": level for i, level in enumerate(levels)}
        answer = answer_robustness(workload, names).answer
        assert answer.ok is (bad_run(txns, levels) is None), (levels, [(t.session, t.ops) for t in txns], answer)
        seen[answer.ok] += 1
    assert seen[True] > 10 and seen[False] > 8


def test_a_history_of_robust_respects_session_order() -> None:
    """B runs before C in their session; a cycle that goes from C to B is no reason to turn them round."""
    a, b, c = Program("A", (), (write("k"),)), Program("B", (), (update("k"),)), Program("C", (), (read("k"),))
    workload = Workload([a(), b(), c()], [0, 1, 1])
    answer = answer_robustness(workload, {"*": "RA"}).answer
    assert answer.ok is (bad_run(txns_of(workload), ["RA"] * 3) is None)


@pytest.mark.parametrize("count", [150, pytest.param(4_100, marks=pytest.mark.full)])
def test_robust_agrees_with_an_oracle_at_weak_levels_in_sessions(count) -> None:
    """Sessions of several transactions at levels that count on little: what robust says is so in all runs."""
    rng = random.Random(41)
    for _ in range(count):
        txns = random_txns(rng, sizes=(3,))
        for t, txn in enumerate(txns):
            txn.session = min(t, 1)
        levels = [rng.choice(("RA", "RA", "PC", "PSI")) for _ in txns]
        answer = answer_robustness(workload_of(txns), {f"T{i}": level for i, level in enumerate(levels)}).answer
        assert answer.ok is (bad_run(txns, levels) is None), (levels, [(t.session, t.ops) for t in txns], answer)


def test_pins_fix_levels_and_costs_order_them() -> None:
    programs = Workload([], [], list(SMALLBANK))
    pinned = answer_allocation(programs, pins={"Balance": "SER"})
    assert pinned.levels[0] == "SER" and pinned.robustness is None
    low = answer_allocation(programs, pins={"WriteCheck": "SI"})
    assert low.robustness is not None and low.robustness.ok is False
    dear = answer_allocation(programs, costs={"PSI": 10.0})
    assert dear.levels[1] == "SI"
    with pytest.raises(IsocheckError, match="no program or instance"):
        answer_allocation(programs, pins={"Nobody": "SI"})
    with pytest.raises(IsocheckError, match="not offered by postgresql"):
        answer_allocation(programs, pins={"Balance": "PSI"}, catalogue="postgresql")


def test_a_program_gets_what_its_worst_instance_needs() -> None:
    workload = draw(SMALLBANK, 200, 20, 1)
    per_instance = answer_allocation(workload, explain=False)
    per_program = allocate(of_programs(workload), MIXISO)
    order = ["RA", "PC", "PSI", "SI", "SER"]
    for name, level in zip(of_programs(workload).groups, per_program, strict=True):
        own = [lv for p, lv in zip(per_instance.programs, per_instance.levels, strict=True) if p == name]
        assert order.index(level) >= max(map(order.index, own))


def test_an_access_to_every_row_meets_others_in_two_rows() -> None:
    """The reader may see the row of one writer and miss that of another."""
    reader, writer = Program("R", (), (read("t", "*"),)), Program("W", ("a",), (write("t", "a"),))
    programs = Workload([], [], [reader, writer])
    assert answer_allocation(programs, sessions=False).levels == ["PC", "RA"]
    partly = Program("R", ("a",), (read("t", "a", "*"),)), Program("W", ("a", "b"), (write("t", "a", "b"),))
    assert answer_allocation(Workload([], [], list(partly)), sessions=False).levels == ["PC", "RA"]


@pytest.mark.parametrize("writer", [write("t", "*"), update("t", "*"), write("t", "*", conditional=True)])
def test_an_access_to_every_row_does_not_count_as_one_row(writer) -> None:
    """Two writers of every row may have written one row each, so that a reader sees one of them and not the other."""
    programs = Workload([], [], [Program("R", (), (read("t", "*"),)), Program("W", (), (writer,))])
    assert answer_allocation(programs, sessions=False).levels[0] == "PC"
    instances = Workload([programs.programs[0](), programs.programs[0](), *(programs.programs[1]() for _ in "12")])
    for rules in ("refined", "repaired"):
        assert answer_allocation(instances, rules=rules, explain=False).levels[:2] == ["PC", "PC"]
    answer = answer_robustness(programs, {"R": "RA", "W": "SER"}, sessions=False).answer
    assert answer.ok is (False if writer.reads else None)  # without reads, it takes two readers to see the difference


def test_a_write_of_every_row_does_not_protect() -> None:
    """P and Q may have written different rows of m, so that nothing keeps them from skewing x and y."""
    p = Program("P", (), (write("m", "*"), read("x"), write("y")))
    q = Program("Q", (), (write("m", "*"), read("y"), write("x")))
    assert answer_allocation(Workload([], [], [p, q]), explain=False).levels == ["SER", "SER"]
    assert answer_robustness(Workload([p(), q()]), {"*": "SI"}).answer.ok is False


def test_a_locked_row_does_not_change_after_the_read() -> None:
    """At READ COMMITTED two readers that lock their row before they write cannot lose an update; plain ones can."""
    for locks, level in ((True, "RC"), (False, "SI")):
        account = replace(read("t", "x"), locks=locks)
        program = Program("P", ("x",), (account, write("t", "x")))
        assert answer_allocation(Workload([], [], [program]), catalogue="postgresql").levels == [level]
    everything = Program("P", (), (replace(read("t", "*"), locks=True), write("t", "*")))
    assert answer_allocation(Workload([], [], [everything]), catalogue="postgresql").levels == ["SER"]


def test_a_later_writer_need_not_see_a_lock_without_a_write() -> None:
    """Reader locks x and goes; a writer of x with an older snapshot neither fails nor sees what Reader wrote."""
    writer = Program("Writer", (), (read("y"), write("x")))
    for taken, level in ((replace(read("x"), locks=True), "SER"), (update("x"), "SI")):
        reader = Program("Reader", (), (taken, write("y")))
        levels = answer_allocation(Workload([], [], [reader, writer]), catalogue="postgresql", explain=False).levels
        assert levels[1] == level


def test_an_access_to_every_row_covers_named_rows() -> None:
    everyone, one = (
        Program("All", (), (read("t", "*"), write("sum"))),
        Program("One", ("x",), (update("t", "x"), read("sum"))),
    )
    workload = Workload([everyone(), one(5)])
    levels = answer_allocation(workload).levels
    assert levels == ["SER", "SER"]


def test_two_reads_of_a_key_at_read_committed_are_undecided() -> None:
    """At READ COMMITTED one transaction may read two versions of a cell, which no search of read sets shows."""
    twice, writer = Program("A", (), (read("k"), read("k"))), Program("W", (), (write("k"),))
    answer = answer_robustness(Workload([twice(), writer()]), {"*": "RC"}, catalogue="postgresql").answer
    assert answer.ok is None and answer.critical is not None and not answer.critical.decided


def test_a_history_at_read_committed_leaves_robustness_undecided() -> None:
    """The update holds the row before y is read: the engine has no such run, though READ COMMITTED has."""
    p, q = Program("P", (), (update("x"), read("y"))), Program("Q", (), (update("x"), write("y")))
    answer = answer_robustness(Workload([p(), q()]), {"*": "RC"}, catalogue="postgresql").answer
    assert answer.ok is None and "order of the statements" in answer.because


def test_pins_below_the_level_that_an_engine_tracks_are_reported() -> None:
    programs = Workload([], [], list(SMALLBANK))
    low = answer_allocation(programs, catalogue="postgresql", pins={"Balance": "SI"}, explain=False)
    assert low.robustness is not None and low.robustness.ok is None and "Balance" in low.robustness.because
    high = answer_allocation(programs, catalogue="postgresql", pins={"Balance": "SER"}, explain=False)
    assert high.robustness is None


def test_cells_with_equal_names_stay_separate() -> None:
    """Rows (1_2, 3) and (1, 2_3): no common write protects these two from write skew."""
    p = Program("P", (), (read("x"), write("y"), write("t", "1_2", "3")))
    q = Program("Q", (), (read("y"), write("x"), write("t", "1", "2_3")))
    assert answer_allocation(Workload([p(), q()])).levels == ["SER", "SER"]


def test_a_parameter_may_be_named_like_a_constant() -> None:
    """Q's parameter is called 7, as P's row is, and may be any other."""
    p = Program("P", (), (read("x"), write("y"), write("t", "7")))
    q = Program("Q", ("7",), (read("y"), write("x"), write("t", "7")))
    named = Program("Q", ("z",), (read("y"), write("x"), write("t", "z")))
    levels = [answer_allocation(Workload([], [], [p, other]), explain=False).levels for other in (q, named)]
    assert levels == [["SER", "SER"]] * 2
    with pytest.raises(InputError, match="no parameter"):
        Program("P", ("*",), (read("t", "*"),))


def test_simple_rules_reject_pins_and_costs() -> None:
    programs = Workload([], [], list(SMALLBANK))
    for wishes in ({"catalogue": "postgresql"}, {"pins": {"Balance": "SER"}}, {"costs": {"PSI": 2.0}}):
        with pytest.raises(IsocheckError, match="use the refined ones"):
            answer_allocation(programs, rules="paper", **wishes)
    assert set(answer_allocation(programs, costs={"SER": 0.0}, explain=False).levels) == {"SER"}


def test_invalid_programs_are_rejected() -> None:
    with pytest.raises(InputError, match="not declared"):
        Program("P", ("a",), (read("t", "b"),))
    with pytest.raises(InputError, match="takes 1 values"):
        Program("P", ("a",), (read("t", "a"),))(1, 2)
    with pytest.raises(IsocheckError, match="instances already"):
        answer_allocation(draw(SMALLBANK, 10, 5, 1), drawing=Drawing(5))


def test_the_oracle_decides_known_examples() -> None:
    """Write skew: allowed under SI, not under SER; and what a session adds."""
    skew = [Txn(0, [("r", "x", False), ("w", "y", False)]), Txn(1, [("r", "y", False), ("w", "x", False)])]
    assert bad_run(skew, ["SI", "SI"]) is not None
    assert bad_run(skew, ["SER", "SI"]) is not None and bad_run(skew, ["SER", "SER"]) is None
    update_twice = [Txn(0, [("u", "x", False)]), Txn(1, [("u", "x", False)])]
    assert bad_run(update_twice, ["PC", "PC"]) is not None and bad_run(update_twice, ["PSI", "PSI"]) is None
