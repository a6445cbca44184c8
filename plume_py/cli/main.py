"""Run the command line ``isocheck``: dispatch to a command, and end with an exit code for every error.

A command is imported only when it runs, so ``isocheck --help`` does not wait for numpy.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING

import click

from plume_py.base.errors import ConversionError, ExitCode, InputError, IsocheckError, LimitError, TooLargeError
from plume_py.base.override import override
from plume_py.base.passwords import keep_secret, redacted
from plume_py.base.terminal import default_color, mend_streams
from plume_py.base.text import one_line, similar
from plume_py.base.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Commands by task, each with a line of help. The module of a command has the name of the command.
GROUPS: dict[str, dict[str, str]] = {
    "Check histories": {
        "check": "Check whether histories keep an isolation level (the default command).",
        "watch": "Check a history while it is still being written.",
        "scan": "Check a whole archive of histories, on all cores or on a cluster.",
        "verify": "Re-check a commit order or a report by the definitions alone.",
    },
    "Run databases": {
        "test": "Run a workload on a database, and check what it promises.",
        "collect": "Run a workload on a database, and record what its clients saw.",
        "matrix": "Databases, their isolation levels and workloads: what each keeps.",
    },
    "Reason about levels and programs": {
        "synth": "Find a history that some levels allow and others forbid.",
        "relate": "Compare two levels: which histories tell them apart?",
        "hierarchy": "Order levels by strength, each step with a history.",
        "predict": "From one good run, predict runs that could have gone wrong.",
        "confirm": "Does a prediction come true on a real database?",
        "explore": "Run a program with random legal reads, and see what goes wrong.",
        "infer": "Find the weakest level per transaction that keeps an application's invariant.",
        "allocate": "The weakest safe isolation level for each transaction of a workload.",
        "robust": "Is every run of a workload at given levels serializable?",
        "simulate": "Run a workload on a simulated protocol with a level per transaction.",
    },
    "Work with files": {
        "stats": "Show the sizes and the shape of histories.",
        "convert": "Rewrite a history in another format.",
        "generate": "Make a history that keeps a chosen level, or breaks it where you say.",
        "formats": "List the history formats.",
        "bench": "What checks cost along the parameters of generated histories.",
        "warm-up": "Compile what large histories need, once and for all.",
    },
    "Learn": {
        "demo": "A small history, and what isocheck says about it.",
        "explain": "What a pattern or a level is, with an example.",
        "levels": "List the isolation levels.",
    },
}
COMMANDS: dict[str, str] = {name: text for group in GROUPS.values() for name, text in group.items()}
DEFAULT = "check"

# A word this similar to a command (0 to 1) counts as misspelled. With less, "runs" would count as "robust".
ALIKE = 0.7

# The exit code that a shell reports for a program that wrote to a closed pipe.
READER_GONE = 141


class _ReaderGoneError(Exception):
    """Replaces BrokenPipeError, for which click would exit with 1, the code of a violation."""


class _InterruptedError(Exception):
    """Ctrl-C, hidden from click, which would write an empty line."""


class LazyGroup(click.Group):
    """A group that imports commands when they run; an argument that is no command is a history to check."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"plume_py.cli.{name.replace('-', '_')}").command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read ``isocheck history.json --level TCC`` as ``isocheck check history.json --level TCC``."""
        if args and args[0] not in COMMANDS and args[0] not in ("--help", "-h", "--version"):
            if not ctx.resilient_parsing:  # as for shell completion
                _reject_misspelled(args[0])
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    @override
    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        # A history may come first as well; the shell completes files.
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        return [CompletionItem(name, help=COMMANDS[name]) for name in names] or [
            CompletionItem(incomplete, type="file")
        ]

    @override
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGoneError from None
        except KeyboardInterrupt:
            raise _InterruptedError from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by group, without importing any."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


def _reject_misspelled(name: str) -> None:
    """Reject an argument that resembles a command and names no file."""
    is_word = name.replace("-", "").replace("_", "").isalpha() and not name.startswith("-")
    near = similar(name, (*COMMANDS, "help"), ALIKE) if is_word and not os.path.lexists(name) else None
    if near is not None:
        suggestion = "--help" if near == "help" else near
        raise IsocheckError(f"no command and no file is named {name!r:.40}. Did you mean {suggestion!r}?")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@click.version_option(__version__, prog_name="isocheck", message="%(prog)s %(version)s")
