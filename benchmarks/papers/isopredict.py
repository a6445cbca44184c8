"""IsoPredict's paper: its examples and tables 3 to 7 beside ours."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.papers.page import Paper, Section
from benchmarks.predict import (
    LEVELS,
    RESULTS,
    RUNS,
    SIZES,
    STRATEGIES,
    comparison_row,
    sizes_of,
    strategy_row,
)
from benchmarks.tables import Row, progress, save
from plume_py.reasoning.predict.predictor.predictor import predict
from plume_py.reasoning.predict.store import PlannedTransaction, Rollback, Transaction
from plume_py.reasoning.predict.store.program import PROGRAMS, SeededProgram, observed_run
from plume_py.reasoning.predict.store.replay import replay

Kept = Sequence[dict[str, str]]
SEEDS, FEW_SEEDS = 10, 2
TITLES = {"smallbank": "SmallBank", "voter": "Voter", "tpcc": "TPC-C", "wikipedia": "Wikipedia"}

# Table 3: reads, writes, committed transactions, and those of them that only read; means of ten runs.
TABLE_3 = {
    ("smallbank", 4): (669.7, 14.7, 11.0, 3.5),
    ("voter", 4): (763.0, 6.0, 12.0, 11.0),
    ("tpcc", 4): (3297.3, 763.0, 11.9, 0.9),
    ("wikipedia", 4): (1067.7, 55.1, 9.9, 8.8),
    ("smallbank", 8): (1271.3, 30.5, 20.3, 6.6),
    ("voter", 8): (919.0, 6.0, 24.0, 23.0),
    ("tpcc", 8): (7025.6, 1502.4, 23.8, 1.7),
    ("wikipedia", 8): (2677.1, 111.1, 22.8, 20.6),
}
# Tables 4 and 5, in the order of the strategies: thousands of literals, and how many solver runs did not end in an
# answer (unknown, or 24 hours).
LITERALS = {
    ("TCC", 4, "smallbank"): (140, 366, 366),
    ("TCC", 4, "voter"): (687, 1526, 1526),
    ("TCC", 4, "tpcc"): (3493, 6508, 6508),
    ("TCC", 4, "wikipedia"): (180, 529, 529),
    ("TCC", 8, "smallbank"): (1073, 2175, 1073),
    ("TCC", 8, "voter"): (2623, 5623, 5623),
    ("TCC", 8, "tpcc"): (36434, 60834, 60834),
    ("TCC", 8, "wikipedia"): (1773, 4316, 4316),
    ("RC", 4, "smallbank"): (144, 370, 370),
    ("RC", 4, "voter"): (688, 1527, 1527),
    ("RC", 4, "tpcc"): (3855, 6869, 6869),
    ("RC", 4, "wikipedia"): (184, 533, 533),
    ("RC", 8, "smallbank"): (1085, 2187, 2187),
    ("RC", 8, "voter"): (2625, 5625, 5625),
    ("RC", 8, "tpcc"): (38062, 62462, 62462),
    ("RC", 8, "wikipedia"): (1807, 4350, 4350),
}
NO_ANSWER = {
    ("TCC", 4, "wikipedia"): (1, 0, 0),
    ("TCC", 8, "smallbank"): (4, 1, 0),
    ("TCC", 8, "voter"): (9, 0, 0),
    ("TCC", 8, "tpcc"): (4, 2, 0),
    ("TCC", 8, "wikipedia"): (8, 0, 0),
    ("RC", 4, "wikipedia"): (2, 0, 0),
}


# -- figures 1 and 9 -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bank:
    """One account, and a plan for it: by session, what is paid in, or out if it is negative."""

    name: str
    amounts: tuple[tuple[int, ...], ...]

    def initial(self, key: str) -> Any:
        """Nothing, at first."""
        return 0

    def plan(self, seed: int, sessions: int, transactions: int) -> Sequence[Sequence[PlannedTransaction]]:
        """As the paper's algorithms 1 and 2."""
        return [[PlannedTransaction("pay", _paid(amount)) for amount in session] for session in self.amounts]


