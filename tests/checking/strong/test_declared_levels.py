"""Declared levels (checking/declared, solver/engine): against the oracle, against single levels, and by example."""

import json
import random

import numpy as np
import oracle
import oracle_mixed
import pytest
from click.testing import CliRunner
from small_histories import build, close, crowded, random_lists

from plume_py import HistoryBuilder, check, load
from plume_py.base.errors import InputError
from plume_py.base.kernels import dispatch
from plume_py.checking.declared import LevelMap, read_level_map, transaction_levels
from plume_py.checking.graph.analysis import Analysis
from plume_py.checking.strong.solver import greedy_order_kernels, saturation_kernels
from plume_py.checking.strong.solver.engine import StrongEngine
from plume_py.checking.witness import visibility
from plume_py.cli.main import cli
from plume_py.history.generate import generate
from plume_py.levels import NAMES
from plume_py.verify import read_claim, verify_entry, verify_witness
from plume_py.verify.claims import WitnessClaim


def codes_of(levels, transactions):
    """Levels by transaction as codes; transactions that do not count may have none."""
    return np.array([1 + NAMES.index(levels.get(t, "RC")) for t in range(transactions)], np.uint8)


def compare(seed, count, make=close, initial=0):
    rng = random.Random(seed)
    compared = 0
    while compared < count:
        sessions = make(rng)
        try:
            facts = oracle.Facts(sessions, initial)
        except ValueError:  # ambiguous: not a history
            continue
        if facts.found & oracle.BASE:
            continue
        levels = oracle_mixed.random_levels(rng, facts)
        analysis = Analysis(build(sessions, initial))
        codes = codes_of(levels, analysis.history.transactions)
        engine = StrongEngine(analysis, codes)
        decision = engine.decide()
        assert decision.ok == oracle_mixed.holds(facts, levels), (levels, sessions)
        if decision.ok:
            claim = witness(analysis, engine, codes, decision)
            assert verify_witness(analysis.history, claim) == [], (levels, sessions)
        compared += 1


def witness(analysis, engine, codes, decision):
    from plume_py.checking.strong.solver.layout import SolverColumns

    return WitnessClaim(
        level="declared",
        order=[analysis.history.txn_label[t] for t in decision.order],
        levels=[NAMES[code - 1] for code in codes[decision.order]],
        sees=visibility(SolverColumns(analysis, codes), decision.order),
    )


@pytest.mark.parametrize("make", [close, crowded])
def test_random_levels_agree_with_the_oracle(make):
    compare(1, 400, make)


def test_random_levels_on_lists_agree_with_the_oracle():
    compare(2, 200, random_lists, None)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 150))
def test_100_000_random_levels_agree_with_the_oracle(seed):
    compare(seed, 2000, crowded if seed % 4 == 0 else close)


def test_compiled_kernels_agree_with_the_oracle(monkeypatch):
    monkeypatch.setenv("ISOCHECK_COMPILE", "always")
    try:
        compare(3, 300)
    finally:
        dispatch.uncompile(saturation_kernels, saturation_kernels, greedy_order_kernels)


@pytest.mark.parametrize("level", oracle_mixed.LEVELS)
def test_one_level_for_all_is_that_level(level):
    """By the mixed engine itself, and by ``check``."""
    rng = random.Random(level)
    compared = 0
    while compared < 60:
        sessions = close(rng)
        facts = oracle.Facts(sessions)
        if facts.found & oracle.BASE:
            continue
        analysis = Analysis(build(sessions))
        codes = np.full(analysis.history.transactions, 1 + NAMES.index(level), np.uint8)
        assert StrongEngine(analysis, codes).decide().ok == oracle.satisfies(facts, level), sessions
        result = check(analysis.history, ["declared", level], assume=level)
        assert result.levels["declared"] == result.levels[level], sessions
        compared += 1


def test_stronger_levels_never_help():
    rng = random.Random(9)
    for _ in range(100):
        sessions = close(rng)
        facts = oracle.Facts(sessions)
        if facts.found & oracle.BASE:
            continue
        analysis = Analysis(build(sessions))
        levels = oracle_mixed.random_levels(rng, facts)
        codes = codes_of(levels, analysis.history.transactions)
        stronger = codes.copy()
        stronger[rng.randrange(len(codes))] = 1 + NAMES.index("SER")
        if StrongEngine(analysis, stronger).decide().ok:
            assert StrongEngine(analysis, codes).decide().ok, (levels, sessions)


def deposits(second):
    """Two deposits that read the same balance; the second one runs at ``second``."""
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("r", "x", 0), ("w", "x", 1)], id="first", level="SI")
    builder.add("b", [("r", "x", 0), ("w", "x", 2)], id="second", level=second)
    return builder.build()


def test_a_lost_update_is_fine_at_pc_and_not_at_si():
    assert check(deposits("PC"), "declared").levels["declared"].ok
    result = check(deposits("SI"), "declared")
    assert result.levels["declared"].taps == ("lost-update",)


