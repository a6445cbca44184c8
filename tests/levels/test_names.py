"""Tests of levels/orders: names of SQL and Jepsen are accepted everywhere; an unknown name suggests the nearest."""

import json

import pytest
from paths import HISTORIES
from program import isocheck

from plume_py import HistoryBuilder, Monitor, check
from plume_py.base.errors import ExitCode, IsocheckError
from plume_py.levels import LEVELS, NAMES
from plume_py.levels.orders import level_request, unknown_level
from plume_py.report.elle import _STRONGER as ELLE_MODELS

NAMES_OF_OTHERS = {
    "repeatable read": "SI", "REPEATABLE_READ": "SI", "snapshot  isolation": "SI", "Snapshot": "SI",
    "serialisable": "SER", "SERIALIZABLE": "SER", "serialisability": "SER", "read committed": "RC",
    "monotonic-atomic-view": "RC", "causal-cerone": "TCC", "consistent view": "PSI", "prefix": "PC",
    "strict serializable": "SSER", "strict-serialisable": "SSER", "strong-serializable": "SSER", "strict-1SR": "SSER",
    "strong snapshot isolation": "StrongSI", "strict snapshot isolation": "StrongSI",
    "strong-session-snapshot-isolation": "StrongSessionSI",
}  # fmt: skip


@pytest.mark.parametrize("spelling, name", NAMES_OF_OTHERS.items())
def test_names_of_sql_and_of_jepsen_are_levels(spelling, name):
    meant = level_request(spelling)
    assert meant is not None and meant.name == name


@pytest.mark.parametrize("name", [alias for level in LEVELS.values() for alias in level.aliases])
def test_a_name_may_be_written_in_several_ways(name):
    assert len({level_request(s) for s in (name, name.upper(), name.replace("-", " "), name.replace("-", "_"))}) == 1


@pytest.mark.parametrize("model", ELLE_MODELS)
def test_a_model_of_elle_is_a_level_only_if_isocheck_decides_it(model):
    """Models between the levels are unknown names: another level in their place would be another question."""
    between = ("uncommitted", "cursor", "monotonic-view", "monotonic-snapshot", "forward", "update")
    assert (level_request(model) is None) == any(word in model for word in between)


@pytest.mark.parametrize(
    "spelling, told",
    [
        ("TTC", "Did you mean TCC?"),
        ("seralizable", "Did you mean serializable?"),
        ("snapshoot", "Did you mean snapshot?"),
        ("cursor stability", "isocheck cannot decide it, because histories do not record cursors."),
        ("READ UNCOMMITTED", "isocheck decides no level that weak."),
        ("xyzzy", f"Use one of {', '.join(NAMES)}."),
    ],
)
def test_an_unknown_name_suggests_the_nearest(spelling, told):
    assert level_request(spelling) is None
    assert unknown_level(spelling) == f"unknown level {spelling!r}. {told}"


@pytest.mark.parametrize(
    "arguments",
    [
        "demo.json --level", "check demo.json --level declared --assume", "scan . --level", "watch demo.json --level",
        "synth --allow", "relate SI", "hierarchy", "explain", "predict smallbank --level", "predict smallbank --target",
        "explore smallbank --level", "generate - --guarantee", "bench --level", "test --managed sqlite --expect",
    ],
)  # fmt: skip
def test_every_command_suggests_a_level(arguments):
    done = isocheck(*arguments.split(), "snapshoot", cwd=HISTORIES)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert "'snapshoot'. Did you mean snapshot?" in done.stderr


def test_levels_of_transactions_accept_all_names(tmp_path):
    path = tmp_path / "h.json"
    for spelling in ("repeatable read", "Serialisable"):
        path.write_text(json.dumps({"sessions": [[{"level": spelling, "ops": [["w", "x", 1]]}]]}))
        assert check(path, "declared").ok
    path.write_text(json.dumps({"sessions": [[{"level": "TTC", "ops": [["w", "x", 1]]}]]}))
    with pytest.raises(IsocheckError, match=r"unknown level 'TTC'\. Did you mean TCC\?"):
        check(path, "declared")


def test_python_suggests_a_level():
    assert Monitor("causal-cerone").levels == ["TCC"]
    history = HistoryBuilder().build()
    for ask in (Monitor, lambda name: check(history, name), lambda name: HistoryBuilder().add("s", [], level=name)):
        with pytest.raises((ValueError, IsocheckError), match=r"unknown level 'TTC'\. Did you mean TCC\?"):
            ask("TTC")
