"""What MixIso measured: levels by its rules and ours, time, engines, protocols in simulated time, and a PostgreSQL."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import mean, median

from benchmarks.allocate import levels_by, random_workload
from benchmarks.mixed_throughput import Trial, measured
from benchmarks.papers import mixiso_words as words
from benchmarks.papers.page import Paper, Plot, Section
from benchmarks.tables import Row, progress
from plume_py import check
from plume_py.history.builder import HistoryBuilder
from plume_py.reasoning.allocate.catalogue import CATALOGUES, allocate
from plume_py.reasoning.allocate.driver import BENCHMARKS, SMALLBANK, draw
from plume_py.reasoning.allocate.read_write_sets import gather
from plume_py.reasoning.allocate.robust import robust
from plume_py.reasoning.allocate.search_space import of_instances, of_templates
from plume_py.reasoning.allocate.simulate import CostModel, Simulation, parse_cost_model
from plume_py.reasoning.allocate.trial import in_sessions, levels_for
from plume_py.reasoning.allocate.workload import Program, Workload, read, write
from plume_py.report.plot import Axis, Points

LEVELS = ("RA", "PC", "PSI", "SI", "SER")

# -- figures 8 and 12 to 14: who gets which level --


def two_vulnerable_edges(workload: Workload) -> list[str]:
    """SI unless it can stand between two RW edges whose ends share no written cell (Fekete 2005)."""
    sides = _vulnerable(workload)
    return ["SER" if before and after else "SI" for before, after in sides]


def _vulnerable(workload: Workload) -> list[tuple[bool, bool]]:
    """Of each instance: does such an edge come in, and does one go out?"""
    sets = gather(workload)
    reads = [sets.reads.of(p) for p in range(sets.instances)]
    writes = [sets.may.of(p) for p in range(sets.instances)]
    readers, writers = _by_cell(reads), _by_cell(writes)

    def meets(p: int, cells: set[int], others: dict[int, list[int]]) -> bool:
        return any(q != p and writes[p].isdisjoint(writes[q]) for x in cells for q in others.get(x, ()))

    return [(meets(p, writes[p], readers), meets(p, reads[p], writers)) for p in range(sets.instances)]


def _by_cell(cells: Sequence[set[int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for p, own in enumerate(cells):
        for x in own:
            found.setdefault(x, []).append(p)
    return found


RULES: dict[str, Callable[[Workload], list[str]]] = {
    "theorem 6.18": lambda workload: levels_by("paper", workload),
    "refined (ours)": lambda workload: levels_by("refined", workload),
    "SI*: two vulnerable edges": two_vulnerable_edges,
    "SI or SER (ours)": lambda workload: levels_for(workload, "si-s2pl", "si-ser"),
}


def figure8(quick: bool) -> list[Row]:
    """Shares of levels over drawn workloads."""
    runs = 5 if quick else 100
    rows: list[Row] = []
    for name, programs in BENCHMARKS.items():
        rows.append({"benchmark": name, "rules": "the paper's text", **words.FIGURE8[name]})
        for rules, give in RULES.items():
            progress(f"figure 8: {name}, {rules}")
            counts = [Counter(give(draw(programs, 1000, 500, seed))) for seed in range(1, runs + 1)]
            shares = {level: mean(c[level] for c in counts) / 10 for level in LEVELS}
            rows.append(
                {"benchmark": name, "rules": rules}
                | {f"{level}, %": f"{share:.1f}" if share else "" for level, share in shares.items()}
            )
    return rows


def examples12(quick: bool) -> list[Row]:
    """One workload of each benchmark, program by program."""
    rows: list[Row] = []
    for name, programs in BENCHMARKS.items():
        workload = draw(programs, 1000, 500, 1)
        given = {rules: give(workload) for rules, give in RULES.items()}
        for program in programs:
            members = [i for i, instance in enumerate(workload.instances) if instance.program == program.name]
            cells = {rules: _counted(levels[i] for i in members) for rules, levels in given.items()}
            rows.append({"benchmark": name, "program": program.name, "paper": words.FIGURES12[program.name], **cells})
        cells = {rules: _counted(levels) for rules, levels in given.items()}
        rows.append({"benchmark": name, "program": "all", "paper": words.FIGURES12[name], **cells})
    return rows


def _counted(levels: Iterable[str]) -> str:
    counts = Counter(levels)
    return ", ".join(f"{level} {counts[level]}" for level in LEVELS if counts[level])


# -- figure 9: time --


RULES_9 = {"theorem 6.18": "paper", "refined": "refined"}


def figure9(quick: bool) -> list[Row]:
    """CPU seconds of the allocation alone, along each of three parameters."""
    steps = {
        "instances": (1_000, 2_000, 4_000, 6_000, 8_000, 10_000, 20_000),
        "operations": (2, 5, 10, 15, 20, 30),
        "keys": (100, 200, 300, 500, 700, 1_000),
    }
    if quick:
        steps = {name: values[:2] for name, values in steps.items()}
    usual = {"instances": 1_000 if quick else 5_000, "operations": 10, "keys": 300}
    levels_by("refined", random_workload(**usual))  # kernels are compiled
    rows: list[Row] = []
    for along, values in steps.items():
        for value in values:
            progress(f"figure 9: {value} {along}")
            workload = random_workload(**{**usual, along: value})
            rows.append(
                {"along": along, "value": value}
                | {
                    f"{name}, s": _seconds(lambda r=rules, w=workload: levels_by(r, w))
                    for name, rules in RULES_9.items()
                }
            )
    return rows


def _seconds(work: Callable[[], object]) -> float:
    """CPU seconds, the median of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return median(found)


