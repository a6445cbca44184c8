"""``isocheck stats``: print the sizes and the shape of histories."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.errors import ExitCode, InputError, LimitError, TooLargeError, combined
from plume_py.base.passwords import redacted
from plume_py.base.text import counted, display, encodable, one_line, wrapped
from plume_py.cli.common_options import limits_of, reading_options

if TYPE_CHECKING:
    from plume_py.history.stats import Stats, TimeStats


@click.command("stats")
@click.argument("histories", metavar="HISTORY...", nargs=-1, required=True)
@click.option("--format", "output", type=click.Choice(["text", "json", "jsonl"]), default="text", show_default=True)
@reading_options
@click.pass_context
def command(
    ctx: click.Context, histories: tuple[str, ...], output: str, input_format: str | None, init_txn: str
) -> None:
    """Show the sizes and the shape of histories ("-" reads standard input).

    \b
    Examples:
      isocheck stats history.json
      isocheck stats *.edn --format jsonl
    """
    codes, results = [], []
    for path in histories:
        result, code = _examine(path, input_format, init_txn)
        codes.append(code)
        if output == "json":
            results.append(_fields(result))
        elif output == "jsonl":
            from plume_py.report.json import encode

            click.echo(encode(_fields(result)).encode())  # JSON is UTF-8 whatever the terminal's encoding
        elif result["error"] is None:
            click.echo("\n".join(_lines(result)) + ("\n" if path != histories[-1] else ""))
    if output == "json":
        from plume_py.report.json import signed

        click.echo(signed({"results": results}).encode())
    ctx.exit(combined(codes))


def _examine(path: str, input_format: str | None, init_txn: str) -> tuple[dict[str, Any], ExitCode]:
    """Return the statistics of one file, or its error, which is also printed on standard error at once."""
    from plume_py.history.load import load
    from plume_py.history.stats import stats

    start = time.perf_counter()
    try:
        with limits_of(None).enforced():
            history = load(path, format=input_format, init_txn=init_txn)  # type: ignore[arg-type]
            seconds = round(time.perf_counter() - start, 3)
            return {"history": path, "stats": stats(history), "seconds": seconds, "error": None}, ExitCode.HOLDS
    except (InputError, LimitError) as error:
        click.echo(one_line(f"isocheck: {error}"), err=True)
        code = ExitCode.UNDECIDED if isinstance(error, LimitError | TooLargeError) else ExitCode.BAD_INPUT
        return {"history": redacted(path), "stats": None, "seconds": None, "error": redacted(str(error))}, code


def _fields(result: dict[str, Any]) -> dict[str, Any]:
    from dataclasses import asdict

    texts = {name: result[name] and encodable(result[name]) for name in ("history", "error")}
    return {**result, **texts, "stats": None if result["stats"] is None else asdict(result["stats"])}


def _lines(result: dict[str, Any]) -> Iterator[str]:
    found: Stats = result["stats"]
    yield click.style(one_line(result["history"]), bold=True)
    rows = {
        "format": f"{found.format}, read in {result['seconds']:.2f} s",
        "sessions": f"{found.sessions:,} (longest: {counted(found.longest_session, 'transaction')})",
        "transactions": f"{found.transactions:,}{_outcomes(found)}",
        "operations": f"{found.operations:,} ({counted(found.reads, 'read')}, {counted(found.writes, 'write')}; "
        f"{found.read_share:.0%} reads)",
        "longest": f"{counted(found.longest_transaction, 'operation')}, in transaction "
        f"{display(found.longest_transaction_id)}",
        "keys": f"{found.keys:,}" + (f" ({found.list_keys:,} hold lists)" if found.list_keys else ""),
        "hot keys": ", ".join(f"{display(key, 20)} ({count:,})" for key, count in found.hot_keys),
        "initial state": _initial(found),
        "declared": ", ".join(f"{level} {count:,}" for level, count in found.declared_levels.items()),
        "times": "" if found.times is None else _times(found.times, found.transactions),
    }
    for name, text in rows.items():
        if text:
            yield from wrapped(f"  {name:<14}", text, " " * 16)
    for warning in found.warnings:
        yield f"  {'warning':<14}{warning}"


def _outcomes(stats: "Stats") -> str:
    parts = [f"{n:,} {name}" for name, n in (("aborted", stats.aborted), ("unknown", stats.unknown)) if n]
    return f" ({', '.join([f'{stats.committed:,} committed', *parts])})" if parts else " (all committed)"


def _initial(stats: "Stats") -> str:
    if stats.initial_transaction is not None:
        return f"set by transaction {display(stats.initial_transaction, 30)}; {_seen(stats.initial_reads)}"
    return f"implicit, shown as {display(stats.initial_value, 20)}; {_seen(stats.initial_reads)}"


def _seen(reads: int) -> str:
    return f"{counted(reads, 'read')} {'sees' if reads == 1 else 'see'} it"


def _times(times: "TimeStats", transactions: int) -> str:
    if not times.timed:
        return f"of {counted(times.begun, 'transaction')} their beginning, of {times.ended:,} their end, of none both"
    shortest, median, longest = (
        _duration(ticks or 0, times.ticks_per_second) for ticks in (times.shortest, times.median, times.longest)
    )
    return (
        f"of {times.timed:,} of {counted(transactions, 'transaction')}; {shortest} to {longest} long, median {median}; "
        f"at most {times.most_at_once:,} at one time, {times.mean_at_once:,} on average; "
        f"{times.overlapping:,} overlap another"
    )


_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def _duration(ticks: int, per_second: int | None) -> str:
    """Return a duration in a readable unit, with three digits."""
    if per_second is None:
        return f"{ticks:,} tick" + ("s" if ticks != 1 else "")
    seconds = ticks / per_second
    unit, size = next((one for one in _UNITS if seconds >= one[1]), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}" if seconds < 99.5 * size else f"{seconds / size:,.0f} {unit}"
