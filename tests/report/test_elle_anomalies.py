"""The anomalies that Elle names, one small history each: the levels that hold here, and the table in docs/levels.md.

What Elle says of a history (its `:not`, the weakest models that are ruled out) is what version 0.2.7 printed when asked
for strong-session-serializable; the tests do not need it. A history is written as in the docs: sessions are separated
by ``|``, transactions by ``;``, and ``!`` and ``?`` stand before an aborted one and one of unknown outcome.
"""

import re

import oracle
import pytest
from paths import ROOT

from plume_py import HistoryBuilder, check
from plume_py.levels import NAMES

PAGE = ROOT / "docs" / "levels.md"
STATUS = {"!": "aborted", "?": "unknown"}
OPERATION = re.compile(r"(append|r|w)\((\w),(\d+|nil|\[[\d ]*\])\)")

BASE = "CI"
BELOW_PSI = "CI RC RA TCC PC"
BELOW_SER = "CI RC RA TCC PC PSI SI"

# (Elle's name, history, levels that hold here, what Elle rules out)
ANOMALIES = [
    ("G0", "append(x,1) append(y,1) | append(x,2) append(y,2) | r(x,[1 2]) | r(y,[2 1])", BASE, "read-uncommitted"),
    ("G0, 1 never shown in y", "append(x,1) append(y,1) | append(x,2) append(y,2) | r(x,[1 2]) | r(y,[2])",
     BASE, "read-uncommitted"),
    ("duplicate-elements", "append(x,1) | r(x,[1 1])", BASE, "read-uncommitted"),
    ("cyclic-versions, G1c", "r(x,1) w(x,2) | r(x,2) w(x,1)", BASE, "read-uncommitted"),
    ("G1a", "!append(x,1) | r(x,[1])", BASE, "read-committed"),
    ("dirty-update, G1a", "!append(x,1) | append(x,2) | r(x,[1 2])", BASE, "read-committed"),
    ("G1b", "append(x,1) append(x,2) | r(x,[1])", BASE, "read-committed"),
    ("G1c", "append(x,1) r(y,[1]) | append(y,1) r(x,[1])", BASE, "read-committed"),
    ("G1c, by version order", "append(x,1) r(y,[1]) | append(x,2) append(y,1) | r(x,[1 2])", BASE, "read-committed"),
    ("future-read", "r(x,[1]) append(x,1)", BASE, "read-committed"),
    ("incompatible-order", "append(x,1) | append(x,2) | r(x,[1]) | r(x,[2])", BASE, "read-committed"),
    ("internal, own append missed", "append(x,1) r(x,[])", BASE, "read-atomic"),
    ("internal, own append overwritten", "append(x,1) append(x,2) r(x,[1])", BASE, "read-atomic"),
    ("internal, not repeatable", "append(x,1) | r(x,[]) r(x,[1])", "RC",
     "consistent-view, read-atomic, repeatable-read"),
    ("internal, backwards", "append(x,1) | r(x,[1]) r(x,[])", "", "consistent-view, read-atomic, repeatable-read"),
    ("internal, across an own append", "append(x,1) | r(x,[]) append(x,2) r(x,[1 2])", "RC",
     "consistent-view, read-atomic, repeatable-read"),
    ("G-single, an append lost", "append(x,1) append(x,2) | r(x,[2])", BASE, "consistent-view, repeatable-read"),
    ("G-single, new then old", "append(x,1) append(y,1) | r(x,[1]) r(y,[])", BASE, "consistent-view, repeatable-read"),
    ("G-single, old then new", "append(x,1) append(y,1) | r(x,[]) r(y,[1])", "CI RC",
     "consistent-view, repeatable-read"),
    ("G-single, behind a read", "append(x,1) | r(x,[1]) append(y,1) | r(y,[1]) r(x,[])", "CI RC RA",
     "consistent-view, repeatable-read"),
    ("G-single, by version order",
     "append(x,1) append(y,1) | append(x,2) append(z,1) | r(x,[1 2]) | r(y,[]) r(z,[1])", "CI RC RA TCC",
     "consistent-view, repeatable-read"),
    ("lost-update", "r(x,[]) append(x,1) | r(x,[]) append(x,2)", BELOW_PSI, "cursor-stability, update-atomic"),
    ("G-nonadjacent (long fork)", "append(x,1) | append(y,1) | r(x,[1]) r(y,[]) | r(x,[]) r(y,[1])",
     "CI RC RA TCC PSI", "repeatable-read, snapshot-isolation"),
    ("G2-item (write skew)", "r(x,[]) append(y,1) | r(y,[]) append(x,1)", BELOW_SER, "repeatable-read"),
    ("G0-process", "append(x,1) ; append(x,2) | r(x,[2 1])", BASE, "strong-session-read-uncommitted"),
    ("G1c-process", "r(x,[1]) ; append(x,1)", BASE, "strong-session-read-committed"),
    ("G-single-process", "append(x,1) ; r(x,[])", "CI RC", "strong-session-snapshot-isolation"),
    ("G-single-process, 1 lost", "append(x,1) ; r(x,[2]) | append(x,2)", "CI RC", "strong-session-snapshot-isolation"),
    ("G-single-process, going back", "append(x,1) | r(x,[1]) ; r(x,[])", "CI RC RA",
     "strong-session-snapshot-isolation"),
    ("G-nonadjacent-process", "append(x,1) ; r(y,[]) | append(y,1) ; r(x,[])", "CI RC RA TCC PSI",
     "strong-session-snapshot-isolation"),
    ("G2-item-process", "append(x,1) ; r(y,[]) | r(x,[]) append(y,1)", BELOW_SER, "strong-session-serializable"),
]  # fmt: skip

