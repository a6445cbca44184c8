"""``isocheck levels``: what can be checked."""

import click

from plume_py.levels import LEVELS


@click.command("levels")
def command() -> None:
    """List the isolation levels, weakest first.

    The definitions speak of a read of x by t3 from t1, and of another transaction t2 that writes x.

    \b
    Examples:
      isocheck levels
      isocheck explain SI        one of them, in words
    """
    for level in LEVELS.values():
        above = f" (above {', '.join(level.weaker)})" if level.weaker else ""
        click.echo(f"{level.name:<4} {level.title}{above}")
        click.echo(f"     {level.definition}")
        click.echo(f"     also: {', '.join(level.aliases)}")
