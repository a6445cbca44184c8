"""The table of a run: what goes wrong while it is made, and its end."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.passwords import without_password
from plume_py.collect.adapter import Adapter, first_line
from plume_py.collect.deadline import in_time

# Seconds that the removal of the table may take after a failure.
REMOVED_WITHIN = 1.5


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
