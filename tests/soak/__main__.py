"""``python -m soak SECONDS``: every command that writes, killed and starved at random moments until the time is up.

After each time, what it writes is old, complete or absent; a record is sound, and nothing confirmed is lost. No process
stays. After a few times the command runs undisturbed, and leaves what it always leaves: no hidden file, no temporary
folder; a scan that was resumed equals one that was not disturbed. At last workers of a Dask cluster are killed.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from soak.commands import COMMANDS, missing
from soak.dask import lose_workers
from soak.disturb import KILLS, OTHERS, can_mount, round_of
from soak.site import Site

PER_ROUND = 5


def main() -> int:
    """Rounds until the time is up."""
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--only", default="", help="commands with this in their name")
    parser.add_argument("--workers", type=int, default=1, help="of Dask, to be killed")
    options = parser.parse_args()
    begin, rng = time.monotonic(), random.Random(options.seed)
    kills: Counter[str] = Counter()
    others: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    problems: list[str] = []
    asked = [command for command in COMMANDS if options.only in command.name]
    commands = [command for command in asked if not missing(command)]
    for command in asked:
        if command not in commands:
            print(f"left out: {command.name}: {missing(command)}")
    with tempfile.TemporaryDirectory(prefix="isocheck-soak-") as folder:
        Path(folder).chmod(0o711)  # private servers may be run by another user, who must get through
        site = Site(Path(folder) / "site")
        if not can_mount(site):
            print("no disk can be mounted here: a limit on the size of files stands for a full one")
        while time.monotonic() < begin + options.seconds:
            for command in rng.sample(commands, len(commands)):
                drawn = [*rng.choices(KILLS, k=PER_ROUND - 1), rng.choice(OTHERS)]
                rng.shuffle(drawn)
                kinds.update(drawn)
                kills[command.name] += PER_ROUND - 1
                others[command.name] += 1
                for problem in round_of(site, command, drawn, rng):
                    problems.append(problem)
                    print(f"{problem}  [{', '.join(drawn)}]", flush=True)
                if time.monotonic() > begin + options.seconds:
                    break
            print(f"{kills.total():,} kills, {others.total():,} others, {len(problems)} problems", file=sys.stderr)
        lost = lose_workers(Path(folder) / "dask", options.workers, rng, problems) if options.workers else 0
    for name in sorted(kills):
        print(f"{kills[name]:>6,} {others[name]:>6,}  {name}")
    print(", ".join(f"{kind} {n:,}" for kind, n in sorted(kinds.items())) + f", Dask workers killed {lost:,}")
    counts = f"{kills.total():,} kills, {others.total():,} others, {len(problems)} problems"
    print(f"seed {options.seed}: {counts}, {time.monotonic() - begin:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
