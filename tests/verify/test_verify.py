"""Tests of verify: results of ``check`` are confirmed, mutated ones are refuted, and no code of the checker is used."""

import copy
import json
import random
import sys
from itertools import permutations

import pytest
from click.testing import CliRunner
from oracle import BASE, Facts, _static, random_history
from paths import ROOT

from plume_py import HistoryBuilder, check, load
from plume_py.base.errors import IsocheckError
from plume_py.checking.witness import write_witness
from plume_py.cli.main import cli, exit_code_of
from plume_py.history.generate import generate
from plume_py.history.inject import RECIPES, inject
from plume_py.levels.patterns import TAPS
from plume_py.report.json import document, line
from plume_py.verify import WitnessClaim, read_claim, verify_entry, verify_witness

WEAK = ["CI", "RC", "RA", "TCC"]
LEVEL_OF = {tap.id: tap.level for tap in TAPS.values()}
SINGLE = (*"abcdef", "torn-append")  # patterns of one read, whose step only points at the writer
WEAKER_NAME = {"k": "h", "l": "i", "m": "k", "n": "l"}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setenv("ISOCHECK_COMPILE", "never")


def built(sessions, **options):
    builder = HistoryBuilder(initial=0, **options)
    for s, session in enumerate(sessions):
        builder.session(s)
        for status, ops in session:
            builder.add(s, ops, status=status)
    return builder.build()


def random_lists(rng):
    """A tiny history of appends and list reads: mostly prefixes of one order, sometimes shuffled or cut."""
    keys = ["x", "y"][: rng.randint(1, 2)]
    full = {x: [] for x in keys}
    sessions = [[] for _ in range(rng.randint(1, 3))]
    for _ in range(rng.randint(2, 6)):
        ops = []
        for _ in range(rng.randint(1, 3)):
            x = rng.choice(keys)
            if rng.random() < 0.6:
                full[x].append(len(full[x]) + 1)
                ops.append(("append", x, len(full[x])))
            else:
                items = full[x][: rng.randint(0, len(full[x]))] if rng.random() < 0.4 else list(full[x])
                if rng.random() < 0.15:
                    rng.shuffle(items)
                if rng.random() < 0.05:
                    items += [rng.randint(1, 9)]
                ops.append(("r", x, items))
        rng.choice(sessions).append((rng.choice(("committed",) * 8 + ("unknown", "aborted")), ops))
    return sessions


def report_of(history, **options):
    return json.loads(line(check(history, WEAK, max_examples=3, name="h", **options)))


def refuted(history, report):
    (entry,) = read_claim(json.dumps(report).encode())
    return verify_entry(history, entry)


def witness_of(history, level, folder):
    path = folder / "witness.json"
    write_witness(history, level, str(path))
    claim = read_claim(path.read_bytes())
    assert isinstance(claim, WitnessClaim) and claim.level == level
    return claim


def makers():
    return [pytest.param(random_history, id="registers"), pytest.param(random_lists, id="lists")]


# What check says is confirmed


@pytest.mark.parametrize("make", makers())
def test_all_results_of_check_are_confirmed(make, tmp_path):
    shown, held = set(), dict.fromkeys(WEAK, 0)
    for seed in range(300):
        history = built(make(random.Random(seed)))
        report = report_of(history)
        if report["violations"]:
            assert refuted(history, report) == [], seed
        shown |= {violation["tap"] for violation in report["violations"]}
        for level in WEAK[1:]:
            if report["levels"][level]["ok"]:
                held[level] += 1
                assert verify_witness(history, witness_of(history, level, tmp_path)) == [], (seed, level)
    assert min(held[level] for level in WEAK[1:]) > 50
    if make is random_history:
        assert shown >= set("abcdfghjkm")
    else:
        assert shown >= {*"abdefjk", "duplicate-element", "incompatible-order", "torn-append", "version-order-cycle"}


@pytest.mark.parametrize("letter", sorted(RECIPES))
def test_planted_patterns_are_confirmed(letter):
    for seed in range(2):
        history, _ = inject(generate("TCC", sessions=4, transactions=20, operations=6, keys=30, seed=seed), {letter: 3})
        report = report_of(history)
        assert letter in {violation["tap"] for violation in report["violations"]}
        assert refuted(history, report) == []


