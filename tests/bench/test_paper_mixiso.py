"""The pages of MixIso and Alone Together: baselines, examples, and workloads on a server."""

from importlib import import_module

import pytest

from benchmarks.mixed_throughput import ALLOCATIONS, Trial, levels_for, measured
from benchmarks.papers import mixiso


def test_earlier_work_puts_a_pivot_between_two_vulnerable_edges_to_serializable():
    workload = mixiso._figure5_workload()
    found = dict(zip([i.program for i in workload.instances], mixiso.two_vulnerable_edges(workload), strict=True))
    assert found == {i.program: "SER" if i.program == "WriteCheck" else "SI" for i in workload.instances}


def test_examples_of_the_papers_come_out_as_printed():
    rows = {row["example"]: row["here"] for row in mixiso.examples(quick=True)}
    assert any("form π4" in here for name, here in rows.items() if "6.17" in name)
    assert any("NonRepeatableRead" in here for name, here in rows.items() if "E.1" in name)


@pytest.mark.parametrize(("name", "module"), [("mixiso", "mixiso"), ("alone-together", "alone_together")])
def test_a_paper_has_its_words_and_each_section_a_name(name, module):
    paper = import_module(f"benchmarks.papers.{module}").PAPER
    assert paper.name == name
    names = [section.name for section in paper.sections]
    assert len(set(names)) == len(names)
    assert all(section.paper.strip() and section.differs.strip() for section in paper.sections)


def test_levels_for_a_server_are_those_that_it_offers():
    workload = Trial("smallbank", 5, 4, 0.0, 10).workload(1)
    assert set(levels_for(workload, "ser")) == {"SER"}
    assert "RC" not in levels_for(workload, "si-ser")
    assert "RC" in levels_for(workload, "allocated")


@pytest.mark.full
def test_workloads_run_on_a_real_server_and_give_serializable_histories():
    rows = list(measured([Trial("courseware", 5, 4, 0.001, 10)], 1))
    assert [row["allocation"] for row in rows] == list(ALLOCATIONS)
    assert all(row["runs not serializable"] == "0 of 1" and row["transactions/s"] > 0 for row in rows)
