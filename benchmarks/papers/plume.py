"""Plume (Liu, Gu, Wei, Basin; OOPSLA 2024): what it measured, and docs/papers/plume.md."""

from collections.abc import Callable, Sequence

from benchmarks.papers import plume_measure as measured
from benchmarks.papers.page import Paper, Plot, Section
from plume_py.report.plot import Axis, Points

Rows = Sequence[dict[str, str]]


def _number(text: str) -> float:
    """What was measured; nothing for what was stopped or not asked."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _along(axis: str, unit: str) -> Callable[[Rows], dict[str, Points]]:
    """A line for each checker, over the values of one parameter."""

    def lines(rows: Rows) -> dict[str, Points]:
        chosen = [row for row in rows if row["axis"] == axis]
        names = [name for name in rows[0] if name.endswith(f" {unit}")]
        names = [name for name in names if not name.startswith("paper:") or name == f"paper: Plume {unit}"]
        return {
            name.removesuffix(f" {unit}").replace("paper:", "paper's"): [
                (_number(row["value"]), _number(row[name])) for row in chosen
            ]
            for name in names
        }

    return lines


def _by_clock(made: str, unit: str) -> Callable[[Rows], dict[str, Points]]:
    def lines(rows: Rows) -> dict[str, Points]:
        found: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            if row["made"] == made:
                found.setdefault(row["clock"], []).append((_number(row["sessions"]), _number(row[unit])))
        return dict(found)

    return lines


def _large(axis: str) -> Callable[[Rows], dict[str, Points]]:
    def lines(rows: Rows) -> dict[str, Points]:
        found: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            if row["axis"] == axis:
                for name, column in (
                    (row["level"], "s per million"),
                    (f"paper's {row['level']}", "paper: s per million"),
                ):
                    found.setdefault(name, []).append((_number(row["value"]), _number(row[column])))
        return dict(found)

    return lines


def _parts(rows: Rows) -> dict[str, Points]:
    stages = [name for name in rows[0] if name not in ("sessions", "cpu s")]
    return {name: [(_number(row["sessions"]), _number(row[name])) for row in rows] for name in stages}


SECONDS, MEGABYTES = Axis("CPU seconds", True), Axis("megabytes")
TITLES = {
    "sessions": "sessions",
    "transactions": "transactions per session",
    "operations": "operations per transaction",
    "read-share": "share of reads",
    "keys": "keys",
}

COMPARISON = Section(
    "comparison",
    "Figures 8 and 9: time and memory beside others",
    """Paper: one parameter at a time, the others at 25 sessions, 200 transactions per session, 20 operations, half of
them reads, 10,000 keys, uniform; histories of PostgreSQL at snapshot isolation. Plume takes about a second
almost everywhere and two at 50 sessions or 500 transactions; dbcop and CausalC+ mostly reach the limit of 600 s,
PolySI and Viper from
some 40 and 25 sessions on. The columns "paper" are what its artifact publishes with the figures.""",
    measured.comparison,
    """What differs. Histories are generated here (`isocheck generate --guarantee SI`), and ours are CPU seconds of
whole commands on another machine, ended after 20 (isocheck: 40); Plume's virtual machine uses several threads,
so that its CPU seconds are more than its seconds by the clock. isocheck is flat because most of it is the start
of Python (see figure 11); AWDIT, which is later than the paper, has no such start and is faster at all these
sizes, by less and less as they grow. PolySI and VeriStrong judge SI, which is more than TCC, and were asked
along the sessions only; whoever was stopped was not asked about more of them. Plume's memory is about what the
paper says, and grows alike. Empty cells: not asked, or not published.""",
    [
        *(
            Plot(f"Time over {TITLES[axis]}", Axis(TITLES[axis]), SECONDS, _along(axis, "s"), f"{axis}-seconds")
            for axis in TITLES
        ),
        *(
            Plot(f"Memory over {TITLES[axis]}", Axis(TITLES[axis]), MEGABYTES, _along(axis, "MB"), f"{axis}-memory")
            for axis in ("sessions", "transactions", "operations")
        ),
    ],
)
LISTS = Section(
    "lists",
    "Figure 10: lists, beside Elle",
    """Paper: 50 operations per transaction, over sessions: Plume 0.5 to 12 s, Elle 5 to 889 s (100 sessions).""",
    measured.lists,
    """The histories are the paper's own, as far as its artifact has them (`PLUME_ARTIFACT`); those of more than 20
