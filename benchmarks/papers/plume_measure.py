"""How the figures and tables of the Plume paper are measured here: CPU seconds and megabytes of whole commands.

``PLUME_ARTIFACT=folder`` is the paper's artifact, for histories that it recorded; without it those rows are missing.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from benchmarks.measure import PYTHON, run
from benchmarks.papers.plume_paper import ABLATION, LARGE, LISTS, MEGABYTES, MISSES, SECONDS, WHO
from benchmarks.papers.plume_peers import TXT, Peer, peers
from benchmarks.papers.plume_taps import LETTERS
from benchmarks.tables import Cell, Row, progress
from benchmarks.workloads import WORK
from plume_py.bench.run import SHAPE, STOPPED, Measured, Point, Value, checked, write
from plume_py.cli.generate import PRESETS

LIMIT, PEER_LIMIT = 40, 20  # CPU seconds of one check
QUICK_LIMIT = 10
# The paper's histories come from snapshot isolation, so that checkers of that level can judge them, too.
MADE = "SI"
DEFAULTS = {"sessions": 25, "transactions": 200, "operations": 20, "read-share": 0.5, "keys": 10_000}
AXES: dict[str, Sequence[Value]] = {
    "sessions": (2, 5, 10, 25, 50),
    "transactions": (100, 300, 500),
    "operations": (10, 30, 50),
    "read-share": (0.2, 0.5, 0.95),
    "keys": (2_000, 10_000),
    "distribution": ("uniform", "zipfian", "hotspot"),
}
QUICK_AXES: dict[str, Sequence[Value]] = {"sessions": (2, 5, 10), "distribution": ("uniform", "zipfian")}
# Those who judge SI take so long at the other axes' sizes that they would only be ended again and again.
STRONG_ON = ("sessions",)
KINDS = (
    ("Property", "CI, RC, RA, TCC", "CI RC RA TCC PC PSI SI SER, with or without real time; own definitions"),
    ("Informative", "violating scenarios", "steps with reasons, pictures, a minimal history; `verify` re-checks them"),
    ("General", "registers, lists", "registers, lists, unknown outcomes, a level per transaction"),
    ("Efficient by", "vectors and tree clocks", "compiled kernels over columns, narrow vectors, tree clocks"),
    ("Complete", "yes", "yes: every violating triple has a name (TAP-a to TAP-n)"),
)


def point(level: str = "TCC", clock: str = "auto", **shape: Value) -> Point:
    """A history of the paper's kind, and a question about it."""
    known = {name.replace("_", "-"): value for name, value in shape.items()}
    return Point({**SHAPE, "guarantee": MADE, **known}, level, clock)


def file(of: Point, extension: str = TXT) -> Path:
    """Its history, made once."""
    slug = "-".join(f"{value:g}" if isinstance(value, float) else f"{value}" for value in of.shape.values())
    path = WORK / "papers" / f"plume-{slug}.{extension}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"new-{os.getpid()}-{path.name}")
        try:
            write(of, fresh)
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
    return path


def ours(of: Point, path: Path, quick: bool, runs: int = 1) -> Measured:
    """isocheck's check of a file, ended after so many CPU seconds."""
    progress(f"{path.name}, {of.level}, clock {of.clock}")
    _compile(of.clock)
    limit = ["prlimit", f"--cpu={QUICK_LIMIT if quick else LIMIT}"]
    return checked(of, path, runs, None, limit, warm=True)


@cache
def _compile(clock: str) -> None:
    """Kernels for every weak level, and for sessions of fewer and of more than 255 transactions."""
    for transactions in (2, 1 << 8):
        for level in ("RC", "RA", "TCC") if clock == "auto" else ("TCC",):
            small = point(level, clock, sessions=2, transactions=transactions, operations=2, keys=100)
            checked(small, file(small), 1, None, warm=True)


def seconds(found: Measured) -> Cell:
    """CPU seconds, or that it was ended."""
    return f"> {found.cpu:.0f}" if found.verdict == STOPPED else found.cpu


# Figures 8 and 9


