"""``isocheck collect``: run a workload on a database and record what its clients saw.

The commands ``test``, ``predict`` and ``confirm`` use the functions ``run``, ``summary`` and ``sigterm_as_interrupt``.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.atomic_files import is_standard_output, is_stream
from plume_py.base.errors import ExitCode
from plume_py.base.text import one_line
from plume_py.cli.collect_options import OF_SHAPE, collecting_options
from plume_py.cli.common_options import tell_written

if TYPE_CHECKING:
    from plume_py.collect.adapter import Adapter
    from plume_py.collect.client import Isolation
    from plume_py.collect.run import Collected
    from plume_py.collect.workload import Shape

INTERRUPTED = 130
CLEANING_SECONDS = 60.0
LISTED_FAULTS = 12  # more are only counted


@click.command("collect")
@click.option("--out", type=click.Path(dir_okay=False, allow_dash=True), help="The history, JSON Lines.")
@click.option("--clean", "only_clean", is_flag=True, help="Only remove the tables that abandoned runs left at URL.")
@collecting_options
@click.pass_context
def command(ctx: click.Context, /, out: str | None, only_clean: bool, **params: Any) -> None:
    """Run a workload on the database at URL and record what its clients saw.

    URL is postgresql://…, mysql://…, mariadb://…, sqlite:///file, duckdb:///file, etcd://…, redis://…, valkey://…,
    firebird://…, sqlalchemy+…, broken:?bug=…, or your own adapter as file.py:Class. Each session is a real connection.
    Several URLs, or one with several hosts, are nodes of one database, and sessions are spread over
    them. Exit code: 0 done, 1 the table does not agree with the history, 3 nothing committed or it could
    not be brought to its end, 4 the database cannot be reached, 130 interrupted; the history is sound in any case.

    \b
    Examples:
      isocheck collect sqlite:///test.db --out history.jsonl
      isocheck collect postgresql://user:password@host/db --workload append --out h.jsonl
      isocheck collect --managed mariadb --mix RC=2,SER=1 --seconds 10 --out h.jsonl
      isocheck collect --clean postgresql://user:password@host/db
    """
    if only_clean:
        _clean(params)
        return
    if out is None:
        raise click.UsageError("Missing option '--out'.")
    collected, _ = run(params, out)
    for line in summary(collected):
        click.echo(one_line(line), err=is_standard_output(out))
    tell_written(out)
    ctx.exit(exit_code_of(collected))


def _clean(params: dict[str, Any]) -> None:
    """Remove the tables of abandoned runs, and print a line for each table."""
    from plume_py.collect.deadline import in_time
    from plume_py.collect.table_setup import clean, setting_up
    from plume_py.collect.workload import Shape

    if params["managed"] is not None or not params["urls"]:
        raise click.UsageError("--clean needs the URL of a database")
    with sigterm_as_interrupt(), _database(params, Shape()) as (adapter, _), setting_up(adapter):
        cleaned = in_time(time.monotonic() + CLEANING_SECONDS, lambda: clean(adapter))
        in_time(time.monotonic() + 1, adapter.leave)
    for table in cleaned.removed:
        click.echo(f"removed {table}")
    for table, why in cleaned.kept.items():
        click.echo(one_line(f"kept {table}: {why}"))
    if cleaned.not_searched:
        click.echo(f"not searched for tables of abandoned runs: {cleaned.not_searched}")
    elif not cleaned.removed and not cleaned.kept:
        click.echo("no abandoned run has left a table")


def run(
    params: dict[str, Any], out: str, accept: "Callable[[list[Isolation]], object]" = lambda isolations: None
) -> "tuple[Collected, list[Isolation]]":
    """Collect into ``out``; return also the isolation levels of the run.

    ``accept`` gets the isolation levels before the run and may raise an error.
    """
    from plume_py.base.memory import share_of_machine
    from plume_py.collect.isolations import chosen_isolations, with_variants
    from plume_py.collect.recorder import reject_record
    from plume_py.collect.run import Plan, collect
    from plume_py.collect.workload import Shape

    if not params["force"]:  # before a server is started
        reject_record(out)
    shape = Shape(**{name: params[name] for name in OF_SHAPE})
    with sigterm_as_interrupt(), _database(params, shape) as (adapter, server):
        if params["mix"] and params["isolation"]:
            raise click.UsageError("give --isolation or --mix, not both")
        isolations = chosen_isolations(adapter, params["isolation"], params["mix"])
        by_kind = _by_kind(adapter, shape, params["levels"])
        all_isolations = with_variants(adapter, [*isolations, *by_kind.values()])
        accept(all_isolations)
        plan = Plan(
            shape,
            isolations,
            out,
            retries=params["retries"],
            seconds=params["seconds"],
            faults=params["faults"],
            fault_interval=params["fault_interval"],
            timeout=params["operation_timeout"],
            keep_table=params["keep_table"],
            by_kind=by_kind,
            force=params["force"],
            max_memory=params["max_memory"] or share_of_machine(1),
        )
        with _status(shape.sessions * shape.transactions) as tick:
            collected = collect(adapter, plan, server, tick)
        if len({isolation.name for isolation in all_isolations}) > 1 and adapter.mixture:
            collected.notes.append(adapter.mixture)
        return collected, all_isolations


@contextmanager
def _status(planned: int) -> "Iterator[Callable[[int], None]]":
    """Yield a function that shows the number of recorded transactions in the status line."""
    from plume_py.base.terminal import StatusLine

    status, begin = StatusLine(), time.monotonic()

    def tick(recorded: int) -> None:
        rate = recorded / max(time.monotonic() - begin, 0.1)
        status.show(f"{recorded:,} of {planned:,} transactions, {rate:,.0f}/s")

    try:
        yield tick
    finally:
        status.clear()


@contextmanager
def _database(params: dict[str, Any], shape: "Shape") -> "Iterator[tuple[Adapter, Any]]":
    """Yield the adapter, and the server if --managed starts one on which faults are possible."""
    import secrets

    from plume_py.collect.adapter import Setup
    from plume_py.collect.cluster import MANAGED as MAKERS
    from plume_py.collect.nodes import Routing, nodes_at, open_nodes
    from plume_py.collect.table_setup import new_name

    urls, managed = params["urls"], params["managed"]
    if bool(urls) == (managed is not None):
        raise click.UsageError("give the URL of a database, or --managed to have one started: one of the two")
    routing = Routing(params["roam"], params["read_from"], shape.seed)
    setup = Setup(
        "",
        # A new name each time. A table to keep has a name that no later run removes.
        table=f"isocheck_{secrets.token_hex(4)}" if params["keep_table"] else new_name(),
        lists=shape.lists,
        timeout=params["operation_timeout"],
        session_settings=params["settings"],
    )
    if managed is None:
        yield open_nodes(setup, nodes_at(urls), routing), None
        return
    with MAKERS[managed]() as server:
        yield open_nodes(setup, server.nodes, routing), server if managed != "sqlite" else None


def _by_kind(adapter: "Adapter", shape: "Shape", levels: dict[str, str]) -> "dict[str, Isolation]":
    """Return the isolation level of each kind of transaction that --levels names."""
    from plume_py.collect.isolations import isolation_named
    from plume_py.collect.workload import Workload

    kinds = Workload(shape).kinds
    for kind in levels:
        if kind not in kinds:
            known = f"use {', '.join(kinds)}" if kinds else "it has no kinds; choose a ready-made mix with --workload"
            raise click.UsageError(f"--levels: {shape.workload} has no kind {kind!r:.40}; {known}")
    return {kind: isolation_named(adapter, name) for kind, name in levels.items()}


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, so that the history is completed and a managed server is stopped."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def exit_code_of(collected: "Collected") -> int:
    """Return the exit code of a collection."""
    if collected.audit is not None and not collected.audit.ok:
        return ExitCode.VIOLATION
    if collected.interrupted:
        return INTERRUPTED
    unfinished = bool(collected.given_up) or (collected.audit is None and not is_stream(collected.path))
    if unfinished or not collected.counts["committed"]:
        return ExitCode.UNDECIDED
    return ExitCode.HOLDS


def summary(collected: "Collected") -> Iterator[str]:
    """Yield a few lines about a collection."""
    from plume_py.report.throughput import in_words

    counts = collected.counts
    rate = collected.transactions / collected.seconds if collected.seconds else 0.0
    outcome = ", ".join(f"{counts[status]:,} {status}" for status in ("committed", "aborted", "unknown"))
    cut = ", interrupted" if collected.interrupted else ""
    yield f"{collected.database}: {collected.transactions:,} transactions in {collected.seconds:.1f} s{cut}"
    yield f"  outcome   {outcome}; {rate:,.0f} transactions/s"
    if collected.speed is not None:
        for name, words in in_words(collected.speed):
            yield f"  {name:<9} {words}"
    for reason, count in collected.reasons.most_common(3):
        yield f"  not done  {count:,} × {reason[:150]}"
    if collected.faults or collected.fault_problem:
        faults = ", ".join(f"{count} × {kind}" for kind, count in collected.faults.items()) or "none"
        yield f"  faults    {faults}" + (f"; {collected.fault_problem}" if collected.fault_problem else "")
    yield from _timeline(collected)
    yield from _audit_lines(collected)
    for problem in collected.given_up[:3]:
        yield f"  ended     {problem}"
    for note in collected.notes:
        yield f"  note      {note}"
    if counts["committed"] == 0:
        yield "  nothing committed, so nothing was tested"


def _timeline(collected: "Collected") -> Iterator[str]:
    """Yield the faults with their node and time; faults of a single server all look alike, so they are left out."""
    from plume_py.collect.client import TICKS_PER_SECOND

    listed = [fault for fault in collected.timeline if fault.node or fault.kind == "delay"]
    for fault in listed[:LISTED_FAULTS]:
        after = (fault.start - collected.begin) / TICKS_PER_SECOND
        lasted = ((fault.end or fault.start) - fault.start) / TICKS_PER_SECOND
        yield f"            after {after:.1f} s  {fault}, for {lasted:.1f} s"
    if len(listed) > LISTED_FAULTS:
        yield f"            and {len(listed) - LISTED_FAULTS} more"


def _audit_lines(collected: "Collected") -> Iterator[str]:
    audit = collected.audit
    if audit is None:
        yield f"  table     not compared: {collected.audit_problem}"
        return
    values = f"{audit.table_values:,} values in it, {audit.from_unknown:,} of them of unknown outcome"
    if audit.ok:
        yield f"  table     agrees with the history ({values}; {audit.confirmed:,} confirmed writes looked for)"
        return
    yield f"  table     DISAGREES with the history in {audit.count:,} places ({values})"
    for problem in audit.problems:
        yield f"            {problem}"
