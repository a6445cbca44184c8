"""The same input and options give the same output, byte for byte, whatever must not matter.

``python -m benchmarks.determinism`` varies more, on more histories, and also the load of the machine.
"""

import os
import re
import subprocess

import pytest
from program import PATIENCE, PROGRAM

from plume_py.history.formats.json_writer import write_lines
from plume_py.history.generate import generate
from plume_py.history.inject import inject

PLANTED = {"both": {"k": 1, "m": 1, "lost-update": 1, "write-skew": 1}, "strong": {"long-fork": 1, "lost-update": 2}}
SETTINGS = [("never", "0"), ("never", "1"), ("always", "2"), ("auto", "3")]
TIMES = re.compile(rb'"seconds":\{[^}]*\}')


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Violated histories: weak and strong patterns, and one in which weak levels are violated everywhere."""
    folder = tmp_path_factory.mktemp("archive")
    for name, patterns in PLANTED.items():
        made = inject(generate("SER", sessions=4, transactions=20, operations=6, keys=30), patterns, 1)[0]
        (folder / f"{name}.jsonl").write_bytes(b"".join(write_lines(made).chunks))
    made = generate("RC", sessions=4, transactions=30, operations=6, keys=20)
    (folder / "rc.jsonl").write_bytes(b"".join(write_lines(made).chunks))
    return folder


def printed(folder, compiled, seed, *arguments):
    """What the program prints, without times, and its exit code."""
    environment = {**os.environ, "ISOCHECK_COMPILE": compiled, "PYTHONHASHSEED": seed}
    run = [*PROGRAM, *arguments]
    done = subprocess.run(run, cwd=folder, env=environment, capture_output=True, timeout=4 * PATIENCE, check=False)
    return TIMES.sub(b"", done.stdout), done.returncode


@pytest.mark.parametrize(
    "command", ["check both.jsonl strong.jsonl rc.jsonl --format json", "watch rc.jsonl --no-follow"]
)
def test_neither_compiling_nor_the_hash_seed_changes_the_output(archive, command):
    outputs = [printed(archive, *setting, *command.split()) for setting in SETTINGS]
    assert outputs[0][1] == 1 and len(outputs[0][0]) > 1000
    assert all(output == outputs[0] for output in outputs)


def test_the_number_of_processes_does_not_change_the_results_of_a_scan(archive, tmp_path):
    results = []
    for jobs in ("1", "3"):
        file = tmp_path / f"{jobs}.jsonl"
        scan = ["scan", str(archive), "--no-times", "--results", str(file), "--jobs", jobs]
        summary, code = printed(archive, "never", "0", *scan)
        assert code == 1
        results.append((summary.split(b"Slowest")[0], file.read_bytes()))
    assert results[0] == results[1]
