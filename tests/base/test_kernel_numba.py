"""Tests of base/kernels on an installed numba: compile in one process, link in another one without importing numba.

ISOCHECK_NUMBA_PYTHONS may list further Python interpreters, separated as in PATH, each with another supported version
of numba. Every test then runs on each of them.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT
from program import PATIENCE

PYTHONS = [sys.executable, *filter(None, os.environ.get("ISOCHECK_NUMBA_PYTHONS", "").split(os.pathsep))]

KERNELS = """
import sys
from typing import NamedTuple
import numpy as np
import inner_kernels

class Pair(NamedTuple):
    low: np.ndarray
    high: np.ndarray

def total(a):
    s = 0
    for i in range(len(a)):
        s += i * a[i]
    return s

def corner(a):
    return a[0, 0] * 100 + a[0, 1] * 10 + a[1, 0]

def twice(n):
    return n + n

def nothing(n):
    return n is None

def swap(pair, k):
    return Pair(pair.high, pair.low + k), total(pair.low)

def fresh(n):
    out = np.zeros(n, np.int64)
    for i in range(n):
        out[i] = i
    return out, out[1:]

def through(n):
    return inner_kernels.shifted(n) + inner_kernels.shifted(1)

def checked(n):
    if n < 0:
        raise ValueError("negative")
    return n
"""
INNER_KERNELS = """
SHIFT = 40

def shifted(n):
    return n + SHIFT
"""
CALL_KERNELS = """
import sys
sys.path.insert(0, sys.argv[1])
from plume_py.base.kernels import dispatch
import odd_kernels as k
import numpy as np
dispatch.prepare(0, k)
three = np.arange(6).reshape(2, 3)
frozen = np.arange(4)
frozen.flags.writeable = False
said = [k.total(np.array([5, 6, 7], kind)) for kind in (np.int32, np.int64, np.uint8, np.float64)]
said += [k.total(np.arange(9)[::2]), k.total(frozen), k.total(np.arange(0))]
said += [k.total(np.frombuffer(bytes([3, 1, 2]), np.uint8))]
said += [k.corner(three), k.corner(np.asfortranarray(three)), k.corner(three[:, ::2]), k.corner(three.T)]
said += [k.twice(3), k.twice(-4), k.twice(1.5), k.twice(np.int32(7)), k.twice(True), k.twice(2**62 - 1)]
said += [k.nothing(None), k.nothing(3)]
pair, sum_ = k.swap(k.Pair(np.arange(3), np.arange(3, 6)), 2)
said += [type(pair).__name__, pair.low.tolist(), pair.high.tolist(), sum_]
out, part = k.fresh(4)
del out
said += [part.tolist(), k.through(2), k.checked(5)]
try:
    k.checked(-1)
except ValueError as error:
    said += [str(error)]
print(said)
print(sum(getattr(value, "compiled", 0) for value in vars(k).values()), "numba" in sys.modules)
"""


NUMBA_ITSELF = """
import sys
sys.path.insert(0, sys.argv[1])
from plume_py.base.kernels import dispatch
import odd_kernels as k
kernel = dispatch.compiler(k)(k.twice)
print([kernel(3), kernel(1.5)])
print(sum(kernel.stats.cache_misses.values()))
"""


@pytest.fixture(params=PYTHONS)
def run(request, tmp_path: Path):
    """Return a function that runs a script in a new process of one interpreter and returns the lines that it prints."""
    (tmp_path / "odd_kernels.py").write_text(KERNELS)
    (tmp_path / "inner_kernels.py").write_text(INNER_KERNELS)

    def run(script: str, mode: str) -> list[str]:
        environment = {**os.environ, "ISOCHECK_COMPILE": mode, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        environment["PYTHONPATH"] = str(ROOT)
        command = [request.param, "-B", "-c", script, str(tmp_path)]
        done = subprocess.run(command, env=environment, check=True, timeout=PATIENCE, capture_output=True, text=True)
        assert not done.stderr
        return done.stdout.splitlines()

    return run


def test_linked_machine_code_gives_the_same_result_for_every_type_of_argument(run) -> None:
    plain, _ = run(CALL_KERNELS, "never")
    compiled, made = run(CALL_KERNELS, "always")
    linked, again = run(CALL_KERNELS, "always")
    names = {"np": np}
    assert eval(compiled, names) == eval(plain, names) == eval(linked, names)
    assert made.endswith("True") and int(made.split()[0]) >= 15
    assert again == "0 False", "numba is not even imported"


def test_functions_that_numba_compiles_itself_are_read_from_the_checked_cache(run) -> None:
    assert run(NUMBA_ITSELF, "always") == ["[6, 3.0]", "2"]
    assert run(NUMBA_ITSELF, "always") == ["[6, 3.0]", "0"]


def test_only_dispatch_is_used_outside_the_package() -> None:
    inner = ("kernels.compile", "kernels.link", "kernels.cache", "kernels import compile", "kernels import link")
    package = ROOT / "plume_py"
    modules = [path for path in package.rglob("*.py") if path.parent != package / "base" / "kernels"]
    assert not [path for path in modules if any(name in path.read_text() for name in inner)]
