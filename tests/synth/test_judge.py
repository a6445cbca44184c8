"""Tests of judge.py: verdicts against all witnesses and the checker, explanations, limits, ``check`` by definition."""

import json
import random
from itertools import groupby

import pytest
from oracle_defined import LEVELS, Tiny
from paths import ROOT

from plume_py import HistoryBuilder, check
from plume_py.base.limits import Limits
from plume_py.reasoning.synth import load_definitions
from plume_py.reasoning.synth.formulas import DEFINITIONS
from plume_py.reasoning.synth.judge import MOST_JUDGED, judge

MINE = str(ROOT / "docs" / "my_levels.py")
OTHERS = str(ROOT / "docs" / "other_levels.py")
OWN = load_definitions(MINE)
DEFINED = OWN | load_definitions(OTHERS)
FIGURE = [
    [[("r", "x", 0), ("w", "x", 1), ("w", "y", 1)]],
    [[("r", "x", 1), ("r", "y", 1), ("w", "y", 2)]],
    [[("r", "x", 0), ("r", "y", 2), ("w", "y", 3)]],
]


def built(sessions, **how):
    builder = HistoryBuilder(initial=0)
    for name, session in enumerate(sessions):
        for txn in session:
            builder.add(name, txn, **how)
    return builder.build(init_txn="none")


def tiny(rng, most=4):
    """A history of a few transactions in session order; anyone may read from anyone, also in a circle."""
    size, keys = rng.randint(2, most), "xyz"[: rng.randint(1, 3)]
    sessions = sorted(rng.randrange(rng.randint(1, size)) for _ in range(size))
    share = rng.choice((0.3, 0.5, 0.8))
    writes = [tuple(x for x in keys if rng.random() < share) for _ in range(size)]
    txns = []
    for t in range(size):
        reads = []
        for x in keys:
            later = range(size) if rng.random() < 0.15 else range(t)
            sources = [None, *(u for u in later if u != t and x in writes[u])]
            for _ in range(rng.choice((0, 1, 1, 1, 2))):
                reads.append((x, rng.choice(sources)))
        txns.append((sessions[t], reads, writes[t]))
    return Tiny(txns)


def history_of(h):
    def ops(t):
        _, reads, writes = h.txns[t]
        return [("r", x, 0 if u is None else u + 1) for x, u in reads] + [("w", x, t + 1) for x in writes]

    groups = groupby(h.all, key=lambda t: h.txns[t][0])
    return built([[ops(t) for t in group] for _, group in groups])


