"""The table of a run: its name, errors while it is made, its removal, and the removal of what other runs have left."""

import calendar
import math
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.passwords import without_password
from plume_py.collect.adapter import Adapter, first_line
from plume_py.collect.deadline import in_time

# Seconds that the removal of the table may take after a failure.
REMOVED_WITHIN = 1.0
# The time in UTC at which the run began, and a random number. Nothing else is ever removed.
_NAME = re.compile("isocheck_([0-9]{8}t[0-9]{6})_[0-9a-f]{8}", re.ASCII)
_TIME = "%Y%m%dt%H%M%S"
# Seconds between two signs of life of a run; and between two looks for one, before its table is removed.
BEAT, SECOND_LOOK = 2.0, 3.0
# Where a database cannot know whether a run is alive: seconds after which its table counts as abandoned.
OLD = 86_400.0

_own: set[str] = set()  # tables of this process


@dataclass
class Cleaned:
    """What became of the tables of other runs."""

    removed: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)  # and why


def new_name() -> str:
    """Return the name of a run's table."""
    return f"isocheck_{time.strftime(_TIME, time.gmtime())}_{secrets.token_hex(4)}"


def is_name(table: str) -> bool:
    """Return whether a table of this name is a run's."""
    return _NAME.fullmatch(table) is not None


def is_old(table: str) -> bool:
    """Return whether the run of ``table`` began so long ago that it counts as abandoned."""
    found = _NAME.fullmatch(table)
    if found is None:
        return False
    try:
        began = calendar.timegm(time.strptime(found[1], _TIME))
    except (ValueError, OverflowError):
        return False
    return time.time() - began > OLD


def clean(adapter: Adapter, until: float = math.inf) -> Cleaned:
    """Remove the tables that abandoned runs have left, never one of a run that may be alive.

    What cannot be removed by ``until`` of the monotonic clock is left to a later run.

    A run is alive if it is connected. After a restart of the server it is so again within ``BEAT`` seconds, so it must
    be missing twice. Where the database cannot know, a run counts as alive for a day.
    """
    cleaned = Cleaned()
    tables = [table for table in adapter.tables() if is_name(table) and table not in _own]
    candidates = [table for table in tables if _is_abandoned(adapter, table, cleaned)]
    if candidates and time.monotonic() + SECOND_LOOK < until:
        time.sleep(SECOND_LOOK)
    elif candidates:
        until = 0.0
    for table in candidates:
        if time.monotonic() >= until:
            cleaned.kept[table] = "there was no time to remove it"
            continue
        if not _is_abandoned(adapter, table, cleaned):
            continue
        try:
            adapter.drop_table(table)
            cleaned.removed.append(table)
        except Exception as error:
            cleaned.kept[table] = first_line(error)
    return cleaned


def claim(adapter: Adapter) -> None:
    """The table of ``adapter`` belongs to this process."""
    _own.add(adapter.setup.table)


def _is_abandoned(adapter: Adapter, table: str, cleaned: Cleaned) -> bool:
    alive = adapter.is_alive(table)
    if alive:
        cleaned.kept[table] = "its run is still connected"
    elif alive is None and not is_old(table):
        cleaned.kept[table] = "its run may be alive, and began less than a day ago"
    else:
        return True
    return False


@contextmanager
def setting_up(adapter: Adapter) -> Iterator[None]:
    """What goes wrong in the database before anything is recorded, in one line."""
    try:
        yield
    except IsocheckError:
        raise
    except Exception as error:
        raise InputError(
            f"cannot set up the table: {first_line(error)}",
            hint="is the server running, and may this user create tables?",
        ).in_source(without_password(adapter.setup.url)) from None


def remove(adapter: Adapter, error: BaseException | None = None) -> None:
    """Remove the table after a failure; if that fails, too, a line about it goes with ``error``."""
    guard = adapter.setup.guard
    guard.cut_all()  # waits of threads that were left behind, which may use the connection of the administrator
    remaining = removed(adapter, time.monotonic() + REMOVED_WITHIN)
    if remaining and error is not None:
        error.add_note(remaining)


def removed(adapter: Adapter, until: float) -> str:
    """Remove the table by ``until`` of the monotonic clock; returns a line about it if it remains, else nothing."""
    guard = adapter.setup.guard
    guard.end_by(until)
    try:
        in_time(until, lambda: _remove(adapter))
    except Exception as error:
        table, url = adapter.setup.table, without_password(adapter.setup.url)
        return f"the table {table} may remain ({first_line(error)}). Remove it with: isocheck collect --clean {url}"
    finally:
        guard.end_by(math.inf)
    return ""


def _remove(adapter: Adapter) -> None:
    with suppress(Exception):
        adapter.settle()  # or the table may be locked
    adapter.drop()
