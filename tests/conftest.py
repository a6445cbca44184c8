"""What holds for all tests, and what they start: none of it outlives them."""

import signal

import pytest
from chromium import CHROMIUM, Browser
from program import Children

from plume_py.base.errors import IsocheckError
from plume_py.collect.managed import SERVERS

# A shell that starts the tests in the background lets them ignore Ctrl-C, and with them every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def child():
    """Start a process, as ``subprocess.Popen`` does; it is killed at the end, with all that it has started."""
    children = Children()
    yield children
    children.kill()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Headless Chromium with one page."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def _server(name):
    try:
        SERVERS[name].find()
    except IsocheckError as missing:
        pytest.skip(str(missing))
    with SERVERS[name]() as server:
        yield server


@pytest.fixture(scope="module")
def postgresql():
    """A private server."""
    yield from _server("postgresql")


@pytest.fixture(scope="module")
def mariadb():
    """A private server."""
    yield from _server("mariadb")
