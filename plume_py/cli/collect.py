"""``isocheck collect``: run a workload on a database and record what its clients saw."""

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from plume_py.base.errors import IsocheckError
from plume_py.base.exits import ExitCode
from plume_py.base.files import is_standard_output, is_stream
from plume_py.base.text import one_line
from plume_py.cli.contract import seconds, tell_written
from plume_py.levels import parse_level

if TYPE_CHECKING:
    from plume_py.collect.adapter import Adapter
    from plume_py.collect.client import Isolation
    from plume_py.collect.run import Collected
    from plume_py.collect.workload import Shape

F = TypeVar("F", bound=Callable[..., Any])

WORKLOADS = ("register", "append", "smallbank", "tpcc", "twitter", "rubis", "write-skew")
MANAGED = ("postgresql", "mariadb", "sqlite", "postgresql-standby", "galera", "etcd", "redis")
READ_FROM = ("any", "replicas")
FAULTS = ("kill-connection", "restart", "pause", "kill", "partition", "delay")
INTERRUPTED = 130
TOLD_FAULTS = 12  # one by one


def _operations(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", value.strip())
    least, most = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if least > most:
        raise click.BadParameter(f"{value!r} is not a length; write it like 4 or 2-6")
    return least, most


def _faults(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    kinds = tuple(kind.strip() for kind in value.split(",") if kind.strip()) if value else ()
    wrong = [kind for kind in kinds if kind not in FAULTS]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not a fault; use {', '.join(FAULTS)}")
    return kinds


def _mix(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, float]:
    """RC=2,SI=1: how often each level occurs."""
    weights: dict[str, float] = {}
    for piece in value.split(",") if value else ():
        found = re.fullmatch(r"\s*([A-Za-z][A-Za-z _-]*?)\s*=\s*([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*", piece)
        if found is None or not float(found[2]):
            raise click.BadParameter(f"{piece!r} is not a part of a mix; write it like RC=2,SI=1,SER=1")
        weights[found[1]] = weights.get(found[1], 0) + float(found[2])
    return weights


def _levels(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, str]:
    """write-check=SER,balance=repeatable read: a level by kind."""
    pairs = [tuple(map(str.strip, piece.partition("=")[::2])) for piece in value.split(",")] if value else []
    levels = {kind: level for kind, level in pairs if kind and level}
    if len(levels) < len(pairs):
        raise click.BadParameter(f"{value!r:.80} is not of the form KIND=LEVEL,… with each kind once")
    return levels


def setting_pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE, each once."""
    if any("=" not in value for value in values):
        raise click.BadParameter("write settings like --set innodb_snapshot_isolation=ON")
    return {name.strip(): text.strip() for name, _, text in (value.partition("=") for value in values)}


_OPTIONS = (
    click.argument("urls", nargs=-1, metavar="[URL]..."),
    click.option("--managed", type=click.Choice(MANAGED), help="Start a private server instead of using one at URL."),
    click.option("--roam", is_flag=True, help="Of several nodes, another one for each transaction of a session."),
    click.option("--read-from", type=click.Choice(READ_FROM), default="any", show_default=True,
                 help="Of several nodes, which ones transactions go to that only read."),
    click.option("--isolation", metavar="LEVEL", help="As the database calls it, or RC, SI, SER.  [default: its own]"),
    click.option("--mix", callback=_mix, metavar="RC=2,SI=1", help="A level for each transaction, drawn by weight."),
    click.option("--levels", callback=_levels, metavar="KIND=LEVEL,...",
                 help="For kinds of transactions of a ready-made mix, as write-check=SER; the others as --isolation."),
    click.option("--workload", type=click.Choice(WORKLOADS), default="register", show_default=True),
    click.option("--sessions", type=click.IntRange(1, 1000), default=8, show_default=True, help="Connections."),
    click.option("--transactions", type=click.IntRange(0), default=200, show_default=True, help="Per session."),
    click.option("--operations", callback=_operations, default="2-6", show_default=True, help="Per transaction."),
    click.option("--read-share", type=click.FloatRange(0, 1), default=0.5, show_default=True),
    click.option("--read-first", type=click.FloatRange(0, 1), default=0.5, show_default=True,
                 help="Share of writes that read their key before."),
    click.option("--read-only", type=click.FloatRange(0, 1), default=0.1, show_default=True,
                 help="Share of transactions that only read."),
    click.option("--write-only", type=click.FloatRange(0, 1), default=0.0, show_default=True),
    click.option("--keys", type=click.IntRange(1, 1_000_000), default=10, show_default=True,
                 help="At a time; of the ready-made mixes: accounts, warehouses, users."),
    click.option("--distribution", type=click.Choice(["uniform", "zipfian", "hotspot"]), default="uniform",
                 show_default=True),
    click.option("--rotate", type=click.IntRange(0), help="Replace a key by a new one every so many transactions.  "
                 "[default: 20 for append, else never]"),
    click.option("--pause", type=click.FloatRange(0, 60_000), default=0.0, show_default=True,
                 help="Milliseconds between operations, on average: widens races."),
    click.option("--seed", type=int, default=0, show_default=True),
    click.option("--retries", type=click.IntRange(0, 1000), default=0, show_default=True,
                 help="How often an aborted transaction is tried again, as a new one."),
    click.option("--seconds", type=click.FloatRange(0, min_open=True), callback=seconds, help="Stop after so long."),
    click.option("--operation-timeout", "timeout", type=click.FloatRange(0.1, 3600), default=10.0, show_default=True,
                 callback=seconds, help="Seconds that a statement may take."),
    click.option("--faults", callback=_faults, metavar="KIND,...", help=f"While it runs: {', '.join(FAULTS)}."),
    click.option("--fault-interval", type=click.FloatRange(0.01, 3600), default=1.0, show_default=True,
                 callback=seconds, help="Seconds between faults, on average."),
    click.option("--set", "settings", multiple=True, callback=setting_pairs, metavar="NAME=VALUE",
                 help="A setting of every connection."),
    click.option("--keep-table", is_flag=True, help="Leave the table in the database."),
    click.option("--force", is_flag=True, help="Overwrite a history that was recorded before."),
)  # fmt: skip

# What of that is about the workload itself.
_OF_SHAPE = (
    *("workload", "sessions", "transactions", "operations", "read_share", "read_first", "read_only", "write_only"),
    *("keys", "distribution", "rotate", "pause", "seed"),
)


def collecting_options(command: F) -> F:
    """The options of every command that collects."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("collect")
@click.option("--out", required=True, type=click.Path(dir_okay=False, allow_dash=True), help="The history, JSON Lines.")
@collecting_options
@click.pass_context
def command(ctx: click.Context, /, out: str, **params: Any) -> None:
    """Run a workload on the database at URL and record what its clients saw.

    URL is postgresql://…, mysql://…, mariadb://…, sqlite:///file, or your own adapter as file.py:Class. Each session is
    a real connection. Several URLs, or one with several hosts, are nodes of one database, and sessions are spread over
    them. Exit code: 0 done, 1 the table does not agree with the history, 3 nothing committed or it could
    not be brought to its end, 4 the database cannot be reached, 130 interrupted; the history is sound in any case.

    \b
    Examples:
      isocheck collect sqlite:///test.db --out history.jsonl
      isocheck collect postgresql://user:password@host/db --workload append --out h.jsonl
      isocheck collect --managed mariadb --mix RC=2,SER=1 --seconds 10 --out h.jsonl
    """
    collected, _ = run(params, out)
    for line in summary(collected):
        click.echo(one_line(line), err=is_standard_output(out))
    tell_written(out)
    ctx.exit(ending(collected))


def run(
    params: dict[str, Any], out: str, accept: "Callable[[list[Isolation]], object]" = lambda isolations: None
) -> "tuple[Collected, list[Isolation]]":
    """Collect as the options say; also at which isolations that was, to which ``accept`` may object before."""
    from plume_py.collect.recorder import reject_record
    from plume_py.collect.run import Plan, collect
    from plume_py.collect.workload import Shape

    if not params["force"]:  # better now than after a server has been started
        reject_record(out)
    shape = Shape(**{name: params[name] for name in _OF_SHAPE})
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
            timeout=params["timeout"],
            keep_table=params["keep_table"],
            by_kind=by_kind,
            force=params["force"],
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

    urls, managed = params["urls"], params["managed"]
    if bool(urls) == (managed is not None):
        raise click.UsageError("give the URL of a database, or --managed to have one started: one of the two")
    routing = Routing(params["roam"], params["read_from"], shape.seed)
    setup = Setup(
        "",
        table=f"isocheck_{secrets.token_hex(4)}",  # never one that is there already
        lists=shape.lists,
        timeout=params["timeout"],
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
    counts = collected.counts
    rate = collected.transactions / collected.seconds if collected.seconds else 0.0
    outcome = ", ".join(f"{counts[status]:,} {status}" for status in ("committed", "aborted", "unknown"))
    cut = ", interrupted" if collected.interrupted else ""
    yield f"{collected.database}: {collected.transactions:,} transactions in {collected.seconds:.1f} s{cut}"
    yield f"  outcome   {outcome}; {rate:,.0f} transactions/s"
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
