"""``isocheck collect``: run a workload on a database and record what its clients saw."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from plume_py.base.atomic_files import is_standard_output, is_stream
from plume_py.base.errors import ExitCode, IsocheckError
from plume_py.base.text import one_line, similar
from plume_py.cli.collect_options import OF_SHAPE, collecting_options
from plume_py.cli.common_options import tell_written
from plume_py.levels import parse_level

if TYPE_CHECKING:
    from plume_py.collect.adapter import Adapter
    from plume_py.collect.client import Isolation
    from plume_py.collect.run import Collected
    from plume_py.collect.workload import Shape

INTERRUPTED = 130
CLEANED_WITHIN = 60.0  # seconds
TOLD_FAULTS = 12  # one by one


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
    ctx.exit(ending(collected))


def _clean(params: dict[str, Any]) -> None:
    """Remove what abandoned runs have left, and print what became of each table."""
    from plume_py.collect.deadline import in_time
    from plume_py.collect.table_setup import clean, setting_up
    from plume_py.collect.workload import Shape

    if params["managed"] is not None or not params["urls"]:
        raise click.UsageError("--clean needs the URL of a database")
    import time

    with sigterm_as_interrupt(), _database(params, Shape()) as (adapter, _), setting_up(adapter):
        cleaned = in_time(time.monotonic() + CLEANED_WITHIN, lambda: clean(adapter))
        in_time(time.monotonic() + 1, adapter.leave)
    for table in cleaned.removed:
        click.echo(f"removed {table}")
    for table, why in cleaned.kept.items():
        click.echo(one_line(f"kept {table}: {why}"))
    if not cleaned.removed and not cleaned.kept:
        click.echo("no abandoned run has left a table")


def run(
    params: dict[str, Any], out: str, accept: "Callable[[list[Isolation]], object]" = lambda isolations: None
) -> "tuple[Collected, list[Isolation]]":
    """Collect as the options say; also at which isolations that was, to which ``accept`` may object before."""
    from plume_py.base.memory import share_of_machine
    from plume_py.collect.recorder import reject_record
    from plume_py.collect.run import Plan, collect
    from plume_py.collect.workload import Shape

    if not params["force"]:  # better now than after a server has been started
        reject_record(out)
    shape = Shape(**{name: params[name] for name in OF_SHAPE})
    with sigterm_as_interrupt(), _database(params, shape) as (adapter, server):
        isolations = chosen_isolations(adapter, params["isolation"], params["mix"])
        by_kind = _by_kind(adapter, shape, params["levels"])
        everyone = _with_variants(adapter, [*isolations, *by_kind.values()])
        accept(everyone)
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
        if len({isolation.name for isolation in everyone}) > 1 and adapter.mixture:
            collected.notes.append(adapter.mixture)
        return collected, everyone


@contextmanager
def _status(planned: int) -> "Iterator[Callable[[int], None]]":
    """How far it is, on a terminal."""
    import time

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
    """The adapter, and the server behind it if we start one."""
    import secrets

    from plume_py.collect.adapter import Setup
    from plume_py.collect.clusters import MANAGED as MAKERS
    from plume_py.collect.nodes import Routing, nodes_at, open_nodes
    from plume_py.collect.table_setup import new_name

    urls, managed = params["urls"], params["managed"]
    if bool(urls) == (managed is not None):
        raise click.UsageError("give the URL of a database, or --managed to have one started: one of the two")
    routing = Routing(params["roam"], params["read_from"], shape.seed)
    setup = Setup(
        "",
        # Never one that is there already; a table to keep has a name that the next run does not remove.
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


def chosen_isolations(adapter: "Adapter", isolation: str | None, mix: dict[str, float]) -> "list[Isolation]":
    """What the user asked for, in the words of the database."""
    if mix and isolation:
        raise click.UsageError("give --isolation or --mix, not both")
    if not adapter.isolations:
        raise IsocheckError(f"the adapter {type(adapter).__name__} names no isolation levels")
    wanted = mix or {isolation or next(iter(adapter.isolations)): 1.0}
    weights: dict[str, float] = {}
    for spelling, weight in wanted.items():
        name = _isolation(adapter, spelling)
        weights[name] = weights.get(name, 0) + weight
    return [_promise(adapter, name, weight) for name, weight in weights.items()]


def _promise(adapter: "Adapter", spelling: str, weight: float = 1.0) -> "Isolation":
    from plume_py.collect.client import Isolation

    name = _isolation(adapter, spelling)
    promise = adapter.isolations[name]
    return Isolation(name, promise.level, weight, promise.remark)


def _with_variants(adapter: "Adapter", isolations: "list[Isolation]") -> "list[Isolation]":
    """Also those that replicas have instead."""
    if not adapter.nodes():
        return isolations
    replicas = [name for isolation in isolations for name in adapter.variants(isolation.name)]
    known = {isolation.name for isolation in isolations}
    return [*isolations, *(_promise(adapter, name) for name in dict.fromkeys(replicas) if name not in known)]


def _by_kind(adapter: "Adapter", shape: "Shape", levels: dict[str, str]) -> "dict[str, Isolation]":
    """The isolation of each kind of transaction that has one of its own."""
    from plume_py.collect.workload import Workload

    kinds = Workload(shape).kinds
    for kind in levels:
        if kind not in kinds:
            known = f"use {', '.join(kinds)}" if kinds else "it has no kinds; choose a ready-made mix with --workload"
            raise click.UsageError(f"--levels: {shape.workload} has no kind {kind!r:.40}; {known}")
    return {kind: _promise(adapter, spelling) for kind, spelling in levels.items()}


def _isolation(adapter: "Adapter", spelling: str) -> str:
    from plume_py.collect.adapter import spelled

    if spelled(spelling) in adapter.isolations:
        return spelled(spelling)
    level = parse_level(spelling)
    for name, promise in adapter.isolations.items():
        if level is not None and promise.level == level:
            return name
    known = ", ".join(f"{name} ({promise.level or 'no level'})" for name, promise in adapter.isolations.items())
    near = similar(spelling, adapter.isolations)
    if near is not None and level is None:
        raise IsocheckError(f"{adapter.name} has no isolation level {spelling!r:.40}. Did you mean {near!r}?")
    raise IsocheckError(f"{adapter.name} has no isolation level {spelling!r:.40}; it has {known}")


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """A polite end is an interrupt, too: the history is finished, a server of ours is stopped."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def ending(collected: "Collected") -> int:
    """The exit code that a collection stands for."""
    if collected.audit is not None and not collected.audit.ok:
        return ExitCode.VIOLATION
    if collected.interrupted:
        return INTERRUPTED
    unfinished = bool(collected.given_up) or (collected.audit is None and not is_stream(collected.path))
    if unfinished or not collected.counts["committed"]:
        return ExitCode.UNDECIDED
    return ExitCode.HOLDS


