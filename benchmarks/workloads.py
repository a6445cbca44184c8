"""The histories that are measured, made once and kept in ``benchmarks/work``."""

import os
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import ISOCHECK, PYTHON, run

WORK = Path(__file__).parent / "work"
EXTENSIONS = {"plume": "txt", "json": "json", "jsonl": "jsonl", "dbcop": "bincode", "edn": "edn"}


@dataclass(frozen=True)
class Workload:
    """One history: its shape, and what checking it may cost (seconds at TCC; at RA and RC; megabytes)."""

    name: str
    sessions: int
    transactions: int  # of all sessions together
    operations: int  # per transaction
    keys: int
    distribution: str = "uniform"
    inject: str = ""
    hot_key: bool = False
    targets: tuple[float, float, int] | None = None

    @property
    def total(self) -> int:
        """The operations of the whole history, planted ones aside."""
        return self.transactions * self.operations

    def target(self, level: str) -> float | None:
        """The seconds that a check of ``level`` may take."""
        return None if self.targets is None else self.targets[level != "TCC"]

    def file(self, guarantee: str, format: str = "plume") -> Path:
        """The history as a file that holds ``guarantee`` (before injection)."""
        path = WORK / f"{self._slug}-{guarantee}.{EXTENSIONS[format]}"
        if not path.exists():
            WORK.mkdir(exist_ok=True)
            # A stopped run must not leave half a file that the next one takes for whole.
            fresh = path.with_name(f"new-{os.getpid()}-{path.name}")
            try:
                run(self._command(guarantee, format, fresh))
                fresh.replace(path)
            finally:
                fresh.unlink(missing_ok=True)
        return path

    @property
    def _slug(self) -> str:
        shape = (
            f"{self.sessions}x{self.transactions // self.sessions}x{self.operations}-{self.keys}-{self.distribution}"
        )
        return f"{shape}{'-hot' * self.hot_key}{'-' * bool(self.inject)}{self.inject.replace(',', '_')}"

    def _command(self, guarantee: str, format: str, path: Path) -> list[str]:
        per_session = self.transactions // self.sessions
        if self.hot_key:
            return [PYTHON, "-m", "benchmarks.hot_key", str(path), guarantee, str(self.sessions), str(per_session)]
        sizes = {
            "guarantee": guarantee,
            "sessions": self.sessions,
            "transactions": per_session,
            "operations": self.operations,
            "keys": self.keys,
            "distribution": self.distribution,
            "to": format,
        }
        options = [piece for name, value in sizes.items() for piece in (f"--{name}", str(value))]
        return [ISOCHECK, "generate", str(path), *options, *(["--inject", self.inject] if self.inject else [])]


SMALL = Workload("5,000 x 20", 25, 5_000, 20, 10_000, targets=(0.7, 0.6, 200))
UNIFORM = Workload("100,000 x 20 uniform", 50, 100_000, 20, 10_000, targets=(1.5, 1.2, 400))
ZIPFIAN = Workload("100,000 x 20 zipfian", 50, 100_000, 20, 10_000, "zipfian", targets=(1.5, 1.2, 400))
HOTSPOT = Workload("100,000 x 20 hotspot", 50, 100_000, 20, 10_000, "hotspot", targets=(1.5, 1.2, 400))
LARGE = Workload("1 M x 10", 100, 1_000_000, 10, 100_000, targets=(6, 5, 1500))
HUGE = Workload("1 M x 50", 100, 1_000_000, 50, 1_000_000, targets=(40, 30, 6000))
SESSIONS = Workload("200,000 x 10, 10,000 sessions", 10_000, 200_000, 10, 10_000, targets=(15, 4, 2000))
HOT_KEY = Workload("50,000 x 4, one hot key", 50, 50_000, 4, 51, hot_key=True, targets=(3, 3, 1000))

# For the ratios: twice the operations; and about 1,000 violations, of the patterns that only the commit order shows.
DOUBLE = Workload("200,000 x 20 uniform", 50, 200_000, 20, 10_000)
BROKEN = Workload("100,000 x 20, 1,002 violations", 50, 100_000, 20, 10_000, inject="h..i=167,k..n=167")

CHECKED = (SMALL, UNIFORM, ZIPFIAN, HOTSPOT, LARGE, SESSIONS, HOT_KEY)

# Sizes for a quick look, with the same parts.
QUICK = Workload("2,000 x 20", 20, 2_000, 20, 1_000)
QUICK_DOUBLE = Workload("4,000 x 20", 20, 4_000, 20, 1_000)
QUICK_BROKEN = Workload("2,000 x 20, 12 violations", 20, 2_000, 20, 1_000, inject="h..i=2,k..n=2")
QUICK_HOT_KEY = Workload("1,000 x 4, one hot key", 10, 1_000, 4, 11, hot_key=True)
