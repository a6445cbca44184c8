"""A picture of each distinct violation of a scan: the smallest history that shows it is checked once more, and drawn.

The results hold what other programs need, not what a picture is made of; and of a thousand histories of one bug there
is only one to draw.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from plume_py.base.errors import IsocheckError
from plume_py.base.limits import Limits
from plume_py.checking.result import Result
from plume_py.history.load import load_source
from plume_py.history.source import Source
from plume_py.report.dot import render
from plume_py.report.graphviz import Album
from plume_py.scan.settings import Settings
from plume_py.scan.storage import fetched
from plume_py.scan.summary import Group
from plume_py.scan.violation_signature import shape_of

# Shapes that are drawn, the most frequent first.
DRAWN = 100


def draw(
    groups: Iterable[Group], settings: Settings, album: Album, paths: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The pictures of ``groups``: the name of a file, without suffix, by shape.

    ``paths``: where the histories are whose names are not their paths.
    """
    wanted: dict[str, list[Group]] = {}
    for group in list(groups)[:DRAWN]:
        wanted.setdefault(group.smallest[1], []).append(group)
    names = {}
    for name, here in wanted.items():
        result = _checked(name, (paths or {}).get(name, name), settings)
        found = {shape_of(violation)[0]: violation for violation in result.violations}
        for group in here:
            if group.shape in found:  # a history may have changed meanwhile
                names[group.shape] = group.shape
                album.add(group.shape, render(found[group.shape], name))
    return names


def _checked(name: str, path: str, settings: Settings) -> Result:
    from plume_py.checking.check import check

    asked = replace(settings, max_examples=max(1, settings.max_examples))
    limits = Limits(settings.timeout, settings.max_memory, per_level=settings.per_level)
    try:
        with fetched(path) as local, limits.enforced():
            source = Source(local, name)
            try:
                history = load_source(source, format=asked.input_format, init_txn=asked.init_txn)  # type: ignore[arg-type]
                return check(
                    history,
                    asked.levels,
                    order=asked.order,
                    max_examples=asked.max_examples,
                    name=name,
                    limits=limits,
                )
            finally:
                source.close()
    except (IsocheckError, OSError, MemoryError) as error:
        return Result(name, error=str(error))
