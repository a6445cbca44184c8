"""What Alone Together measured: the weakest levels that keep the invariants of TPC-C and Courseware; 243 mixes."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from benchmarks.measure import ISOCHECK, Run, run
from benchmarks.papers import alone_together_words as words
from benchmarks.papers.page import Paper, Section
from benchmarks.tables import Row, progress
from plume_py.reasoning.infer.execution.client import Load
from plume_py.reasoning.infer.execution.server import SAFE, ServerRun, run_assignments
from plume_py.reasoning.infer.program.load import load
from plume_py.reasoning.infer.statement_models import STORES as STORE_MODELS

STORES = {"postgresql": "PostgreSQL", "mysql": "MySQL"}
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
            rows.append(
                {
                    "program": app,
                    "store": title,
                    "paper": "less than a minute" if app != "tpcc_lite" else "",
                    "inference, CPU s": plain.cpu,
                    **({} if app == "tpcc" else _other_engines(app, store)),
                }
            )
    names = list(rows[0])
    return [{name: row.get(name) for name in names} for row in rows]


def _other_engines(app: str, store: str) -> Row:
    told, proof = _inferred(app, store, "--prove")
    proved = [txn["name"] for txn in told["transactions"] if txn["answer"] == "proved"]
    return {
        "with proofs, CPU s": proof.cpu,
        "proved at the level given": f"{len(proved)} of {len(told['transactions'])}",
        "by the explorer, CPU s": _inferred(app, store, "--engine", "explore")[1].cpu,
    }


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
    app = "counters" if quick else "tpcc"
    rows: list[Row] = []
    for kind, store in (("postgresql", "postgresql"), ("mariadb", "mysql")):
        answer, _ = _inferred(app, store)
        told = {
            txn["name"]: {name: level["answer"] for name, level in txn["levels"].items()}
            for txn in answer["transactions"]
        }
        models = {level.name: level for level in STORE_MODELS[store].levels}
        given = {name: models[level] for name, level in answer["together"]["levels"].items()}
        progress(f"{app} on {kind}, all levels")
        load_of = Load(seconds=0.5 if quick else words.SECONDS)
        version, found = run_assignments(load(app), kind, given, told, load_of, True, lambda outcome, standing: None)
        rows.append({"server": version.split(" (")[0].split("-")[0], **_counts(found)})
    return rows


def _counts(found: Sequence[tuple[ServerRun, str]]) -> Row:
    safe = [outcome for outcome, standing in found if standing == SAFE]
    others = [outcome for outcome, standing in found if standing != SAFE]
    clauses = sorted({name for outcome, _ in found for name in outcome.broken})
    return {
        "paper": "243: 171 violated",
        "mixes": len(found),
        "violated": sum(bool(outcome.broken) for outcome, _ in found),
        "found safe": len(safe),
        "of these violated": sum(bool(outcome.broken) for outcome in safe),
        "others": len(others),
        "of the others violated": sum(bool(outcome.broken) for outcome in others),
        "by clause": ", ".join(f"{name} {sum(name in o.broken for o, _ in found)}" for name in clauses),
        "commits": sum(outcome.commits for outcome, _ in found),
        "refused": sum(outcome.refused for outcome, _ in found),
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
