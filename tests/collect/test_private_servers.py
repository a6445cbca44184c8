"""Tests of ``collect.server``, ``managed``, ``cluster`` and ``orphan_watchdog``: how private servers end."""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest
from collecting import Scripted
from program import PATIENCE, PROGRAM, lines_in, wait_until

from plume_py.base.processes import MARK
from plume_py.collect.adapter import Setup
from plume_py.collect.client import Isolation
from plume_py.collect.cluster import ManagedCluster
from plume_py.collect.managed import SERVERS
from plume_py.collect.run import Plan, collect
from plume_py.collect.server import STOP, ManagedServer, cause
from plume_py.collect.workload import Shape

BUSY = """
import os, sys, time
while True:
    os.makedirs(sys.argv[1] + "/data", exist_ok=True)
    open(f"{sys.argv[1]}/data/{time.monotonic_ns()}", "w").close()
"""


def test_the_watchdog_ends_a_process_that_prepares_a_server(tmp_path, child):
    """No server runs yet, but the process that creates its files would create the folder again."""
    folder = tmp_path / "server"
    folder.mkdir()
    keeper = child([sys.executable, "-m", "plume_py.collect.orphan_watchdog", str(folder)], stdin=subprocess.PIPE)
    busy = child([sys.executable, "-c", BUSY, str(folder)], env={**os.environ, MARK: str(folder)})
    other = child([sys.executable, "-c", "import time; time.sleep(10_000)", str(folder)])
    wait_until((folder / "data").exists, busy)
    keeper.stdin.close()
    assert keeper.wait(PATIENCE) == 0
    assert busy.wait(PATIENCE) == -9 and not folder.exists()
    assert other.poll() is None, "a process that only names the folder is left alone"


def test_the_folder_is_removed_even_if_the_collector_is_killed(tmp_path, child):
    out = tmp_path / "h.jsonl"
    arguments = ["collect", "--managed", "sqlite", "--transactions", "1000000", "--out", str(out)]
    run = child([*PROGRAM, *arguments], env={**os.environ, "TMPDIR": str(tmp_path)})
    wait_until(lambda: lines_in(out) >= 20, run)
    assert list(tmp_path.glob("isocheck-*"))
    run.kill()
    run.wait()
    wait_until(lambda: not list(tmp_path.glob("isocheck-*")))


@pytest.mark.parametrize("name, driver", [("postgresql", "psycopg"), ("mariadb", "pymysql")])
def test_a_silent_process_on_the_port_does_not_block_the_start(name, driver):
    pytest.importorskip(driver)
    failed = []
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        server = SERVERS[name]()
        server.port = mute.getsockname()[1]

        def ask():
            with pytest.raises(Exception):  # noqa: B017
                server.answers()
            failed.append(True)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(20)
    assert failed


@pytest.mark.parametrize(
    "output, told",
    [
        (
            'running bootstrap script ... UTC [1780] FATAL:  could not write to file "pg_wal/xlogtemp"'
            ': No space left on device\nchild process exited with exit code 1\ninitdb: removing data directory "/d"\n',
            "No space left on device",
        ),
        (
            "The files\n\ninitdb: error: invalid locale name\ninitdb: hint: try C\n",
            "invalid locale",
        ),
        ("[Note] Starting\n[ERROR] Bind on TCP/IP port: Address in use\n[ERROR] Aborting\n", "Address in use"),
        ('{"level":"info"}\n{"level":"fatal","msg":"no data dir"}\n{"level":"info","msg":"bye"}\n', "no data dir"),
        ("# Fatal error, can't open config file\n# bye\n", "can't open config file"),
        ("it ended\nwithout a reason\n", "without a reason"),
        ("log_error=x\nerrors.log\nlast\n", "last"),
    ],
)
def test_the_first_error_line_explains_a_failed_start(output, told):
    assert told in cause(output)


def test_the_cause_is_empty_without_output():
    assert cause(" \n") == ""


class StubbornServer(ManagedServer):
    """A server that ignores the request to stop."""

    title, scheme = "stubborn", "sqlite"
    url = "sqlite:///unused.db"

    def prepare(self, programs):
        pass

    def command(self, programs):
        return ["/bin/sh", "-c", "trap '' TERM; touch ready; while :; do sleep 0.1; done"]

    def answers(self):
        if not os.path.exists(os.path.join(self.folder, "ready")):
            raise OSError("not ready yet")


class StubbornCluster(ManagedCluster):
    def form(self):
        self.start("only", StubbornServer())


@pytest.mark.parametrize("kind", [StubbornServer, StubbornCluster])
def test_ctrl_c_kills_a_private_server_at_once(kind):
    """Its folder is removed anyway, so an orderly end is not worth the wait."""
    with pytest.raises(KeyboardInterrupt), kind():
        began = time.monotonic()
        raise KeyboardInterrupt
    assert time.monotonic() - began < STOP / 2


def test_ctrl_c_during_the_start_kills_a_private_server_at_once(monkeypatch):
    def interrupt(self):
        time.sleep(0.5)  # the server ignores the request by now
        raise KeyboardInterrupt

    monkeypatch.setattr(StubbornServer, "answers", interrupt)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        StubbornServer().__enter__()
    assert time.monotonic() - began < STOP / 2


def test_a_run_that_ctrl_c_ends_kills_its_private_server_at_once(tmp_path):
    """The run ends in order and raises nothing, so the server must learn of Ctrl-C in another way."""
    presses = [KeyboardInterrupt]

    def interrupt(recorded):
        if presses:
            raise presses.pop()

    adapter = Scripted(Setup("scripted:"))
    plan = Plan(Shape(sessions=1, seed=0), [Isolation("only", "SER")], str(tmp_path / "h.jsonl"))
    with StubbornServer() as server:
        collected = collect(adapter, plan, server, tick=interrupt)
        began = time.monotonic()
    assert collected.interrupted
    assert time.monotonic() - began < STOP / 2
