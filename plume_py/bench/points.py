"""What is measured: a point for each combination of the values that parameters take."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from plume_py.levels import STRONGEST

Value = str | int | float

# The parameters of the generator, with what they are unless somebody says otherwise; and of the check.
SHAPE: dict[str, Value] = {
    "guarantee": STRONGEST,
    "sessions": 25,
    "transactions": 200,
    "operations": 20,
    "read-share": 0.5,
    "keys": 10_000,
    "distribution": "uniform",
}
CHECK = ("level", "clock")


@dataclass(frozen=True)
class Point:
    """One history and one question about it."""

    shape: Mapping[str, Value]
    level: str
    clock: str
    seed: int = 0

    @property
    def generate(self) -> list[str]:
        """What is typed behind ``isocheck generate OUT``."""
        return [
            word for name, value in (*self.shape.items(), ("seed", self.seed)) for word in (f"--{name}", f"{value}")
        ]

    @property
    def check(self) -> list[str]:
        """What is typed behind ``isocheck check FILE``."""
        return ["--level", self.level, "--clock", self.clock]

    @property
    def values(self) -> dict[str, Value]:
        """Every parameter by name."""
        return {**self.shape, "level": self.level, "clock": self.clock}


def points(
    shape: Mapping[str, Sequence[Value]], levels: Sequence[str], clocks: Sequence[str], seed: int
) -> Iterator[Point]:
    """Every combination; those of one history follow one another."""
    for values in product(*shape.values()):
        made = dict(zip(shape, values, strict=True))
        for level, clock in product(levels, clocks):
            yield Point(made, level, clock, seed)


def varied(measured: Sequence[Point]) -> list[str]:
    """The parameters that take several values, in the order of the columns."""
    names = (*SHAPE, *CHECK)
    return [name for name in names if len({point.values[name] for point in measured}) > 1]