def _along(which: str) -> Callable[[Sequence[dict[str, str]]], dict[str, Points]]:
    return lambda rows: {
        name: [(float(row["value"]), float(row[f"{name}, s"])) for row in rows if row["along"] == which]
        for name in RULES_9
    }


# -- the examples in the text --


def examples(quick: bool) -> list[Row]:
    """What the paper says of its examples, and what is found here."""
    rows = [_figure5(), *_figure5_at_si(), _example68(), _sessions(), _early_timestamp(10 if quick else 200)]
    return [{"example": name, "paper": theirs, "here": ours} for name, theirs, ours in rows]


def _figure5_workload() -> Workload:
    balance, deposit, transact, amalgamate, write_check = SMALLBANK
    return Workload(
        [balance(1), balance(2), write_check(1), transact(1), deposit(1), amalgamate(1, 2)],
        source="the six instances of figure 5",
    )


def _figure5() -> tuple[str, str, str]:
    workload = _figure5_workload()
    levels = levels_by("paper", workload)
    return (
        "figure 5, levels by theorem 6.18",
        "Balance PC; TransactSavings, DepositChecking, Amalgamate PSI; WriteCheck SER; robust",
        "; ".join(f"{i.program} {level}" for i, level in zip(workload.instances, levels, strict=True))
        + f"; {_robust(workload, levels)}",
    )


def _figure5_at_si() -> list[tuple[str, str, str]]:
    workload = _figure5_workload()
    levels = [
        "SI" if i.program == "WriteCheck" else lv
        for i, lv in zip(workload.instances, levels_by("paper", workload), strict=True)
    ]
    return [("example 6.17: figure 5 with WriteCheck at SI", "a critical cycle of form σ4", _robust(workload, levels))]


def _robust(workload: Workload, levels: Sequence[str]) -> str:
    answer = robust(of_instances(workload), levels)
    if answer.critical is None or answer.ok:
        return "robust" if answer.ok else "undecided"
    name, meaning = answer.critical.form
    cycle = "; ".join(answer.critical.words())
    return f"not robust: {cycle}: form {name}" if name else f"not robust: {cycle}: none of the forms, as {meaning}"


def _example68() -> tuple[str, str, str]:
    """X2 of figure 2, from what the text says of its dependencies."""
    builder = HistoryBuilder(initial=0)
    builder.add(0, [("w", "z", 1)], level="SI", id="T1")
    builder.add(1, [("r", "z", 1), ("r", "y", 3)], level="SER", id="T2")
    builder.add(2, [("r", "y", 0), ("w", "z", 2)], level="SI", id="T3")
    builder.add(3, [("w", "y", 3)], level="SER", id="T4")
    found = check(builder.build(init_txn="none"), ["declared", "SER"])
    verdicts = {name: level.ok for name, level in found.levels.items()}
    told = "consistent" if verdicts["declared"] else "not consistent"
    whole = "serializable by another order of the writes of z" if verdicts["SER"] else "not serializable"
    return (
        "example 6.8: X2 of figure 2",
        "consistent, not serializable, form π4",
        f"{told}; T3 at SI is between RW(z) and RW(y): form π4; the history, as far as the text tells it, is {whole}",
    )


def _sessions() -> tuple[str, str, str]:
    """Single-key readers in a session."""
    workload = Workload.of_sessions(
        [[Program("W", (), (write("k"),))()], [Program("A", (), (read("k"),))(), Program("B", (), (read("k"),))()]]
    )
    theirs = levels_by("paper", workload)
    return (
        "theorem 6.18 where sessions matter: W writes k; A, then B in one session read it",
        "all at RA, robust",
        f"theirs: {_counted(theirs)}, {_robust(workload, theirs)}; ours: {_counted(levels_by('refined', workload))}",
    )


