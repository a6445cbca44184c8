"""Workers of a Dask cluster that are killed while they check."""

import os
import random
import subprocess
from pathlib import Path

from program import PATIENCE, PROGRAM, lines_in, wait_until

from soak.commands import make_inputs


def lose_workers(base: Path, times: int, rng: random.Random, problems: list[str]) -> int:
    """Kill one in the middle of a scan, so many times; what is written is what a scan on this machine writes."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        print("distributed is not installed: no worker of Dask was killed")
        return 0
    from benchmarks.scan import _cluster

    make_inputs(base)
    scan = [*PROGRAM, "scan", str(base / "archive"), "--level", "weak", "--no-times", "--quiet"]
    environment = {**os.environ, "ISOCHECK_COMPILE": "never"}
    reference = base / "reference.jsonl"
    subprocess.run([*scan, "--results", reference], check=False, env=environment, timeout=PATIENCE)
    expected = sorted(reference.read_bytes().splitlines())
    for number in range(times):
        target = base / f"{number}.jsonl"
        with _cluster(2) as cluster:
            given = ["--results", str(target), "--engine", "dask", "--scheduler", cluster.address]
            run = subprocess.Popen([*scan, *given], env=environment)
            _wait_for_lines(target, rng.randrange(1, len(expected)), run)
            cluster.kill_worker()
            run.wait(PATIENCE)
        if sorted(target.read_bytes().splitlines()) != expected:
            problems.append("scan on Dask, a worker killed: not what an undisturbed scan writes")
            print(problems[-1])
    return times


def _wait_for_lines(target: Path, lines: int, run: "subprocess.Popen[bytes]") -> None:
    wait_until(lambda: lines_in(target) >= lines or run.poll() is not None)
