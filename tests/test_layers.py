"""Packages import one way: the table of docs/architecture.md, checked on every import, lazy and for types included."""

import ast
import re
import runpy
from functools import cache

import pytest
from paths import ROOT

from plume_py.levels import NAMES as LEVEL_NAMES

PACKAGE = ROOT / "plume_py"
PAGE = PACKAGE.parent / "docs" / "architecture.md"

# Package -> the packages that it may import besides itself.
LAYERS = {
    "base": set(),
    "levels": {"base"},
    "history": {"base", "levels"},
    "checking": {"base", "levels", "history"},
    "verify": {"base", "levels", "history"},
    "collect": {"base", "levels", "history"},
    "report": {"base", "levels", "history", "checking"},
    "reasoning": set(),
    "reasoning.synth": {"base", "levels", "history", "checking", "verify", "report"},
    "reasoning.predict": {"base", "levels", "history", "checking", "collect", "report", "reasoning.synth"},
    "reasoning.allocate": {"base", "levels", "history", "checking", "verify", "report", "reasoning.synth"},
    "reasoning.infer": {"base", "levels", "history", "checking", "collect", "report", "reasoning.synth"},
    "scan": {"base", "levels", "history", "checking", "report"},
    "matrix": {"base", "levels", "collect"},
    "bench": {"base", "levels", "report"},
    "api": {"base", "levels", "history", "checking", "report"},
    "testing": {"base", "levels", "history", "checking", "report"},
}
# Inside checking, from the bottom up.
INSIDE = (
    ("declared", "result"),
    ("graph",),
    ("steps",),
    ("violation",),
    ("weak",),
    ("strong",),
    ("verdicts",),
    ("check",),
    ("witness", "minimize", "precompile", "stream", "evidence"),
)

# What is not so yet. This may only get shorter.
EXCEPTIONS: set[tuple[str, str]] = set()


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(parts).removesuffix(".__init__"), path


NAMES = {name for name, _ in modules()}


@cache
def parsed(path):
    return ast.parse(path.read_text())


def imports(path):
    """Every module of ours that a module imports, wherever in it."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "plume_py")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "plume_py":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in NAMES else node.module


@cache
def edges():
    return {(name, target) for name, path in modules() for target in imports(path)}


def package(name):
    parts = name.split(".")[1:]
    return "reasoning." + parts[1] if parts[:1] == ["reasoning"] and len(parts) > 1 else ".".join(parts[:1])


def test_packages_import_one_way():
    against = set()
    for name, target in edges():
        a, b = package(name), package(target)
        if a not in ("", "cli", "__main__") and a != b and b not in LAYERS[a]:
            against.add((name, target))
    assert against == EXCEPTIONS


def test_every_package_has_a_layer():
    assert {package(name) for name in NAMES} - {"", "cli", "__main__"} == set(LAYERS)


def test_the_inside_of_checking_imports_one_way():
    place = {room: at for at, rooms in enumerate(INSIDE) for room in rooms}
    for name, target in edges():
        if package(name) == package(target) == "checking":
            a, b = (place[part.split(".")[2]] if part.count(".") > 1 else -1 for part in (name, target))
            same_room = name.split(".")[2:3] == target.split(".")[2:3]
            assert same_room or b < a, f"{name} imports {target}"


def compares_sessions(node):
    """Is it ``session[a] == session[b]``, whatever the column is called?"""
    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    columns = {ast.unparse(side.value) if isinstance(side, ast.Subscript) else "" for side in sides}
    return len(columns) == 1 and columns.pop().endswith("session")


def test_session_order_is_asked_in_one_place():
    """Of ``shared_kernels`` by kernels, of ``Analysis`` by everybody else who checks."""
    checking = [(name, path) for name, path in modules() if package(name) == "checking"]
    found = {name for name, path in checking if any(map(compares_sessions, ast.walk(parsed(path))))}
    found -= {"plume_py.checking.evidence.evidence"}  # it asks who is the same client, and for no order
    assert found == {"plume_py.checking.graph.shared_kernels", "plume_py.checking.graph.analysis"}


@pytest.mark.parametrize("name", sorted({package(name) for name in NAMES} - {""}))
def test_no_two_packages_import_each_other(name):
    direct = {}
    for source, target in edges():
        if package(source) != package(target) and package(source) and package(target):
            direct.setdefault(package(source), set()).add(package(target))
    reached, todo = set(), [name]
    while todo:
        new = direct.get(todo.pop(), set()) - reached
        reached |= new
        todo += new
    assert name not in reached


# Whoever wants to know something about a level asks levels/table.py. Named they are here only, and this is why.
MAY_NAME_A_LEVEL = {
    "levels.table": "what a level is",
    "levels.patterns": "which level a pattern breaks",
    "levels.databases": "what databases make of it",
    "checking.weak.decide": "kernels per level",
    "checking.stream.level_kernels": "a piece of kernel per level",
    "checking.stream.ingest_kernels": "the first and the last of the stream's levels",
    "checking.stream.garbage_collection": "what one of the stream's levels still looks at",
    "reasoning.synth.formulas": "levels as formulas, restated on purpose",
    "reasoning.synth.comparison": "what is compared by default, in the order of the page, with levels of synth alone",
    "reasoning.allocate.rules": "a theorem, as it is published",
    "verify.claims": "levels restated on purpose: the second opinion",
    "verify.strong": "levels restated on purpose: the second opinion",
    "verify.violations": "levels restated on purpose: the second opinion",
    "verify.witness": "levels restated on purpose: the second opinion",
}


def words(tree):
    """Its strings but docstrings, and its names of variables and attributes."""
    expressions = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in expressions:
            yield node.value
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def test_levels_are_named_in_few_places():
    naming = {
        name.removeprefix("plume_py.")
        for name, path in modules()
        if any(word in LEVEL_NAMES for word in words(parsed(path)))
    }
    assert naming == set(MAY_NAME_A_LEVEL)


def test_the_page_lists_every_file():
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    assert PAGE.read_text() == generate["architecture_page"](), "run docs/generate.py"


def test_no_modules_import_each_other_in_a_circle():
    """Inside packages, too. A package's ``__init__``, which collects names, does not count."""
    direct = {}
    for name, target in edges():
        direct.setdefault(name, set()).add(target)
    waiting = {name: {target for target in targets if target != name} for name, targets in direct.items()}
    while free := [name for name in waiting if not waiting[name] & waiting.keys()]:
        for name in free:
            del waiting[name]
    assert waiting == {}


def test_every_path_on_the_page_is_there():
    """Names with a placeholder in capitals stand for files to come."""
    paths = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+(?:\.py|/)?)`", PAGE.read_text()))
    roots = (PACKAGE, PACKAGE.parent, PACKAGE / "checking")
    assert sorted(path for path in paths if not any((root / path).exists() for root in roots)) == []
