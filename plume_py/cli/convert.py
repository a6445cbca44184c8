"""``isocheck convert``: rewrite a history in another format."""

import click

from plume_py.base.errors import ConversionError
from plume_py.base.text import one_line
from plume_py.cli.common_options import limits_of, reading_options, tell_written
from plume_py.history.formats.registry import FORMATS, writable_format

WRITABLE = [name for name, fmt in FORMATS.items() if fmt.writer]


@click.command("convert")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--to", "name", type=click.Choice(WRITABLE), help="The format of OUT [default: by its extension].")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing of what was written; only what was lost.")
@reading_options
def command(source: str, target: str, name: str | None, quiet: bool, input_format: str | None, init_txn: str) -> None:
    """Rewrite the history IN as OUT ("-" for standard input or output).

    What the target format cannot express is refused, with the reason; nothing is written then. What no verdict depends
    on, as names and nodes, may be lost, and a note says so.

    \b
    Examples:
      isocheck convert history.edn history.jsonl
      isocheck convert history.json - --to plume | head
    """
    chosen = FORMATS[name or format_of(target)]
    from plume_py.base.atomic_files import write_atomically
    from plume_py.history.load import load
    from plume_py.history.nodes import with_nodes

    with limits_of(None).enforced():
        history = load(source, format=input_format, init_txn=init_txn)  # type: ignore[arg-type]
        history = with_nodes(history, source)
    try:
        rendered = chosen.load_writer()(history)
        write_atomically(target, rendered.chunks)
    except ConversionError as error:
        raise ConversionError(f"cannot write {source} as {chosen.name}: {error}") from None
    for note in rendered.notes:
        click.echo(one_line(f"note: {note}"), err=True)
    tell_written(target, quiet=quiet)


def format_of(path: str) -> str:
    """Return the writable format for the extension of a file name."""
    name = writable_format(path)
    if name is not None:
        return name
    raise click.UsageError(f"cannot tell the format of {path!r}: give --to {'|'.join(WRITABLE)}")
