"""Writes the section "Measured" of docs/predict.md, from benchmarks/results/predict*.csv.

Run it after the benchmarks: .venv/bin/python docs/predict_figures.py
"""

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "predict.md"
RESULTS = ROOT / "benchmarks" / "results"
TITLES = {"smallbank": "SmallBank", "voter": "Voter", "tpcc": "TPC-C", "wikipedia": "Wikipedia"}
STRATEGIES = ("exact-strict", "approximate-strict", "approximate-relaxed")

SECTION = """## Measured

This section is written by `docs/predict_figures.py` from `benchmarks/results/predict*.csv`, which `make bench-predict`
writes: CPU seconds of two cores that are shared and busy.

**What comes true.** Of {runs} runs of each program at each level ({seeds} seeds, {size} transactions), one prediction
each: predicted / came true / diverged.

{levels}

In all {predicted:,} were predicted, {validated:,} came true, and {refused} were refused by the level itself: where one
does not come true, a transaction that reads something else aborts by itself. While the later writes of a boundary
transaction did not count, and the approximate strategy was the default, of {seeds_before} seeds of {size_before}
{predicted_before:,} were predicted and {validated_before:,} came true; of the same runs now {predicted_small:,} and
{validated_small:,}. What changed:

{changed}

**Against trying everything.** Every boundary and every choice, on {histories:,} random tiny runs, two questions of each
by lot: {compared:,} comparisons, {wrong} wrong.

{brute}

**What "none" costs.** The whole process, ended after {most:.0f} CPU seconds.

{none}

**Long histories**, in windows of {window} transactions, 10 sessions; the check that the observed run keeps the target
included.

{windows}

**Tables 4 and 5 of the paper beside ours** ([row by row, and why they differ](papers/isopredict.md)). Of 10 runs:
predicted / came true / diverged, and in how many of those that came true an assertion of the program fails; then the
same of the published tool, without the last. Seconds are those of generating and solving, on average; the published
ones were measured on another machine, for runs of the programs after which ours are made.

{strategies}

Voter under TCC has no prediction, as must be: a single writer cannot break serializability there. Such counts say
little about the tools: how many customers, accounts and pages our programs share was chosen so that sizes and numbers
of predictions come near the published ones.

**Tables 6 and 7.** Per cent of runs in which an assertion fails, and that are not serializable: random ones (`isocheck
explore`; MonkeyDB) and predicted ones that came true (strict at RC, relaxed at TCC); and broken runs per CPU second.

{shares}

Random exploration mostly finds more broken runs per second, as a run of these programs costs next to nothing.
Prediction says which read of an actual run is at fault, knows when there is nothing to find, and needs no application
to run. What it cannot find is what a program would only do after reading something else: all broken runs of Voter at
TCC are of that kind.
"""

Rows = Sequence[dict[str, str]]


