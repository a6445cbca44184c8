"""Scans of a whole archive, with everything that can go wrong: ``python -m benchmarks.scan [--only PART,…]``.

The archive (``benchmarks.archive``) says what must be found. Parts: totals (what was planted is what is found), speed
(1 and 2 jobs, beside loops of ``isocheck check``), kill (three SIGKILLs and resumes), dask (a cluster of separate
processes, one worker killed midway; then a scheduler restarted), memory (of the parent, over 50,000 histories).
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import archive
from benchmarks.measure import ISOCHECK, PYTHON, run
from benchmarks.tables import Row, save, show
from benchmarks.workloads import WORK

PARTS = ("totals", "speed", "kill", "dask", "memory")
RESULTS = Path(__file__).parent / "results"
LIMITS = ("--timeout", "30", "--max-memory", "200M")
ANY = (0, 1, 3, 4)  # exit codes of a scan that came to its end


def main() -> None:
    """The command line."""
    args = _arguments()
    one, five, fifteen = os.getloadavg()
    print(f"{os.cpu_count()} cores, load {one:.1f} {five:.1f} {fifteen:.1f}")
    bench = Bench(args.histories, args.small, args.limits)
    for part in args.only.split(","):
        getattr(bench, part)()


class Bench:
    """One archive and the scans of it."""

    def __init__(self, histories: int, small: int, limits: bool) -> None:
        self.folder = WORK / f"archive-{histories}{'' if limits else '-quick'}"
        WORK.mkdir(exist_ok=True)
        self.expected = archive.make(self.folder, histories, max(7, histories // 100), limits)
        self.small = small
        self._undisturbed: Path | None = None
        self._warm_up()

    def totals(self) -> None:
        """What was planted is what is found."""
        results = self._reference()
        wrong = archive.mistakes(self.expected, self.folder, _lines(results))
        planted, found = _planted_totals(self.expected), _found_totals(self.expected, self.folder, _lines(results))
        rows: list[Row] = [{"what": what, "planted": planted[what], "found": found[what]} for what in planted]
        show(f"Totals over {len(self.expected):,} histories", rows)
        print(f"{len(wrong)} of {len(self.expected):,} lines differ from what was planted", *wrong[:10], sep="\n  ")
        _require(not wrong and planted == found)

    def speed(self) -> None:
        """Files per second. The limits' three, which only take their time, stay out of it."""
        ordinary = [name for name in self.expected if not name.startswith("large/")]
        listed = WORK / "ordinary.txt"
        listed.write_text("".join(f"{self.folder / name}\n" for name in ordinary))
        rows: list[Row] = []
        for jobs in (1, 2):
            target = _fresh("speed.jsonl")
            took = run([*self._scan(target, jobs, f"@{listed}")], expect=ANY)
            rows.append(_speed(f"isocheck scan, {jobs} job{'s' * (jobs > 1)}", len(ordinary), took.seconds))
            assert sum(1 for _ in _lines(target)) == len(ordinary)
        paths = [str(self.folder / name) for name in ordinary]
        whole = run([ISOCHECK, "check", *paths, "--level", "weak", "--format", "jsonl"], expect=ANY)
        rows.append(_speed("isocheck check, one process for all", len(paths), whole.seconds))
        sample = paths[:: max(1, len(paths) // 100)]
        start = time.perf_counter()
        for path in sample:
            run([ISOCHECK, "check", path, "--level", "weak", "--format", "jsonl"], expect=ANY)
        rows.append(_speed("isocheck check, a process each (sample)", len(sample), time.perf_counter() - start))
        show("Speed", rows)
        save(RESULTS / "scan.csv", rows)

    def kill(self) -> None:
        """Three times SIGKILL, and what is there in the end."""
        reference, target = self._reference(), _fresh("killed.jsonl")
        for part in (0.2, 0.5, 0.8):
            scan = subprocess.Popen([*self._scan(target, 2), "--resume"], stdout=subprocess.DEVNULL)
            reached = _wait_for(target, int(part * len(self.expected)), scan)
            workers = _children(scan.pid)
            scan.send_signal(signal.SIGKILL)
            scan.wait()
            print(f"SIGKILL after {reached:,} lines; its {len(workers)} workers ended within {_ended(workers):.1f} s")
        with target.open("ab") as file:
            file.write(b'{"history":"torn')  # what a kill in the midst of a write would leave
        last = run([*self._scan(target, 2), "--resume", "--format", "json"], expect=ANY)
        print("last run:", _counts(last.output))
        _compare("killed three times and resumed", reference, target)
        again = run([*self._scan(target, 2), "--resume", "--format", "json"], expect=ANY)
        print("once more:", _counts(again.output))

    def dask(self) -> None:
        """A cluster of separate processes; one worker is killed, then, in another scan, the scheduler restarted."""
        reference = self._reference()
        with _cluster(2) as cluster:
            target = _fresh("dask.jsonl")
            scan = self._dask_scan(cluster.address, target)
            reached = _wait_for(target, len(self.expected) // 3, scan)
            cluster.kill_worker()
            print(f"Dask worker killed after {reached:,} lines")
            _require(scan.wait() in ANY)
            _compare("one Dask worker killed midway", reference, target)
        with _cluster(2) as cluster:
            target = _fresh("dask-restart.jsonl")
            scan = self._dask_scan(cluster.address, target)
            reached = _wait_for(target, len(self.expected) // 3, scan)
            cluster.restart()
            print(f"scheduler and workers killed after {reached:,} lines, and started again")
            _require(scan.wait() in ANY)
            _compare("Dask scheduler restarted midway", reference, target)

    def memory(self) -> None:
        """The parent's memory while it goes through many small histories."""
        folder = _many_small(self.small)
        target = _fresh("memory.jsonl")
        scan = subprocess.Popen(
            [ISOCHECK, "scan", str(folder), "--level", "weak", "--results", str(target)], stdout=subprocess.DEVNULL
        )
        rows: list[Row] = []
        peak = 0.0
        while (megabytes := _megabytes(scan.pid, "VmRSS")) > 0:
            peak = max(peak, _megabytes(scan.pid, "VmHWM"))
            done = _count(target) if target.exists() else 0
            if not rows or done >= int(rows[-1]["histories"] or 0) + self.small // 12:
                rows.append({"histories": done, "parent MB": megabytes})
            time.sleep(0.2)
        scan.wait()
        rows.append({"histories": _count(target), "parent MB": peak})  # summing up included
        show(f"Memory of the parent over {self.small:,} small histories (last: its peak)", rows)
        _require(_count(target) == self.small)

    def _scan(self, target: Path, jobs: int, what: str = "") -> list[str]:
        command = [ISOCHECK, "scan", what or str(self.folder), "--level", "weak", "--jobs", str(jobs), *LIMITS]
        return [*command, "--no-times", "--results", str(target)]

    def _dask_scan(self, address: str, target: Path) -> "subprocess.Popen[bytes]":
        command = [ISOCHECK, "scan", str(self.folder), "--level", "weak", *LIMITS, "--no-times", "--quiet"]
        return subprocess.Popen([*command, "--results", str(target), "--engine", "dask", "--scheduler", address])

    def _reference(self) -> Path:
        """The results of a scan that nothing disturbed."""
        if self._undisturbed is None:
            self._undisturbed = target = _fresh(f"{self.folder.name}-reference.jsonl")
            took = run([*self._scan(target, 2), "--report", str(target.with_suffix(".html"))], expect=ANY)
            print(f"undisturbed scan: {len(self.expected):,} histories in {took.seconds:.1f} s")
        return self._undisturbed

    def _warm_up(self) -> None:
        """The first use of a kernel compiles it; a time limit must not meet that."""
        ordinary = [self.folder / name for name in self.expected if not name.startswith("large/")]
        largest = sorted((path for path in ordinary if path.is_file()), key=lambda path: -path.stat().st_size)
        listed = WORK / "warm-up.txt"
        listed.write_text("".join(f"{path}\n" for path in largest[:60]))
        run([ISOCHECK, "scan", f"@{listed}", "--level", "weak", "--jobs", "1", "--quiet"], expect=ANY)


def _counts(output: str) -> dict[str, Any]:
    """What a run did, without the names of what it skipped."""
    return {name: count for name, count in json.loads(output)["run"].items() if name != "skipped_names"}


def _speed(what: str, files: int, seconds: float) -> Row:
    return {"command": what, "files": files, "seconds": seconds, "files/s": files / seconds}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open() as file:
        yield from map(json.loads, file)


def _planted_totals(expected: dict[str, archive.Expected]) -> dict[str, int]:
    """By outcome, by level, by pattern (where the planted ones are all there is)."""
    totals: Counter[str] = Counter()
    for found in expected.values():
        _count_totals(totals, found.outcome, found.broken, found.taps)
    return dict(sorted(totals.items()))


def _found_totals(
    expected: dict[str, archive.Expected], folder: Path, lines: Iterator[dict[str, Any]]
) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for line in lines:
        broken = [level for level, verdict in line["levels"].items() if verdict["ok"] is False]
        known = expected[str(Path(line["history"]).relative_to(folder))].taps is not None
        _count_totals(totals, line["outcome"], broken, line["counts"] if known else None)
    return dict(sorted(totals.items()))


def _count_totals(totals: "Counter[str]", outcome: str, broken: Any, taps: Any) -> None:
    totals[f"outcome {outcome}"] += 1
    totals.update(f"violates {level}" for level in broken)
    totals.update(f"TAP-{tap}" for tap in taps or ())


def _compare(what: str, reference: Path, target: Path) -> None:
    """Line for line after sorting."""
    ours, theirs = sorted(target.read_bytes().splitlines()), sorted(reference.read_bytes().splitlines())
    equal = ours == theirs
    print(f"{what}: {len(ours):,} lines, {'equal to' if equal else 'DIFFERENT from'} the undisturbed run's")
    _require(equal)


def _require(right: bool) -> None:
    if not right:
        raise SystemExit("that is wrong")


def _fresh(name: str) -> Path:
    path = WORK / name
    path.unlink(missing_ok=True)
    return path


def _count(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def _wait_for(path: Path, lines: int, scan: "subprocess.Popen[bytes]") -> int:
    """Until so many lines are there."""
    while scan.poll() is None:
        if path.exists() and (reached := _count(path)) >= lines:
            return reached
        time.sleep(0.02)
    raise SystemExit(f"the scan ended with {scan.returncode} before it could be disturbed")


def _children(pid: int) -> list[int]:
    return [int(p) for t in Path(f"/proc/{pid}/task").iterdir() for p in (t / "children").read_text().split()]


def _ended(pids: list[int]) -> float:
    """How long it takes until all of them are gone."""
    start = time.monotonic()
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        _require(time.monotonic() - start < 30)
        time.sleep(0.05)
    return time.monotonic() - start


def _megabytes(pid: int, field: str) -> float:
    """A figure of /proc; 0 if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(field)), 0.0)


def _many_small(count: int) -> Path:
    """Many names for a few hundred small files: to a scan, each is a history of its own."""
    folder = WORK / f"small-{count}"
    if folder.exists() and sum(len(files) for _, _, files in os.walk(folder)) == count:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    seeds = WORK / "small-seeds"
    if not seeds.exists():
        archive.make(seeds, 300, 0, limits=False)
    files = sorted(p for p in seeds.glob("run-*/*/*.*") if p.stat().st_size < 4_000)
    for i in range(count):
        target = folder / f"{i // 1000:03}" / f"{i:06}-{files[i % len(files)].name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(files[i % len(files)], target)
    return folder


class _Cluster:
    """A scheduler and workers, each a process of its own on this machine."""

    def __init__(self, workers: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self._port}"
        self._count = workers
        WORK.mkdir(exist_ok=True)
        self.start()

    def start(self) -> None:
        dask = [PYTHON, "-P", "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(self._port)]
        self._scheduler = self._launch([*dask, "--no-dashboard"])
        worker = [PYTHON, "-P", "-m", "distributed.cli.dask_worker", self.address, "--no-nanny", "--nthreads", "1"]
        self._workers = [self._launch([*worker, "--no-dashboard"]) for _ in range(self._count)]

    def _launch(self, command: list[str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=WORK)

    def kill_worker(self) -> None:
        _end(self._workers.pop())

    def restart(self) -> None:
        self.stop()
        self.start()

    def stop(self) -> None:
        for process in (self._scheduler, *self._workers):
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


@contextmanager
def _cluster(workers: int) -> Iterator[_Cluster]:
    cluster = _Cluster(workers)
    try:
        yield cluster
    finally:
        cluster.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scan", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--histories", type=int, default=5_000, help="of the archive [5000]")
    parser.add_argument("--small", type=int, default=50_000, help="histories for the memory of the parent [50000]")
    parser.add_argument("--no-limits", dest="limits", action="store_false", help="without the three beyond limits")
    args = parser.parse_args()
    for part in args.only.split(","):
        if part not in PARTS:
            parser.error(f"{part!r} is none of {','.join(PARTS)}")
    return args


if __name__ == "__main__":
    sys.exit(main())
