"""Where an observed history comes from, if it says so: ``collect`` writes the database and its settings into it."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from plume_py.base.errors import IsocheckError
from plume_py.history.source import Source
from plume_py.levels.databases import Database, Setting, engine


@dataclass(frozen=True)
class Origin:
    """A database by the name it goes by, and at which of its isolation levels all transactions ran; "" if several."""

    database: str
    isolation: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def engine(self) -> Database | None:
        """What is known of it."""
        return engine(self.database)

    @property
    def setting(self) -> Setting | None:
        """What is known of the isolation level."""
        known = self.engine
        return None if known is None else known.setting_named(self.isolation)


class _About(msgspec.Struct):
    database: str = ""
    isolation: list[str] = []
    settings: dict[str, str] = {}
    levels: Any = None
    nodes: Any = None


class _Header(msgspec.Struct):
    collected: _About


_headers = msgspec.json.Decoder(_Header)


def origin(path: str) -> Origin | None:
    """What the header of a recorded history says; None if there is none, or of several nodes. Nothing in it is trusted.

    Of several nodes one may be behind: what a session has committed, it need not see.
    """
    if path == "-":
        return None
    source = Source(path)
    try:
        about = _headers.decode(source.head().split(b"\n", 1)[0]).collected
    except (msgspec.MsgspecError, IsocheckError, OSError, UnicodeDecodeError, RecursionError):
        return None
    finally:
        source.close()
    alone = len(set(about.isolation)) == 1 and not about.levels
    if not about.database or about.nodes:
        return None
    return Origin(about.database, about.isolation[0] if alone else "", about.settings)
