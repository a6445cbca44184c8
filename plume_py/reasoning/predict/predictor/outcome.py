"""What comes of a question: predictions, or that there are none, and what it took."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from plume_py.base.errors import LimitError
from plume_py.checking.declared import DECLARED
from plume_py.levels import parse_level
from plume_py.reasoning.predict import LEVELS, TARGETS
from plume_py.reasoning.predict.predictor.observed_run import Boundary
from plume_py.reasoning.predict.predictor.prediction import Prediction


@dataclass
class PredictionResult:
    """What was predicted; ``ok`` is True if nothing can be, False if something was, None if undecided."""

    level: str
    target: str
    boundary: Boundary
    exact: bool
    predictions: list[Prediction] = field(default_factory=list)
    complete: bool = False  # nothing else is to be found, by the strategy chosen
    reason: str | None = None  # why it is undecided
    window: int | None = None  # transactions in a row that were looked at together
    unconfirmed: int = 0  # predicted within a window, but not so in the whole run
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: {"generate": 0.0, "solve": 0.0, "check": 0.0})
    cpu_seconds: dict[str, float] = field(default_factory=lambda: {"generate": 0.0, "solve": 0.0, "check": 0.0})
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool | None:
        """True: none predicted. False: predicted. None: undecided."""
        if self.predictions:
            return False
        return True if self.complete else None

    @contextmanager
    def ended_by_limits(self) -> Iterator[None]:
        """Limits of time and memory leave undecided what is not decided by then."""
        try:
            yield
        except LimitError as error:
            self.reason = str(error)
        except MemoryError:
            self.reason = "stopped: no more memory to be had"

    def add_effort(self, other: "PredictionResult") -> None:
        """Time adds up; of sizes the largest counts."""
        for mine, more in ((self.seconds, other.seconds), (self.cpu_seconds, other.cpu_seconds)):
            for phase, seconds in more.items():
                mine[phase] += seconds
        for what, size in other.sizes.items():
            self.sizes[what] = max(size, self.sizes.get(what, 0))


def new_outcome(level: str, target: str, boundary: Boundary, exact: bool) -> PredictionResult:
    """That of a question; ValueError if it is none."""
    name = parse_level(level) or level
    if name not in (*LEVELS, DECLARED) or target not in TARGETS or name == target:
        raise ValueError(f"cannot predict from {level} to {target}")
    return PredictionResult(name, target, boundary, exact)
