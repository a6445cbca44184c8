"""The 46 synthesis problems of Isolde's evaluation, with the seconds that were published for them.

Published: 5 objects and 5 values, Glucose, a Ryzen 7 PRO 6850U; averages of three runs, with 5, 7 and 10 transactions.
Where a text stands instead of a number, that is how the run ended; for six problems only upper bounds are known. There,
blind writes were excluded. The verdicts are those of the classes, except that TCC and PC need four transactions to
differ.
"""

from dataclasses import dataclass
from itertools import product

Figure = float | str | None
SIZES = (5, 7, 10)


@dataclass(frozen=True)
class Task:
    """A problem: names of levels, its class, and what was published."""

    allow: tuple[str, ...]
    forbid: str
    kind: str
    published: tuple[Figure, Figure, Figure]

    @property
    def name(self) -> str:
        """As a set: allowed levels, and the forbidden one."""
        return f"{', '.join(self.allow)} | {self.forbid}"

    def expected(self, txns: int) -> bool:
        """Is there such a history?"""
        needs_four = self.allow[0].startswith("TCC") and self.forbid.startswith("PC")
        return self.kind.startswith("SAT") and not (needs_four and txns < 4)


def _tasks(kind: str, text: str) -> list[Task]:
    tasks = []
    for line in text.strip().splitlines():
        names, _, figures = line.partition("=")
        allow, _, forbid = names.partition("|")
        parts = [part.strip() for part in figures.split("/")]
        published = [float(p) if p.replace(".", "").isdecimal() else p or None for p in parts]
        tasks.append(Task(tuple(a.strip() for a in allow.split(",")), forbid.strip(), kind, tuple(published)))  # type: ignore[arg-type]
    return tasks


SAT_ONE = """
RA | TCC = 0.02 / 0.03 / 0.05
RA@vis | TCC@vis = 0.01 / 0.02 / 0.31
TCC | PC = 0.02 / 0.17 / 0.28
TCC@vis | PC@vis = 0.02 / 0.04 / 0.04
PC | SI = 0.03 / 0.09 / 0.28
PC@vis | SI@vis = 0.01 / 0.01 / 0.02
SI | SER = 0.03 / 0.07 / 0.26
SI@vis | SER@vis = 0.01 / 0.04 / 0.44
SI, UpdateSer | SER = 0.05 / 0.10 / 0.32
SI@vis, UpdateSer@vis | SER@vis = 0.04 / 0.12 / 9.35
TapRA | RA = 0.02 / 0.05 / 10.97
"""
SAT_TWO = """
RA | TCC@vis = 0.01 / 0.14 / 4.99
RA@vis | TCC = 0.01 / 0.03 / 2.55
TCC | PC@vis = 0.02 / 0.04 / 5.59
TCC@vis | PC = 0.05 / 0.02 / 0.14
PC | SI@vis = 0.01 / 0.02 / 0.05
PC@vis | SI = 0.05 / 0.20 / 0.94
SI | SER@vis = 0.05 / 0.16 / 1.65
SI@vis | SER = 0.01 / 0.03 / 0.19
"""
UNSAT_ONE = """
TCC | RA = 0.01 / 0.02 / 0.04
TCC@vis | RA@vis = 0 / 0 / 0
PC | TCC = 0.01 / 0.02 / 0.05
PC@vis | TCC@vis = 0 / 0.01 / 0.01
SI | PC = 0.03 / 0.06 / 0.24
SI@vis | PC@vis = 0 / 0 / 0
SER | SI = 0.09 / 1.13 / 24.4
SER@vis | SI@vis = 0 / 0.01 / 0.01
RA | TapRA = 0.10 / 0.63 / 6.3
TCC | TapTCC = 0.11 / 0.79 / 7.9
TapTCC | TCC = 0.03 / 0.06 / 0.18
"""
UNSAT_TWO = """
RA | RA@vis = 0 / 0 / 0
RA@vis | RA = 0.05 / 0.38 / 3.9
TCC | TCC@vis = 7.55 / crash / crash
TCC@vis | TCC = 0.07 / 0.43 / 7.1
PC | PC@vis = 5.76 / crash / crash
PC@vis | PC = 0.06 / 0.58 / 8.6
SI | SI@vis = 8.52 / crash / crash
SI@vis | SI = 3.54 / 11.3 / 671
SER | SER@vis = 10.3 / timeout / timeout
SER@vis | SER = 0.02 / 0.07 / 0.57
"""


def _read_only_anomalies() -> list[Task]:
    """The read-only anomaly, its three levels in all forms that are not the same for all."""
    mixed = [forms for forms in product(("", "@vis"), repeat=3) if len(set(forms)) > 1]
    bounds = ("<= 0.09", "<= 0.28", "<= 4.6")
    return [Task((f"SI{a}", f"UpdateSer{b}"), f"SER{c}", "SAT, two forms", bounds) for a, b, c in mixed]


TASKS = [
    *_tasks("SAT, one form", SAT_ONE),
    *_tasks("SAT, two forms", SAT_TWO),
    *_read_only_anomalies(),
    *_tasks("UNSAT, one form", UNSAT_ONE),
    *_tasks("UNSAT, two forms", UNSAT_TWO),
]
