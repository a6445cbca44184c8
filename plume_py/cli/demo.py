"""``isocheck demo``: check an example history, and suggest the next commands."""

import click

from plume_py.cli.common_options import tell_written

NEXT = (
    ("isocheck {name}", "every level, from read committed to serializable"),
    ("isocheck {name} --report page.html", "a page to click through"),
    ("isocheck test --managed sqlite", "does a database keep its promise?"),
    ("isocheck explain TAP-m", "what this pattern is, and where it comes from"),
    ("isocheck --help", "everything else"),
)


@click.command("demo")
@click.option("--save", type=click.Path(dir_okay=False), help="Write the history to this file, to play with.")
def command(save: str | None) -> None:
    """Check a small history that comes along, and show what isocheck says about it.

    \b
    Examples:
      isocheck demo
      isocheck demo --save demo.json
    """
    from plume_py.base.atomic_files import write_atomically
    from plume_py.base.text import one_line
    from plume_py.checking.check import check
    from plume_py.history.load import load
    from plume_py.history.samples import demo
    from plume_py.levels import DEFAULT, LEVELS
    from plume_py.report.text import render

    path = demo()
    click.echo(f"A history: sessions of transactions of operations, as clients saw them.\n\n{path.read_text()}")
    click.echo(f"Does it keep {LEVELS[DEFAULT].title}?  isocheck demo.json --level {DEFAULT}\n")
    click.echo(render(check(load(path), DEFAULT, name="demo.json")))
    if save is not None:
        write_atomically(save, [path.read_bytes()])
        tell_written(save)
    click.echo("\nWhat next?")
    for command, purpose in NEXT:
        click.echo(f"  {command.format(name=one_line(save or 'history.json')):<46} {purpose}")
