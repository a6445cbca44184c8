"""Isolde's paper: its page."""

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import mean

from benchmarks.papers.isolde_runs import (
    ALL,
    BRUTE_LIMIT,
    IMPLEMENTATIONS,
    LIMIT,
    SCOPE_LIMIT,
    brute,
    findings,
    implementations,
    listing,
    problems,
    scopes,
)
from benchmarks.papers.page import Paper, Plot, Section
from benchmarks.synth_problems import SIZES as PUBLISHED_SIZES
from benchmarks.tables import spell
from plume_py.report.plot import Axis, Points

Kept = Sequence[dict[str, str]]

# Solved within an hour with 3, 5, 7 and 10 transactions, as far as it is published; by class and implementation.
HOUR = {
    ("SAT, one form", "Isolde's tricks"): "11 / 11 / 11 / 11",
    ("SAT, two forms", "Isolde's tricks"): "14 / 14 / 14 / 14",
    ("UNSAT, one form", "Isolde's tricks"): "11 / 11 / 11 / 11",
    ("UNSAT, two forms", "Isolde's tricks"): "10 / 10 / 6 / 6",
    ("UNSAT, one form", "no smart search"): "11 / 11 / 10 / 9",
    ("UNSAT, one form", "no fixed order"): "– / – / – / 10",
    ("UNSAT, two forms", "no fixed order"): "10 / 10 / 5 / 1",
    ("SAT, one form", "no learning"): "at most 9",
    ("SAT, two forms", "no learning"): "at most 12",
    ("UNSAT, one form", "no learning"): "none",
    ("UNSAT, two forms", "no learning"): "none",
}


def _by_problem(rows: Kept) -> list[dict[str, str]]:
    """A line per problem: verdict and CPU seconds by size, and what was published."""
    lines: dict[str, dict[str, str]] = {}
    for row in rows:
        line = lines.setdefault(row["problem"], {"problem": row["problem"].replace("|", "not"), "class": row["class"]})
        wrong = "" if row["verdict"] in (row["expected"], "timeout") else " **unexpected**"
        line[f"{row['txns']} txns"] = f"{row['verdict']} {spell(float(row['cpu']))} c{row['candidates']}{wrong}"
    for row in rows:
        if int(row["txns"]) in PUBLISHED_SIZES:
            lines[row["problem"]][f"published, {row['txns']}"] = row["published s"]
    return list(lines.values())


def _figure_3(rows: Kept) -> list[dict[str, str]]:
    """How many of each class were solved, by implementation and size."""
    lines = []
    sizes = sorted({int(row["txns"]) for row in rows})
    for kind in dict.fromkeys(row["class"] for row in rows):
        for name in dict.fromkeys(row["implementation"] for row in rows):
            mine = [row for row in rows if (row["class"], row["implementation"]) == (kind, name)]
            solved = [sum(row["txns"] == str(n) and row["verdict"] == row["expected"] for row in mine) for n in sizes]
            asked = len({row["problem"] for row in mine})
            line = {"class": f"{kind} ({asked})", "implementation": name}
            line |= {f"{n} txns": str(number) for n, number in zip(sizes, solved, strict=True)}
            lines.append(line | {"Isolde in an hour": HOUR.get((kind, name), "")})
    return lines


def _right(rows: Kept) -> list[dict[str, str]]:
    return [row for row in rows if row["verdict"] == row["expected"]]


def _cactus(txns: int, column: str, add: int = 0, scale: float = 1) -> Callable[[Kept], dict[str, Points]]:
    """For each implementation: how many problems take at most so much."""

    def lines(rows: Kept) -> dict[str, Points]:
        found = {}
        for name in IMPLEMENTATIONS:
            mine = (row for row in _right(rows) if row["implementation"] == name and row["txns"] == str(txns))
            taken = sorted(float(row[column]) * scale + add for row in mine)
            found[name] = [(value, place) for place, value in enumerate(taken, 1)]
        return found

    return lines


def _growth(column: str, by: str, chosen: Callable[[Kept], Kept], add: int = 0) -> Callable[[Kept], dict[str, Points]]:
    """The mean over some problems, against the number of transactions; a line for each value of ``by``."""

    def lines(rows: Kept) -> dict[str, Points]:
        some = chosen(_right(rows))
        found: dict[str, Points] = {}
        for name in dict.fromkeys(row[by] for row in some):
            mine = [row for row in some if row[by] == name]
            sizes = sorted({int(row["txns"]) for row in mine})
            found[name] = [(n, mean(float(r[column]) for r in mine if int(r["txns"]) == n) + add) for n in sizes]
        return found

    return lines