# (history, levels that hold here): Elle is asked for the strong-session models and rules out less than isocheck does
ONLY_HERE = [
    ("append(x,1) append(x,2) | append(x,3) | r(x,[2 1 3])", BASE),
    ("r(x,[]) append(y,1) append(z,1) | r(z,[]) append(y,2) append(x,1)", BELOW_PSI),
    ("r(x,[1]) ; ?append(x,1)", BASE),
    ("w(y,1) | r(y,1) r(x,1)", BASE),
    ("r(x,1) w(x,1)", BASE),
    ("?w(x,1) w(y,1) | w(z,1) | r(z,1) r(x,1) r(y,nil)", BASE),
    ("r(x,nil) r(x,1) ; w(x,1)", ""),
    ("w(x,1) ; w(x,2) ; r(x,1)", "CI RC"),
    ("w(x,2) w(y,1) | w(x,1) w(y,2) | r(x,1) r(y,1)", "CI RC"),
]


def sessions_of(text):
    """Sessions of (status, operations), as for the oracle."""
    return [[_transaction(body.strip()) for body in session.split(";")] for session in text.split("|")]


def _transaction(body):
    return STATUS.get(body[0], "committed"), [(kind, x, _value(value)) for kind, x, value in OPERATION.findall(body)]


def _value(text):
    if text.startswith("["):
        return [int(item) for item in text[1:-1].split()]
    return None if text == "nil" else int(text)


def holding(text):
    """The levels that hold, by the engine and, which must say the same, by the oracle."""
    sessions = sessions_of(text)
    builder = HistoryBuilder(None)
    for s, session in enumerate(sessions):
        for status, ops in session:
            builder.add(s, ops, status=status)
    verdicts = {level: verdict.ok for level, verdict in check(builder.build(), NAMES).levels.items()}
    assert verdicts == oracle.verdicts(sessions, None)
    return [level for level in NAMES if verdicts[level]]


@pytest.mark.parametrize(("text", "levels"), [case[1:3] for case in ANOMALIES], ids=[case[0] for case in ANOMALIES])
def test_an_anomaly_of_elle_has_its_verdict_at_each_level(text, levels):
    assert holding(text) == levels.split()


@pytest.mark.parametrize(("text", "levels"), ONLY_HERE)
def test_a_history_that_elle_accepts_has_its_verdict_at_each_level(text, levels):
    assert holding(text) == levels.split()


def test_the_table_of_the_docs_is_what_is_tested_here():
    names = " | ".join(NAMES)
    rows = [f"| Elle's name | history | {names} | Elle: not |", "|---" * (len(NAMES) + 3) + "|"]
    for name, text, levels, ruled_out in ANOMALIES:
        marks = " | ".join("+" if level in levels.split() else "–" for level in NAMES)
        rows.append(f"| {name} | `{text.replace('|', chr(92) + '|')}` | {marks} | {ruled_out} |")
    assert "\n".join(rows) in PAGE.read_text(), "\n".join(rows)


def test_every_history_that_only_isocheck_rejects_is_in_the_docs():
    page = PAGE.read_text()
    for text, _ in ONLY_HERE:
        assert text in page
