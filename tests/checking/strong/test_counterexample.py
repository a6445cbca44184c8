"""strong/counterexample and strong/minimal: proofs are named, minimal, true step by step, and in every report."""

import random
from dataclasses import replace
from itertools import pairwise

import msgspec
import oracle
import oracle_mixed
import pytest
from arguments import explained
from paths import HISTORIES
from small_histories import build, history

import plume_py
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.result import LevelVerdict, Result
from plume_py.checking.strong.counterexample import DECLARED, explain
from plume_py.checking.strong.minimal import proof_tree
from plume_py.checking.strong.solver.engine import Decision, StrongEngine
from plume_py.checking.strong.solver.unsat_core import Core
from plume_py.history.generate import generate
from plume_py.history.model import INITIAL_ID
from plume_py.levels import weaker_levels
from plume_py.levels.patterns import STRONG
from plume_py.report import dot
from plume_py.report.html import page_data
from plume_py.report.json import line
from plume_py.report.text import render

LEVELS = ("PC", "PSI", "SI", "SER")
CAUSAL = ("SO", "WR")


# Is the argument true? Judged by the oracle's facts alone


class Judge:
    def __init__(self, facts, violation):
        self.facts, self.violation = facts, violation
        self.number = {f"T{t + 1}": t for t in facts.live}  # as the builder names them

    def judge(self):
        assert self.violation.steps
        self.cycle(self.violation.steps, ())

    def cycle(self, steps, supposed):
        assert all(a.target == b.source for a, b in pairwise((*steps, steps[0])))
        assert self.forbidden(steps), "the level allows this cycle"
        for step in steps:
            self.step(step, supposed)

    def forbidden(self, steps):
        relations = [step.relation for step in steps]
        missed = [relations[i - 1] for i, relation in enumerate(relations) if relation == "RW"]
        level = self.violation.level
        if level in ("SER", DECLARED):
            return True
        if level == "PSI":
            return len(missed) <= 1
        return all(earlier in CAUSAL or (level == "SI" and earlier == "WW") for earlier in missed)

    def step(self, step, supposed):
        a, b = self.number.get(step.source, oracle.INITIAL), self.number.get(step.target)
        if step.relation == "SO":
            assert (a, b) in self.facts.so
        elif step.relation == "WR":
            assert (step.key, a) in self.facts.reads[b]
        elif step.relation == "RW":
            self.missed(step, a, b, supposed)
        else:
            self.ordered(step, a, b, supposed)

    def missed(self, step, t, b, supposed):
        read, *newer = step.evidence
        assert (read.relation, read.key, read.target) == ("WR", step.key, step.source)
        assert step.key in self.facts.writes[b]
        self.step(read, supposed)
        if read.source == INITIAL_ID:
            assert not newer
        else:
            assert (newer[0].source, newer[0].target, newer[0].key) == (read.source, step.target, step.key)
            self.step(newer[0], supposed)

    def ordered(self, step, a, b, supposed):
        if step.relation == "WW":
            assert step.key in self.facts.writes[a]
            assert step.key in self.facts.writes[b]
        what = step.relation, step.key, a, b
        if step.assumed:
            assert what in supposed
        elif step.reader is not None:
            assert (a, b) in self.facts.ww | self.facts.unseen
        else:
            back = step.relation, step.key, b, a
            self.cycle(step.evidence, (*supposed, back))