def cli() -> None:
    """Does a transaction history keep the isolation level it was promised?

    \b
    isocheck history.json                  check every level
    isocheck history.json --level TCC      check one of them
    isocheck test --managed sqlite         does this database keep its promise?
    isocheck demo                          an example, explained
    """


def run() -> None:
    """Run ``main``, and end the process without the clean-up of Python.

    The clean-up of numba takes 0.25 s, and distributed may wait for ever for a connection that it never had.
    """
    try:
        main()
    except SystemExit as stop:
        if "numba" in sys.modules or "distributed" in sys.modules:
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(stop.code if isinstance(stop.code, int) else 0)  # None means 0
        raise


def main() -> None:
    """Run the command line; print every expected failure as one line on standard error, with an exit code.

    Python would end with 1 after any unexpected error, and 1 means a violation here.
    """
    mend_streams()
    for argument in sys.argv[1:]:
        if not os.path.lexists(argument):
            keep_secret(argument)
    code = _exit_code_of(_run)
    # Output that is still buffered may fail only now.
    sys.exit(_exit_code_of(sys.stdout.flush) or code)


def _run() -> int | None:
    code: int | None = cli.main(prog_name="isocheck", standalone_mode=False, color=default_color())
    sys.stdout.flush()
    return code


def _exit_code_of(action: Callable[[], int | None]) -> int | None:
    """Return the exit code of ``action``; print its error, if it fails, and return the code of that error."""
    try:
        return action()
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt, _InterruptedError) as error:
        if sys.stderr.isatty():  # the terminal shows ^C
            click.echo(err=True)
        return _report("interrupted", 130, error)
    except (BrokenPipeError, _ReaderGoneError):
        _silence_output()
        return READER_GONE
    except OSError as error:
        _silence_output()
        return _report(f"isocheck: cannot write the results: {error.strerror or error}", ExitCode.USAGE)
    except IsocheckError as error:
        return _report(f"isocheck: {error}", exit_code_of(error), error)
    except MemoryError:
        return _report("isocheck: stopped: there is no more memory to be had", ExitCode.UNDECIDED)
    except RecursionError:
        return _report("isocheck: stopped: the input is nested too deeply", ExitCode.UNDECIDED)
    except Exception as error:
        if _is_interrupt(error):
            return _report("interrupted", 130)
        if os.environ.get("ISOCHECK_DEBUG"):
            raise
        what = redacted(f"{type(error).__name__}: {error}")
        return _report(f"isocheck: a defect in isocheck itself, please report it: {what:.300}", ExitCode.UNDECIDED)


def _is_interrupt(error: Exception) -> bool:
    """Return whether it was Ctrl-C in the solver, or while a class was created: both wrap it in another exception."""
    in_solver = type(error).__module__ == "pysolvers" and "interrupt" in str(error)
    return in_solver or isinstance(error.__cause__, KeyboardInterrupt)


def _report(line: str, code: int, error: BaseException | None = None) -> int:
    """Print the line and the notes of the error; return the exit code."""
    click.echo(one_line(line), err=True)
    for note in getattr(error, "__notes__", ()):
        click.echo(one_line(f"isocheck: {note}"), err=True)
    return code


def _show(error: click.ClickException) -> None:
    """Print the message of click, with control characters in quoted arguments escaped."""
    text = StringIO()
    error.show(text)
    for line in text.getvalue().splitlines():
        click.echo(one_line(line), err=True)


def _silence_output() -> None:
    """Discard buffered output, so that the interpreter does not fail on it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_code_of(error: IsocheckError) -> int:
    """Return the exit code of an expected failure."""
    if isinstance(error, LimitError | TooLargeError):
        return ExitCode.UNDECIDED
    if isinstance(error, InputError | ConversionError):
        return ExitCode.BAD_INPUT
    return ExitCode.USAGE
