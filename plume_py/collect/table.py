"""The table of a run: what goes wrong while it is made, and its end."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from plume_py.base.errors import InputError, IsocheckError
from plume_py.base.passwords import without_password
from plume_py.collect.adapter import Adapter, first_line


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


def remove(adapter: Adapter) -> None:
    """After a failure: the table goes, if it can."""
    with suppress(Exception):
        adapter.settle()  # or the table may be locked
        adapter.drop()
