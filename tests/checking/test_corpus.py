"""Every history of the corpus loads with the sizes that its index gives, or is turned down where it says so."""

import csv
from pathlib import Path

import numpy as np
import paths
import pytest

from plume_py import load
from plume_py.base.errors import InputError
from plume_py.history.model import COMMITTED

CORPUS = paths.SHARED / "histories"
# What the index calls a format, by its first word, and what we do.
FORMATS = {
    "awdit-test": {"awdit"},
    "cobra-log-dir": {"cobra"},
    "dbcop-bincode": {"dbcop"},
    "dbcop-yaml": {"dbcop-yaml"},
    "isopredict-trace": {"isopredict"},
    "jepsen-edn": {"edn"},
    "jepsen-json": {"elle-json"},
    "plume-text": {"plume"},
    "simple-json": {"json"},
}


def rows() -> list[dict[str, str]]:
    index = CORPUS / "INDEX.csv"
    if not index.exists():
        return []
    with index.open(newline="") as file:
        return list(csv.DictReader(file))


pytestmark = pytest.mark.skipif(not rows(), reason="the corpus is not here")


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["path"])
def test_sizes_are_those_of_the_index(row: dict[str, str]) -> None:
    path = CORPUS / row["path"]
    if not path.exists():
        pytest.skip("not in this copy of the corpus")
    if row["expected"] == "unknown" and "cas-register" in path.parts:
        _load_registers(path)
        return
    if row["expected"] == "unknown":
        with pytest.raises(InputError, match="not a transactional read/write history"):
            load(path)
        return
    history = load(path)
    assert history.format in FORMATS[row["format"].split()[0]]
    committed = history.txn_status == COMMITTED
    sizes = history.sessions, history.transactions, history.operations
    without_aborted = history.sessions, np.count_nonzero(committed), np.diff(history.txn_start)[committed].sum()
    assert (int(row["sessions"]), int(row["txns"]), int(row["ops"])) in (sizes, without_aborted)


def _load_registers(path: Path) -> None:
    """Operations on a single register are transactions; but values mostly repeat there."""
    try:
        assert load(path).transactions
    except InputError as error:
        assert "ambiguous read" in str(error)


def test_the_index_names_every_format_it_uses() -> None:
    assert {row["format"].split()[0] for row in rows()} == set(FORMATS)
