"""Isolde's paper, measured: what it found, the 46 problems, its ablation, brute force, how far a minute reaches."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.papers.page import DOCS, RESULTS
from benchmarks.synth import REPRESENTATIVES, solve
from benchmarks.synth_brute import count, enumerate_for
from benchmarks.synth_problems import SIZES as PUBLISHED_SIZES
from benchmarks.synth_problems import TASKS, Task
from benchmarks.synth_scopes import PROBLEMS, ROOT, largest
from benchmarks.tables import Row, progress, read
from benchmarks.workloads import WORK
from plume_py.reasoning.synth import Scope, synthesize
from plume_py.reasoning.synth.picture import witness_pictures
from plume_py.reasoning.synth.problem import Tricks, without
from plume_py.reasoning.synth.synthesis import SynthesisResult
from plume_py.report.graphviz import draw

Kept = Sequence[dict[str, str]]

SIZES = (3, 5, 7, 10)
# What Isolde does, and what it does without each of its two optimisations and without learning; all of ours above it.
OURS_ALONE = ("cross", "direct", "polynomial", "symmetry")
ALL = "all tricks"
IMPLEMENTATIONS = {
    ALL: Tricks(),
    "Isolde's tricks": without(*OURS_ALONE),
    "no smart search": without(*OURS_ALONE, "smart"),
    "no fixed order": without(*OURS_ALONE, "fixed"),
    "no learning": without(*OURS_ALONE, "learning"),
}
LIMIT, BRUTE_LIMIT, SCOPE_LIMIT = 5.0, 30.0, 60.0


def _kept(section: str, quick: bool) -> Kept:
    return read((WORK / "quick-results" / "papers" if quick else RESULTS) / "isolde" / f"{section}.csv")


# -- section 3: what it found ----------------------------------------------------------------------------------------

FORMS = ("RA", "TCC", "PC", "SI", "SER")
FINDINGS = (
    (("TapRA",), "RA", (8, 8, 8), "SAT"),
    (("RA",), "TapRA", (8, 8, 8), "UNSAT"),
    (("TapTCC",), "TCC", (8, 8, 8), "UNSAT"),
    (("TCC",), "TapTCC", (8, 8, 8), "UNSAT"),
    *(((level,), f"{level}@vis", (5, 5, 5), "UNSAT") for level in FORMS),
    *(((f"{level}@vis",), level, (5, 5, 5), "UNSAT") for level in FORMS),
    (("SI", "UpdateSer"), "SER", (3, 2, 2), "SAT"),
    (("UA",), "NLU", (10, 5, 5), "UNSAT"),
    (("NLU",), "UA", (3, 2, 4), "SAT"),
)


def findings(quick: bool) -> list[Row]:
    """Each problem of the case studies at the paper's scope; of those that have a solution, a smallest one."""
    rows: list[Row] = []
    synthesize(["SI"], ["SER"], Scope(2))  # the first one pays for what is loaded
    for allow, forbid, sizes, paper in FINDINGS:
        progress(f"{', '.join(allow)} | {forbid}")
        scope = Scope(*(min(size, 4) for size in sizes)) if quick else Scope(*sizes)
        start = time.process_time()
        outcome = synthesize(allow, [forbid], scope)
        used = time.process_time() - start
        smallest = synthesize(allow, [forbid], scope, minimal=True) if outcome.found else outcome
        rows.append(
            {
                "allowed by": ", ".join(allow),
                "forbidden by": forbid,
                "scope": str(scope).split()[0],
                "paper": paper,
                "here": "SAT" if outcome.found else "UNSAT",
                "candidates": outcome.candidates,
                "clauses": outcome.clauses,
                "CPU s": used,
                "smallest history": _short(smallest),
            }
        )
    return rows


def _short(outcome: SynthesisResult) -> str:
    return f"`{outcome.found[0].concrete.short()}`".replace("|", "\\|") if outcome.found else ""


LISTING = {
    "r(y,0) w(y,1)": "r(0,0) w(0,1)",
    "r(x,0) r(y,1)": "r(0,1) r(1,0)",
    "r(x,0) r(y,0) w(x,1)": "r(0,0) r(1,0) w(1,1)",
}


