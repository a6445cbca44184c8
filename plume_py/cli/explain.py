"""``isocheck explain``: explain a pattern or a level in words and by an example."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from plume_py.cli.common_options import complete_levels

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from plume_py.levels import Level
    from plume_py.levels.patterns import Pattern


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    from plume_py.levels.patterns import PATTERNS

    labels = (pattern.label for pattern in PATTERNS.values())
    patterns = [CompletionItem(label) for label in labels if label.lower().startswith(incomplete.lower())]
    return patterns + complete_levels(ctx, param, incomplete)


@click.command("explain")
@click.argument("name", shell_complete=_complete)
def command(name: str) -> None:
    """Explain a pattern or a level, by its name here or by Adya's or Jepsen's.

    \b
    Examples:
      isocheck explain TAP-k
      isocheck explain G-single
      isocheck explain SI
    """
    from plume_py.base.text import similar
    from plume_py.levels import LEVELS
    from plume_py.levels.orders import MEANING, level_request
    from plume_py.levels.patterns import PATTERNS

    request = level_request(name)
    if request is not None:
        if request.name != request.level:
            click.echo(f"{request.name} is {request.level} with the order {request.order}: {MEANING[request.order]}.\n")
        click.echo("\n".join(_level(LEVELS[request.level])))
        return
    patterns = [pattern for pattern in PATTERNS.values() if _fold(name) in _names(pattern)]
    patterns = patterns or [pattern for pattern in PATTERNS.values() if _fold(name) in map(_fold, pattern.aliases)]
    if not patterns:
        labels = [label for pattern in PATTERNS.values() for label in (pattern.label, *pattern.aliases)]
        near = similar(name, (*LEVELS, *labels, *(alias for level in LEVELS.values() for alias in level.aliases)))
        hint = f"Did you mean {near}?" if near else "`isocheck levels` and docs/taps.md list them."
        raise click.UsageError(f"no level and no pattern is named {name!r:.40}. {hint}")
    if len(patterns) > 1:
        alias = next(alias for alias in patterns[0].aliases if _fold(alias) == _fold(name))
        click.echo(f"{alias} may be any of these:")
    click.echo("\n".join(_pattern(patterns[0]) if len(patterns) == 1 else map(_line, patterns)))


def _fold(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-").removesuffix("-process")


def _names(pattern: "Pattern") -> set[str]:
    return {_fold(pattern.id), _fold(pattern.label), _fold(pattern.name)}


def _line(pattern: "Pattern") -> str:
    return f"  {pattern.label:<20} {pattern.level:<4} {pattern.description}"


def _level(level: "Level") -> Iterator[str]:
    from plume_py.base.text import wrapped
    from plume_py.levels.patterns import PATTERNS

    yield f"{level.name}, {level.title}" + (f" ({', '.join(level.aliases)})" if level.aliases else "")
    yield from wrapped("  Definition: ", f"{level.definition}.", "  ")
    yield from wrapped("  In words: ", f"{level.rule}.", "  ")
    if level.weaker:
        yield f"  Directly above {', '.join(level.weaker)}."
    broken = [pattern.label for pattern in PATTERNS.values() if pattern.level == level.name]
    if broken:
        yield from wrapped("  First to forbid: ", f"{', '.join(broken)}.", "  ")


def _pattern(pattern: "Pattern") -> Iterator[str]:
    from plume_py.base.text import wrapped
    from plume_py.checking.check import check
    from plume_py.history.load import load
    from plume_py.history.samples import example_of
    from plume_py.report.text import example

    yield click.style(pattern.title, bold=True) + (f" [{', '.join(pattern.aliases)}]" if pattern.aliases else "")
    yield from wrapped("  ", f"{pattern.description[0].upper()}{pattern.description[1:]}.", "  ")
    yield from wrapped("  Condition: ", f"{pattern.condition}.", "  ")
    yield f"  Forbidden from {pattern.level} on."
    yield from wrapped("  Usual cause: ", f"{pattern.cause}.", "  ")
    sample = example_of(pattern.id)
    if sample is None:
        return
    result = check(load(sample.path), sample.levels)
    yield ""
    yield "An example:"
    yield from example(next(violation for violation in result.violations if violation.tap == pattern.id))
