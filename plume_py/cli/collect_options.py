"""Options of the commands that run workloads on databases: ``collect``, ``test``, ``matrix`` and ``confirm``."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from plume_py.cli.common_options import bytes_of_memory, seconds

F = TypeVar("F", bound=Callable[..., Any])

WORKLOADS = ("register", "append", "smallbank", "tpcc", "twitter", "rubis", "write-skew")
MANAGED = ("postgresql", "mariadb", "sqlite", "postgresql-standby", "galera", "etcd", "redis")
READ_FROM = ("any", "replicas")
ARRIVALS = ("poisson", "fixed")
FAULTS = ("kill-connection", "restart", "pause", "kill", "partition", "delay")


def _operations(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", value.strip())
    least, most = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if least > most:
        raise click.BadParameter(f"{value!r} is not a length; write it like 4 or 2-6")
    return least, most


def _rate(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and value != value:
        raise click.BadParameter("nan is not a rate; write it like 200")
    return value


def _faults(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    kinds = tuple(kind.strip() for kind in value.split(",") if kind.strip()) if value else ()
    wrong = [kind for kind in kinds if kind not in FAULTS]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not a fault; use {', '.join(FAULTS)}")
    return kinds


def _mix(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, float]:
    """Return the weight of each level in ``RC=2,SI=1``."""
    weights: dict[str, float] = {}
    for piece in value.split(",") if value else ():
        found = re.fullmatch(r"\s*([A-Za-z][A-Za-z _-]*?)\s*=\s*([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*", piece)
        if found is None or not float(found[2]):
            raise click.BadParameter(f"{piece!r} is not a part of a mix; write it like RC=2,SI=1,SER=1")
        weights[found[1]] = weights.get(found[1], 0) + float(found[2])
    return weights


def _levels(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, str]:
    """Return the level of each kind in ``write-check=SER,balance=repeatable read``."""
    pairs = [tuple(map(str.strip, piece.partition("=")[::2])) for piece in value.split(",")] if value else []
    levels = {kind: level for kind, level in pairs if kind and level}
    if len(levels) < len(pairs):
        raise click.BadParameter(f"{value!r:.80} is not of the form KIND=LEVEL,… with each kind once")
    return levels


def setting_pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return the values by name of ``--set NAME=VALUE``."""
    if any("=" not in value for value in values):
        raise click.BadParameter("write settings like --set innodb_snapshot_isolation=ON")
    return {name.strip(): text.strip() for name, _, text in (value.partition("=") for value in values)}


def _option(*names: str, **how: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return names, how


_OPTIONS = (
    _option("--managed", type=click.Choice(MANAGED), help="Start a private server instead of using one at URL."),
    _option("--roam", is_flag=True, help="Of several nodes, another one for each transaction of a session."),
    _option("--read-from", type=click.Choice(READ_FROM), default="any", show_default=True,
            help="Of several nodes, which ones transactions go to that only read."),
    _option("--isolation", metavar="LEVEL", help="As the database calls it, or RC, SI, SER.  [default: its own]"),
    _option("--mix", callback=_mix, metavar="RC=2,SI=1", help="A level for each transaction, drawn by weight."),
    _option("--levels", callback=_levels, metavar="KIND=LEVEL,...",
            help="For kinds of transactions of a ready-made mix, as write-check=SER; the others as --isolation."),
    _option("--workload", type=click.Choice(WORKLOADS), default="register", show_default=True),
    _option("--sessions", type=click.IntRange(1, 1000), default=8, show_default=True, help="Connections."),
    _option("--transactions", type=click.IntRange(0), default=200, show_default=True, help="Per session."),
    _option("--operations", callback=_operations, default="2-6", show_default=True, help="Per transaction."),
    _option("--read-share", type=click.FloatRange(0, 1), default=0.5, show_default=True),
    _option("--read-first", type=click.FloatRange(0, 1), default=0.5, show_default=True,
            help="Share of writes that read their key before."),
    _option("--read-only", type=click.FloatRange(0, 1), default=0.1, show_default=True,
            help="Share of transactions that only read."),
    _option("--write-only", type=click.FloatRange(0, 1), default=0.0, show_default=True),
    _option("--keys", type=click.IntRange(1, 1_000_000), default=10, show_default=True,
            help="At a time; of the ready-made mixes: accounts, warehouses, users."),
    _option("--distribution", type=click.Choice(["uniform", "zipfian", "hotspot"]), default="uniform",
            show_default=True),
    _option("--rotate", type=click.IntRange(0), help="Replace a key by a new one every so many transactions.  "
            "[default: 20 for append, else never]"),
    _option("--pause", type=click.FloatRange(0, 60_000), default=0.0, show_default=True,
            help="Milliseconds between operations, on average: widens races."),
    _option("--think", type=click.FloatRange(0, 600_000), default=0.0, show_default=True,
            help="Milliseconds between the transactions of a session, on average."),
    _option("--rate", type=click.FloatRange(0, 1_000_000, min_open=True), callback=_rate,
            help="Transactions that are due per second, in all; latency counts from then.  [default: one after the"
            " other]"),
    _option("--arrivals", type=click.Choice(ARRIVALS), default="poisson", show_default=True,
            help="With --rate: when they are due, at random or at equal distances."),
    _option("--seed", type=int, default=0, show_default=True),
    _option("--retries", type=click.IntRange(0, 1000), default=0, show_default=True,
            help="How often an aborted transaction is tried again, as a new one."),
    _option("--seconds", type=click.FloatRange(0, min_open=True), callback=seconds, help="Stop after so long."),
    _option("--operation-timeout", type=click.FloatRange(0.1, 3600), default=10.0, show_default=True,
            callback=seconds, help="Seconds that a statement may take."),
    _option("--faults", callback=_faults, metavar="KIND,...", help=f"While it runs: {', '.join(FAULTS)}."),
    _option("--fault-interval", type=click.FloatRange(0.01, 3600), default=1.0, show_default=True,
            callback=seconds, help="Seconds between faults, on average."),
    _option("--max-memory", metavar="SIZE", callback=bytes_of_memory,
            help="Memory limit, for example 4G. The run ends undecided if it is exceeded.  [default: 80 % of the"
            " machine's]"),
    _option("--set", "settings", multiple=True, callback=setting_pairs, metavar="NAME=VALUE",
            help="A setting of every connection."),
    _option("--keep-table", is_flag=True, help="Leave the table in the database."),
    _option("--force", is_flag=True, help="Overwrite a history that was recorded before."),
)  # fmt: skip

# The options that are fields of a workload's ``Shape``.
OF_SHAPE = (
    *("workload", "sessions", "transactions", "operations", "read_share", "read_first", "read_only", "write_only"),
    *("keys", "distribution", "rotate", "pause", "think", "rate", "arrivals", "seed"),
)


def collecting_options(command: F) -> F:
    """Add all options for collecting, and the URLs."""
    return click.argument("urls", nargs=-1, metavar="[URL]...")(options()(command))


def options(*chosen: str, **defaults: Any) -> Callable[[F], F]:
    """Add the chosen options, or all if none is named; ``defaults`` replaces their default values."""

    def decorated(command: F) -> F:
        for names, how in reversed(_OPTIONS):
            if names[0] in chosen or not chosen:
                name = names[0][2:].replace("-", "_")
                default = {"default": defaults[name]} if name in defaults else {}
                command = click.option(*names, **how | default)(command)
        return command

    return decorated