def comparison(quick: bool) -> list[Row]:
    """Each parameter in turn, the others as they are by default; isocheck and others on the same histories."""
    others = peers()
    rows: list[Row] = []
    for axis, values in (QUICK_AXES if quick else AXES).items():
        active = {name: peer for name, peer in others.items() if peer.level == "TCC" or axis in STRONG_ON}
        for value in values:
            at = point(**{**DEFAULTS, axis: value})
            found = ours(at, file(at), quick)
            rows.append(_compared(axis, value, found, _others(at, active, quick), list(others)))
    return rows


def _others(at: Point, active: dict[str, Peer], quick: bool) -> dict[str, tuple[float, float] | None]:
    """CPU seconds and megabytes of each; whoever had to be ended is not asked about the next value."""
    told: dict[str, tuple[float, float] | None] = {}
    for name, peer in list(active.items()):
        done = peer.judge(file(at, peer.format), QUICK_LIMIT if quick else PEER_LIMIT)
        if done is None:
            del active[name]
        elif peer.rejects(done.output):
            raise SystemExit(f"{name} finds a violation in a history that has none")
        told[name] = None if done is None else (done.cpu, done.megabytes)
    return told


def _compared(
    axis: str, value: Value, found: Measured, told: dict[str, tuple[float, float] | None], names: list[str]
) -> Row:
    row: dict[str, Cell] = {"axis": axis, "value": value, "isocheck s": seconds(found)}
    row["isocheck MB"] = round(found.megabytes)
    for name in names:
        cost = told.get(name, ())
        row[f"{name} s"] = None if cost == () else "stopped" if cost is None else cost[0]
        row[f"{name} MB"] = round(cost[1]) if cost else None
    published = SECONDS.get((axis, f"{value}"), ())
    for name, figure in zip(WHO, published or [None] * len(WHO), strict=True):
        row[f"paper: {name} s"] = figure
    row["paper: Plume MB"] = MEGABYTES.get((axis, f"{value}"))
    return row


# Figures 10 and 11


def lists(quick: bool) -> list[Row]:
    """Histories of lists that the paper recorded and published, by sessions."""
    rows: list[Row] = []
    for sessions, (plume, elle) in list(LISTS.items())[: 2 if quick else None]:
        path = _artifact(f"History/figure/fig_10/sess{sessions}/history0.edn")
        if path is not None:
            if not rows:
                ours(point(), path, quick)  # kernels for lists
            found = {level: ours(point(level), path, quick) for level in ("TCC", "RA", "RC")}
            costs: dict[str, Cell] = {f"isocheck {level} s": seconds(each) for level, each in found.items()}
            rows.append({"sessions": sessions, **costs, "paper: Plume TCC s": plume, "paper: Elle TCC s": elle})
    return rows


def stages(quick: bool) -> list[Row]:
    """Where the time goes: the history of figure 11, and the default ones of the other sections."""
    rows: list[Row] = []
    for sessions in (10, 25) if quick else (10, 25, 50):
        at = point(sessions=sessions)
        found = ours(at, file(at), quick, 1 if quick else 3)
        # Stages are told by the clock; in proportion, what others do on the machine counts less.
        share = found.cpu / found.seconds
        names = ("start", "load", "resolve", "order", "clocks", "edges")
        told = {name: found.stages.get(name, 0.0) * share for name in names}
        rows.append({"sessions": sessions, **told, "cpu s": found.cpu})
    return rows


# Figure 12


def datasets(quick: bool) -> Iterator[tuple[str, Path]]:
    """The paper's datasets by name: the general ones are generated, two of the others were published."""
    for name in list(ABLATION)[:3]:
        shape: dict[str, Value] = PRESETS[name] | ({"transactions": 40} if quick else {})
        yield name, file(point(**shape))
    for name in ("rubis", "twitter"):
        path = _artifact(f"History/figure/fig_12/{name}-10000/hist-00000.txt")
        if path is not None:
            yield {"rubis": "C-RUBiS", "twitter": "C-Twitter"}[name], path


def ablation(quick: bool) -> list[Row]:
    """Trees, vectors, neither, on each dataset."""
    rows: list[Row] = []
    for name, path in datasets(quick):
        found = {clock: ours(point(clock=clock), path, quick) for clock in ("tree", "vector", "none", "auto")}
        costs: dict[str, Cell] = {f"{clock} s": seconds(each) for clock, each in found.items()}
        alone = {f"{clock}, clocks alone s": found[clock].stages.get("clocks") for clock in ("tree", "vector", "none")}
        published = dict(zip(("paper: tree s", "paper: vector s", "paper: neither s"), ABLATION[name], strict=True))
        rows.append({"history": name, **costs, **alone, **published})
    return rows


