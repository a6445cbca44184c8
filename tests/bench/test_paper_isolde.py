"""docs/papers/isolde.md: the baseline that generates all histories, reproduced listings, and the counts."""

from benchmarks.papers import isolde, isolde_runs
from benchmarks.synth_brute import count, enumerate_for, histories
from plume_py.reasoning.synth import Scope, synthesize


def test_brute_force_makes_every_history_and_agrees_with_the_search():
    scope = Scope(2, 2, 2)
    made = list(histories(scope))
    assert len(made) == len(set(made)) == count(scope) == 330
    for allow, forbid in (("SI", "SER"), ("TCC", "PC"), ("SER", "SI")):
        tried = enumerate_for(allow, forbid, scope, seconds=60)
        assert (tried.verdict == "SAT") is bool(synthesize([allow], [forbid], scope).found)


def test_listing_3_of_isolde_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr(isolde_runs, "WORK", tmp_path)
    rows = isolde_runs.listing(quick=True)
    assert {tuple(row.values())[1:] for row in rows[:3]} == {
        (paper, ours) for ours, paper in isolde_runs.LISTING.items()
    }
    assert [row[""] for row in rows[3:]] == ["UpdateSer@none", "SI@none"]


def test_problems_that_isolde_solved_are_counted_by_class():
    (section,) = (section for section in isolde.PAPER.sections if section.name == "implementations")
    same = {"class": "SAT, one form", "txns": "3", "expected": "SAT"}
    rows = [
        same | {"problem": "a", "implementation": "all tricks", "verdict": "SAT"},
        same | {"problem": "b", "implementation": "all tricks", "verdict": "timeout"},
        same | {"problem": "a", "implementation": "no learning", "verdict": "SAT"},
    ]
    assert [(line["class"], line["3 txns"]) for line in section.table(rows)] == [
        ("SAT, one form (2)", "1"),
        ("SAT, one form (1)", "1"),
    ]