def _settled_by_all(rows: Kept) -> Kept:
    """Problems without a solution that all but the baseline settle, up to seven transactions."""
    small = [row for row in rows if row["class"].startswith("UNSAT") and row["txns"] != "10"]
    small = [row for row in small if row["implementation"] != "no learning"]
    settled = Counter(row["problem"] for row in small)
    return [row for row in small if settled[row["problem"]] == max(settled.values())]


def _all_tricks(rows: Kept) -> Kept:
    return [row for row in rows if row["implementation"] == ALL]


MILLISECONDS, ACCUMULATED = Axis("CPU milliseconds", logarithmic=True), Axis("problems solved")
TRANSACTIONS = Axis("transactions")
PLOTS = (
    *(
        Plot(f"Figure 4: {n} transactions", MILLISECONDS, ACCUMULATED, _cactus(n, "cpu", scale=1000), f"time-{n}")
        for n in (5, 7, 10)
    ),
    Plot(
        "Figure 5: candidates, 7 transactions",
        Axis("candidates + 1", logarithmic=True),
        ACCUMULATED,
        _cactus(7, "candidates", add=1),
        "candidates",
    ),
    Plot(
        "Figure 6: clauses before the first candidate, 7 transactions",
        Axis("clauses", logarithmic=True),
        ACCUMULATED,
        _cactus(7, "initial clauses"),
        "clauses",
    ),
    Plot(
        "Figure 7: problems without a solution that all settle",
        TRANSACTIONS,
        Axis("mean CPU s", logarithmic=True),
        _growth("cpu", "implementation", _settled_by_all),
        "growth",
    ),
    *(
        Plot(f"Figure 8: {name}", TRANSACTIONS, Axis(name, True), _growth(column, "class", _all_tricks, add), file)
        for name, column, add, file in (
            ("mean CPU s", "cpu", 0, "class-time"),
            ("mean clauses", "initial clauses", 0, "class-clauses"),
            ("mean candidates + 1", "candidates", 1, "class-candidates"),
        )
    ),
)


INTRO = """\
What *Reasoning about Transactional Isolation Levels with Isolde* (Barros, Kang, Cunha, Pereira; arXiv 2604.00159)
found and measured, by `isocheck synth` ([synth.md](../synth.md)). The paper's CC is called TCC here; `@vis` is the
framework of Cerone and others, a name without it that of Biswas and Enea. Seconds are processor time of one process.
All of it takes a quarter of an hour of one core."""

FINDINGS_PAPER = """\
Section 3: Plume's patterns compared with the axioms, the two frameworks compared level by level, the read-only
anomaly of snapshot isolation, and update atomic (UA) compared with the absence of lost updates (NLU)."""
FINDINGS_DIFFERS = """\
Every verdict is the paper's. A smallest history is smaller than the paper's where ours may write blindly: there, T1
reads what it overwrites. The paper prints `{UA, not NLU}` twice; the second one, which has a solution, is `{NLU, not
UA}`. Of it the paper shows another history (Figure 1): `isocheck docs/examples/no-lost-update.json --level NLU
--level UA --out DIR` judges that very one and draws arbitration and visibility:
[NLU](../pictures/definition-NLU.svg), and why UA is broken: [UA](../pictures/definition-UA.svg); in words in
[synth.md](../synth.md#a-history-judged-by-a-definition)."""

LISTING_PAPER = """\
Listing 3: the history that Isolde shows for `{SI, UpdateSer, not SER}`, with a commit order for each of the two
levels. Here: `isocheck synth --allow UpdateSer@none,SI@none --forbid SER@none --keys 2 --values 2 --no-blind-writes
--minimal --out DIR`, which also draws the orders."""
LISTING_DIFFERS = """\
![SI](pictures/isolde-listing-3-SI.svg)

![UpdateSer](pictures/isolde-listing-3-UpdateSer.svg)

The same history, transactions numbered otherwise: Isolde's 1, 2, 3 are T2, T3, T1 here. For UpdateSer the order is
the same; for SI, Isolde has the reader last, ours has it before T1, whose write it does not see: both are witnesses.
`@none` is needed to get it, as a smaller history puts the reader into the session of a writer (one operation less)."""

PROBLEMS_PAPER = """\
Table 1 and the figures that were published with the tool: 46 problems, 11 and 14 that have a solution (one framework,
two frameworks), 11 and 10 that have none; 5 keys, 5 values. Theirs: wall seconds, averages of three runs, Glucose, a
Ryzen 7 PRO 6850U, limit one hour."""
PROBLEMS_DIFFERS = """\
Ours: the median of three runs, CPU seconds; c counts candidates. Another machine, and another question: here writes
may be blind, which the published tool excludes (it does not say so in the paper), so there are more histories to rule
out. Read the growth, not the race: four problems without a solution that need both frameworks end in a crash or a
timeout there from seven transactions on, and need no candidate here, as a witness in one framework is translated into
the other. Where there is a solution, ours is not always the quicker one (SI, UpdateSer not SER with ten). TCC and PC
need four transactions to differ, in both."""