@pytest.mark.parametrize("guarantee", ["RC", "RA", "TCC", "SER"])
def test_generated_witnesses_are_confirmed(guarantee, tmp_path):
    level = "TCC" if guarantee == "SER" else guarantee
    for seed in range(4):
        history = generate(guarantee, sessions=6, transactions=40, operations=8, keys=25, seed=seed)
        assert verify_witness(history, witness_of(history, level, tmp_path)) == []


def test_a_cycle_of_version_orders_is_confirmed():
    both = [("append", "x", 1), ("append", "y", 1)], [("append", "x", 2), ("append", "y", 2)]
    reader = [("r", "x", [1, 2]), ("r", "y", [2, 1])]
    history = built([[("committed", ops)] for ops in (*both, reader)])
    report = report_of(history)
    (cycle,) = [violation for violation in report["violations"] if violation["tap"] == "version-order-cycle"]
    assert refuted(history, report) == []
    cycle["steps"][0]["key"], cycle["steps"][1]["key"] = cycle["steps"][1]["key"], cycle["steps"][0]["key"]
    assert refuted(history, report)


# What is false is refuted


@pytest.mark.parametrize("make", makers())
def test_every_order_of_tiny_histories_agrees_with_the_definitions(make):
    """All permutations of the transactions that count, against the oracle's reading of the axioms."""
    judged = {True: 0, False: 0}
    for seed in range(120):
        sessions = make(random.Random(seed))
        history, facts = built(sessions, declared=True), Facts(sessions)
        if len(facts.live) > 4:
            continue
        for order in permutations(facts.live):
            place = {-1: -1, **{t: at for at, t in enumerate(order)}}
            extends = not facts.found & BASE and all(place[a] < place[b] for a, b in facts.co | facts.ww)
            for level in WEAK[1:]:
                obeys = _static(facts, level)
                expected = extends and all(obeys(place, t) for t in order)
                claim = WitnessClaim(level=level, order=[f"T{t + 1}" for t in order])
                assert (verify_witness(history, claim) == []) == expected, (seed, level, order)
                judged[expected] += 1
    assert min(judged.values()) > 50


def test_orders_with_missing_repeated_or_unknown_transactions_are_refuted(tmp_path):
    history = generate("SER", sessions=3, transactions=4, operations=4, keys=4)
    good = witness_of(history, "TCC", tmp_path).order
    for order, problem in (
        (good[1:], f"{good[0]} is missing from the order"),
        ([*good, good[3]], f"{good[3]} stands in the order more than once"),
        ([*good, "T99"], "T99 is not a transaction that counts"),
        ([], "is missing"),
    ):
        problems = verify_witness(history, WitnessClaim(level="TCC", order=order))
        assert problem in problems[0]


def test_swaps_that_violate_an_axiom_are_refuted():
    # Only the axiom of RA orders the two writers: the reader saw both, and x of the second.
    sessions = [[[("w", "x", 1), ("w", "y", 1)]], [[("w", "x", 2)]], [[("r", "x", 2), ("r", "y", 1)]]]
    history = built([[("committed", ops) for ops in session] for session in sessions])
    verdict = {
        (level, order): verify_witness(history, WitnessClaim(level=level, order=order.split()))
        for level in WEAK[1:]
        for order in ("T1 T2 T3", "T2 T1 T3")
    }
    assert [key for key, problems in verdict.items() if problems] == [("RA", "T2 T1 T3"), ("TCC", "T2 T1 T3")]
    assert verdict["RA", "T2 T1 T3"] == [
        "T3 read x from T2, but RA wants it to see T1, which wrote x too and stands later in the order"
    ]


