"""Render the throughput of a run, its outcomes and its latency over time, as text, JSON and plots."""

from collections.abc import Iterator
from html import escape
from typing import Any

from plume_py.history.throughput import Latency, Speed
from plume_py.report.plot import Axis, Band, line_plot, short_number

SECONDS = Axis("seconds from the beginning")


def in_words(speed: Speed) -> Iterator[tuple[str, str]]:
    """Yield (name, line) pairs about latency and its course."""
    if speed.latency is None:
        return
    whole = speed.latency
    due = f"; counted from when they were due, {short_number(speed.asked)} per second" if speed.asked else ""
    yield (
        "latency",
        f"median {_time(whole.median)}, 95 % {_time(whole.p95)}, 99 % {_time(whole.p99)},"
        f" longest {_time(whole.longest)}{due}",
    )
    if len(speed.stretches) < 2:
        return
    rates = [stretch.committed_per_second for stretch in speed.stretches]
    tails = [stretch.latency.p99 for stretch in speed.stretches if stretch.latency is not None]
    yield (
        "over time",
        f"in each {short_number(speed.stretches[0].seconds)} s from {min(rates):,.0f} to {max(rates):,.0f} committed/s,"
        f" 99 % from {_time(min(tails))} to {_time(max(tails))}",
    )


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.3g} ms" if milliseconds < 999.5 else f"{milliseconds / 1000:.3g} s"


def plain(speed: Speed) -> dict[str, Any]:
    """Return JSON objects. Times are seconds from the start of the run; latencies are milliseconds."""
    return {
        "seconds": round(speed.seconds, 3),
        "rate": speed.asked,
        "latency_ms": _plain_latency(speed.latency),
        "series": [
            {"start": stretch.start, "seconds": round(stretch.seconds, 3), **stretch.counts}
            | {"latency_ms": _plain_latency(stretch.latency)}
            for stretch in speed.stretches
        ],
        "faults": [{"what": each.what, "start": each.start, "end": each.end} for each in speed.disturbances],
    }


def _plain_latency(latency: Latency | None) -> dict[str, float] | None:
    if latency is None:
        return None
    names = ("median", "p95", "p99", "longest")
    return {name: round(getattr(latency, name), 3) for name in names}


def section(speed: Speed, name: str) -> str:
    """Return an HTML section with the id ``name``: the text and two plots."""
    words = "; ".join(f"{name}: {line}" for name, line in in_words(speed))
    plots = "\n".join(plot.replace("<svg ", '<svg width="640" role="img" ', 1) for plot in plots_of(speed))
    head = f'<details class="run" open id="{name}">\n<summary>Throughput and latency</summary>'
    return f"{head}\n<p>{escape(words)}</p>\n{plots}</details>"


def plots_of(speed: Speed) -> tuple[str, str]:
    """Return the plots of throughput by outcome and of latency. Faults are bands."""
    bands = [Band(each.start, each.end, each.what) for each in speed.disturbances]
    outcomes = {
        name: [(each.start + each.seconds / 2, each.counts[name] / each.seconds) for each in speed.stretches]
        for name in ("committed", "aborted", "unknown")
        if name == "committed" or any(each.counts[name] for each in speed.stretches)
    }
    measured = [(each.start + each.seconds / 2, each.latency) for each in speed.stretches if each.latency is not None]
    latency = {
        "99 %": [(at, found.p99) for at, found in measured],
        "95 %": [(at, found.p95) for at, found in measured],
        "median": [(at, found.median) for at, found in measured],
    }
    return (
        line_plot("Transactions per second", outcomes, SECONDS, Axis("transactions/s"), bands),
        line_plot("Latency of committed transactions", latency, SECONDS, Axis("milliseconds", True), bands),
    )
