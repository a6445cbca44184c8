"""The file of results and the comparison of two scans (scan/results.py, diff.py)."""

import fcntl
import json
import os
import resource
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_summary_and_signature import made_line, written
from violations import stale, thin_air

from plume_py.base.errors import IsocheckError
from plume_py.cli.main import cli
from plume_py.scan.diff import compare
from plume_py.scan.page import document
from plume_py.scan.results import Reader, Writer, open_results, parse
from plume_py.scan.summary import summarize

# The file.


def test_torn_damaged_and_doubled_lines(tmp_path):
    a, b, c = made_line("a"), made_line("b"), made_line("c")
    newer = made_line("a", [stale()])
    path = written(tmp_path / "r.jsonl", a, b"\0" * 50 + b"\n", b, newer, b'{"history":"x"}\n', c[:-5])
    reader = Reader(str(path))
    assert (reader.count, reader.superseded, reader.damaged) == (2, 1, 3)
    assert {line.history: line.outcome for line in reader} == {"a": "violated", "b": "holds"}
    with Writer(str(path), resume=True) as writer:
        assert sorted(writer.known) == [os.path.abspath("a"), os.path.abspath("b")]
        writer.write("c", c)
    assert path.read_bytes() == b + newer + c


def test_a_link_to_results_stays_one(tmp_path):
    path = written(tmp_path / "r.jsonl", made_line("a"), made_line("b"), made_line("a"))
    (tmp_path / "link").symlink_to(path)
    with Writer(str(tmp_path / "link"), resume=True):
        pass
    assert (tmp_path / "link").is_symlink() and path.read_bytes() == made_line("b") + made_line("a")


def test_two_scans_cannot_write_one_file(tmp_path):
    path = str(tmp_path / "r.jsonl")
    with Writer(path, resume=False), pytest.raises(IsocheckError, match="another scan"):
        Writer(path, resume=True)
    with Writer(path, resume=False):
        pass


def test_a_replaced_results_file_is_not_written_to(tmp_path, monkeypatch):
    """Between opening and locking, the scan before this one may have put a mended file in its place."""
    path = written(tmp_path / "r.jsonl", made_line("a"))
    flock, replaced = fcntl.flock, []

    def late(*arguments):
        if not replaced:
            replaced.append(written(tmp_path / "mended", made_line("a")).rename(path))
        flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", late)
    with Writer(str(path), resume=True) as writer:
        writer.write("b", made_line("b"))
    assert path.read_bytes() == made_line("a") + made_line("b")