def clocks(quick: bool) -> list[Row]:
    """100,000 transactions over ever more sessions: where trees win and where they lose."""
    rows: list[Row] = []
    total = 10_000 if quick else 100_000
    for sessions in (10, 100) if quick else (10, 100, 1_000, 10_000):
        for made in ("TCC", "SER"):
            shape: dict[str, Value] = {"sessions": sessions, "transactions": total // sessions, "operations": 10}
            path = file(point(guarantee=made, **shape))
            for clock in ("vector", "tree", "auto"):
                found = ours(point(clock=clock, guarantee=made, **shape), path, quick)
                rows.append(
                    {
                        "sessions": sessions,
                        "made": made,
                        "clock": clock,
                        "cpu s": seconds(found),
                        "clocks s": found.stages.get("clocks"),
                        "edges s": found.stages.get("edges"),
                        "MB": round(found.megabytes),
                    }
                )
    return rows


# Figure 13


def large(quick: bool) -> list[Row]:
    """Large histories at each weak level: by reads, and by operations per transaction."""
    rows: list[Row] = []
    for (axis, value), published in LARGE.items():
        # A million operations each, where the paper has 20 to 400 millions.
        per_session = int((400 if quick else 10_000) / (20 if axis == "read-share" else value))
        shape: dict[str, Value] = {**PRESETS["Million"], "transactions": per_session, axis: value}
        path = file(point(**shape))
        operations = 100 * per_session * int(shape["operations"])
        for level, figure in zip(("RC", "RA", "TCC"), published, strict=True):
            found = ours(point(level, **shape), path, quick)
            theirs = 1_000_000 * (20 if axis == "read-share" else value)
            rows.append(
                {
                    "axis": axis,
                    "value": value,
                    "level": level,
                    "operations": operations,
                    "cpu s": seconds(found),
                    "MB": round(found.megabytes),
                    "s per million": found.cpu / operations * 1e6,
                    "paper: s": figure,
                    "paper: s per million": figure / theirs * 1e6,
                }
            )
    return rows


# Tables 5 and 6


def table_5(quick: bool) -> list[Row]:
    """Small histories with one planted pattern each: who rejects them? As found out of how many."""
    seeds = 1 if quick else 3
    with tempfile.TemporaryDirectory(prefix="isocheck-taps-") as name:
        folder = Path(name)
        told = json.loads(run([PYTHON, "-m", "benchmarks.papers.plume_taps", name, f"{seeds}"]).output)
        rows: list[Row] = [{"checker": "isocheck (TCC)", **_share(told, seeds, lambda tap, found: tap in found)}]
        for peer in peers().values():
            progress(f"{peer.name} on {len(told)} histories")
            judged = {case: peer.judge(folder / f"{case}.{peer.format}", LIMIT) for case in told}
            share = _share(judged, seeds, lambda _, done, peer=peer: done is not None and peer.rejects(done.output))
            rows.append({"checker": f"{peer.name} ({peer.level})", **share})
    for row in rows:
        row["paper: misses"] = MISSES.get(str(row["checker"]), "")  # type: ignore[index]
    return rows


def _share(told: dict, seeds: int, seen) -> dict[str, Cell]:
    counts = {tap: sum(seen(tap, told[f"{tap}-{seed}"]) for seed in range(seeds)) for tap in LETTERS}
    return {tap: f"{count}/{seeds}" for tap, count in counts.items()}


def table_6(quick: bool) -> list[Row]:
    """What kind of checker it is: the columns of the paper's table, for isocheck."""
    return [{"column": column, "Plume": plume, "isocheck": ours_} for column, plume, ours_ in KINDS]


def _artifact(name: str) -> Path | None:
    """A file of the paper's artifact, if it is given and there."""
    folder = os.environ.get("PLUME_ARTIFACT")
    path = Path(folder, name) if folder else None
    return path if path is not None and path.exists() else None
