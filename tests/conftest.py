"""What holds for all tests."""

import signal

import pytest

from plume_py.checking.strong import besides

# A shell that starts the tests in the background lets them ignore Ctrl-C, and with them every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch):
    """What is looked for besides ends after a while; here it has the time it takes, however slow the machine is."""
    monkeypatch.setattr(besides, "SECONDS", 3600.0)
