"""``python -m fuzz SECONDS``: damaged inputs on all cores until the time is up; what is wrong goes to fuzz-found/."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

BATCH = 2_000  # inputs per process: whatever one of them leaves behind ends with it


def worker(seed: str, count: int, keep: str) -> None:
    """One batch, its tally as JSON."""
    from fuzz.run import megabytes, run

    with tempfile.TemporaryDirectory(prefix="isocheck-fuzz-") as folder:
        tally = run(seed, count, Path(folder), Path(keep))
    codes = {f"{name} {code}": n for (name, code), n in tally.codes.items()}
    answer = {"inputs": tally.inputs, "codes": codes, "slowest": tally.slowest, "problems": tally.problems}
    print(json.dumps(answer | {"megabytes": megabytes()}))


def main() -> int:
    """Batches until the time is up."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", default="fuzz-found")
    options = parser.parse_args()
    end, batch, running = time.monotonic() + options.seconds, 0, []
    inputs: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    slowest, most, problems, died = 0.0, 0.0, [], 0
    code = "import sys; from fuzz.__main__ import worker; worker(sys.argv[1], int(sys.argv[2]), sys.argv[3])"
    while running or time.monotonic() < end:
        while len(running) < options.jobs and time.monotonic() < end:
            command = [sys.executable, "-c", code, f"{options.seed}.{batch}", str(BATCH), options.keep]
            running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            batch += 1
        process = running.pop(0)
        printed, _ = process.communicate()
        if process.returncode:
            died += 1
            problems.append(f"a batch ended with {process.returncode}: seed {options.seed}.{batch - len(running) - 1}")
            continue
        answer = json.loads(printed.splitlines()[-1])
        inputs.update(answer["inputs"])
        codes.update(answer["codes"])
        problems += answer["problems"]
        slowest, most = max(slowest, answer["slowest"]), max(most, answer["megabytes"])
        print(f"{sum(inputs.values()):,} inputs, {len(problems)} problems", file=sys.stderr, flush=True)
    for name, n in sorted(inputs.items()):
        print(f"{n:>9,}  {name}")
    print("exit codes:", ", ".join(f"{name}: {n:,}" for name, n in sorted(codes.items())))
    print(f"slowest {slowest:.1f} s, at most {most:.0f} MB, {died} processes died")
    print(f"{sum(inputs.values()):,} inputs, {len(problems)} problems")
    for problem in problems[:50]:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