IMPLEMENTATIONS_PAPER = """\
Figures 3 to 8: how many problems are solved, and what it takes, with all of Isolde's optimisations, without smart
candidate search, without the fixed commit order, and without learning (its solver-based baseline)."""
IMPLEMENTATIONS_DIFFERS = f"""\
Here a problem has {LIMIT:g} CPU seconds ("all tricks": 60) instead of an hour, and once it fails it is not asked with
more transactions. "Isolde's tricks" leaves out what is ours alone: `cross`, `direct`, `polynomial`, `symmetry` ([what
they are](../synth.md#how-it-works), [each one alone](../../benchmarks/results/synth.md)). With Isolde's tricks we solve
what Isolde solves, class by class, and fail where it fails: at four problems of two frameworks from seven transactions
on. The fixed order matters most there; smart search settles one framework without a candidate. What differs:

- `cross` settles the problems of two frameworks as well, without a candidate.
- Without learning, all problems of one framework that have no solution are settled here, none in the paper: here that
  baseline still searches smartly, so there is no candidate to learn from. Of those that have one it solves fewer, in
  seconds instead of an hour.
- Sizes of formulas: who reads from whom is a variable here, not a value, so there are some thousands of clauses
  (at 7 transactions 4 to 24 thousand) where Kodkod makes ten to ninety thousand. Without the fixed order they are not
  smaller, as there; without smart search they are, a little.
- The paper draws Figures 4 to 6 for each class; here the classes are together, and the third size is 10, for which
  figures were published, instead of 9. Figure 7 has problems that all implementations settle, as in the paper; here
  these are of one framework alone. Figure 8: all tricks."""

BRUTE_PAPER = """\
The other baseline of Section 5: every history of a scope, each judged by all its executions. In the paper it finishes
for none of the scopes, and not in twelve hours for `{RA, not SER}` with 3 transactions, 3 objects and 3 values."""
BRUTE_DIFFERS = f"""\
Ours makes each history once up to the numbers of sessions, by who reads from whom instead of by values, and judges it
by an oracle that tries all commit orders (`tests/oracles`, which shares no code with isocheck); {BRUTE_LIMIT:g} CPU
seconds each. So it has far less to do than the paper's, and yet it gets through a fortieth of the 4.9 M histories of
3/3/3 in that time: all of them would take some twenty minutes, the search takes milliseconds. Wherever brute force
ends, the answers are the same; the tests compare many more levels and scopes that way."""

SCOPES_PAPER = """\
RQ3: which scopes are within reach? The paper recommends five transactions for problems without a solution and sees a
slowdown beyond six. Here: the largest number of transactions, of 4, 5, 6, 7, 8, 12, 16, 20 and 24, that is searched
within 60 seconds of processor time, with 2 keys and 4 values, for eight problems that have no solution, four of them
with a level as a user would write it (most of them in [my_levels.py](../my_levels.py))."""
SCOPES_DIFFERS = f"""\
Limit: {SCOPE_LIMIT:g} CPU seconds for the whole process, its start included. "before" is isocheck at commit a3595e8
(`make paper-isolde OLD=path/to/that/checkout`; without OLD the column is kept). 24 transactions are all that a scope
may have, and seven of the eight took seconds before as well; the level that says by a graph what it allows
(`SerByGraph`) stopped at 6."""

LEFT_OUT = """\
- Other solvers than one (the published tool runs MiniSat, Glucose and others), and the hour of time.
- Its growth with keys and values at five transactions (in the tool's repository, not in the paper).
- Figures 4 to 6 class by class: the rows are in `benchmarks/results/papers/isolde/implementations.csv`."""

PAPER = Paper(
    "isolde",
    "Isolde's paper beside ours",
    INTRO,
    (
        Section("findings", "What was found (Section 3, Figure 1)", FINDINGS_PAPER, findings, FINDINGS_DIFFERS),
        Section("listing", "Listing 3", LISTING_PAPER, listing, LISTING_DIFFERS),
        Section("problems", "The 46 problems (Table 1)", PROBLEMS_PAPER, problems, PROBLEMS_DIFFERS, table=_by_problem),
        Section(
            "implementations",
            "Each optimisation (Figures 3 to 8)",
            IMPLEMENTATIONS_PAPER,
            implementations,
            IMPLEMENTATIONS_DIFFERS,
            PLOTS,
            table=_figure_3,
        ),
        Section("brute", "Brute force", BRUTE_PAPER, brute, BRUTE_DIFFERS),
        Section("scopes", "How far a minute reaches", SCOPES_PAPER, scopes, SCOPES_DIFFERS),
    ),
    LEFT_OUT,
)
