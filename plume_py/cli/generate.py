"""``isocheck generate``: make a history that satisfies a level by construction, with planted anomalies on request."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from plume_py.base.errors import ConversionError, InputError, IsocheckError
from plume_py.base.text import one_line
from plume_py.cli.common_options import F, LevelName, tell_written
from plume_py.cli.convert import WRITABLE, format_of
from plume_py.history.formats.registry import FORMATS
from plume_py.levels import STRONGEST, STRONGEST_FIRST
from plume_py.levels.orders import REALTIME, strong_name

if TYPE_CHECKING:
    from plume_py.history.inject import Injection
    from plume_py.history.model import History

# The strongest first. Cut isolation is missing: it orders nothing, so no store can provide it without a stronger level.
GUARANTEES = (strong_name(STRONGEST, REALTIME), *STRONGEST_FIRST)
DISTRIBUTIONS = ("uniform", "zipfian", "hotspot")
LETTERS = "abcdefghijklmn"

# Sizes of histories that papers measured. Plume varies one parameter of the first, has three general datasets of 16,000
# transactions, and ends with a million transactions. Here these have a hundredth of its 10^9 keys: a store of all keys
# takes 12 GB, and most keys are touched once in either case.
_GENERAL: dict[str, Any] = {"sessions": 40, "transactions": 400, "operations": 20, "keys": 10_000}
PRESETS: dict[str, dict[str, Any]] = {
    "Plume": {"sessions": 25, "transactions": 200, "operations": 20, "read_share": 0.5, "keys": 10_000},
    "GeneralRH": {**_GENERAL, "read_share": 0.95},
    "GeneralRW": {**_GENERAL, "read_share": 0.5},
    "GeneralWH": {**_GENERAL, "read_share": 0.3},
    "Million": {"sessions": 100, "transactions": 10_000, "operations": 20, "read_share": 0.5, "keys": 10_000_000},
}

# One part of --inject: a pattern or a range of patterns, and the number of each.
_PIECE = re.compile(r"([a-n])(?:\.\.([a-n]))?=([0-9]{1,9})")
_STRONG_PIECE = re.compile(
    r"(lost-update|write-skew|long-fork|read-only-anomaly|stale-read|non-monotonic-snapshot)=([0-9]{1,9})"
)
MAX_INJECTIONS = 1_000_000


def preset_option(command: F) -> F:
    """Add ``--preset``, for commands that generate histories."""
    return click.option(
        "--preset",
        type=click.Choice(list(PRESETS), case_sensitive=False),
        help="Sizes that a paper measured; other options change some of them.",
    )(command)


def sizes_of(preset: str | None, ctx: click.Context) -> dict[str, Any]:
    """Return the values of a preset for the options that the user did not give."""
    sizes = PRESETS[preset] if preset else {}
    return {name: value for name, value in sizes.items() if ctx.get_parameter_source(name) is ParameterSource.DEFAULT}


@click.command("generate")
@click.argument("target", metavar="OUT")
@click.option(
    "--guarantee",
    type=LevelName(GUARANTEES),
    default=STRONGEST,
    show_default=True,
    help="The level that the history keeps.",
)
@click.option("--sessions", type=click.IntRange(min=0), default=25, show_default=True)
@click.option("--transactions", type=click.IntRange(min=0), default=200, show_default=True, help="Per session.")
@click.option("--operations", type=click.IntRange(min=0), default=20, show_default=True, help="Per transaction.")
@click.option("--read-share", type=click.FloatRange(0, 1), default=0.5, show_default=True)
@click.option("--keys", type=click.IntRange(min=1), default=10_000, show_default=True)
@click.option("--distribution", type=click.Choice(DISTRIBUTIONS), default="uniform", show_default=True)
@preset_option
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--inject",
    "wishes",
    metavar="TAP=COUNT,...",
    multiple=True,
    help='Plant patterns, and say where: "a=2", or "a..n=1" for one of each, "lost-update=1", "stale-read=1" (SSER).',
)
@click.option("--to", "name", type=click.Choice(WRITABLE), help="The format of OUT [default: by its extension].")
@click.option("--quiet", "-q", is_flag=True, help="No progress, and nothing about what was written or planted where.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    target: str,
    name: str | None,
    wishes: tuple[str, ...],
    preset: str | None,
    quiet: bool,
    **shape: Any,
) -> None:
    """Write a history to OUT ("-" for standard output) that keeps a level by construction.

    The transactions really run on a small multi-version store with that visibility; the same parameters and seed give
    the same history. Injected patterns sit in sessions and on keys of their own.

    \b
    Examples:
      isocheck generate history.txt --guarantee SI --seed 7
      isocheck generate history.jsonl --inject k=2,lost-update=1
      isocheck generate history.txt --preset GeneralRH --distribution zipfian
    """
    shape |= sizes_of(preset, ctx)
    chosen = FORMATS[name or format_of(target)]
    counts = pattern_counts(wishes)
    from plume_py.base.atomic_files import write_atomically

    try:
        with _shown(shape["sessions"] * shape["transactions"], quiet):
            history, planted = _make(counts, **shape)
            # The writer's notes are about lost transaction ids, and a generated history has no ids.
            write_atomically(target, chosen.load_writer()(history).chunks)
    except ConversionError as error:
        raise IsocheckError(f"cannot generate {chosen.name}: {error}") from None
    except InputError as error:
        # Not an input error for the user: the generator rejects the parameters.
        raise IsocheckError(str(error)) from None
    except MemoryError:
        raise IsocheckError("a history of this size does not fit in memory; choose smaller sizes") from None
    if quiet:
        return
    for line in _report(history, planted):
        click.echo(line, err=True)
    tell_written(target, f"{history.transactions:,} transactions, {history.operations:,} operations")


@contextmanager
def _shown(transactions: int, quiet: bool) -> Iterator[None]:
    """Show the time so far in the status line. The store runs in one kernel, which reports no progress."""
    from plume_py.base.terminal import StatusLine, clock

    began = time.monotonic()
    what = f"generating {transactions:,} transactions"
    with StatusLine(quiet=quiet).redrawn(lambda: f"{what}, {clock(time.monotonic() - began)}"):
        yield


def pattern_counts(wishes: tuple[str, ...]) -> dict[str, int]:
    """Return how many of each pattern ``--inject`` asks for, summed over all its occurrences."""
    counts: dict[str, int] = {}
    for piece in (piece.strip() for wish in wishes for piece in wish.split(",")):
        strong = _STRONG_PIECE.fullmatch(piece)
        if strong is not None:
            counts[strong[1]] = counts.get(strong[1], 0) + int(strong[2])
            continue
        match = _PIECE.fullmatch(piece)
        if match is None:
            form = "a=2 or lost-update=1, with a letter from a to n or the name of a strong pattern"
            raise IsocheckError(one_line(f"--inject: {piece[:40]!r} is not of the form {form}"))
        first, last, count = match.groups()
        for tap in LETTERS[LETTERS.index(first) : LETTERS.index(last or first) + 1]:
            counts[tap] = counts.get(tap, 0) + int(count)
    if sum(counts.values()) > MAX_INJECTIONS:
        raise IsocheckError(f"--inject: more than {MAX_INJECTIONS:,} patterns")
    return counts


def _make(counts: dict[str, int], *, seed: int, **shape: Any) -> "tuple[History, list[Injection]]":
    from plume_py.history.generate import generate

    history = generate(seed=seed, **shape)
    if not counts:
        return history, []
    from dataclasses import replace

    import numpy as np

    from plume_py.history.inject import inject
    from plume_py.history.model import Labels

    # Transaction ids in the file, so that the user finds the planted transactions.
    numbered = replace(history, txn_label=Labels(np.arange(history.transactions, dtype=np.int64)))
    return inject(numbered, counts, seed)


def _report(history: "History", planted: "list[Injection]") -> Iterator[str]:
    """Yield a line for each planted pattern, with sessions because some formats have no transaction ids."""
    for injection in planted:
        places = (f"{history.txn_label[t]} (session {_session(history, t)})" for t in injection.transactions)
        keys = " ".join(map(str, injection.keys))
        yield f"planted {injection.tap}: transactions {', '.join(places)}; keys {keys}"


def _session(history: "History", t: int) -> str | int:
    return history.session_label[int(history.txn_session[t])]