def listing(quick: bool) -> list[Row]:
    """Listing 3: sessions do not count there, and nobody writes blindly. Draws the two commit orders, too."""
    scope = Scope(3, 2, 2, blind_writes=False)
    outcome = synthesize(["UpdateSer@none", "SI@none"], ["SER@none"], scope, minimal=True)
    found = outcome.found[0]
    pictures = (WORK / "papers" if quick else DOCS) / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    for level, drawn in witness_pictures(found):
        draw(drawn, pictures / f"isolde-listing-3-{level.removesuffix('@none')}.svg")
    rows: list[Row] = []
    for t in found.concrete.by_session():
        words = " ".join(f"{kind}({x},{value})" for kind, x, value in found.concrete.ops(t))
        rows.append({"": found.concrete.name(t), "Isolde (y is 0, x is 1)": LISTING.get(words, "–"), "here": words})
    for witness, paper in zip(found.witnesses, ("3 -> 1 -> 2", "1 -> 3 -> 2"), strict=True):
        order = " < ".join(map(found.concrete.name, witness.order))
        rows.append({"": witness.level, "Isolde (y is 0, x is 1)": paper, "here": order})
    return rows


# -- section 5: the problems, and each optimisation --------------------------------------------------------------------


def problems(quick: bool) -> list[Row]:
    """All problems, by all of our tricks."""
    return _solved([ALL], TASKS, quick, limit=60, repeats=3)


def implementations(quick: bool) -> list[Row]:
    """The same by Isolde's tricks alone, and without some of them; beside what was measured with all."""
    tasks = [task for task in TASKS if not quick or task.name in REPRESENTATIVES]
    others = [name for name in IMPLEMENTATIONS if name != ALL]
    return [*_kept("problems", quick), *_solved(others, tasks, quick, LIMIT, repeats=1)]


def _solved(names: Sequence[str], tasks: Sequence[Task], quick: bool, limit: float, repeats: int) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        for task in tasks:
            progress(f"{name}: {task.name}")
            for txns in SIZES[:1] if quick else SIZES:
                row = solve(task, txns, 1 if quick else limit, tricks=IMPLEMENTATIONS[name], repeats=repeats)
                published = task.published[PUBLISHED_SIZES.index(txns)] if txns in PUBLISHED_SIZES else None
                expected = "SAT" if task.expected(txns) else "UNSAT"
                named = {"problem": task.name, "class": task.kind, "implementation": name, "txns": txns}
                rows.append({**named, **row, "expected": expected, "published s": published})
                if row["verdict"] == "timeout":  # more transactions would not take less
                    break
    return rows


# -- brute force -----------------------------------------------------------------------------------------------------

BRUTE = (("RA", "SER"), ("SI", "SER"), ("TCC", "PC"), ("SER", "SI"))
BRUTE_SCOPES = ((2, 2, 2), (3, 2, 2), (3, 2, 3), (3, 3, 3))


def brute(quick: bool) -> list[Row]:
    """Every history of small scopes, until one is found or time runs out; and the search's answer."""
    rows: list[Row] = []
    for sizes in BRUTE_SCOPES[:2] if quick else BRUTE_SCOPES:
        scope = Scope(*sizes)
        for allow, forbid in BRUTE:
            progress(f"every history of {scope}: {allow} | {forbid}")
            tried = enumerate_for(allow, forbid, scope, 1 if quick else BRUTE_LIMIT)
            start = time.process_time()
            found = synthesize([allow], [forbid], scope)
            used = time.process_time() - start
            answer = "SAT" if found.found else "UNSAT"
            rows.append(
                {
                    "scope": "/".join(map(str, sizes)),
                    "histories": count(scope),
                    "allowed by": allow,
                    "forbidden by": forbid,
                    "looked at": tried.histories,
                    "brute force": tried.verdict,
                    "s": tried.seconds,
                    "search": answer,
                    "s ": used,
                    "the same": "–" if tried.verdict == "undecided" else "yes" if tried.verdict == answer else "NO",
                }
            )
    return rows


# -- how far a minute reaches ------------------------------------------------------------------------------------------


def scopes(quick: bool) -> list[Row]:
    """The largest size within a minute of processor time, by this checkout and, where one is given, by another."""
    chosen = PROBLEMS[:2] if quick else PROBLEMS
    seconds = 2.0 if quick else SCOPE_LIMIT
    before = {(row["allowed by"], row["forbidden by"]): (row["before"], row["s"]) for row in _kept("scopes", quick)}
    if old := os.environ.get("OLD"):
        before = {problem: (str(size), f"{s:.1f}") for problem, size, s in largest(str(Path(old)), seconds, chosen)}
    rows: list[Row] = []
    for problem, size, used in largest(str(ROOT), seconds, chosen):
        progress(f"{problem}: {size}")
        then = before.get(problem, ("", ""))
        named = {"allowed by": problem[0], "forbidden by": problem[1]}
        rows.append({**named, "before": then[0], "s": then[1], "now": size, "s ": used})
    return rows