def read(name: str) -> Rows:
    """The rows of a CSV file."""
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """In Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def total(rows: Rows, column: str) -> int:
    """Of a column."""
    return sum(int(row[column]) for row in rows)


def seconds(text: str) -> str:
    """Two digits that matter."""
    value = float(text)
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def levels_table(rows: Rows) -> str:
    """Level by program: predicted / came true / diverged."""
    cells = {(r["boundary"], r["level"], r["program"]): counts(r) for r in rows}
    questions = dict.fromkeys((r["boundary"], r["level"]) for r in rows)
    lines = [[level, boundary, *(cells[boundary, level, name] for name in TITLES)] for boundary, level in questions]
    return table(["level", "boundary", *TITLES.values()], lines)


def changed_table(before: Rows, after: Rows) -> str:
    """The same, where it is not what it was."""
    now = {(r["boundary"], r["level"], r["program"]): counts(r) for r in after}
    lines = []
    for r in before:
        then, found = counts(r), now[r["boundary"], r["level"], r["program"]]
        if then != found:
            lines.append([r["level"], r["boundary"], TITLES[r["program"]], then, found])
    return table(["level", "boundary", "program", "before", "now"], lines)


def counts(row: dict[str, str]) -> str:
    """Predicted / came true / diverged."""
    return "/".join(row[what] for what in ("predicted", "validated", "diverged"))


def brute_table(rows: Rows) -> str:
    """Question by question."""
    lines = []
    for level, target in dict.fromkeys((r["level"], r["target"]) for r in rows):
        line = [f"{level} → {target}"]
        for boundary in ("strict", "relaxed"):
            mine = [r for r in rows if (r["level"], r["target"], r["boundary"]) == (level, target, boundary)]
            line += [f"{total(mine, what):,}" for what in ("compared", "predicted", "wrong")]
        lines.append(line)
    return table(["", "strict: compared", "predicted", "wrong", "relaxed: compared", "predicted", "wrong"], lines)


def none_table(rows: Rows) -> str:
    """Answer, seconds and memory, before and after."""
    cells = {(r["label"], r["case"]): r for r in rows}

    def cell(label: str, case: str) -> str:
        row = cells.get((label, case))
        if row is None:
            return "–"
        taken = f"{seconds(row['cpu s'])} s, {float(row['MB']):,.0f} MB"
        return (
            f"over {taken}"
            if row["answer"] == "ended"
            else taken
            if row["answer"] == "none"
            else f"{row['answer']}, {taken}"
        )

    cases = dict.fromkeys(r["case"] for r in rows)
    lines = [[case, *(cell(label, case) for label in ("before", "after", "fast"))] for case in cases]
    return table(["", "before", "exact", "`--fast`"], lines)


def windows_table(rows: Rows) -> str:
    """Time against size."""
    sizes = list(dict.fromkeys(r["transactions"] for r in rows))
    lines = []
    for name, level in dict.fromkeys((r["program"], r["level"]) for r in rows):
        mine = {r["transactions"]: r for r in rows if (r["program"], r["level"]) == (name, level)}
        cells = [f"{row['answer']}, {seconds(row['cpu s'])} s" if row else "–" for row in map(mine.get, sizes)]
        lines.append([f"{TITLES.get(name, 'Ten counters')}, {level}", *cells])
    return table(["", *(f"{int(size):,}" for size in sizes)], lines)


def strategies_table(rows: Rows) -> str:
    """Ours beside the published ones."""
    cells = {(r["level"], r["size"], r["program"], r["strategy"]): r for r in rows}
    lines = []
    for level, size, name in dict.fromkeys((r["level"], r["size"], r["program"]) for r in rows):
        line = [f"{level}, {size}", TITLES[name]]
        for strategy in STRATEGIES:
            row = cells[level, size, name, strategy]
            ours = f"{row['predicted']}/{row['validated']}/{row['diverged']}, fail {row['failed']}"
            theirs = f"{row['published']}/{row['true']}/{row['div']}"
            taken = float(row["generate"]) + float(row["solve"]), float(row["gen s"]) + float(row["sol s"])
            line.append(f"{ours}; {theirs}; {seconds(str(taken[0]))} s, {taken[1]:,.0f} s")
        lines.append(line)
    return table(["", "program", *(f"{strategy}: ours; published; seconds" for strategy in STRATEGIES)], lines)


def shares_table(rows: Rows) -> str:
    """Random and predicted runs."""
    ours = ("explore: fail %", "unser %", "predict: fail %", "unser % ", "MonkeyDB: fail %", "unser %  ")
    theirs = ("IsoPredict: unser %", "MySQL: fail %")
    lines = []
    for row in rows:
        shares = [f"{float(row[what]):.0f}" if row[what] else "–" for what in (*ours, *theirs)]
        rates = [f"{float(row[what]):.1f}" for what in ("per cpu s", "per cpu s ")]
        lines.append([f"{row['level']}, {row['size']}", TITLES[row["program"]], *shares, *rates])
    head = ["explore: fail", "unser", "predict: fail", "unser", "MonkeyDB: fail", "unser", "IsoPredict: unser"]
    return table(["", "program", *head, "MySQL: fail", "explore: per s", "predict: per s"], lines)


def section() -> str:
    """The whole section."""
    levels, brute, none, windows = (read(f"predict-{name}") for name in ("levels", "brute", "none", "windows"))
    after, before, small = ([r for r in levels if r["label"] == label] for label in ("after", "before", "small"))
    first = [r for r in after if (r["boundary"], r["level"], r["program"]) == ("strict", "RC", "smallbank")]
    return SECTION.format(
        runs=sum(total(first, what) for what in ("undecided", "none", "predicted")),
        seeds=first[0]["seeds"],
        size=first[0]["size"],
        levels=levels_table(after),
        predicted=total(after, "predicted"),
        validated=total(after, "validated"),
        refused=total(after, "refused"),
        predicted_before=total(before, "predicted"),
        validated_before=total(before, "validated"),
        seeds_before=before[0]["seeds"],
        size_before=before[0]["size"],
        predicted_small=total(small, "predicted"),
        validated_small=total(small, "validated"),
        changed=changed_table(before, small),
        histories=total(brute, "compared") // 2,
        compared=total(brute, "compared"),
        wrong=total(brute, "wrong"),
        brute=brute_table(brute),
        most=max(float(r["cpu s"]) for r in none),
        none=none_table(none),
        window=windows[0]["window"],
        windows=windows_table(windows),
        strategies=strategies_table(read("predict")),
        shares=shares_table(read("predict-explore")),
    )


def page() -> str:
    """The page with this section."""
    return re.sub(r"## Measured\n.*?(?=\n## |\Z)", lambda _: section(), PAGE.read_text(), flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page())