def random_facts(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        sessions = oracle.random_history(rng, txns=(3, 7), sessions=(2, 4), wild=0, failed=rng.choice((0, 0, 0.1)))
        facts = oracle.Facts(sessions)
        if not facts.found & oracle.BASE:
            yield rng, sessions, facts


def cut_down(sessions, kept):
    """The sub-history of some transactions (by number), without reads from others."""
    facts = oracle.Facts(sessions)
    t, result = -1, []
    for session in sessions:
        result.append([])
        for status, ops in session:
            t += 1
            if t in kept:
                left = [op for op in ops if op[0] == "w" or facts.writer.get((op[1], op[2]), t) in kept]
                result[-1].append((status, left))
    return result


def true_and_minimal(seed, count):
    for _, sessions, facts in random_facts(seed, count):
        for level in LEVELS:
            if not oracle.satisfies(facts, "TCC") or oracle.satisfies(facts, level):
                continue
            violation = explained(build(sessions), level)
            assert violation.level == level or violation.level in weaker_levels(level)
            Judge(facts, violation).judge()
            kept = {int(txn.id[1:]) - 1 for txn in violation.transactions}
            shown = oracle.Facts(cut_down(sessions, kept))
            assert not oracle.satisfies(shown, violation.level), sessions
            # It is told at a weakest level that it breaks, by a name that this level forbids, and no weaker one.
            assert all(oracle.satisfies(shown, weaker) for weaker in weaker_levels(violation.level)), sessions
            assert violation.tap == "cycle" or STRONG[violation.tap].level == violation.level, sessions
            for t in kept:
                smaller = oracle.Facts(cut_down(sessions, kept - {t}))
                assert oracle.satisfies(smaller, violation.level), (sessions, level)


def test_arguments_are_true_and_minimal():
    true_and_minimal(1, 600)


def test_mixed_levels_have_a_proof_exactly_if_they_are_violated():
    refuted_exactly(2, 150)


def refuted_exactly(seed, count):
    for rng, sessions, facts in random_facts(seed, count):
        levels = oracle_mixed.random_levels(rng, facts)
        made = build(sessions)
        analysis = Analysis(made)
        found, proof = proof_tree.ProofFinder(made, analysis.reads, levels).argue(facts.live)
        assert (proof is None) == oracle_mixed.holds(facts, levels), (sessions, levels)
        if proof is not None:
            violation = explained(made, levels)
            Judge(facts, violation).judge()
            assert [txn.level for txn in violation.transactions] == [levels[t] for t in found.number]


@pytest.mark.full
def test_many_arguments_are_true_and_minimal():
    true_and_minimal(11, 30_000)
    refuted_exactly(12, 5_000)


# Names


@pytest.mark.parametrize("level", ["PSI", "SI", "SER"])
def test_lost_update(level):
    violation = explained(history(["wx1"], ["rx1 wx2"], ["rx1 wx3"]), level)
    assert (violation.tap, violation.level) == ("lost-update", "PSI")
    assert [txn.id for txn in violation.transactions] == ["T1", "T2", "T3"]
    assert violation.explanation.startswith("T2 and T3 both read x from T1 and both overwrote it")
    first, second = violation.steps
    assert (first.relation, second.relation) == ("WW", "RW")
    assert first.evidence[0].assumed
    assert (first.evidence[0].source, first.evidence[0].target) == (first.target, first.source)


@pytest.mark.parametrize("level", ["PC", "SI", "SER"])
def test_long_fork(level):
    violation = explained(plume_py.load(HISTORIES / "TCC/long-fork.json"), level)
    assert (violation.tap, violation.level) == ("long-fork", "PC")
    assert [step.relation for step in violation.steps] == ["WR", "RW", "WR", "RW"]
    assert violation.explanation.startswith("T3 saw T1 and not T2, but T4 saw T2 and not T1")


def test_write_skew():
    violation = explained(plume_py.load(HISTORIES / "SI/write-skew.json"), "SER")
    assert (violation.tap, violation.level) == ("write-skew", "SER")
    assert [step.relation for step in violation.steps] == ["RW", "RW"]


def test_read_only_anomaly():
    violation = explained(plume_py.load(HISTORIES / "SI/read-only-anomaly.json"), "SER")
    assert (violation.tap, violation.level) == ("read-only-anomaly", "SER")
    assert "T3 only reads" in violation.explanation


def test_a_violation_of_serializability_alone_is_no_lost_update():
    """T1's x comes after T2's, or else T2 would have lost it; so T1 and T4 each missed what the other one wrote."""
    made = history(["ry1 wx4"], ["rx2 wx3"], ["wy1 wx2"], ["ry1 wy5 rx3"])
    assert [level for level in LEVELS if not plume_py.check(made, level).ok] == ["SER"]
    violation = explained(made, "SER")
    assert (violation.tap, violation.level) == ("write-skew", "SER")
    assert [(step.source, step.relation, step.target) for step in violation.steps] == [
        ("T1", "RW", "T4"),
        ("T4", "RW", "T1"),
    ]
    (newer,) = violation.steps[1].evidence[1:]
    assert (newer.source, newer.target, newer.is_proved) == ("T2", "T1", True)
    assert [step.relation for step in newer.evidence] == ["WW", "RW"]


def test_a_lost_update_among_serializable_transactions_of_a_mix():
    violation = explained(history(["rx0 wx1"], ["rx0 wx2"], ["wz1"]), {0: "SER", 1: "SER", 2: "RA"})
    assert violation.tap == "lost-update"


def test_a_cycle_without_a_name():
    # T2 overwrote T1's x after T1 (T3 shows it), but missed T1's y.
    violation = explained(history(["rx0 wx1 wy1"], ["ry0 wx2"], ["rx1"], ["rx1 wz1"]), "PSI")
    assert violation.tap == "cycle"
    assert violation.level == "PSI"


def test_the_galera_history_is_a_lost_update():
    made = history(["wx1 wx2", "wx3 wx4", "rx4 wx5", "rx5 rx5"], ["rx4 wx10", "wx11 wx12", "wx13 wx14"])
    violation = explained(made, "SI")
    assert violation.tap == "lost-update"
    assert [txn.id for txn in violation.transactions] == ["T2", "T3", "T5"]


def test_the_order_of_appends_is_shown_by_a_list():
    sessions = [
        [("committed", [("append", "x", 1)])],
        [("committed", [("append", "x", 2), ("append", "y", 1)])],
        [("committed", [("r", "x", (2, 1)), ("r", "y", ())])],
    ]
    violation = explained(build(sessions, None), "PC")
    Judge(oracle.Facts(sessions, None), violation).judge()
    shown = next(step for step in violation.steps if step.relation == "WW")
    assert shown.reader == "T3"
    assert "shows T2's append before T1's" in shown.because


def test_an_append_that_no_list_shows_comes_later():
    sessions = [
        [("committed", [("append", "x", 1)])],
        [("committed", [("append", "x", 2), ("append", "y", 1)])],
        [("committed", [("r", "x", (1,))])],
        [("committed", [("r", "y", (1,)), ("r", "x", (1,))])],
    ]
    # T4 saw T2's y but not its x, which came after T1's.
    analysis = Analysis(build(sessions, None))
    (found,) = explain(analysis, Decision(False, cores=(Core((0, 1, 2, 3)),)), "SER")
    text = render(Result("h", violations=(found.violation,)), style=lambda words, **_: words)
    assert "read of list x shows T1's append and not T2's" in " ".join(text.split())


# Mixed levels


def test_the_same_history_is_fine_at_pc_and_not_at_si():
    made = history(["rx0 wx1"], ["rx0 wx2"])
    analysis = Analysis(made)
    fine = {0: "SER", 1: "PC"}
    assert proof_tree.ProofFinder(made, analysis.reads, fine).argue((0, 1))[1] is None
    violation = explained(made, {0: "SER", 1: "SI"})
    assert violation.tap == "lost-update"
    assert violation.level == DECLARED
    assert [txn.level for txn in violation.transactions] == ["SER", "SI"]
    text = render(Result("h", violations=(violation,)), style=lambda words, **_: words)
    assert "T2 at SI" in text
    assert "T2 runs at SI, so it saw T1, which wrote x before it" in " ".join(text.split())


def test_causality_through_a_weaker_transaction():
    # T2 runs at RA and saw T1's x; T3 sees T2 and so, at TCC, T1.
    made = history(["wx1"], ["rx1 wy1"], ["ry1 rx0"])
    assert explained(made, {0: "RA", 1: "RA", 2: "TCC"}).tap == "causality"


def test_commit_orders_are_supposed_where_the_order_of_writers_does_not_decide():
    # Whichever of T1 and T2 comes first, the reader that saw the other one's reader saw it, too.
    made = history(["wy1"], ["wz1"], ["ry1 wp1"], ["rz1 wq1"], ["rp1 rz0"], ["rq1 ry0"])
    levels = dict(enumerate(["RA", "RA", "PC", "PC", "TCC", "TCC"]))
    violation = explained(made, levels)
    assert sorted(step.relation for step in violation.steps) == ["CM", "RW", "WR", "WR"]
    text = " ".join(render(Result("h", violations=(violation,)), style=lambda words, **_: words).split())
    assert "T3 runs at PC, so it saw all that comes before T1" in text
    assert "T4 runs at PC, so it saw all that comes before T2" in text


# Limits


def test_an_argument_that_is_too_long_is_not_shown_but_the_set_is(monkeypatch):
    monkeypatch.setattr(proof_tree, "TRIALS", 0)
    violation = explained(history(["wx1"], ["rx1 wx2"], ["rx1 wx3"]), "PSI")
    assert (violation.tap, violation.steps) == ("cycle", ())
    assert "these 3 transactions alone break the level" in violation.explanation
    assert "these 3 transactions" in dot.render(violation)


def test_nothing_is_explained_that_holds_or_is_undecided():
    analysis = Analysis(history(["wx1"]))
    for ok in (True, None):
        assert explain(analysis, Decision(ok), "SER") == []


# Reports


def lost_update():
    violation = explained(plume_py.load(HISTORIES / "TCC/lost-update.json"), "SI")
    verdict = LevelVerdict(False, (violation.tap,))
    return Result("h.json", levels={"SI": verdict}, violations=(violation,), counts={violation.tap: 1})


def test_the_text_report_explains_why_both_orders_fail():
    text = render(lost_update(), style=lambda words, **_: words)
    assert "LostUpdate [lost-update, P4, G-single], forbidden by" in text
    assert "forbidden by parallel snapshot" in text
    assert "1. T2 -WW-> T3: T2's write of x comes before T3's: if T3's came first" in text
    assert "1a. T2 -RW-> T3: T2 read x = 1 from T1, which T3 overwrote" in text
    assert "2. T3 -RW-> T2" in text


def test_json_contains_the_whole_proof():
    (violation,) = msgspec.json.decode(line(lost_update()))["violations"]
    first, second = violation["steps"]
    assert first["evidence"][0]["assumed"] is True
    assert [inner["relation"] for inner in second["evidence"]] == ["WR", "WW"]
    assert second["value"] == 1


def test_the_picture_of_a_lost_update_has_two_edges_between_the_writers():
    """What each of them says: the step, and in small letters what else leads that way."""
    text = dot.render(lost_update().violations[0])
    edges = [row for row in text.splitlines() if "class=" in row and "->" in row]
    one, other = (row for row in edges if "t1:" in row and "t2:" in row)
    assert 'class="WW step-1"' in one and "the opposite" in one and "RW(x)" in one
    assert 'class="RW step-2"' in other and "not WW(x)" in other
    assert [("WR evidence" in row) for row in edges if row not in (one, other)] == [True, True]
    assert "not: this order leads to a contradiction" in text


def test_an_excluded_order_with_an_edge_of_its_own_is_dotted():
    violation = lost_update().violations[0]
    proved, read = violation.steps
    elsewhere = replace(proved.evidence[0], source="T1")
    text = dot.render(replace(violation, steps=(replace(proved, evidence=(elsewhere,)), read)))
    (edge,) = [row for row in text.splitlines() if "WW excluded" in row]
    assert "style=dotted" in edge
    assert "not WW(x)" in edge


def test_the_page_has_the_excluded_order():
    (example,) = page_data([lost_update()])["examples"]
    assert any(inner.get("assumed") for step in example["steps"] for inner in step.get("evidence", ()))
    assert example["conclusion"].startswith("That is, T2 and T3 both read x")


@pytest.mark.parametrize("pattern", STRONG)
def test_every_pattern_has_a_sentence(pattern):
    described = STRONG[pattern]
    assert described.id == pattern
    assert described.level in ("TCC", "PC", "PSI", "SER")


@pytest.mark.parametrize("distribution", ["uniform", "zipfian"])
@pytest.mark.parametrize("level", ["SI", "SER"])
def test_the_core_of_a_long_history_has_few_transactions(level, distribution):
    """In a component of hundreds of transactions most cycles are long: one of the short ones is to be found."""
    history = generate(
        "TCC", sessions=10, transactions=80, operations=8, keys=200, distribution=distribution, read_share=0.5, seed=4
    )
    analysis = Analysis(history)
    decision = StrongEngine(analysis, level).decide()
    assert decision.ok is False
    sizes = [len(core.transactions) for core in decision.cores]
    assert sizes == sorted(sizes)
    assert sizes[0] <= 12
    found = explain(analysis, decision, level)
    assert len(found[0].transactions) <= 8
    used = [t for each in found for t in each.transactions]
    assert len(used) == len(set(used)), "violations of one decision share no transaction"