def _paid(amount: int) -> Callable[[Transaction], None]:
    def pay(txn: Transaction) -> None:
        balance = txn.read("balance")
        if balance + amount < 0:
            raise Rollback("not enough")
        txn.write("balance", balance + amount)

    return pay


IN_TURN = 4  # the seed of a serial run in which the withdrawal comes between the deposits
EXAMPLES = (
    (Bank("Figures 1 to 3: two deposits", ((50,), (60,))), "relaxed", "predicted, comes true"),
    (Bank("Figure 9 e: deposit, withdrawal, deposit", ((60, 30), (-50,))), "strict", "none"),
    (Bank("Figure 9 c, d, f: the same", ((60, 30), (-50,))), "relaxed", "predicted, diverges, does not come true"),
)


def examples(quick: bool) -> list[Row]:
    """What can be predicted at TCC from the paper's own examples, and what becomes of it."""
    del quick
    rows: list[Row] = []
    for bank, boundary, paper in EXAMPLES:
        workload = SeededProgram(bank, IN_TURN, len(bank.amounts), max(map(len, bank.amounts)))
        observed = observed_run(workload)
        outcome = predict(observed, "TCC", boundary=boundary)  # type: ignore[arg-type]
        here = "none"
        for prediction in outcome.predictions:
            found = replay(workload, observed, prediction, "TCC")
            true = "comes true" if found.validated else "does not come true"
            here = ", ".join(["predicted", *(["diverges"] if found.diverged else []), true])
        rows.append({"example": bank.name, "boundary": boundary, "paper": paper, "here": here})
    return rows


# -- tables 3 to 7 ---------------------------------------------------------------------------------------------------


def _shapes(quick: bool) -> tuple[int, tuple[int, ...]]:
    return (FEW_SEEDS, SIZES[:1]) if quick else (SEEDS, SIZES)


def programs(quick: bool) -> list[Row]:
    """Table 3."""
    seeds, sizes = _shapes(quick)
    shapes = [(name, size, sizes_of(name, size, seeds)) for size in sizes for name in PROGRAMS]
    if not quick:
        save(RESULTS / "predict-programs.csv", [shape for _, _, shape in shapes])  # type: ignore[misc]
    rows: list[Row] = []
    for name, size, shape in shapes:
        row: dict[str, Any] = {"program": TITLES[name], "size": shape["size"]}
        for what, published in zip(("reads", "writes", "committed", "read-only"), TABLE_3[name, size], strict=True):
            row |= {f"{what}: paper": published, f"{what}: here": shape[what]}
        rows.append(row)
    return rows


def predictions(quick: bool) -> list[Row]:
    """Tables 4 and 5; the same rows are those of docs/predict.md."""
    seeds, sizes = _shapes(quick)
    rows = []
    for level in LEVELS:
        for size in sizes:
            for name in PROGRAMS:
                progress(f"{level} 3 x {size} {name}")
                rows += [strategy_row(name, size, level, strategy, seeds) for strategy in STRATEGIES]
    if not quick:
        save(RESULTS / "predict.csv", rows)  # type: ignore[arg-type]
    return rows  # type: ignore[return-value]


def _row_by_row(rows: Kept) -> list[dict[str, str]]:
    return list(_compared(rows))


