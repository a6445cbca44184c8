"""What Alone Together measured: the weakest levels that keep the invariants of TPC-C and Courseware; 243 mixes."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from benchmarks.measure import ISOCHECK, Run, run
from benchmarks.papers import alone_together_words as words
from benchmarks.papers.page import Paper, Section
from benchmarks.tables import Row, progress

STORES = {"postgresql": "PostgreSQL", "mysql": "MySQL"}
SERVERS = ("postgresql", "mariadb")
# Exit codes: no level for some transaction, or undecided, are answers too.
ANSWERS = (0, 1, 3)


@cache
def _inferred(app: str, store: str, *options: str) -> tuple[dict[str, Any], Run]:
    progress(f"{app} on {store} {' '.join(options)}")
    done = run([ISOCHECK, "infer", app, "--store", store, "--format", "json", *options], expect=ANSWERS)
    return json.loads(done.output), done


def _broken(level: Mapping[str, Any]) -> str:
    return ", ".join(sorted({example["clause"] for example in level["counterexamples"]}))


def levels(app: str, quick: bool) -> list[Row]:
    """The level of each transaction, and what breaks at the weaker ones."""
    rows: list[Row] = []
    for store, title in STORES.items():
        answer, _ = _inferred(app, store)
        settled = answer["together"]["levels"]
        for txn in answer["transactions"]:
            weaker = [f"{name}: {_broken(level)}" for name, level in txn["levels"].items() if _broken(level)]
            theirs = words.LEVELS[app][store].get(txn["name"], "not told")
            rows.append(
                {
                    "store": title,
                    "transaction": txn["name"],
                    "paper": theirs,
                    "here": settled[txn["name"]],
                    "violated": "; ".join(weaker),
                }
            )
    return rows


def tpcc(quick: bool) -> list[Row]:
    """Table 1; its small relative if it has to be quick."""
    return levels("tpcc_lite" if quick else "tpcc", quick)


def courseware(quick: bool) -> list[Row]:
    """Figure 12's application."""
    return levels("courseware", quick)


def times(quick: bool) -> list[Row]:
    """CPU seconds of the whole command: without a proof, with one, and by the explorer."""
    rows: list[Row] = []
    apps = ("courseware", "tpcc_lite") if quick else ("courseware", "tpcc_lite", "tpcc")
    for app in apps:
        for store, title in STORES.items():
            _, plain = _inferred(app, store)
            told, proof = _inferred(app, store, "--prove")
            explored = None if app == "tpcc" else _inferred(app, store, "--engine", "explore")[1].cpu
            proved = [txn["name"] for txn in told["transactions"] if txn["answer"] == "proved"]
            rows.append(
                {
                    "program": app,
                    "store": title,
                    "paper": "less than a minute" if app != "tpcc_lite" else "",
                    "inference, CPU s": plain.cpu,
                    "with proofs, CPU s": proof.cpu,
                    "by the explorer, CPU s": explored,
                    "proved at the level given": f"{len(proved)} of {len(told['transactions'])}",
                }
            )
    return rows


def table(quick: bool) -> list[Row]:
    """Which clauses break, at the paper's specifications and at those that engines have."""
    rows: list[Row] = []
    for app in words.PROGRAMS[: 3 if quick else None]:
        answer, _ = _inferred(app, "literal")
        for txn in answer["transactions"]:
            broken = {name: _broken(level) or "–" for name, level in txn["levels"].items()}
            rows.append({"program": app, "transaction": txn["name"], **broken})
    return rows


def serializability(quick: bool) -> list[Row]:
    """The mode without guarantees: what gives the rows of some serial order."""
    rows: list[Row] = []
    for app in ("courseware", "withdrawal") if quick else words.SERIAL:
        for store, title in STORES.items():
            answer, done = _inferred(app, store, "--serializability", "--engine", "explore")
            found = ", ".join(f"{txn['name']} {txn['level'] or 'none'}" for txn in answer["transactions"])
            rows.append({"program": app, "store": title, "levels": found, "CPU s": done.cpu})
    return rows


def vectors(quick: bool) -> list[Row]:
    """All assignments of levels on real servers; the invariant after each."""
    rows: list[Row] = []
    for server in SERVERS:
        options = ["--run", server, "--all-vectors", "--run-seconds", "0.5" if quick else words.SECONDS]
        answer, _ = _inferred(
            "counters" if quick else "tpcc", "postgresql" if server == SERVERS[0] else "mysql", *options
        )
        found = answer["run"]["vectors"]
        rows.append({"server": answer["run"]["server"], **_counts(found)})
    return rows


def _counts(found: Sequence[Mapping[str, Any]]) -> Row:
    safe = [vector for vector in found if vector["found safe"]]
    others = [vector for vector in found if not vector["found safe"]]
    clauses = sorted({name for vector in found for name in vector["broken"]})
    return {
        "paper": "243: 171 violated",
        "mixes": len(found),
        "violated": sum(bool(vector["broken"]) for vector in found),
        "found safe": len(safe),
        "of these violated": sum(bool(vector["broken"]) for vector in safe),
        "others": len(others),
        "of the others violated": sum(bool(vector["broken"]) for vector in others),
        "by clause": ", ".join(f"{name} {sum(name in v['broken'] for v in found)}" for name in clauses),
        "commits": sum(vector["commits"] for vector in found),
        "refused": sum(vector["refused"] for vector in found),
    }


PAPER = Paper(
    "alone-together",
    words.TITLE,
    words.INTRO,
    [
        Section("tpcc", "Table 1: TPC-C", words.ABOUT_TPCC, tpcc, words.DIFFERS_TPCC),
        Section("courseware", "Courseware", words.ABOUT_COURSEWARE, courseware, words.DIFFERS_COURSEWARE),
        Section("times", "Time of inference and verification", words.ABOUT_TIMES, times, words.DIFFERS_TIMES),
        Section("vectors", "All 243 mixes on real servers", words.ABOUT_VECTORS, vectors, words.DIFFERS_VECTORS),
        Section("table", "The specifications as printed, and others", words.ABOUT_TABLE, table, words.DIFFERS_TABLE),
        Section(
            "serializability",
            "Without guarantees: serializability",
            words.ABOUT_SERIAL,
            serializability,
            words.DIFFERS_SERIAL,
        ),
    ],
    words.LEFT_OUT,
)
