"""``isocheck levels``: list the isolation levels, their definitions and the orders."""

import click

from plume_py.base.text import wrapped
from plume_py.levels import LEVELS, RUNNABLE, parse_level
from plume_py.levels.orders import MEANING, NAMED, ORDERS, strong_name


@click.command("levels")
@click.option(
    "--define", "files", multiple=True, type=click.Path(dir_okay=False),
    help="A Python file that defines levels; it is run.",
)  # fmt: skip
def command(files: tuple[str, ...]) -> None:
    """List the isolation levels, weakest first, and those that are known by their definitions alone.

    The definitions speak of a read of x by t3 from t1, and of another transaction t2 that writes x.

    \b
    Examples:
      isocheck levels
      isocheck levels --define my_levels.py
      isocheck explain SI        one of them, in words
    """
    _print_levels()
    _print_definitions(files)
    click.echo("\nOrders between transactions (--order), and names that say one:")
    for order in ORDERS:
        lines = wrapped(f"{order:<17}", MEANING[order], " " * 17)
        if order in NAMED:
            names = ", ".join(strong_name(level, order) for level in reversed(RUNNABLE))
            lines += wrapped(" " * 17, f"names: {names}", " " * 17)
        click.echo("\n".join(lines))


def _print_levels() -> None:
    for level in LEVELS.values():
        above = f" (above {', '.join(level.weaker)})" if level.weaker else ""
        click.echo(f"{level.name:<4} {level.title}{above}")
        click.echo(f"     {level.definition}")
        click.echo(f"     also: {', '.join(level.aliases)}")
        jepsen = [level.jepsen] if parse_level(level.jepsen) == level.name else []  # else it is another level's
        others = [f"Jepsen: {name}" for name in jepsen] + [f"Adya: {name}" for name in (level.adya,) if name]
        if others:
            click.echo(f"     {'; '.join(others)}")


def _print_definitions(files: tuple[str, ...]) -> None:
    from plume_py.cli.synth_options import defined_in
    from plume_py.reasoning.synth.formulas import DEFINITIONS

    others = {name: level for name, level in DEFINITIONS.items() if name not in LEVELS} | defined_in(files)
    click.echo("\nBy their definitions (small histories; synth, relate and hierarchy compare them):")
    for name, level in others.items():
        click.echo("\n".join(wrapped(f"{name:<15} ", level.text or "-", " " * 16)))
