"""Writes docs/isocheck.1, the manual page, from what --help says.

Run it after a change of the command line: make man. To read it: man docs/isocheck.1
"""

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import click

from plume_py.base.version import __version__
from plume_py.cli.main import COMMANDS, GROUPS, cli

TARGET = Path(__file__).resolve().parent / "isocheck.1"

EXITS = (
    ("0", "every level asked for holds, for every history"),
    ("1", "some violation"),
    ("2", "wrong usage"),
    ("3", "undecided: a limit of time or memory was reached, or a declared level is missing"),
    ("4", "some input could not be read"),
)
ENVIRONMENT = (
    ("ISOCHECK_COMPILE", "auto, always or never: whether kernels are compiled (auto: on large histories)"),
    ("NUMBA_CACHE_DIR", "where compiled kernels are kept"),
    ("NO_COLOR", "no colours"),
    ("ISOCHECK_DEBUG", "where a defect of isocheck itself happened"),
)


def page() -> str:
    """The whole manual page."""
    return "\n".join((*_opening(), *_commands(), *_closing())) + "\n"


def _opening() -> Iterator[str]:
    yield f'.TH ISOCHECK 1 "" "isocheck {__version__}" "User Commands"'
    yield from (".SH NAME", r"isocheck \- does a transaction history keep the isolation level it was promised?")
    yield from (".SH SYNOPSIS", r"\fBisocheck\fR \fIHISTORY\fR... [\fB\-\-level\fR \fILEVEL\fR]...", ".br")
    yield r"\fBisocheck\fR \fICOMMAND\fR [\fIOPTIONS\fR] [\fIARGUMENTS\fR]"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(cli.help or "")
    for title, commands in GROUPS.items():
        yield f'.SS "{title}"'
        for name, text in commands.items():
            yield from (".TP", rf"\fB{name}\fR", _escaped(text))


def _commands() -> Iterator[str]:
    yield ".SH COMMANDS"
    with click.Context(cli, info_name="isocheck") as ctx:
        for name in COMMANDS:
            command = cli.get_command(ctx, name)
            assert command is not None
            command._help_option = None  # click keeps that of whoever asked first, with that one's settings
            with click.Context(command, info_name=name, parent=ctx) as own:
                yield f'.SS "{_escaped(own.command_path)} {_escaped(" ".join(command.collect_usage_pieces(own)))}"'
                yield from _paragraphs(command.help or "")
                for param in command.get_params(own):
                    record = param.get_help_record(own) if isinstance(param, click.Option) else None
                    if record is not None:
                        yield from (".TP", rf"\fB{_escaped(record[0])}\fR", _escaped(" ".join(record[1].split())))


def _closing() -> Iterator[str]:
    for title, rows in ("EXIT STATUS", EXITS), ("ENVIRONMENT", ENVIRONMENT):
        yield f'.SH "{title}"'
        for name, text in rows:
            yield from (".TP", rf"\fB{name}\fR", _escaped(text))


def _paragraphs(text: str) -> Iterator[str]:
    """Help text: paragraphs, those that begin with \\b as they are."""
    for paragraph in text.strip().split("\n\n"):
        lines = paragraph.splitlines()
        if lines[0].strip() == "\b":
            yield from (".PP", ".nf", *map(_escaped, dedent("\n".join(lines[1:])).splitlines()), ".fi")
        else:
            yield from (".PP", *(_escaped(line.strip()) for line in lines))


def _escaped(line: str) -> str:
    text = line.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    text = "".join(c if c.isascii() else rf"\[u{ord(c):04X}]" for c in text)
    return rf"\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    TARGET.write_text(page())
