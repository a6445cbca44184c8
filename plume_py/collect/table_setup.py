"""Manage the table of a run: its name, setup errors, its removal, and tables that abandoned runs left."""

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
from plume_py.collect.adapter import Adapter, NotSearchedError, first_line
from plume_py.collect.deadline import in_time

# Seconds for the removal of the table after a failure.
REMOVED_WITHIN = 1.0
# Start of the run in UTC, and a random number. Tables with other names are never removed.
_NAME = re.compile("isocheck_([0-9]{8}t[0-9]{6})_[0-9a-f]{8}", re.ASCII)
_TIME = "%Y%m%dt%H%M%S"
# Seconds between two signs of life of a run, and between two checks for one before its table is removed.
BEAT, SECOND_CHECK = 2.0, 3.0
# Seconds after which a table counts as abandoned if the database does not know whether its run is alive.
ABANDONED_AFTER = 86_400.0

_own: set[str] = set()  # tables of this process


@dataclass
class Cleaned:
    """The tables of other runs that ``clean`` removed or kept."""

    removed: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)  # with the reason
    not_searched: str = ""  # why the adapter did not look for tables


def new_name() -> str:
    """Return a new name for a run's table."""
    return f"isocheck_{time.strftime(_TIME, time.gmtime())}_{secrets.token_hex(4)}"


def is_name(table: str) -> bool:
    """Return whether this is the name of a run's table."""
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
    return time.time() - began > ABANDONED_AFTER


def clean(adapter: Adapter, until: float = math.inf) -> Cleaned:
    """Remove the tables that abandoned runs left, but no table of a run that may be alive.

    A run is alive if it is connected. After a restart of the server it reconnects within ``BEAT`` seconds, so it must
    be missing at two checks. If the database does not know, a run counts as alive for a day. Tables that cannot be
    removed by ``until`` of the monotonic clock are left to a later run.
    """
    cleaned = Cleaned()
    try:
        tables = [table for table in adapter.tables() if is_name(table) and table not in _own]
    except NotSearchedError as error:
        return Cleaned(not_searched=str(error))
    candidates = [table for table in tables if _is_abandoned(adapter, table, cleaned)]
    if candidates and time.monotonic() + SECOND_CHECK < until:
        time.sleep(SECOND_CHECK)
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
    """Mark the table of ``adapter`` as one of this process, so that ``clean`` skips it."""
    _own.add(adapter.setup.table)


def _is_abandoned(adapter: Adapter, table: str, cleaned: Cleaned) -> bool:
    """Return whether the run of ``table`` has ended. If not, note why the table is kept."""
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
    """Turn an error of the database during setup into one line."""
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
    """Remove the table after a failure. If that fails as well, add a note to ``error``."""
    guard = adapter.setup.guard
    guard.cut_all()  # waits of abandoned threads, which may use the admin connection
    remaining = remove_in_time(adapter, time.monotonic() + REMOVED_WITHIN)
    if remaining and error is not None:
        error.add_note(remaining)


def remove_in_time(adapter: Adapter, until: float) -> str:
    """Remove the table by ``until`` of the monotonic clock. Return a message if it may remain, otherwise ""."""
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
        adapter.settle()  # otherwise the table may be locked
    adapter.drop()
