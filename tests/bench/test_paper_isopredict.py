"""docs/papers/isopredict.md: the examples, and a place for each published row."""

from benchmarks.papers.isopredict import LITERALS, examples
from benchmarks.predict import PUBLISHED


def test_the_examples_of_isopredict_come_out_as_in_the_paper():
    assert LITERALS.keys() == PUBLISHED.keys()
    rows = examples(quick=True)
    assert len(rows) == 3
    assert all(row["paper"] == row["here"] for row in rows)