@pytest.mark.parametrize("count", [250, pytest.param(5000, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", LEVELS)
def test_verdicts_agree_with_an_enumeration_of_witnesses(name, count):
    rng, seen = random.Random(count), {True: 0, False: 0}
    for _ in range(count):
        h = tiny(rng)
        expected = LEVELS[name](h)
        explained = sum(seen.values()) < 250
        judged = judge(history_of(h), DEFINED.get(name, name), explain=explained)
        assert judged.ok == expected, (name, h.txns)
        assert bool(judged.reasons) == (explained and not expected)
        seen[expected] += 1
    assert seen[True] > count // 20
    assert seen[False] > count // 20 or name in ("PL-1", "PL-2")  # hardly anything breaks them


@pytest.mark.parametrize("name", ["RC", "RA", "TCC", "PC", "PSI", "SI", "SER"])
def test_verdicts_agree_with_the_checker(name):
    rng = random.Random(name)
    forms = [level for level in (name, f"{name}@vis", f"{name}@tap") if level in DEFINITIONS]
    for _ in range(150):
        history = history_of(tiny(rng))
        expected = check(history, name).ok
        for form in forms:
            assert judge(history, form).ok == expected, (form, list(history))


def test_unknown_outcomes_take_part_if_they_were_read_from():
    """Aborted transactions do not, unknown ones do if they were read from, and their own reads are not judged."""
    builder = HistoryBuilder(initial=0)
    builder.add(0, [("r", "x", 0), ("w", "x", 1)], status="unknown")
    builder.add(1, [("w", "x", 2)], status="aborted")
    builder.add(2, [("r", "x", 1), ("w", "x", 3), ("r", "x", 3)])
    builder.add(2, [("r", "x", 3)])
    judged = judge(builder.build(), "UA")
    assert judged.ok
    assert [judged.history.txn(t) for t in judged.witness.order] == ["T1", "T3", "T4"]


@pytest.mark.parametrize("name", ["UA", "UpdateSer", "CI"])
def test_unreadable_reads_violate_every_level(name):
    judged = judge(built([[[("w", "x", 1)]], [[("r", "x", 7)]]]), name)
    assert (judged.ok, judged.flaws) == (False, ("a",))


@pytest.mark.parametrize("last", [[1, 2], [2]])
def test_witnesses_agree_with_the_order_of_lists(last):
    """Of two that append to a list, the list shows the order; UA asks that the later one saw the earlier one."""
    builder = HistoryBuilder(initial=[])
    builder.add(0, [("append", "x", 1), ("append", "y", 1)])
    builder.add(1, [("r", "x", [1]), ("append", "x", 2), ("append", "y", 2)])
    builder.add(2, [("r", "x", [1, 2])])
    builder.add(3, [("r", "y", last)])
    history = builder.build()
    assert judge(history, "UA").ok == (last == [1, 2]) == check(history, "PSI").ok


def test_the_explanation_of_the_papers_example():
    """Isolde's figure 1: no lost update, and yet not update atomic."""
    history = built(FIGURE)
    broken, kept = judge(history, "UA"), judge(history, "NLU")
    assert [reason.words for reason in broken.reasons] == [
        "T2 read x, y from T1, so it sees T1",
        "T1 -AR and conflict-> T3 asks for T1 -VIS-> T3",
        "T3 read the initial x, which T1 overwrote, so it does not see T1",
        "T3 read y from T2, so it sees T2",
    ]
    assert kept.ok and kept.witness.visible_pairs == {(0, 1), (1, 2)}


def test_every_reason_is_needed():
    """What an explanation names contradicts itself, and nothing of it can be left out: here by hand."""
    lost = judge(built([[[("r", "x", 0), ("w", "x", 1)]], [[("r", "x", 0), ("w", "x", 2)]], [[("w", "y", 5)]]]), "UA")
    assert len(lost.reasons) == 4
    assert {t for reason in lost.reasons for t in reason.txns} == {0, 1}


def test_a_graph_is_explained_by_a_cycle():
    skew = built([[[("r", "x", 0), ("w", "y", 1)]], [[("r", "y", 0), ("w", "x", 1)]]])
    words = [reason.words for reason in judge(skew, OWN["SerByGraph"]).reasons]
    assert [line.partition(":")[0] for line in words] == ["T1 -RW-> T2", "T2 -RW-> T1"]


def test_loops_of_a_definition_are_explained_by_their_variables():
    fork = built([[[("w", "x", 1)]], [[("r", "x", 1)]], [[("r", "x", 1)]]])
    (reason,) = judge(fork, OWN["FewReaders"]).reasons
    assert reason.words.endswith(": a = T1, b = T2, c = T3")
    assert reason.words.startswith("line ")


def test_a_premise_without_a_relation_is_explained_as_visibility():
    """Where it follows from the history that T2 is seen, that is said; where it hangs on the order, both are."""
    late = built([[[("w", "x", 1), ("w", "y", 1)]], [[("r", "y", 1), ("r", "x", 0)]]])
    (reason,) = judge(late, "TapRC").reasons
    assert reason.words == "T2 read the initial x, which T1 overwrote, though the level has T2 see T1"
    again = [("r", "x", 1), ("w", "x", 2), ("w", "y", 2)]
    older = built([[[("w", "x", 1)], again], [[("r", "y", 2), ("r", "x", 1)]]])
    assert [reason.words for reason in judge(older, "TapRC").reasons] == [
        "T2 read x from T1, so T1 comes before it",
        "T3 read x from T1, and T2 wrote x, too, and the level has T3 see T2: so T2 comes before T1",
    ]
    writers = built([[[("w", "x", 1), ("w", "y", 1)]], [[("r", "x", 0), ("r", "y", 1), ("w", "x", 2)]]])
    assert [reason.words for reason in judge(writers, OWN["WritersSer"]).reasons] == [
        "T2 read y from T1, so T1 comes before it",
        "T2 read the initial x, which T1 overwrote, so it must not be that the level has T2 see T1",
    ]


def test_large_histories_are_undecided():
    history = built([[[("w", "x", value)] for value in range(1, MOST_JUDGED + 2)]])
    judged = judge(history, "UA")
    assert judged.ok is None
    assert f"decided up to {MOST_JUDGED}" in judged.why
    assert judge(built(FIGURE), "UA", Limits(timeout=1e-9)).ok is None


def test_real_time_needs_times():
    assert "when its transactions began" in judge(built(FIGURE), "UA@realtime").why
    builder = HistoryBuilder(initial=0)
    builder.add(0, [("w", "x", 1)], begin=0, end=1)
    builder.add(1, [("r", "x", 0)], begin=2, end=3)
    history = builder.build()
    assert judge(history, "NLU").ok
    stale = judge(history, "NLU@realtime")
    assert [reason.words for reason in stale.reasons] == [
        "T2 began when T1 had ended, so it sees T1",
        "T2 read the initial x, which T1 overwrote, so it does not see T1",
    ]


@pytest.fixture
def figure(tmp_path):
    path = tmp_path / "figure.json"
    path.write_text(json.dumps({"initial": 0, "sessions": [[{"ops": txn} for txn in session] for session in FIGURE]}))
    return path


def test_check_by_definition(isocheck, figure, tmp_path):
    code, out, _ = isocheck(figure, "--level", "UA", "-l", "NLU", "-l", "RA", "--out", tmp_path / "drawn")
    assert code == 1
    assert "RA   holds" in out
    assert "UA   violated: no arbitration order with a visibility keeps all of this" in out
    assert "4. T3 read y from T2, so it sees T2" in out
    assert "by the arbitration order T1 < T2 < T3; T2 sees T1, T3 sees T2" in out
    drawn = {path.name: path.read_text() for path in (tmp_path / "drawn").glob("*.dot")}
    assert any(
        name.endswith("NLU.dot") and ">AR<" in source and ">VIS WR(x, y)<" in source for name, source in drawn.items()
    )
    assert any(name.endswith("UA.dot") and ">3. not VIS<" in source for name, source in drawn.items())
    assert isocheck(figure, "-l", "NLU")[0] == 0


def test_check_with_a_file(isocheck, figure):
    code, out, _ = isocheck(figure, "--define", MINE, "--level", "SerByGraph", "--format", "json")
    verdict = json.loads(out)["results"][0]["levels"]["SerByGraph"]
    assert (code, verdict["ok"]) == (1, False)
    assert verdict["because"][-1] == "3. T3 -RW-> T1: without a cycle, T3 comes before T1"
    code, out, _ = isocheck(figure, "--define", MINE)  # every level, and all of one's own
    assert code == 1
    assert all(name in out for name in (*OWN, "SER"))
    for output in ("junit", "sarif", "github", "jsonl", "elle", "dot"):
        assert isocheck(figure, "--define", MINE, "--level", "SerByGraph", "--format", output)[0] == 1


def test_check_by_definition_in_an_order(isocheck, tmp_path):
    path = tmp_path / "stale.json"
    path.write_text('{"initial":0,"sessions":[[{"ops":[["w","x",1]]},{"ops":[["r","x",0]]}]]}')
    assert isocheck(path, "-l", "NLU")[0] == 1
    assert isocheck(path, "-l", "NLU@none")[0] == 0
    code, out, _ = isocheck(path, "-l", "NLU", "--order", "none")
    assert (code, "NLU  holds (order: none)" in out) == (0, True)
    code, out, _ = isocheck(path, "-l", "NLU", "--order", "realtime")
    assert (code, "undecided" in out) == (3, True)


def test_check_by_definition_is_undecided_for_large_histories(isocheck, tmp_path):
    path = tmp_path / "long.json"
    ops = [{"ops": [["w", "x", value]]} for value in range(1, MOST_JUDGED + 2)]
    path.write_text(json.dumps({"initial": 0, "sessions": [ops]}))
    code, out, _ = isocheck(path, "-l", "UA", "-l", "RA")
    assert (code, "UA   undecided" in out, "RA   holds" in out) == (3, True, True)


def test_unreadable_reads_are_explained_by_the_checker(isocheck, tmp_path):
    path = tmp_path / "thin.json"
    path.write_text('{"initial":0,"sessions":[[{"ops":[["r","x",7]]}]]}')
    code, out, _ = isocheck(path, "-l", "UA")
    assert (code, "TAP-a" in out, "nobody" in out) == (1, True, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-l", "nonsense"], "unknown level 'nonsense'"),
        (["-l", "UAA"], "Did you mean UA?"),
        (["-l", "UA", "--witness", "w.json"], "--witness and --minimize are for"),
        (["-l", "UA", "--tap", "a"], "not both"),
    ],
)
def test_wrong_options_are_rejected(isocheck, figure, arguments, message):
    code, _, err = isocheck(figure, *arguments)
    assert (code, message in err) == (2, True)


def test_the_levels_command_lists_all_definitions(isocheck):
    code, out, _ = isocheck("levels", "--define", MINE)
    assert code == 0
    for name in (*DEFINITIONS, *OWN):
        assert name in out
