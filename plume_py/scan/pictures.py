"""A picture of each distinct violation of a scan: the smallest history that shows it is checked once more, and drawn.

The results hold what other programs need, not what a picture is made of; and of a thousand histories of one bug there
is only one to draw.
"""

from collections.abc import Iterable
from dataclasses import replace

from plume_py.base.errors import IsocheckError
from plume_py.base.limits import Limits
from plume_py.checking.result import Result
from plume_py.history.load import load_source
from plume_py.history.source import Source
from plume_py.report.dot import render
from plume_py.report.graphviz import Album
from plume_py.scan.settings import Settings
from plume_py.scan.shape import shape_of
from plume_py.scan.storage import fetched
from plume_py.scan.summary import Group

# Shapes that are drawn, the most frequent first.
DRAWN = 100


def draw(groups: Iterable[Group], settings: Settings, album: Album) -> dict[str, str]:
    """The pictures of ``groups``: the name of a file, without suffix, by shape."""
    wanted: dict[str, list[Group]] = {}
    for group in list(groups)[:DRAWN]:
        wanted.setdefault(group.smallest[1], []).append(group)
    names = {}
    for path, here in wanted.items():
        found = {shape_of(violation)[0]: violation for violation in _checked(path, settings).violations}
        for group in here:
            if group.shape in found:  # a history may have changed meanwhile
                names[group.shape] = group.shape
                album.add(group.shape, render(found[group.shape], path))
    return names


def _checked(path: str, settings: Settings) -> Result:
    from plume_py.checking.check import check

    asked = replace(settings, max_examples=max(1, settings.max_examples))
    limits = Limits(settings.timeout, settings.max_memory, per_level=settings.per_level)
    try:
        with fetched(path) as local, limits.enforced():
            source = Source(local, path)
            try:
                history = load_source(source, format=asked.input_format, init_txn=asked.init_txn)  # type: ignore[arg-type]
                return check(
                    history,
                    asked.levels,
                    order=asked.order,
                    max_examples=asked.max_examples,
                    name=path,
                    limits=limits,
                )
            finally:
                source.close()
    except (IsocheckError, OSError, MemoryError) as error:
        return Result(path, error=str(error))