def mutations(violation):
    """False versions of a counterexample."""

    def changed(change):
        mutant = copy.deepcopy(violation)
        change(mutant)
        return mutant

    for i, step in enumerate(violation["steps"]):
        yield changed(lambda v, i=i: v["steps"][i].update({"from": v["steps"][i]["to"], "to": v["steps"][i]["from"]}))
        yield changed(lambda v, i=i: v["steps"][i].update({"from": "nobody"}))
        yield changed(lambda v, i=i: v["steps"][i].update({"relation": "RW"}))
        if step["relation"] != "SO":
            yield changed(lambda v, i=i: v["steps"][i].update({"key": "nothing"}))
            yield changed(lambda v, i=i: v["steps"][i].update({"relation": "SO"}) or v["steps"][i].update({"to": "T1"}))
        if step["relation"] == "CM":
            yield changed(lambda v, i=i: v["steps"][i].update({"reader": v["steps"][i]["from"]}))
            yield changed(lambda v, i=i: v["steps"][i].update({"evidence": []}))
            yield changed(lambda v, i=i: v["steps"][i]["evidence"].reverse() or v["steps"][i]["evidence"].pop())
        if violation["tap"] not in SINGLE:
            yield changed(lambda v, i=i: v["steps"].pop(i))
    yield changed(lambda v: v.update(level="TCC" if v["level"] != "TCC" else "RC"))
    yield changed(lambda v: v.update(tap="o"))
    if violation["tap"] != "incompatible-order":  # one transaction alone may have read both lists
        yield changed(lambda v: v["transactions"].pop())
    yield changed(lambda v: v["transactions"][0].update(place="elsewhere"))
    yield changed(lambda v: v["transactions"][0].update(session="elsewhere"))
    yield changed(lambda v: v["transactions"][0]["ops"].append(["w", "x", 77]))
    yield changed(lambda v: v["transactions"][0].update(hidden_ops=99))
    if violation["tap"] in WEAKER_NAME:
        name = WEAKER_NAME[violation["tap"]]
        yield changed(lambda v: v.update(tap=name, level=LEVEL_OF[name]))
    if violation["tap"] in SINGLE or not violation["steps"]:
        yield changed(lambda v: v.update(keys=["nothing"]))


@pytest.mark.parametrize("make", makers())
def test_mutated_counterexamples_are_refuted(make):
    tried = 0
    for seed in range(150):
        history = built(make(random.Random(seed)))
        report = report_of(history)
        for violation in report["violations"]:
            for mutant in mutations(violation):
                tried += 1
                problems = refuted(history, {**report, "violations": [mutant]})
                assert any(problem.startswith("violation 1") for problem in problems), (seed, mutant)
    assert tried > 500


@pytest.mark.parametrize("letter", sorted(RECIPES))
def test_mutated_planted_patterns_are_refuted(letter):
    history, _ = inject(generate("SER", sessions=2, transactions=3, operations=3, keys=5), {letter: 1}, seed=3)
    report = report_of(history)
    violation = next(v for v in report["violations"] if v["tap"] == letter)
    for mutant in mutations(violation):
        assert refuted(history, {**report, "violations": [mutant]}), mutant


def test_verdicts_and_violations_must_agree():
    history = built([[("committed", [("w", "x", 1)]), ("committed", [("r", "x", 0)])]])
    report = report_of(history)
    assert [report["levels"][level]["ok"] for level in WEAK] == [True, True, False, False]
    assert refuted(history, report) == []
    report["levels"]["RC"]["ok"] = False
    assert refuted(history, report) == ["RC is said to be violated, but no violation of it is shown"]
    report["levels"]["RC"]["ok"], report["levels"]["TCC"]["ok"] = True, True
    assert refuted(history, report) == ["TCC is said to hold, but a violation of RA is shown"]


# Names


def test_aborted_transactions_of_plume_text_share_an_id(tmp_path):
    path = tmp_path / "h.txt"
    path.write_text("w(1,1,1,-1)\nw(2,1,2,-1)\nw(1,2,3,5)\nr(2,1,4,6)\n")
    history = load(path)
    report = report_of(history)
    assert [violation["tap"] for violation in report["violations"]] == ["b"]
    assert refuted(history, report) == []
    report["violations"][0]["transactions"][0]["place"] = "line 1"
    assert refuted(history, report)