def _early_timestamp(runs: int) -> tuple[str, str, str]:
    writer = Program("T", ("k",), (write("x", "k"),))
    reader = Program("T'", ("k",), (read("x", "k"), read("x", "k")))
    workload = Workload.of_sessions([[writer(1)], [Program("before", (), ())(), reader(1)]])
    found = Counter[str]()
    for seed in range(runs):
        history = Simulation("si-s2pl", ["SI"] * 3, workload, seed, "early-timestamp").run().history
        found.update({violation.pattern.name for violation in check(history, "declared").violations})
    return (
        "example E.1: SI-S2PL takes its commit time before its locks",
        "NonRepeatableRead may arise",
        f"`simulate --bug early-timestamp`, {runs} runs: "
        + (", ".join(f"{n} in {c}" for n, c in found.most_common()) or "none"),
    )


# -- appendix A: engines --


def engines(quick: bool) -> list[Row]:
    """Levels of each program in every workload, by what an engine offers."""
    rows: list[Row] = []
    for name in ("mixiso", *words.ENGINES):
        catalogue = CATALOGUES[name]
        cells = {}
        for benchmark, programs in BENCHMARKS.items():
            space = of_templates(programs)
            levels = allocate(space, catalogue)
            shown = [level if level in catalogue.levels else f"{level} (not offered)" for level in levels]
            cells[benchmark] = ", ".join(f"{g} {level}" for g, level in zip(space.groups, shown, strict=True))
        settings = ", ".join(f"{own} = {level}" for level, own in catalogue.engine_names.items() if own != level)
        rows.append({"engine": name, "counted on": settings or "each level as it is", **cells, "why": catalogue.note})
    return rows


# -- figure 15: the protocol in simulated time --

ALLOCATIONS = ("ser", "si-ser", "theorem 6.18", "weakest")
# The weakest level of PC, SI, SER that implies what the theorem gives.
AT_LEAST = {"RA": "PC", "PC": "PC", "PSI": "SI", "SER": "SER"}


def _levels(workload: Workload, allocation: str) -> list[str]:
    if allocation == "theorem 6.18":
        return [AT_LEAST[level] for level in levels_by("paper", workload)]
    return levels_for(workload, "pc-si-ser", allocation)


def _simulated(
    programs: Sequence[Program], costs: CostModel, workloads: int, largest: int = 500
) -> dict[str, tuple[float, float, float]]:
    """Of each allocation: transactions/s, seconds of latency, aborted attempts in 100; medians over workloads."""
    found: dict[str, list[tuple[float, float, float]]] = {allocation: [] for allocation in ALLOCATIONS}
    for seed in range(1, workloads + 1):
        workload = in_sessions(draw(tuple(programs), 200, largest, seed), 10, seed)
        for allocation in ALLOCATIONS:
            outcome = Simulation("pc-si-ser", _levels(workload, allocation), workload, seed, costs=costs).run()
            if check(outcome.history, ["declared", "SER"]).ok is not True:
                raise SystemExit(f"{allocation}: a simulated run breaks its levels")
            aborted = 100 * outcome.aborted / (outcome.aborted + outcome.committed)
            found[allocation].append((outcome.throughput, outcome.latency, aborted))
    return {name: tuple(median(column) for column in zip(*rows, strict=True)) for name, rows in found.items()}  # type: ignore[misc]


def figure15(quick: bool) -> list[Row]:
    """Throughput at four allocations, by several models of what takes how long."""
    rows: list[Row] = []
    for name, programs in BENCHMARKS.items():
        rows.append({"benchmark": name, "model": "the paper", **words.FIGURE15[name]})
        for model, costs in words.MODELS.items():
            progress(f"figure 15: {name}, {model}")
            told = _simulated(programs, parse_cost_model(costs), 1 if quick else 5)
            speed = {allocation: figures[0] for allocation, figures in told.items()}
            rows.append(
                {"benchmark": name, "model": model}
                | {f"{allocation}, tx/s": f"{speed[allocation]:.1f}" for allocation in ALLOCATIONS}
                | {
                    "6.18 to ser": f"{speed['theorem 6.18'] / speed['ser']:.2f}",
                    "6.18 to si-ser": f"{speed['theorem 6.18'] / speed['si-ser']:.2f}",
                    "latency 6.18 to si-ser": f"{told['theorem 6.18'][1] / told['si-ser'][1]:.2f}",
                }
            )
    return rows