sessions are not in it. Elle was not run here: its figures are the paper's.""",
)
STAGES = Section(
    "stages",
    "Figure 11: stages",
    """Paper, 10 sessions of 200 transactions: Plume 0.40 s to construct and 0.08 s to traverse; dbcop 24 s and 24 s;
TCC-Mono, PolySI, Viper and CausalC+ 5.4, 6.0, 21 and 1,221 s, most of it encoding or solving.""",
    measured.stages,
    """Construction is our load, resolve and order, traversal our clocks and edges. Stages are measured by the clock and
given in proportion to the CPU seconds of the command, because others were at work on the machine. What the paper
does not have is the start: that of Python with numpy, and the output.""",
    [Plot("Stages of a check at TCC", Axis("sessions"), Axis("CPU seconds"), _parts)],
)
ABLATION = Section(
    "ablation",
    "Figure 12: without tree clocks, without vectors",
    """Paper: with tree clocks Plume takes up to half the time that it takes with vectors alone (GeneralWH 3.1 s
against 6.2 s), and about the same on C-RUBiS and C-Twitter; it is never slower. With neither it reaches 600 s
on four of six datasets.""",
    measured.ablation,
    """With neither (`--clock none`) every row of the clock is found by a search of its own. That is far the slowest
here, too: stopped by the limit of 40 seconds on the general datasets, as by that of 600 s in the paper, and 20 s
on C-RUBiS and C-Twitter, where with clocks all takes about half a second. Between trees and vectors the paper's
result does not come out: with 40 sessions at most trees take some tenths of a second longer in commands of half a
second. The next section says why. C-RUBiS and C-Twitter are the paper's own histories; TPC-C is not in its
artifact, and the general ones are generated.""",
    shown=(
        "history",
        *(f"{clock} s" for clock in ("tree", "vector", "none", "auto")),
        *(f"paper: {clock} s" for clock in ("tree", "vector", "neither")),
    ),
)
CLOCKS = Section(
    "clocks",
    "Tree clocks and vectors over the sessions",
    """Paper: joining vectors takes time in proportion to the sessions, joining trees in proportion to what changes
(section 4.3).""",
    measured.clocks,
    """100,000 transactions of 10 operations on 10,000 keys. Both hold, and yet trees are slower here, except where
10,000 sessions know little of each other: there the clocks take next to nothing. Why:

- Plume's vectors are lists of boxed integers, joined one by one. Ours are rows of bytes (of two where a session
  has more than 255 transactions), joined 16 or 32 at a time: a row of 1,000 sessions takes less than a
  microsecond, most of it waiting for memory. A step in a tree takes some 30 ns, so a tree has to look at fewer
  than one entry in thirty to win.
- It looks at far more. From one transaction of a session to its next, all other sessions have gone on, and a
  transaction with a few reads of random keys learns of many of them: counted on these histories, 14% (made at TCC)
  and 64% (at SER) as many changes per transaction as there are entries at 1,000 sessions, 17% and 31% at 100. In
  the traces that tree clocks were made for, threads meet rarely and know little that is new when they do.
- A check asks for the clock of any transaction, long after its session went on, so what changed is kept for all
  of them, in eight bytes and more for each change where a vector has one for each entry; and what a transaction
  knew is then found by bisection. That is half of the difference.

What could be had: what sessions know of each other was a hash table that missed the cache at nearly every step, and
arrays were replaced inside the loops. A table for all pairs, up to some 2,900 sessions, and room made before the
loops take the clocks of 1,000 sessions (TCC) from 18.8 to 8 CPU seconds; vectors take 0.5. `--clock auto`, the
default, takes vectors below 1,000 sessions, and from there on trees as long as they stay within a ration of steps, so
that it costs little where they do not pay: at worst here, 10,000 sessions made at SER, 1.7 times what vectors take.""",
    [
        Plot(
            f"A check by clock, histories made at {made}",
            Axis("sessions", True),
            Axis("CPU seconds", True),
            _by_clock(made, "cpu s"),
            made.lower(),
        )
        for made in ("TCC", "SER")
    ],
    ("sessions", "made", "clock", "cpu s", "MB"),
)
LARGE = Section(
    "large",
    "Figure 13: large histories",
    """Paper: a million transactions over 100 sessions and 10^9 keys; 20 operations each with 20% to 80% reads (92 to
106 s), and 100 to 400 operations each (101 to 251 s). RC, RA and TCC take about the same.""",
    measured.large,
    """Scaled so that the page can be written in half an hour: a million operations each (the paper: 20 to 400
million), on 10^7 keys, because a store of 10^9 does not fit in memory; with either, most keys are written at
most once and most reads see the initial state. So compare seconds per million operations, of which about half a
second here is the start of the command; of ten million operations one takes 0.7 s at TCC, start included
([scale.md](../scale.md)). The share of reads changes nothing, as in the paper. There long transactions are
cheaper per operation, because Plume pays per transaction; here loading, which goes by operations, is most of
it.""",
    [
        Plot(
            f"Seconds per million operations over {TITLES[axis]}",
            Axis(TITLES[axis]),
            Axis("seconds per million"),
            _large(axis),
            axis,
        )
        for axis in ("read-share", "operations")
    ],
)
TABLE_5 = Section(
    "table-5",
    "Table 5: who finds which pattern",
    """Paper: one test case for each of the 14 patterns. PolySI and Plume find all; what others missed, before fixes
  that
followed, stands below the table.""",
    measured.table_5,
    """Three small histories for each pattern, with one of it planted (`isocheck generate --inject`), instead of one: a
cell is how many of them were rejected; for isocheck, how many were found under their name. Among them are reads
of the initial state that should have seen a write. AWDIT, PolySI and VeriStrong accept some of these (k, AWDIT
also m): to them a read of the initial state says nothing about the writes of that key. Not run here: dbcop,
Elle, Viper and Cobra, which are not built on this machine (in the paper dbcop misses c, Elle g h k m, Viper a b
f, Cobra d e f j).""",
)
TABLE_6 = Section(
    "table-6",
    "Table 6: kinds of checkers",
    """Paper: seven checkers by property, what they report, what they read, technique, completeness. Here Plume's row
and isocheck's.""",
    measured.table_6,
    """"Complete" is about the weak levels, as in the paper: strong levels need a search, which may be undecided when
its time is up.""",
)
PAPER = Paper(
    "plume",
    "Plume",
    """What [Plume](https://doi.org/10.1145/3689742) (Liu, Gu, Wei, Basin: Efficient and Complete Black-Box Checking of
Weak Isolation Levels, OOPSLA 2024) measured, measured here. Others run beside isocheck where they are given:
`make paper-plume AWDIT=… PLUME=… POLYSI=… VERISTRONG=…` as in [performance.md](../performance.md);
`PLUME_ARTIFACT=folder` is the paper's artifact, for histories that it recorded. Sizes of one's own: [`isocheck
bench`](../command-line.md#bench).""",
    [COMPARISON, LISTS, STAGES, ABLATION, CLOCKS, LARGE, TABLE_5, TABLE_6],
    """- **dbcop, Elle, Viper, Cobra, CausalC+, TCC-Mono**: not built here; the paper's figures stand beside ours.
- **TPC-C**, and lists over more than 20 sessions: the artifact names them but does not have them. `isocheck
  collect --workload tpcc` records such histories from a database.
- **A million transactions**: a million operations stand for them; `isocheck bench --preset Million` is the
  whole size, on 10^7 keys (docs/scale.md has 1 M transactions of 10).
- **Figure 12 (b)**, the number of traversals: our checker makes none with vectors or trees.
- **Tables 3 and 4** (bugs found, 3,097 histories of others): [gallery.md](../gallery.md) and
  [matrix.md](../matrix.md) are what isocheck found in databases. Of table 3 one row differs: in YugabyteDB's history
  the paper has TAP-i, and so RC as the lowest level that is broken. isocheck finds k, l, m and n there, and RA. Plume's
  program asked at TCC names i as well, asked at RC it finds nothing: in the first case the commit order that i is about
  is the one that TCC forces, which RC knows nothing of. Here each pattern counts with the order of its own level.""",
)
