"""The oracle against the corpus of histories with known verdicts, and against the decisions it implements."""

import csv
import json
import random

import paths
import pytest
from oracle import (
    INITIAL,
    LETTERS,
    LEVELS,
    Facts,
    commit_order,
    from_document,
    named_triples,
    patterns,
    patterns_of,
    random_history,
    taps,
    verdicts,
)

CORPUS = paths.SHARED / "histories"
STRONGER = [("SER", "SI"), ("SI", "PC"), ("SI", "PSI"), ("PC", "TCC"), ("PSI", "TCC"), ("TCC", "RA"), ("RA", "RC")]


def corpus():
    """(path, expected verdicts) of every small history in the native format."""
    index = CORPUS / "INDEX.csv"
    if not index.exists():
        return []
    with index.open(newline="") as rows:
        return [
            (row["path"], dict(part.strip().split(":") for part in row["expected"].split(";")))
            for row in csv.DictReader(rows)
            if row["format"].startswith("simple-json")
        ]


def document(path):
    return json.loads((CORPUS / path).read_text())


def holding(sessions, initial=0):
    return {level for level, ok in verdicts(sessions, initial).items() if ok}


def committed(*sessions):
    """Sessions of committed transactions, written as in ``committed(["wx1 rx1", "rx1"], ["rx0"])``."""
    return [
        [("committed", [(op[0], op[1], int(op[2:])) for op in body.split()]) for body in session]
        for session in sessions
    ]


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not here")
def test_there_is_a_corpus():
    assert len(corpus()) > 100


@pytest.mark.parametrize(("path", "expected"), corpus(), ids=lambda part: part if isinstance(part, str) else "")
def test_corpus_verdicts(path, expected):
    found = verdicts(*from_document(document(path)))
    for level in LEVELS:
        wanted = expected["RC_BE" if level == "RC" else level]  # our RC is the axiom, earlier reads of x included
        assert wanted == "unknown" or found[level] == (wanted == "pass"), level


@pytest.mark.parametrize("path", [path for path, _ in corpus() if path.startswith("papers/tap_")])
def test_corpus_patterns(path):
    history = document(path)
    assert patterns(*from_document(history)) == {tap[-1] for tap in history["expected_taps"]}


def test_random_histories_fit_the_lattice_and_the_patterns():
    rng = random.Random(7)
    broken = set()
    for _ in range(1500):
        history = random_history(rng)
        found, by_level = verdicts(history), taps(history)
        for strong, weak in [*STRONGER, ("RA", "CI")]:
            assert found[weak] or not found[strong], history
        for level in LETTERS:
            assert found[level] == (not by_level[level]), history
        broken |= by_level["TCC"]
    assert broken == set("abcdefghijklmn")


def test_random_histories_distinguish_all_levels():
    rng = random.Random(11)
    kept = [frozenset(holding(random_history(rng, wild=0, failed=0))) for _ in range(4000)]
    for strong, weak in [*STRONGER, ("RA", "CI"), ("RC", "CI"), ("CI", "RC"), ("PC", "PSI"), ("PSI", "PC")]:
        assert any(weak in levels and strong not in levels for levels in kept), (strong, weak)


def test_a_commit_order_is_a_witness():
    facts = Facts(committed(["wx1"], ["rx1 wx2"], ["rx1"]))
    assert commit_order(facts, "SER") == [0, 2, 1]


def test_read_committed_counts_an_earlier_read_of_the_same_key():  # decision 1a
    history = committed(["wx1"], ["rx1 wx2"], ["rx2 rx1"])
    assert "RC" not in holding(history)
    assert patterns(history) == {"h", "j"}, "T3 read T1 and T2 in the wrong order; that T2 follows T1 is true"


def test_a_session_misses_its_own_write():  # decision 1b
    history = committed(["rx0 wx1", "rx0"])
    assert holding(history) == {"CI", "RC"}
    assert patterns(history) == {"k"}


def test_each_pattern_is_judged_on_its_own_order():  # decision 2
    history = committed(["wx1 wz1"], ["rx0 rz1"])
    assert holding(history) == {"CI", "RC"}
    assert named_triples(Facts(history)) == {("k", INITIAL, 0, 1, "x")}


def test_nonrepeatable_read_is_fractured_too():
    history = committed(["wx1"], ["rx0 rx1"])
    assert holding(history) == {"RC"}
    assert taps(history)["RA"] == {"j", "k"}
    assert taps(history)["CI"] == {"j"}
    assert taps(history)["RC"] == set()


def test_initial_value_written_by_a_transaction():  # decision 3
    history = committed(["wx0"], ["wx1"], ["rx1 rx0"])
    assert patterns_of(Facts(history, first=True)) == {"h", "j"}, "the first is the initial state itself"
    assert patterns(history) == {"j", "l"}, "the first is an ordinary transaction"
    assert holding(history) == {"RC"}, "RC is violated only if the first is the initial state"
    assert patterns(committed(["wx0 wx2"], ["rx0"])) == {"f"}, "an ordinary transaction that happens to write 0"


def test_unknown_outcome():  # decision 4
    assert holding([[("unknown", [("w", "x", 1)])], *committed(["rx0", "rx0"])]) == set(LEVELS)
    seen = [[("unknown", [("w", "x", 1), ("w", "y", 1)])], *committed(["rx1 ry0"])]
    assert patterns(seen) == {"h"}
    assert holding([[("unknown", [("r", "x", 9)])], *committed(["rx0"])]) == set(LEVELS), "its reads are not judged"
    in_place = [[("unknown", [("w", "x", 1)]), ("committed", [("r", "x", 0)])], *committed(["rx1"])]
    assert patterns(in_place) == {"k"}


def test_aborted_transactions_matter_for_aborted_reads_only():  # decision 4
    assert holding([[("aborted", [("w", "x", 1), ("r", "x", 7)]), ("committed", [("r", "x", 0)])]]) == set(LEVELS)
    assert patterns([[("aborted", [("w", "x", 1)])], *committed(["rx1"])]) == {"b"}


def test_ambiguous_read():  # decision 5
    with pytest.raises(ValueError, match="ambiguous"):
        patterns(committed(["wx1"], ["wx1"], ["rx1"]))
    assert holding(committed(["wx1"], ["wx1"])) == set(LEVELS)


def test_lists_fix_the_version_order():  # decision 6
    appends = [[("committed", [("append", "x", 1)])], [("committed", [("append", "x", 2)])]]
    read = [("committed", [("r", "x", [1, 2])])]
    assert holding([*appends, read]) == set(LEVELS)
    assert patterns([*appends, read, [("committed", [("r", "x", [2, 1])])]]) >= {"incompatible"}
    assert patterns([*appends, [("committed", [("r", "x", [1, 1])])]]) >= {"duplicate"}


def test_empty_histories():  # decision 7
    for history in ([], [[]], [[("committed", [])], []]):
        assert holding(history) == set(LEVELS)
        assert patterns(history) == set()