def _compared(rows: Kept) -> Iterator[dict[str, str]]:
    for row in rows:
        of = row["level"], int(row["size"].split()[-1]), row["program"]
        place = list(STRATEGIES).index(row["strategy"])
        asked = sum(int(row[what]) for what in ("undecided", "none", "predicted"))
        ours = f"{row['predicted']} / {row['validated']} / {row['diverged']}"
        theirs = f"{row['published']} / {row['true']} / {row['div']}"
        yield {
            "": f"{row['level']}, {row['size']}",
            "program": TITLES[row["program"]],
            "strategy": row["strategy"],
            "paper: p / v / d": theirs,
            f"here, of {asked}": "the same" if ours == theirs else ours,
            "paper: no answer": str(NO_ANSWER.get(of, (0, 0, 0))[place]),
            "here ": row["undecided"],
            "paper: literals": f"{LITERALS[of][place]:,} K",
            "here: clauses": f"{int(row['clauses']) / 1000:.1f} K",
            "paper: generate": f"{float(row['gen s']):,.0f} s",
            "here  ": _milliseconds(row["generate"]),
            "paper: solve": f"{float(row['sol s']):,.1f} s",
            "here   ": _milliseconds(row["solve"]),
        }


def _milliseconds(seconds: str) -> str:
    return f"{1000 * float(seconds):,.0f} ms"


def shares(quick: bool) -> list[Row]:
    """Tables 6 and 7; the same rows are those of docs/predict.md."""
    seeds, sizes = _shapes(quick)
    rows = []
    for level in LEVELS:
        for size in sizes:
            for name in PROGRAMS:
                progress(f"{level} 3 x {size} {name}: exploration")
                rows.append(comparison_row(name, size, level, seeds, RUNS[name] * seeds))
    if not quick:
        save(RESULTS / "predict-explore.csv", rows)  # type: ignore[arg-type]
    return rows  # type: ignore[return-value]


def _differences(rows: Kept) -> list[dict[str, str]]:
    """In percentage points."""
    compared = (
        ("explore - MonkeyDB: fail", "explore: fail %", "MonkeyDB: fail %"),
        ("unser", "unser %", "unser %  "),
        ("predict - IsoPredict: unser", "unser % ", "IsoPredict: unser %"),
    )
    return [
        {"": f"{row['level']}, {row['size']}", "program": TITLES[row["program"]]}
        | {name: f"{float(row[ours]) - float(row[theirs]):+.0f}" for name, ours, theirs in compared}
        for row in rows
    ]


INTRO = """\
What *IsoPredict: Dynamic Predictive Analysis for Detecting Unserializable Behaviors in Weakly Isolated Data Store
Applications* (Geng, Blanas, Bond, Wang; PLDI 2024) measured, by `isocheck predict` ([predict.md](../predict.md)). The
paper's CAUSAL is TCC here. Seconds are processor time. What the paper does not have (RA, PC, PSI and SI, other targets,
real databases, long histories, brute force) is in [predict.md](../predict.md#measured) and
[confirm.md](../../benchmarks/results/confirm.md)."""

EXAMPLES_PAPER = """\
Figures 1 to 3: two deposits to one account, of which the second is predicted to miss the first. Figure 9: a withdrawal
between two deposits, for which the relaxed boundary predicts something that cannot happen, as the withdrawal aborts if
it reads the initial balance; the strict boundary predicts nothing."""
EXAMPLES_DIFFERS = "As in the paper: TCC, the program of its algorithms 1 and 2 on our store."

PROGRAMS_PAPER = """\
Table 3: four programs of OLTP-Bench in the form that MonkeyDB's authors gave them, three sessions of four and of eight
transactions; means of ten runs."""
PROGRAMS_DIFFERS = """\
Ours are programs of our own after theirs, on a store of keys and values (`isocheck predict --program NAME`); how many
accounts, customers and pages there are was chosen so that sizes come near the paper's. As there, most reads are of keys
that nobody writes, which no prediction can change. Voter reads as much in each transaction here, less with every
transaction there."""

PREDICTIONS_PAPER = """\
Tables 4 (TCC) and 5 (RC): of ten runs, how many lead to a prediction (p), how many of these come true when the program
is run again (v: validated), and in how many the program then does something else (d: diverged); the size of the
constraints, and the seconds to generate and to solve them (of successful predictions; of others where there are none).
Theirs: a Xeon at 2.3 GHz, up to 24 hours for each."""