def summary(collected: "Collected") -> Iterator[str]:
    """What happened, in a few lines."""
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
    """What was done to which node, and when; of one server it is the same again and again."""
    from plume_py.collect.client import TICKS_PER_SECOND

    told = [fault for fault in collected.timeline if fault.node or fault.kind == "delay"]
    for fault in told[:TOLD_FAULTS]:
        after = (fault.start - collected.begin) / TICKS_PER_SECOND
        lasted = ((fault.end or fault.start) - fault.start) / TICKS_PER_SECOND
        yield f"            after {after:.1f} s  {fault}, for {lasted:.1f} s"
    if len(told) > TOLD_FAULTS:
        yield f"            and {len(told) - TOLD_FAULTS} more"


def _audit_lines(collected: "Collected") -> Iterator[str]:
    audit = collected.audit
    if audit is None:
        yield f"  table     not compared: {collected.audit_problem}"
        return
    looked = f"{audit.table_values:,} values in it, {audit.from_unknown:,} of them of unknown outcome"
    if audit.ok:
        yield f"  table     agrees with the history ({looked}; {audit.confirmed:,} confirmed writes looked for)"
        return
    yield f"  table     DISAGREES with the history in {audit.count:,} places ({looked})"
    for problem in audit.problems:
        yield f"            {problem}"