def sensitivity(quick: bool) -> list[Row]:
    """How the gain over all SER depends on the number of nodes, and on the number of keys."""
    rows: list[Row] = []
    for nodes in (2, 5) if quick else (1, 2, 3, 5, 7, 10, 15, 20):
        progress(f"sensitivity: {nodes} nodes")
        row: dict[str, str | int] = {"nodes": nodes}
        for name, programs in BENCHMARKS.items():
            for validation in ("together", "each"):
                costs = parse_cost_model(f"data=replicated,begin=1,nodes={nodes},validation={validation}")
                told = _simulated(programs, costs, 1 if quick else 3)
                row[f"{name}, {validation}"] = f"{told['theorem 6.18'][0] / told['ser'][0]:.2f}"
        rows.append(row)
    return rows


def _gains(validation: str) -> Callable[[Sequence[dict[str, str]]], dict[str, Points]]:
    return lambda rows: {
        name: [(float(row["nodes"]), float(row[f"{name}, {validation}"])) for row in rows] for name in BENCHMARKS
    }


# -- a real server --


def postgresql(quick: bool) -> list[Row]:
    """The same workloads on PostgreSQL, and in simulated time with the same round trips."""
    sizes = [(500, 0.005), (20, 0.005), (500, 0.0)]
    trials = [
        Trial(name, largest, sessions, pause, 10 if quick else 60)
        for name in BENCHMARKS
        for largest, pause in (sizes[:1] if quick else sizes)
        for sessions in ((8,) if quick else (8, 32))
    ]
    rows: list[Row] = []
    for row in measured(trials, 1 if quick else 5):
        progress(f"{row['benchmark']}, {row['keys']} keys, {row['sessions']} sessions, {row['allocation']}")
        rows.append(row)
    return [row | _beside(row, 10 if quick else 60) for row in rows]


def _beside(row: Row, each: int) -> Row:
    """The simulator's figures for the same workload: every operation a round trip to one server."""
    pause = float(str(row["pause, ms"])) / 1000
    if not pause:
        return {"simulated, to all SER": "", "simulated, aborted, %": ""}
    trial = Trial(str(row["benchmark"]), int(str(row["keys"])), int(str(row["sessions"])), pause, each)
    workload = trial.workload(1)
    costs = CostModel(low=pause, high=pause)
    allocation = "weakest" if row["allocation"] == "allocated" else str(row["allocation"])
    base, own = (
        Simulation("pc-si-ser", levels_for(workload, "pc-si-ser", name), workload, 1, costs=costs).run()
        for name in ("ser", allocation)
    )
    return {
        "simulated, to all SER": f"{own.throughput / base.throughput:.2f}",
        "simulated, aborted, %": f"{100 * own.aborted / (own.aborted + own.committed):.1f}",
    }


TIME, GAIN = Axis("CPU seconds"), Axis("throughput, times all SER")
PAPER = Paper(
    "mixiso",
    words.TITLE,
    words.INTRO,
    [
        Section("examples", "Examples of the text, and E.1", words.EXAMPLES, examples, words.EXAMPLES_DIFFER),
        Section("figure8", "Figure 8: levels of 1,000 instances", words.ABOUT_8, figure8, words.DIFFERS_8),
        Section("figures12-14", "Figures 12 to 14: one workload of each", words.ABOUT_12, examples12, words.DIFFERS_12),
        Section(
            "figure9",
            "Figure 9: time of the allocation",
            words.ABOUT_9,
            figure9,
            words.DIFFERS_9,
            [
                Plot(
                    "CPU seconds by instances (10 operations, 300 keys)",
                    Axis("instances"),
                    TIME,
                    _along("instances"),
                    "a",
                ),
                Plot(
                    "CPU seconds by operations (5,000 instances)",
                    Axis("operations of each"),
                    TIME,
                    _along("operations"),
                    "b",
                ),
                Plot("CPU seconds by keys (5,000 instances)", Axis("keys"), TIME, _along("keys"), "c"),
            ],
        ),
        Section("engines", "Appendix A: what engines make of it", words.ABOUT_A, engines, words.DIFFERS_A),
        Section("figure15", "Figure 15: the protocol PC-SI-SER", words.ABOUT_15, figure15, words.DIFFERS_15),
        Section(
            "sensitivity",
            "Figure 15: how much hangs on the nodes",
            words.ABOUT_NODES,
            sensitivity,
            words.DIFFERS_NODES,
            [
                Plot("Gain over all SER, nodes asked at once", Axis("nodes"), GAIN, _gains("together"), "together"),
                Plot("Gain over all SER, one node after the other", Axis("nodes"), GAIN, _gains("each"), "each"),
            ],
        ),
        Section("postgresql", "The same question to PostgreSQL", words.ABOUT_PG, postgresql, words.DIFFERS_PG),
    ],
    words.LEFT_OUT,
)
