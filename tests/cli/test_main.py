"""The command line (cli/main.py, small commands): exit codes, one line per bad input, escaped output, quick start."""

import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from paths import HISTORIES
from program import PATIENCE, PROGRAM

from plume_py import __version__
from plume_py.base.errors import ExitCode, combined
from plume_py.cli import main as main_module
from plume_py.cli.main import COMMANDS, main
from plume_py.history.formats.registry import FORMATS

SMALL = '{"initial":0,"sessions":[[{"ops":[["w","x",1]]}],[{"ops":[["r","x",1],["r","y",0]]}]]}'


class Run:
    """What a run printed, and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        assert "Traceback" not in err


@pytest.fixture
def isocheck(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Run the command line in this process."""

    def run(*args: object) -> Run:
        monkeypatch.setattr(sys, "argv", ["isocheck", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capfd.readouterr()
        return Run(int(ended.value.code or 0), printed.out, printed.err)

    return run


def process(*args: object, stdin: bytes = b"", **how: object) -> Run:
    """Run the command line in a process of its own."""
    command = [*PROGRAM, *args]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE, check=False, **how)
    return Run(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode())


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(SMALL)
    return path


# bad input

CUT = gzip.compress(SMALL.encode() * 50)[:-20]
AMBIGUOUS = "w(1,5,0,0)\nw(2,5,0,0)\nw(1,5,1,1)\nr(1,5,2,2)\n"
MIXED = '{"sessions":[[{"ops":[["w","x",1]]},{"ops":[["append","x",2]]}]]}'
BAD = {
    "empty.json": (b"", "the file is empty"),
    "blank.json": (b" \n ", "the JSON ends too early"),
    "truncated.json": (SMALL[:40].encode(), "the JSON ends too early"),
    "wide.json": (SMALL.encode("utf-16"), "malformed JSON"),
    "latin.json": (SMALL.replace("x", "é").encode("latin-1"), "UTF-8"),
    "deep.json": (b'{"x":' + b"[" * 100_000, "nested too deeply"),
    "large.json": (SMALL.replace("1", "9" * 5_000, 1).encode(), "out of range"),
    "long.json": (SMALL.replace("1", "9" * 4_000, 1).encode(), "more than 4000 digits"),
    "large.txt": (b"w(1,99999999999999999999,0,0)\n", "line 1: a number does not fit in 64 bits"),
    "ambiguous.txt": (AMBIGUOUS.encode(), "which two transactions wrote: T0 (line 1) and T1 (line 3)"),
    "sessions.txt": (b"w(1,1,0,7)\nw(2,1,1,7)\n", "line 2: this transaction id was used in another session before"),
    "mixed.json": (MIXED.encode(), "sessions[0][0]: key 'x' is used both as a list and as a register"),
    "level.json": (SMALL.replace('"ops"', '"level":"best","ops"', 1).encode(), "unknown level 'best'"),
    "cut.json.gz": (CUT, "the gzip data ends too early"),
    "broken.json.xz": (b"\xfd7zXZ\x00" + bytes(50), "broken xz data"),
    "broken.json.zst": (b"\x28\xb5\x2f\xfd" + b"\xff" * 50, "broken zstd data"),
    "prose.md": (b"# A title\n\nand text\n", "not a history in any known format"),
    "log.edn": (b"{:type :ok, :process 0, :value [[:w 1 2]", "a bracket that is never closed"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("how", [["stats"], ["convert"]], ids=" ".join)
def test_bad_input_is_one_line_and_exit_4(name: str, how: list[str], tmp_path: Path, isocheck) -> None:
    content, problem = BAD[name]
    (tmp_path / name).write_bytes(content)
    run = isocheck(*how, tmp_path / name, *([tmp_path / "out.json"] if how == ["convert"] else []))
    assert (run.code, run.out) == (ExitCode.BAD_INPUT, "")
    assert run.err.count("\n") == 1 and run.err.endswith("\n")
    assert run.err.startswith(f"isocheck: {tmp_path / name}")
    assert problem in run.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_a_missing_file_and_a_folder_of_other_files_are_bad_input(tmp_path: Path, isocheck) -> None:
    run = isocheck("stats", tmp_path / "none.json", tmp_path)
    assert run.code == ExitCode.BAD_INPUT
    first, second = run.err.splitlines()
    assert first == f"isocheck: {tmp_path / 'none.json'}: No such file or directory"
    assert second == (
        f"isocheck: {tmp_path}: a folder, and not one history; "
        "name the histories in it, or check them all with `isocheck scan`"
    )


def test_a_folder_that_cannot_be_listed_is_bad_input(tmp_path: Path, isocheck, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    assert isocheck("stats", tmp_path).err == f"isocheck: {tmp_path}: Permission denied\n"


def test_a_folder_with_one_history_inside_is_that_history(tmp_path: Path, isocheck) -> None:
    (tmp_path / "history.edn").write_text("{:type :ok, :process 0, :f :txn, :value [[:append 1 2]]}\n")
    (tmp_path / "results.edn").write_text("{:valid? true}")
    assert "edn" in isocheck("stats", tmp_path).out


@pytest.mark.parametrize(
    "args",
    [
        ["stats"],
        ["stats", "h.json", "--format", "xml"],
        ["stats", "h.json", "--input-format", "unheard-of"],
        ["stats", "h.json", "--init-txn", "last"],
        ["convert", "h.json"],
        ["convert", "h.json", "h.unheard-of"],
        ["convert", "h.json", "-"],
        ["convert", "h.json", "out", "--to", "cobra"],
        ["--unheard-of"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_2(args: list[str], isocheck) -> None:
    run = isocheck(*args)
    assert (run.code, run.out) == (ExitCode.USAGE, "")
    assert "Error: " in run.err


@pytest.mark.parametrize(
    "word, meant",
    [("chekc", "check"), ("Check", "check"), ("warmup", "warm-up"), ("verfy", "verify"), ("tset", "test"),
     ("help", "--help")],
)  # fmt: skip
def test_a_mistyped_command_is_not_a_history(word: str, meant: str, isocheck, small: Path) -> None:
    run = isocheck(word, small)
    assert (run.code, run.out) == (ExitCode.USAGE, "")
    assert run.err == f"isocheck: no command and no file is named {word!r}. Did you mean {meant!r}?\n"


def test_a_file_with_the_name_of_a_mistyped_command_is_read(isocheck, small: Path, monkeypatch) -> None:
    monkeypatch.chdir(small.parent)
    small.rename("chekc")
    assert isocheck("chekc").code == ExitCode.HOLDS
    for name in ("check.json", "./chekk", "results", "-"):  # these are files, even if they are missing
        assert isocheck(name).code == ExitCode.BAD_INPUT


def test_every_file_is_processed_and_the_worst_counts(small: Path, isocheck) -> None:
    run = isocheck("stats", small, small.with_name("none"), small, "--format", "jsonl")
    assert run.code == ExitCode.BAD_INPUT
    results = [json.loads(line) for line in run.out.splitlines()]
    assert [result["error"] is None for result in results] == [True, False, True]
    assert run.err.count("\n") == 1


@pytest.mark.parametrize(
    ("codes", "worst"), [([], 0), ([0, 0], 0), ([0, 3], 3), ([3, 1, 0], 1), ([1, 4, 3], 4), ([0, 4], 4)]
)
def test_exit_codes_combine(codes: list[int], worst: int) -> None:
    assert combined(map(ExitCode, codes)) == worst


# good input


def test_stats_as_text(small: Path, isocheck) -> None:
    run = isocheck("stats", small)
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[0] == str(small)
    facts = dict(line.strip().split(maxsplit=1) for line in lines[1:])
    assert facts["sessions"] == "2 (longest: 1 transaction)"
    assert facts["transactions"] == "2 (all committed)"
    assert facts["operations"] == "3 (2 reads, 1 write; 67% reads)"
    assert facts["initial"] == "state implicit, shown as 0; 1 read sees it"


def test_stats_as_json(small: Path, isocheck) -> None:
    run = isocheck("stats", small, "--format", "json")
    answer = json.loads(run.out)
    assert answer["tool"] == {"name": "isocheck", "version": __version__}
    (result,) = answer["results"]
    assert (result["history"], result["error"]) == (str(small), None)
    found = result["stats"]
    assert (found["format"], found["sessions"], found["transactions"], found["operations"]) == ("json", 2, 2, 3)
    assert (found["initial_value"], found["initial_reads"], found["keys"]) == (0, 1, 2)
    assert found["hot_keys"] == [["x", 2], ["y", 1]]


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_stats_as_json_contain_no_control_characters(tmp_path: Path, isocheck, output: str) -> None:
    path = tmp_path / "h.json"
    path.write_text(json.dumps({"sessions": [[{"ops": [["w", "\x9b2J\u202e", 1]]}]]}))
    printed = isocheck("stats", path, "--format", output).out.rstrip("\n")
    assert printed.isprintable()
    (result,) = json.loads(printed)["results"] if output == "json" else [json.loads(printed)]
    assert result["stats"]["hot_keys"] == [["\x9b2J\u202e", 1]]


def test_stats_print_outcomes_levels_lists_and_an_initial_transaction(tmp_path: Path, isocheck) -> None:
    first = {"id": "init", "ops": [["w", "x", 1]]}
    rest = [{"ops": [["r", "x", 1]], "status": "aborted", "level": "SI"}, {"ops": [], "status": "unknown"}]
    (tmp_path / "a.json").write_text(json.dumps({"sessions": [[first], rest]}))
    out = isocheck("stats", tmp_path / "a.json").out
    for part in ("(1 committed, 1 aborted, 1 unknown)", "SI 1", "set by transaction init; 1 read sees it"):
        assert part in out
    (tmp_path / "b.json").write_text('{"sessions":[[{"ops":[["append","x",1]]}]]}')
    assert "1 (1 hold lists)" in isocheck("stats", tmp_path / "b.json").out


def test_init_txn_and_input_format_override(tmp_path: Path, isocheck) -> None:
    path = tmp_path / "h.txt"
    path.write_text("w(1,5,0,0)\nr(1,5,1,1)\n")
    assert "set by transaction 0" in isocheck("stats", path).out
    assert "implicit, shown as 0; 0 reads" in isocheck("stats", path, "--init-txn", "none").out
    assert isocheck("stats", path, "--input-format", "json").code == ExitCode.BAD_INPUT


def test_lists_of_formats_and_levels(isocheck) -> None:
    out = isocheck("formats").out
    assert [line.split()[0] for line in out.splitlines()] == list(FORMATS)
    assert "SER  serializability (above SI)" in isocheck("levels").out


# convert


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.writer])
def test_convert_writes_what_loads_again(name: str, tmp_path: Path, isocheck) -> None:
    (tmp_path / "in.txt").write_text("w(1,5,0,0)\nr(1,5,1,1)\nr(2,0,1,1)\n")
    run = isocheck("convert", tmp_path / "in.txt", tmp_path / "out", "--to", name)
    assert (run.code, run.out) == (0, "")
    assert json.loads(isocheck("stats", tmp_path / "out", "--format", "jsonl").out)["stats"]["format"] == name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out"]


def test_the_extension_chooses_the_format(small: Path, isocheck) -> None:
    assert isocheck("convert", small, small.with_name("out.edn")).code == 0
    assert small.with_name("out.edn").read_text().startswith("{:index 0, :type :ok")


def test_a_failed_conversion_says_why_and_writes_no_file(small: Path, isocheck) -> None:
    old = small.with_name("old.txt")
    old.write_text("as it was")
    run = isocheck("convert", small, old)
    assert (run.code, run.out) == (ExitCode.BAD_INPUT, "")
    assert run.err == (
        f"isocheck: cannot write {small} as plume: Plume text has only non-negative 64-bit integers, and a key is 'x'\n"
    )
    assert old.read_text() == "as it was"
    assert sorted(path.name for path in small.parent.iterdir()) == ["old.txt", "small.json"]


def test_a_failed_conversion_writes_nothing_to_standard_output(small: Path, isocheck) -> None:
    run = isocheck("convert", small, "-", "--to", "dbcop")
    assert (run.code, run.out) == (ExitCode.BAD_INPUT, "")


def test_a_note_names_what_the_target_format_loses(tmp_path: Path, isocheck) -> None:
    (tmp_path / "in.json").write_text('{"sessions":[[{"id":"a","ops":[["w",1,2]]}]]}')
    run = isocheck("convert", tmp_path / "in.json", tmp_path / "out.txt", "--quiet")
    assert (run.code, run.err) == (0, "note: transactions are numbered from 0, as this format has no other ids\n")


def test_a_target_that_cannot_be_written_is_one_line(small: Path, isocheck) -> None:
    run = isocheck("convert", small, small.with_name("none") / "out.json")
    assert run.code == ExitCode.USAGE
    assert run.err == f"isocheck: cannot write {small.with_name('none') / 'out.json'}: No such file or directory\n"
    small.with_name("folder").mkdir()
    assert isocheck("convert", small, small.with_name("folder"), "--to", "json").code == ExitCode.USAGE
    assert sorted(path.name for path in small.parent.iterdir()) == ["folder", "small.json"]


# pipes and processes


def test_dash_is_standard_input_and_output(small: Path) -> None:
    run = process("convert", "-", "-", "--to", "jsonl", stdin=gzip.compress(SMALL.encode()))
    assert (run.code, run.err) == (0, "")
    assert process("stats", "-", stdin=run.out.encode()).out.splitlines()[2].split()[1] == "2"
    assert process("stats", "-", stdin=b"").err == (
        'isocheck: standard input: the file is empty; an empty history is written {"sessions": []}\n'
    )


def test_closed_standard_input_is_bad_input() -> None:
    run = process("stats", "-", preexec_fn=lambda: os.close(0))
    assert (run.code, run.err) == (ExitCode.BAD_INPUT, "isocheck: standard input: it is closed\n")


@pytest.mark.parametrize("format", ["json", "jsonl", "plume"])
def test_a_named_pipe_is_read_like_a_file(format: str, tmp_path: Path, isocheck) -> None:
    """As in `isocheck stats <(zcat history.json.gz)`."""
    texts = {"json": SMALL, "jsonl": '{"session":0,"ops":[["w",1,2]]}\n', "plume": "w(1,2,0,0)\n"}
    os.mkfifo(tmp_path / "pipe")
    filling = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(texts[format]))
    filling.start()
    run = isocheck("stats", tmp_path / "pipe")
    filling.join()
    assert (run.code, run.err) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("args", [["stats"], ["convert", "-", "--to", "json"]], ids=lambda args: args[0])
def test_a_full_disk_is_one_line(args: list[str], small: Path) -> None:
    command = [*PROGRAM, args[0], str(small), *args[1:]]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert done.returncode == ExitCode.USAGE
    assert done.stderr == b"isocheck: cannot write the results: No space left on device\n"


@pytest.mark.parametrize("args", [["stats"], ["stats", "--format", "json"], ["convert"]], ids=" ".join)
def test_a_closed_output_pipe_does_not_end_in_the_exit_code_of_a_violation(args: list[str], small: Path, child) -> None:
    command = [*PROGRAM, *args, str(small), *(["-", "--to", "json"] if args == ["convert"] else [])]
    running = child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    running.stdout.close()  # before anything is written
    assert running.stderr.read() == b""
    assert running.wait(PATIENCE) == 141


# hostile text

ESCAPES = "\x1b[31mred\x07\u202e\r\nx"


def harmless(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


def test_hostile_keys_and_values_reach_the_terminal_as_escapes(tmp_path: Path, isocheck) -> None:
    sessions = [[{"id": ESCAPES, "ops": [["w", ESCAPES, ESCAPES]]}], [{"ops": [["r", ESCAPES, ESCAPES]]}]]
    (tmp_path / "h.json").write_text(json.dumps({"sessions": sessions}))
    run = isocheck("stats", tmp_path / "h.json")
    assert run.code == 0 and harmless(run.out)
    assert "\\x1b[31mred" in run.out
    sessions.append([{"ops": [["w", ESCAPES, ESCAPES]]}])
    (tmp_path / "h.json").write_text(json.dumps({"sessions": sessions}))
    run = isocheck("stats", tmp_path / "h.json")
    assert run.code == 4 and run.err.count("\n") == 1 and harmless(run.err)
    (tmp_path / "h.json").write_text(json.dumps({"sessions": [[{"level": ESCAPES, "ops": []}]]}))
    run = isocheck("stats", tmp_path / "h.json")
    assert run.code == 4 and run.err.count("\n") == 1 and harmless(run.err)


def test_hostile_file_names_reach_the_terminal_as_escapes(small: Path, isocheck) -> None:
    hostile = small.rename(small.with_name(f"{ESCAPES}.json"))
    for run in (isocheck("stats", hostile), isocheck("stats", f"{hostile}.none")):
        assert harmless(run.out + run.err)
        assert "\\x1b[31mred" in run.out + run.err
    assert harmless(isocheck("convert", "a", "b", hostile).err)


def test_hostile_file_names_are_exact_in_json(small: Path, isocheck) -> None:
    hostile = small.rename(small.with_name(f"{ESCAPES}.json"))
    assert json.loads(isocheck("stats", hostile, "--format", "jsonl").out)["history"] == str(hostile)


@pytest.mark.parametrize("output", ["text", "json", "jsonl"])
def test_file_names_that_are_not_valid_unicode(output: str, small: Path) -> None:
    odd = os.fsencode(small.parent) + b"/\xff.json"
    os.rename(small, odd)
    run = process("stats", odd, os.fsencode(small.parent) + b"/\xfe", "--format", output)
    assert run.code == 4 and run.err.count("\n") == 1
    assert "\\udcff.json" in run.out and "\\udcfe" in run.err


def test_a_terminal_encoding_with_few_characters(tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text(SMALL.replace("x", "é🙂"))
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    run = process("stats", tmp_path / "h.json", env=environment)
    assert run.code == 0 and "\\U0001f642 (2)" in run.out
    run = process("stats", tmp_path / "h.json", "--format", "jsonl", env=environment)
    assert json.loads(run.out)["stats"]["hot_keys"][0] == ["é🙂", 2]


# a quick start


def modules(*args: object) -> set[str]:
    """The modules that a run imports."""
    code = (
        "import sys\nfrom plume_py.cli.main import main\ntry:\n main()\nfinally:\n print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "args", [["--help"], ["--version"], ["formats"], *([name, "--help"] for name in COMMANDS)], ids=" ".join
)
def test_commands_without_a_history_import_neither_numpy_nor_numba(args: list[str]) -> None:
    assert not modules(*args) & {"numpy", "numba", "msgspec"}


def test_small_histories_import_no_numba(small: Path) -> None:
    found = modules("stats", small)
    assert "numpy" in found and "numba" not in found


def test_without_pictures_the_graphviz_package_is_not_imported(tmp_path: Path) -> None:
    demo = HISTORIES / "demo.json"
    code = "import sys\nfrom plume_py.cli.main import main\ntry:\n main()\nfinally:\n print('graphviz' in sys.modules)"
    for options, drawn in ([], False), (["--format", "json"], False), (["--out", tmp_path], True):
        done = subprocess.run(
            [sys.executable, "-c", code, demo, *options], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 1 and done.stdout.splitlines()[-1] == str(drawn)


def test_help_and_version(isocheck) -> None:
    assert isocheck("--version").out == f"isocheck {__version__}\n"
    run = isocheck("--help")
    assert run.code == 0 and all(name in run.out for name in COMMANDS)


@pytest.mark.parametrize("compile", ["never", "always"])
@pytest.mark.parametrize(
    "arguments, code",
    [
        (["generate", "-", "--to", "json", "--sessions", "2"], 0),
        (["check", "-"], 1),
        (["stats", "no-such-file"], 4),
    ],
)
def test_the_installed_command_ends_with_the_code_of_the_outcome(arguments, code, compile):
    """It leaves without taking down numba, so the exit code and the output have to be right by themselves."""
    program = Path(sys.executable).with_name("isocheck")
    history = '{"sessions":[[{"ops":[["w","x",1]]},{"ops":[["r","x",null]]}]]}'
    environment = {**os.environ, "ISOCHECK_COMPILE": compile}
    done = subprocess.run([program, *arguments], input=history, capture_output=True, text=True, env=environment)
    assert done.returncode == code
    assert bool(done.stdout) == (code != 4)


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_closed_stream_changes_no_exit_code(closed, tmp_path):
    program = Path(sys.executable).with_name("isocheck")
    good = tmp_path / "good.json"
    good.write_text('{"sessions":[]}')
    for argument, code in ((good, 0), (tmp_path / "missing.json", 4)):
        assert subprocess.run(f"'{program}' '{argument}' {closed}", shell=True, capture_output=True).returncode == code


def test_a_defect_of_isocheck_is_not_a_verdict(monkeypatch, tmp_path, capsys):
    good = tmp_path / "good.json"
    good.write_text('{"sessions":[]}')
    monkeypatch.setattr("plume_py.history.load.load", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["isocheck", str(good)])
    with pytest.raises(SystemExit) as stop:
        main_module.main()
    assert stop.value.code == 3
    assert "a defect in isocheck itself" in capsys.readouterr().err
