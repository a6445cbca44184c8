"""Tests of base/processes: a stopped server leaves no process."""

import subprocess
import sys
from pathlib import Path

import pytest
from program import wait_until

from plume_py.base.processes import end, tree

# What has much memory takes a while to end.
BELOW = "kept = bytearray(200 << 20); print(1, flush=True); import time; time.sleep(600)"
SERVER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BELOW!r}])"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_descendants_of_a_server_have_ended_when_it_is_stopped():
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, start_new_session=True) as server:
        assert server.stdout.readline() == b"1\n"
        wait_until(lambda: len(tree(server.pid)) == 2, server)
        _, below = tree(server.pid)
        end(server, 0.0)
        try:
            state = Path(f"/proc/{below}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            state = "gone"
        assert state in ("gone", "Z", "X")