def test_only_live_transactions_are_in_the_order(tmp_path):
    builder = HistoryBuilder(initial=None, declared=False)
    builder.add("init", [("w", "x", 10), ("w", "y", 10)], id="init")
    builder.add("a", [("w", "x", 1)], id="seen", status="unknown")
    builder.add("a", [("w", "x", 2)], id="unseen", status="unknown")
    builder.add("a", [("w", "y", 3)], id="gone", status="aborted")
    builder.add("b", [("r", "x", 1), ("r", "y", 10)], id="reader")
    history = builder.build()
    assert history.init_txn == 0
    claim = witness_of(history, "TCC", tmp_path)
    assert claim.order == ["seen", "reader"]
    assert verify_witness(history, claim) == []


# The command line


DEMO = str(ROOT / "histories" / "demo.json")


def run(*args, stdin=None):
    result = CliRunner().invoke(cli, [str(arg) for arg in args], input=stdin)
    if isinstance(result.exception, IsocheckError):
        return exit_code_of(result.exception), str(result.exception)
    return result.exit_code, result.output


def test_a_witness_from_the_command_line(tmp_path):
    path = tmp_path / "w.json"
    assert run("check", DEMO, "--level", "RA", "--witness", path)[0] == 0
    assert run("verify", DEMO, path) == (0, "confirmed: the order of 4 transactions shows RA\n")
    witness = json.loads(path.read_text())
    witness["order"].reverse()
    path.write_text(json.dumps(witness))
    code, output = run("verify", DEMO, path)
    assert code == 1
    assert "refuted: share stands after hide-and-post in the order, but comes before it in its session\n" in output
    witness["order"], witness["level"] = witness["order"][::-1], "TCC"
    path.write_text(json.dumps(witness))
    assert run("verify", DEMO, path)[0] == 1


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_a_report_from_the_command_line(tmp_path, output):
    other = tmp_path / "other.json"
    other.write_text('{"initial":0,"sessions":[[{"ops":[["w","x",1]]},{"ops":[["r","x",0]]}]]}')
    path = tmp_path / "report"
    code, text = run("check", DEMO, other, "--format", output)
    assert code == 1
    path.write_text(text)
    assert run("verify", DEMO, path) == (0, "confirmed: 1 violation proved again\n")
    assert run("verify", other, path) == (0, "confirmed: 1 violation proved again\n")
    assert run("verify", other, "-", stdin=text)[0] == 0
    code, text = run("verify", tmp_path / "third.json", path)
    assert (code, "says nothing about" in text) == (4, True)


def test_the_only_entry_may_have_another_path(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(document([check(load(DEMO), "TCC", name="somewhere/else.json")]))
    assert run("verify", DEMO, path)[0] == 0


def test_files_without_a_verifiable_claim_are_rejected(tmp_path):
    path = tmp_path / "f"
    for text in (
        "",
        "[]",
        "{",
        "3",
        '{"order":3,"level":"TCC"}',
        '{"order":[],"level":"SSER"}',
        '{"results":3}',
        "\xff",
    ):
        path.write_bytes(text.encode("latin-1"))
        assert run("verify", DEMO, path)[0] == 4, text
    assert run("verify", DEMO, tmp_path / "none")[0] == 4
    path.write_text('{"order":[],"level":"TCC"}')
    assert run("verify", tmp_path / "none", path)[0] == 4
    assert run("verify", DEMO)[0] == 2
    assert run("verify", "-", "-")[0] == 2
    path.write_text(line(check(load(DEMO), "RA", name=DEMO)))
    assert run("verify", DEMO, path)[0] == 2  # nothing violated, so nothing to prove


def test_levels_without_a_witness(tmp_path):
    code, text = run("check", DEMO, "--level", "CI", "--witness", tmp_path / "w")
    works = "RC, RA, TCC, PC, PSI, SI, SER, declared"
    assert (code, text) == (2, f"CI is defined without a commit order; --witness works for {works}")
    assert run("check", DEMO, "--level", "TCC", "--witness", tmp_path / "w")[0] == 1
    with pytest.raises(IsocheckError, match="TCC does not hold"):
        write_witness(load(DEMO), "TCC", str(tmp_path / "w"))
    assert not (tmp_path / "w").exists()


def test_nothing_is_shared_with_the_engine():
    import subprocess

    script = "import sys, plume_py.verify, plume_py.history.load; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    engine = ("plume_py.checking",)
    assert not [name for name in modules if name.startswith(engine)]
