"""How fast a run went: what ended when, and how long it had taken, over the time of the run and as a whole."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# A run is divided into about that many stretches of time at most, of one of these lengths in seconds or whole minutes.
STRETCHES = 40
LENGTHS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)

STATUSES = ("committed", "aborted", "unknown")


@dataclass(frozen=True)
class Latency:
    """Of committed transactions, in milliseconds: what half of them, 95 and 99 % stayed within, and the longest."""

    median: float
    p95: float
    p99: float
    longest: float


@dataclass(frozen=True)
class Stretch:
    """A part of the run: its beginning and length in seconds, and how many ended in it in which way."""

    start: float
    seconds: float
    counts: dict[str, int]
    latency: Latency | None

    @property
    def committed_per_second(self) -> float:
        """Throughput."""
        return self.counts["committed"] / self.seconds


@dataclass(frozen=True)
class Disturbance:
    """A fault of the run, from when to when, in seconds from its beginning."""

    what: str
    start: float
    end: float


@dataclass(frozen=True)
class Speed:
    """Of a whole run. ``asked``: so many transactions were to begin per second, and latency counts from then on."""

    seconds: float
    asked: float | None
    latency: Latency | None
    stretches: tuple[Stretch, ...]
    disturbances: tuple[Disturbance, ...] = ()


# When a transaction ended and how long it had taken, in seconds, and its place in ``STATUSES``.
Ended = tuple[float, float, int]


def speed(
    ended: Iterable[Ended], seconds: float, asked: float | None = None, disturbances: Iterable[Disturbance] = ()
) -> Speed:
    """Of these transactions, in a run that took ``seconds``."""
    everyone = sorted(ended)
    seconds = max(seconds, everyone[-1][0] if everyone else 0.0, 1e-3)
    length = _length(seconds)
    parts: list[list[Ended]] = [[] for _ in range(max(1, round(seconds / length)))]
    for each in everyone:
        parts[min(int(each[0] / length), len(parts) - 1)].append(each)
    starts = [number * length for number in range(len(parts))]
    ends = [*starts[1:], seconds]
    stretches = tuple(_stretch(*each) for each in zip(starts, ends, parts, strict=True))
    return Speed(seconds, asked, _latency(everyone), stretches, tuple(disturbances))


def _length(seconds: float) -> float:
    """Short enough to see what changes, long enough for many transactions."""
    minutes = 60.0 * math.ceil(seconds / STRETCHES / 60.0)
    return next((length for length in LENGTHS if seconds <= STRETCHES * length), minutes)


def _stretch(start: float, end: float, part: Sequence[Ended]) -> Stretch:
    counts = {name: sum(each[2] == number for each in part) for number, name in enumerate(STATUSES)}
    return Stretch(round(start, 3), end - start, counts, _latency(part))


def _latency(part: Sequence[Ended]) -> Latency | None:
    taken = sorted(1000 * took for _, took, status in part if STATUSES[status] == "committed")
    if not taken:
        return None
    median, p95, p99 = (taken[math.ceil(share * len(taken)) - 1] for share in (0.5, 0.95, 0.99))
    return Latency(median, p95, p99, taken[-1])
