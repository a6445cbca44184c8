"""The result of a prediction: the predicted runs, or the reason why there are none, with statistics."""

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
    """The result. ``ok`` is True if no run can be predicted, False if one was, None if undecided."""

    level: str
    target: str
    boundary: Boundary
    exact: bool
    predictions: list[Prediction] = field(default_factory=list)
    complete: bool = False  # no further prediction exists, by the strategy chosen
    reason: str | None = None  # why it is undecided
    window: int | None = None  # number of consecutive transactions per window
    unconfirmed: int = 0  # predicted within a window, but not valid in the whole run
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
        """Turn a limit of time or memory into an undecided result."""
        try:
            yield
        except LimitError as error:
            self.reason = str(error)
        except MemoryError:
            self.reason = "stopped: no more memory to be had"

    def add_effort(self, other: "PredictionResult") -> None:
        """Add the times of another result; keep the larger of the sizes."""
        for mine, more in ((self.seconds, other.seconds), (self.cpu_seconds, other.cpu_seconds)):
            for phase, seconds in more.items():
                mine[phase] += seconds
        for what, size in other.sizes.items():
            self.sizes[what] = max(size, self.sizes.get(what, 0))


def new_outcome(level: str, target: str, boundary: Boundary, exact: bool) -> PredictionResult:
    """Return an empty result. Raise ValueError if ``target`` cannot be predicted from ``level``."""
    name = parse_level(level) or level
    if name not in (*LEVELS, DECLARED) or target not in TARGETS or name == target:
        raise ValueError(f"cannot predict from {level} to {target}")
    return PredictionResult(name, target, boundary, exact)