def test_a_violation_of_declared_levels_is_proved_again():
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("r", "x", 0), ("r", "y", 0), ("w", "x", 1)], id="T1", level="SI")
    builder.add("b", [("r", "x", 0), ("r", "y", 0), ("w", "y", 1)], id="T2", level="SER")
    builder.add("c", [("r", "x", 0), ("r", "y", 1)], id="T3", level="PC")
    history = builder.build()
    assert check(history, "declared").levels["declared"].ok
    assert not check(history, "declared", level_map=LevelMap({"T1": "SER"})).levels["declared"].ok
    from plume_py.report.json import line

    result = check(history, "declared", level_map=LevelMap({"T1": "SER"}), name="h")
    assert result.violations
    assert verify_entry(history, read_claim(line(result).encode())[0]) == []


def test_where_levels_come_from():
    history = deposits("PC")
    names = lambda codes: [NAMES[code - 1] if code else None for code in codes]  # noqa: E731
    assert names(transaction_levels(history)) == ["SI", "PC"]
    by_session = LevelMap(sessions={"b": "RA"}, transactions={"first": "RC"})
    assert names(transaction_levels(history, by_session)) == ["RC", "RA"]
    bare = generate("SER", sessions=1, transactions=2, operations=1, keys=1)
    assert names(transaction_levels(bare)) == [None, None]
    assert names(transaction_levels(bare, assume="SI")) == ["SI", "SI"]
    for wrong in (LevelMap(sessions={"nobody": "SI"}), LevelMap(transactions={"nobody": "SI"})):
        with pytest.raises(InputError, match="nobody"):
            transaction_levels(history, wrong)


def test_transactions_without_a_level_leave_it_undecided():
    history = generate("SER", sessions=2, transactions=2, operations=1, keys=1)
    verdict = check(history, "declared").levels["declared"]
    assert verdict.ok is None
    assert "--assume" in verdict.reason
    partly = HistoryBuilder(initial=0)
    partly.add("a", [("r", "x", 0), ("w", "x", 1)], level="SER")
    partly.add("b", [("r", "x", 0), ("w", "x", 2)], level="SER")
    partly.add("c", [("r", "x", 0)])
    result = check(partly.build(), "declared")
    assert result.levels["declared"].ok is None
    assert not result.violations


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"sessions":{"a":"SSER"}}', '{"sessions":{"a":"CI"}}', '{"session":{}}', '{"sessions":{"a":3}}'],
)
def test_bad_level_files(text, tmp_path):
    path = tmp_path / "levels.json"
    path.write_text(text)
    with pytest.raises(InputError, match="level"):
        read_level_map(str(path))


def test_declared_levels_from_the_command_line(tmp_path):
    from plume_py.history.formats.json_writer import write_json

    path, levels, shown = tmp_path / "h.json", tmp_path / "levels.json", tmp_path / "witness.json"
    path.write_bytes(b"".join(write_json(deposits("PC")).chunks))
    levels.write_text(json.dumps({"transactions": {"second": "si"}}))
    run = lambda *arguments: CliRunner().invoke(cli, list(map(str, arguments)))  # noqa: E731
    assert run("check", path, "--level", "declared", "--witness", shown).exit_code == 0
    assert run("verify", path, shown).exit_code == 0
    changed = json.loads(shown.read_text())
    changed["levels"] = ["SI", "SI"]
    shown.write_text(json.dumps(changed))
    assert run("verify", path, shown).exit_code == 1
    assert run("check", path, "--level", "declared", "--levels-file", levels).exit_code == 1
    assert run("check", path, "--level", "SI", "--assume", "RC").exit_code == 2
    assert run("check", path, "--level", "declared", "--assume", "nonsense").exit_code == 2
    assert run("check", path, "--level", "declared", "--levels-file", tmp_path / "none").exit_code == 4
    assert load(str(path)).txn_level is not None


def test_a_levels_file_in_another_encoding_is_bad_input(tmp_path):
    path = tmp_path / "levels.json"
    path.write_bytes(b'{"transactions": {"T1": "\xff"}}')
    with pytest.raises(InputError, match="level"):
        read_level_map(str(path))


def test_a_levels_file_that_says_two_things_is_bad_input(tmp_path):
    path = tmp_path / "levels.json"
    path.write_text('{"transactions": {"T1": "RC", "T1": "SI"}}')
    with pytest.raises(InputError, match="given twice in one object"):
        read_level_map(str(path))


def test_transactions_without_a_level_are_named(tmp_path):
    from plume_py.history.formats.json_writer import write_json

    path, levels = tmp_path / "h.json", tmp_path / "levels.json"
    path.write_bytes(b"".join(write_json(deposits("PC")).chunks))
    levels.write_text('{"transactions": {"third\\u001b": "SI"}}')
    result = CliRunner().invoke(cli, ["check", str(path), "--level", "declared", "--levels-file", str(levels)])
    assert result.exit_code == 4
    assert f"{path}: no transaction has the id 'third\\x1b'" in result.stderr


def test_one_transaction_without_a_level():
    builder = HistoryBuilder(initial=0)
    builder.add("a", [("r", "x", 0)], id="alone")
    reason = check(builder.build(), "declared").levels["declared"].reason
    assert reason.startswith("1 transaction carries no level (alone)")