def test_a_full_disk_is_an_error_and_leaves_whole_lines(tmp_path):
    path, line = tmp_path / "r.jsonl", made_line("a")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Writer(str(path), resume=False) as writer:
        writer.write("a", line)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(line) + 20, before[1]))
        try:
            with pytest.raises(IsocheckError, match=r"cannot write .*: .*go on with --resume"):
                writer.write("b", made_line("b"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == line


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full", "pipe"])
def test_results_must_be_a_regular_file(tmp_path, device):
    """They are read again for the summary."""
    os.mkfifo(tmp_path / "pipe")
    for use in (lambda path: Writer(path, resume=False), open_results):
        with pytest.raises(IsocheckError, match="not a regular file"):
            use(str(tmp_path / device))


GOOD = {"history": "a", "outcome": "holds", "levels": {"TCC": {"ok": True}}, "counts": {}, "shapes": {}, "size": 1,
        "hash": "", "settings": ""}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "odd"}, {"levels": {"TCC": {}}}, {"levels": {"TCC": {"ok": []}}}, {"levels": {"TCC": 1}},
        {"size": 10**40}, {"seconds": {"load": "long"}}, {"counts": {"a": 1.5}}, {"history": 7}, {"shapes": []},
    ],
)  # fmt: skip
def test_a_line_with_other_fields_is_damaged(tmp_path, change):
    assert parse(json.dumps(GOOD).encode() + b"\n") is not None
    assert parse(json.dumps(GOOD | change).encode() + b"\n") is None
    assert parse(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n") is None


@pytest.mark.parametrize(
    "violation",
    [
        7, {"tap": "k"}, {"tap": ["k"]}, {"tap": "k", "transactions": [1], "steps": [{}], "explanation": 1},
        {"tap": "k", "transactions": [{"id": 1, "session": 1, "place": "", "ops": [[1]]}], "steps": [],
         "explanation": ""},
    ],
)  # fmt: skip
def test_an_example_with_other_fields_is_left_out(tmp_path, violation):
    line = GOOD | {"outcome": "violated", "shapes": {"k-1": "text"}, "violations": [violation]}
    found = summarize([parse(json.dumps(line).encode() + b"\n")])
    assert found.groups["k-1"].violation is None and "<code>text</code>" in document(found)


def test_one_history_has_one_line_however_its_path_is_spelled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    Path("d/h.json").write_text('{"sessions":[]}')
    more = ["--results", "r.jsonl", "--format", "json", "--jobs", "1"]
    CliRunner().invoke(cli, ["scan", "d", *more])
    run = json.loads(CliRunner().invoke(cli, ["scan", "./d//h.json", *more, "--resume"]).output)["run"]
    assert (run["same"], run["checked"]) == (1, 0)
    Path("d/h.json").write_text('{"sessions":[[]]}')
    found = json.loads(CliRunner().invoke(cli, ["scan", str(tmp_path), *more, "--resume"]).output)
    assert found["run"]["checked"] == found["summary"]["histories"] == 1


def test_a_page_that_cannot_be_written_does_not_cost_the_summary(tmp_path, monkeypatch):
    (tmp_path / "h.json").write_text('{"sessions":[]}')

    def full(*arguments):
        raise IsocheckError("No space left on device")

    monkeypatch.setattr("plume_py.scan.page.write_atomically", full)
    done = CliRunner().invoke(cli, ["scan", str(tmp_path), "--report", str(tmp_path / "page.html"), "--jobs", "1"])
    assert isinstance(done.exception, IsocheckError) and done.output.startswith("1 history (0 operations")


def test_the_summary_counts_histories_that_only_the_results_contain(tmp_path):
    (tmp_path / "h.json").write_text('{"sessions":[]}')
    target = written(tmp_path / "r.jsonl", made_line("a", [stale()]), b"damaged\n", made_line("b"))
    done = CliRunner().invoke(cli, ["scan", str(tmp_path / "h.json"), "--results", str(target), "--resume", "-j", "1"])
    assert done.exit_code == 1
    assert "also counted: 2 histories that only the results contain\n" in done.output
    assert f"isocheck: {target}: 1 damaged line left out\n" in done.output


# What changed.


def test_diff_lists_new_fixed_and_changed_histories(tmp_path):
    old = written(tmp_path / "old.jsonl", made_line("a"), made_line("b", [stale()]), made_line("c", [stale()]),
                  made_line("d"), made_line("e", ok=None), made_line("same", seconds=1))  # fmt: skip
    new = written(tmp_path / "new.jsonl", made_line("same", seconds=2), made_line("a", [stale()]), made_line("b"),
                  made_line("c", [thin_air()]), made_line("e"), made_line("f", [stale()]), made_line("g"))  # fmt: skip
    found = compare(Reader(str(old)), Reader(str(new)))
    kinds = {kind: [name for name, _, _ in rows] for kind, rows in found.kinds.items()}
    assert kinds == {"new": ["a", "f"], "fixed": ["b"], "changed": ["c", "e"], "gone": ["d"], "added": ["g"]}
    assert found.equal == 1
    done = CliRunner().invoke(cli, ["scan", "diff", str(old), str(new)])
    assert done.exit_code == 1
    assert done.output.startswith("2 new, 1 fixed, 2 changed, 1 gone, 1 added, 1 as before\n")
    assert "  b: violates RA (TAP k) -> holds\n" in done.output
    assert CliRunner().invoke(cli, ["scan", "diff", str(old), str(old)]).exit_code == 0
    document = json.loads(CliRunner().invoke(cli, ["scan", "diff", str(old), str(new), "--format", "json"]).output)
    assert document["fixed"][0]["history"] == "b" and document["fixed"][0]["new"]["outcome"] == "holds"


def test_diff_of_two_folders(tmp_path):
    old = written(tmp_path / "old", made_line("/x/mon/a/1"), made_line("/x/mon/b/2", [stale()]))
    new = written(tmp_path / "new", made_line("/y/tue/a/1"), made_line("/y/tue/b/2"))
    assert compare(Reader(str(old)), Reader(str(new))).equal == 0
    found = compare(Reader(str(old)), Reader(str(new)), relative=True)
    assert found.equal == 1 and [name for name, _, _ in found.kinds["fixed"]] == ["b/2"]


def test_diff_says_when_the_scans_asked_for_other_levels(tmp_path):
    old = written(tmp_path / "old", made_line("a"), made_line("broken", error="x"))
    other = written(tmp_path / "other", made_line("a").replace(b'"RA"', b'"TCC"'))
    for new, said in ((old, False), (other, True)):
        done = CliRunner().invoke(cli, ["scan", "diff", str(old), str(new)])
        assert ("did not ask for the same levels: RA, and TCC" in done.output) is said
        document = json.loads(CliRunner().invoke(cli, ["scan", "diff", str(old), str(new), "--format", "json"]).output)
        assert document["levels"] == {"old": ["RA"], "new": ["TCC"] if said else ["RA"]}


def test_diff_rejects_files_without_results(tmp_path):
    (tmp_path / "x").write_text("hello\n")
    os.mkfifo(tmp_path / "pipe")
    for name in ("x", "none", "pipe"):
        done = CliRunner().invoke(cli, ["scan", "diff", str(tmp_path / name), str(tmp_path / "x")])
        assert done.exit_code == 1 and done.exception is not None and name in str(done.exception)


def test_a_folder_named_diff_can_be_scanned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "diff").mkdir()
    (tmp_path / "diff/h.json").write_text('{"sessions":[]}')
    assert CliRunner().invoke(cli, ["scan", "./diff", "--jobs", "1"]).exit_code == 0