PREDICTIONS_DIFFERS = """\
In which of the runs that came true an assertion fails, too, is in [predict.md](../predict.md#measured), from the same
measurement. What differs, and why:

- *SmallBank at TCC, strict: more here.* Other runs: how often two transactions meet on an account decides. Where the
  paper's exact strategy finds less than its approximate one (3 x 8: 5 against 9), four of its solver runs did not end;
  here all end, and the two agree in every row.
- *SmallBank 3 x 8 at TCC, relaxed: two do not come true.* A transaction that reads another balance aborts by itself, as
  in the paper's Figure 9. Three of the paper's own predictions fail, too.
- *TPC-C 3 x 8 at TCC: all are predicted here*; there, the solver did not end for 4 (exact) and 2 (approximate).
- *Wikipedia: more at TCC, fewer at RC with 3 x 4.* A run has few writers, 1.2 of 3 x 4 and 3.3 of 3 x 8 (there 1.1 and
  2.2), so every one counts.
- *Strict: nothing diverges here.* What a transaction does behind the boundary is no part of the prediction and does not
  count; the paper seems to count some of it (Voter at RC: up to 7).
- *Relaxed: a few more or fewer diverge*, as it depends on what each program does with what it reads.
- *No answer*: none here, 31 there.
- *Literals*: SmallBank 3 x 8 at TCC, approximate-relaxed, is printed as 1,073 K in the paper, which is the number of
  its
  exact strategy; everywhere else relaxed has as many as strict, which would be 2,175 K.
- *Times*: ours are clauses of a SAT solver, without an SMT layer, and keys that nobody writes are dropped first. A
  literal of the paper is no clause, and the machine is another: read the growth."""

SHARES_PAPER = """\
Tables 6 (TCC, relaxed) and 7 (RC, strict): per cent of runs in which an assertion fails, and that are not serializable:
random ones by MonkeyDB, predicted ones that came true, and MySQL at READ COMMITTED."""
SHARES_DIFFERS = """\
The table has differences in percentage points, ours minus the paper's; the figures themselves are in
[predict.md](../predict.md#measured) ("Tables 6 and 7"). `isocheck explore` does what MonkeyDB does: every read gets a
random version that the level allows. Assertions are those of our programs, so "fail" differs where ours say more
(Wikipedia at TCC: 0 there) or less (Wikipedia at RC: 54 and 89 there). Voter at TCC: under random reads most runs break
in both, and none can be predicted in either: what is broken is what the program does only after it has read something
else. Predicted runs differ as above."""

LEFT_OUT = """\
- MySQL's column of Table 7 was not measured again (its figures are in [predict.md](../predict.md#measured)): a program
  that runs on a real database by itself, again and again, is what `isocheck test` is for. Predictions are taken to real
  databases one by one instead: [confirm.md](../../benchmarks/results/confirm.md).
- Figures 7 and 8 show parts of runs of programs that are not ours; Figures 2, 3, 5 and 6 explain definitions.
- The profile of the constraint generator (97 % of it Python): there is no such generator here."""

PAPER = Paper(
    "isopredict",
    "IsoPredict's paper beside ours",
    INTRO,
    (
        Section("examples", "Examples (Figures 1 and 9)", EXAMPLES_PAPER, examples, EXAMPLES_DIFFERS),
        Section("programs", "Programs (Table 3)", PROGRAMS_PAPER, programs, PROGRAMS_DIFFERS),
        Section(
            "predictions",
            "Predictions (Tables 4 and 5)",
            PREDICTIONS_PAPER,
            predictions,
            PREDICTIONS_DIFFERS,
            table=_row_by_row,
        ),
        Section(
            "shares",
            "Beside random exploration (Tables 6 and 7)",
            SHARES_PAPER,
            shares,
            SHARES_DIFFERS,
            table=_differences,
        ),
    ),
    LEFT_OUT,
)
