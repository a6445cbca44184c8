"""The commands of ``isocheck warm-up`` (cli/warm_up.py) call every kernel that any command can call."""

import ast
import importlib
from pathlib import Path
from typing import ClassVar

import pytest
from paths import ROOT

from plume_py.base.kernels import dispatch
from plume_py.checking.stream import compiled, garbage_collection
from plume_py.cli import warm_up
from plume_py.cli.main import cli

# Kernels that no command of warm-up reaches yet. This may only get shorter.
NOT_YET = {
    "plume_py.reasoning.allocate.pivot_kernels.mark_partners",
    "plume_py.checking.graph.clock_kernels.not_before",
    "plume_py.history.assemble_kernels.intern_versions",
    "plume_py.history.formats.cobra_kernels.parse",
}

PACKAGE = ROOT / "plume_py"


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


KERNELS = [importlib.import_module(module_name(path)) for path in sorted(PACKAGE.rglob("*_kernels.py"))]


def kernels_of(path: Path) -> dict[str, str]:
    """Return the kernel modules that a module imports, by the names that it gives them."""
    names = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if alias.name.endswith("_kernels"):
                    names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def called_from_python() -> set[str]:
    """Return every kernel that a module other than those of kernels names."""
    found = set()
    functions = {f"{module.__name__}.{name}" for module in KERNELS for name, _ in dispatch._functions(module)}
    for path in PACKAGE.rglob("*.py"):
        names = {} if path.name.endswith("_kernels.py") else kernels_of(path)
        for node in ast.walk(ast.parse(path.read_text())) if names else ():
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
                found.add(f"{names[node.value.id]}.{node.attr}")
    return found & functions


class Recorder:
    """Stands for a compiled kernel: it remembers that it was called, and runs as plain Python."""

    called: ClassVar[set[str]] = set()

    def __init__(self, function, folder=None) -> None:
        self.py_func = function
        self.__name__ = function.__name__

    def __call__(self, *arguments):
        Recorder.called.add(f"{self.py_func.__module__}.{self.__name__}")
        return self.py_func(*arguments)


def record_stream(state) -> None:
    """Stand for the compilation of the kernels of the monitor."""
    for module in compiled.KERNELS:
        for name, function in dispatch._functions(module):
            setattr(module, name, Recorder(function))


def test_warm_up_calls_every_kernel_that_commands_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOCHECK_COMPILE", "always")
    monkeypatch.setattr(dispatch, "Kernel", Recorder)
    monkeypatch.setattr(compiled, "_compile", record_stream)
    for module in (compiled, garbage_collection):
        monkeypatch.setattr(module, "handle", lambda state: state)
    monkeypatch.setattr(Recorder, "called", set())
    dispatch.uncompile(*KERNELS)
    try:
        for part, commands in warm_up.PARTS.items():
            folder = tmp_path / part
            folder.mkdir()
            warm_up.write_odd(folder)
            monkeypatch.chdir(folder)
            for words in commands:
                code = cli.main(words.split(), standalone_mode=False)
                assert code in (None, 0, 1), words
    finally:
        dispatch.uncompile(*KERNELS)
    missing = sorted(called_from_python() - Recorder.called - NOT_YET)
    assert not missing, f"add commands to warm_up.PARTS that call {' '.join(missing)}"
