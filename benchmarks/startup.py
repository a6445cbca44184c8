"""How long isocheck takes to start, beside what Python itself takes for the same imports."""

from benchmarks.measure import ISOCHECK, PYTHON, in_turns
from benchmarks.tables import Row
from benchmarks.workloads import WORK

CLICK, NUMPY = 'python -c "import click"', 'python -c "import numpy, click"'

# A ten-operation history.
TINY = """{"initial":0,"sessions":[
[{"ops":[["w","x",1],["w","y",1]]},{"ops":[["r","x",1],["r","y",1]]}],
[{"ops":[["r","x",1],["w","x",2],["r","y",1]]},{"ops":[["r","x",2],["w","y",2],["r","y",2]]}]]}
"""


def measure(quick: bool) -> list[Row]:
    """One row per command, with its ratio to the reference and the ratio it may have."""
    WORK.mkdir(exist_ok=True)
    tiny = WORK / "tiny.json"
    tiny.write_text(TINY)
    plan = (
        (CLICK, [PYTHON, "-c", "import click"], None, None),
        (NUMPY, [PYTHON, "-c", "import numpy, click"], None, None),
        ("isocheck --version", [ISOCHECK, "--version"], CLICK, 1.5),
        ("isocheck --help", [ISOCHECK, "--help"], CLICK, 1.5),
        ("isocheck stats tiny.json", [ISOCHECK, "stats", str(tiny)], NUMPY, 2.0),
    )
    commands = [command for _, command, _, _ in plan]
    in_turns(commands, 1)  # the first time reads the disk
    found = in_turns(commands, 3 if quick else 15)
    seconds = {name: runs.seconds for (name, *_), runs in zip(plan, found, strict=True)}
    cpu = {name: runs.cpu for (name, *_), runs in zip(plan, found, strict=True)}
    return [
        {
            "command": name,
            "seconds": runs.seconds,
            "cpu s": runs.cpu,
            "spread %": round(100 * runs.spread),
            "compared with": reference or "",
            "ratio": runs.seconds / seconds[reference] if reference else None,
            "at most": limit,
            "ratio cpu": runs.cpu / cpu[reference] if reference else None,
        }
        for (name, _, reference, limit), runs in zip(plan, found, strict=True)
    ]
