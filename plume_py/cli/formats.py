"""``isocheck formats``: list the history formats."""

import click

from plume_py.history.formats.registry import FORMATS


@click.command("formats")
def command() -> None:
    """List the history formats that isocheck reads and writes.

    Formats are recognised by content. Files may be compressed with gzip, xz or zstd.

    \b
    Examples:
      isocheck formats
      isocheck history.log --input-format plume
    """
    for fmt in FORMATS.values():
        use = "reads, writes" if fmt.writer else "reads"
        click.echo(f"{fmt.name:<12} {use:<14} {fmt.title}")
