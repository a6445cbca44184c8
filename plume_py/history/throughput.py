"""Throughput and latency of a recorded run, over time and as a whole."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# A run has at most about STRETCHES time slices, each of one of these lengths in seconds, or of whole minutes.
STRETCHES = 40
LENGTHS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)

STATUSES = ("committed", "aborted", "unknown")


@dataclass(frozen=True)
class Latency:
    """Latency of committed transactions in milliseconds: percentiles and the maximum."""

    median: float
    p95: float
    p99: float
    longest: float


@dataclass(frozen=True)
class Stretch:
    """A time slice of the run: its start and length in seconds, and how many transactions ended in it, by status."""

    start: float
    seconds: float
    counts: dict[str, int]
    latency: Latency | None

    @property
    def committed_per_second(self) -> float:
        return self.counts["committed"] / self.seconds


@dataclass(frozen=True)
class Disturbance:
    """An injected fault: its name, and its start and end in seconds from the start of the run."""

    what: str
    start: float
    end: float


@dataclass(frozen=True)
class Speed:
    """Throughput and latency of a run.

    ``asked`` is the requested transactions per second; latency then counts from the time a transaction was due.
    """

    seconds: float
    asked: float | None
    latency: Latency | None
    stretches: tuple[Stretch, ...]
    disturbances: tuple[Disturbance, ...] = ()


# When a transaction ended and how long it took, in seconds, and the index of its status in ``STATUSES``.
Ended = tuple[float, float, int]


def speed(
    ended: Iterable[Ended], seconds: float, asked: float | None = None, disturbances: Iterable[Disturbance] = ()
) -> Speed:
    """Return the throughput and latency of these transactions, in a run that took ``seconds``."""
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
    """Return the length of a time slice: the shortest for which the run has at most STRETCHES slices."""
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
