"""The command line, called in this process."""

import sys

import pytest

from plume_py.cli.main import main


@pytest.fixture
def isocheck(capfd, monkeypatch):
    def run(*args):
        monkeypatch.setattr(sys, "argv", ["isocheck", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capfd.readouterr()
        assert "Traceback" not in printed.err
        return int(ended.value.code or 0), printed.out, printed.err

    return run
