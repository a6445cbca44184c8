"""Tests of base/atomic_files: files are replaced atomically, streams are written directly, leftovers are removed."""

import fcntl
import os
import shlex
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import plume_py
from plume_py.base import atomic_files
from plume_py.base.atomic_files import is_stream, write_atomically
from plume_py.base.errors import IsocheckError
from plume_py.cli.main import main

# This package, and not another one that is installed.
ROOT = str(Path(plume_py.__file__).parent.parent)
PROGRAM = [
    sys.executable,
    "-P",
    "-c",
    f"import sys; sys.path.insert(0, {ROOT!r}); from plume_py.cli.main import main; main()",
]
GOOD = '{"initial":0,"sessions":[[{"ops":[["w","x",1]]}],[{"ops":[["r","x",1]]}]]}'
BAD = '{"initial":0,"sessions":[[{"ops":[["w","x",1]]}],[{"ops":[["r","x",7]]}]]}'
# Every option, and argument, that names a file to be written; OUT is its place. Some end with 1: a violation was found.
SMALL_RUN = ["--managed", "sqlite", "--sessions", "2", "--transactions", "3"]
WRITERS = {
    "convert": ["convert", "good.json", "OUT", "--to", "jsonl"],
    "generate": ["generate", "OUT", "--to", "json", "--sessions", "2", "--transactions", "2"],
    "check --report": ["check", "bad.json", "--report", "OUT"],
    "check --minimize": ["check", "bad.json", "--minimize", "OUT"],
    "check --witness": ["check", "good.json", "--witness", "OUT"],
    "scan --report": ["scan", "good.json", "--jobs", "1", "--report", "OUT"],
    "allocate --save": ["allocate", "smallbank", "--brief", "--save", "OUT"],
    "simulate --out": ["simulate", "smallbank", "--instances", "5", "--runs", "1", "--out", "OUT"],
    "synth --out": ["synth", "--allow", "SI", "--forbid", "SER", "--out", "OUT"],
    "predict --out": ["predict", "--program", "smallbank", "--out", "OUT"],
    "explore --out": ["explore", "smallbank", "--runs", "20", "--out", "OUT"],
    "collect --out": ["collect", *SMALL_RUN, "--out", "OUT"],
    "test --report": ["test", *SMALL_RUN, "--report", "OUT"],
}
# They name the file by what it ends with.
SUFFIXES = {"synth --out": ".json", "predict --out": ".json"}


@pytest.fixture
def isocheck(tmp_path, monkeypatch, capfd):
    """Run the command line in this process, in a folder with histories; its exit code and what it said."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "good.json").write_text(GOOD)
    (work / "bad.json").write_text(BAD)
    monkeypatch.chdir(work)

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["isocheck", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr()
        assert "Traceback" not in said.err
        return int(ended.value.code or 0), said.out, said.err

    return run


def command(name, out):
    return [str(out) if word == "OUT" else word for word in WRITERS[name]]


def device(path):
    """A /dev/null of our own: the machine's must not be at risk."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("devices can only be made by root")
    return path


class Reading:
    """Reads a FIFO until its writer is done."""

    def __init__(self, path):
        os.mkfifo(path)
        self.text = b""
        self._path = path
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        self.text = Path(self._path).read_bytes()

    def end(self):
        self._thread.join(5)
        assert not self._thread.is_alive()
        return self.text


@pytest.mark.parametrize("name", WRITERS)
def test_a_device_stays_a_device(name, isocheck, tmp_path):
    code, _, said = isocheck(*command(name, device(tmp_path / "null")))
    assert code in (0, 1), said
    assert stat.S_ISCHR(os.stat(tmp_path / "null").st_mode)
    assert sorted(os.listdir(tmp_path)) == ["null", "work"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_pipe_gets_the_same_content_as_a_file(name, isocheck, tmp_path):
    reading = Reading(tmp_path / "pipe")
    code, _, said = isocheck(*command(name, tmp_path / "pipe"))
    text = reading.end()
    assert code in (0, 1), said
    assert len(text) > 20 and stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert sorted(os.listdir(tmp_path)) == ["pipe", "work"]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_written(name, there, isocheck, tmp_path):
    (tmp_path / "far").mkdir()
    ending = SUFFIXES.get(name, "")
    target, link = tmp_path / "far" / f"target{ending}", tmp_path / f"link{ending}"
    if there and name != "collect --out":  # which does not overwrite what it finds
        target.write_text("old")
        target.chmod(0o640)
    (tmp_path / f"middle{ending}").symlink_to(Path("far") / target.name)
    link.symlink_to(f"middle{ending}")
    code, _, said = isocheck(*command(name, link))
    assert code in (0, 1), said
    assert link.is_symlink() and (tmp_path / f"middle{ending}").is_symlink()
    assert target.stat().st_size > 20
    assert not there or name == "collect --out" or stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir(tmp_path / "far") == [target.name]


@pytest.mark.parametrize("name", WRITERS)
def test_a_write_error_has_one_line(name, isocheck, tmp_path):
    ending = SUFFIXES.get(name, "")
    (tmp_path / f"folder{ending}").mkdir()
    (tmp_path / f"loop{ending}").symlink_to(f"loop{ending}")
    (tmp_path / f"nowhere{ending}").symlink_to(tmp_path / "missing" / "target")
    for place in (f"folder{ending}", f"loop{ending}", f"nowhere{ending}", f"missing/out{ending}"):
        code, _, said = isocheck(*command(name, tmp_path / place))
        assert code == 2, place
        assert place in said and len([line for line in said.splitlines() if "rror" in line or "cannot" in line]) == 1
    assert sorted(os.listdir(tmp_path)) == sorted([f"folder{ending}", f"loop{ending}", f"nowhere{ending}", "work"])


@pytest.mark.parametrize("place", ["/dev/fd/1", "/proc/self/fd/1", "stdout", "link"])
def test_an_open_descriptor_is_written_on_where_it_is(place, tmp_path):
    """Even if it is a file: what was in it stays, and whoever opened it keeps it."""
    (tmp_path / "good.json").write_text(GOOD)
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")  # as /dev/stdout is, which must not be at risk
    (tmp_path / "link").symlink_to("stdout")
    out = tmp_path / "out"
    out.write_text("before\n")
    number = os.stat(out).st_ino
    with out.open("ab") as file:
        arguments = ["convert", "good.json", place, "--to", "jsonl"]
        assert subprocess.run([*PROGRAM, *arguments], stdout=file, cwd=tmp_path, check=False).returncode == 0
    assert out.read_text().startswith("before\n{") and os.stat(out).st_ino == number
    piped = subprocess.run([*PROGRAM, *arguments], stdout=subprocess.PIPE, cwd=tmp_path, check=False)
    assert piped.returncode == 0 and b"before\n" + piped.stdout == out.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["good.json", "link", "out", "stdout"]


def test_any_open_descriptor_is_written_and_a_closed_one_is_an_error(tmp_path):
    (tmp_path / "good.json").write_text(GOOD)
    shell = f"{shlex.join(PROGRAM)} convert good.json /dev/fd/7 --to jsonl"
    done = subprocess.run(["sh", "-c", f"{shell} 7>out"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and (tmp_path / "out").stat().st_size > 20
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr == "isocheck: cannot write /dev/fd/7: Bad file descriptor\n"


def test_a_closed_standard_output_ends_the_run_silently(tmp_path):
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    shell = f"{shlex.join(PROGRAM)} generate stdout --to json"
    done = subprocess.run(["bash", "-c", f"{shell} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"],
                          cwd=tmp_path, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout == "141\n" and done.stderr == ""


def test_owner_and_mode_of_what_is_replaced_are_kept(tmp_path):
    target = tmp_path / "report"
    target.write_text("old")
    target.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(target, 12345, 54321)
    owner = (target.stat().st_uid, target.stat().st_gid)
    write_atomically(str(target), [b"new"])
    now = target.stat()
    assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (*owner, 0o604)
    before = os.umask(0o027)
    try:
        write_atomically(str(tmp_path / "another"), [b"new"])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "another").stat().st_mode) == 0o640


@pytest.mark.parametrize("nameless", [True, False])
def test_file_names_may_have_the_maximum_length(nameless, tmp_path, monkeypatch):
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    write_atomically(str(tmp_path / ("n" * 255)), [b"text"])
    assert (tmp_path / ("n" * 255)).read_bytes() == b"text"
    with pytest.raises(IsocheckError, match="cannot write"):
        write_atomically(str(tmp_path / ("n" * 256)), [b"text"])
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("nameless", [True, False])
def test_a_failed_write_leaves_the_old_file(nameless, tmp_path, monkeypatch):
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    (tmp_path / "out").write_text("old")

    def chunks(error):
        yield b"new"
        raise error

    with pytest.raises(ZeroDivisionError):
        write_atomically(str(tmp_path / "out"), chunks(ZeroDivisionError()))
    with pytest.raises(IsocheckError, match="No space left"):
        write_atomically(str(tmp_path / "out"), chunks(OSError(28, "No space left on device")))
    with pytest.raises(KeyboardInterrupt):
        write_atomically(str(tmp_path / "out"), chunks(KeyboardInterrupt()))
    assert os.listdir(tmp_path) == ["out"] and (tmp_path / "out").read_text() == "old"


ENDLESS = """
import os, sys, time
from plume_py.base.atomic_files import write_atomically
if sys.argv[2] == "named":
    del os.O_TMPFILE
def chunks():
    yield b"half of it" * 10000
    print("under way", flush=True)
    time.sleep(60)
write_atomically(sys.argv[1], chunks())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("kind", ["nameless", "named"])
def test_the_next_run_removes_the_files_of_a_killed_writer(how, kind, tmp_path):
    (tmp_path / "out").write_text("old")
    run = subprocess.Popen(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {ROOT!r})\n{ENDLESS}", tmp_path / "out", kind],
        stdout=subprocess.PIPE,
    )
    try:
        assert run.stdout.readline() == b"under way\n"
        write_atomically(str(tmp_path / "other"), [b"text"])
        under_way = set(os.listdir(tmp_path)) - {"out", "other"}
        assert len(under_way) == (kind == "named"), "what is still being written is left alone"
    finally:
        run.send_signal(how)
        run.communicate()
    assert (tmp_path / "out").read_text() == "old"
    atomic_files._cleaned.clear()  # as in another process
    write_atomically(str(tmp_path / "other"), [b"text"])
    assert sorted(os.listdir(tmp_path)) == ["other", "out"]


def test_other_files_are_not_taken_for_leftovers(tmp_path):
    def name(digit):
        return f".isocheck-{digit * 16}.tmp"

    (tmp_path / name("0")).write_text("ours, and nobody holds it")
    kept = [name("1"), name("2"), name("3"), name("4"), name("5"), "far"]
    held = (tmp_path / name("1")).open("w")
    fcntl.flock(held, fcntl.LOCK_EX)
    (tmp_path / name("2")).mkdir()
    os.mkfifo(tmp_path / name("3"))
    (tmp_path / "far").write_text("of the user")
    (tmp_path / name("4")).symlink_to("far")
    os.link(tmp_path / "far", tmp_path / name("5"))
    foreign = [".isocheck-0.tmp", f"isocheck-{'0' * 16}.tmp", f".isocheck-{'g' * 16}.tmp", ".out.json.abcd1234"]
    for each in foreign:
        (tmp_path / each).write_text("of the user")
    if os.geteuid() == 0:
        (tmp_path / name("6")).write_text("of another user")
        os.chown(tmp_path / name("6"), 12345, 54321)
        foreign.append(name("6"))
    write_atomically(str(tmp_path / "out"), [b"text"])
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, *foreign, "out"])
    held.close()


def test_devices_pipes_and_descriptors_are_streams(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "loop").symlink_to("loop")
    streams = [name for name in ("file", "pipe", "link", "loop", "missing", ".") if is_stream(str(tmp_path / name))]
    assert streams == ["pipe", "link"] and is_stream("-") and is_stream("/dev/null") and is_stream("/dev/stderr")


def test_a_deleted_file_of_another_process_is_written_directly(tmp_path):
    """/proc gives it a name that must not become a file."""
    with (tmp_path / "gone").open("w+b") as file:
        holder = subprocess.Popen(["sleep", "60"], stdin=file)
        (tmp_path / "gone").unlink()
        try:
            write_atomically(f"/proc/{holder.pid}/fd/0", [b"text"])
            assert os.pread(file.fileno(), 10, 0) == b"text" and os.listdir(tmp_path) == []
        finally:
            holder.kill()
            holder.wait()


def test_a_closed_pipe_is_an_error_of_one_line(isocheck, tmp_path):
    os.mkfifo(tmp_path / "pipe")

    def read_a_byte():
        with (tmp_path / "pipe").open("rb", buffering=0) as file:
            file.read(1)

    threading.Thread(target=read_a_byte, daemon=True).start()
    out = tmp_path / "pipe"
    code, _, said = isocheck("generate", out, "--to", "json")
    assert code == 2 and said == f"isocheck: cannot write {out}: Broken pipe\n"


RECORDERS = {
    "collect --out": ["collect", *SMALL_RUN, "--out", "OUT"],
    "test --history": ["test", *SMALL_RUN, "--history", "OUT"],
    "scan --results": ["scan", "good.json", "--jobs", "1", "--no-times", "--results", "OUT"],
}


@pytest.mark.parametrize("name", RECORDERS)
def test_a_record_is_overwritten_only_by_force(name, isocheck, tmp_path):
    record = tmp_path / "record.jsonl"
    arguments = [str(record) if word == "OUT" else word for word in RECORDERS[name]]
    assert isocheck(*arguments)[0] == 0
    whole = record.read_bytes()
    code, _, said = isocheck(*arguments)
    assert code == 2 and "exists already" in said and "--force" in said and record.read_bytes() == whole
    record.write_bytes(b"something else\n")
    assert isocheck(*arguments)[0] == 2 and record.read_bytes() == b"something else\n"
    assert isocheck(*arguments, "--force")[0] == 0 and record.read_bytes().count(b"\n") == whole.count(b"\n")
    record.write_bytes(b"")
    assert isocheck(*arguments)[0] == 0 and record.read_bytes().count(b"\n") == whole.count(b"\n")
    assert sorted(os.listdir(tmp_path)) == ["record.jsonl", "work"]


def test_two_runs_cannot_record_into_one_file(isocheck, tmp_path):
    with (tmp_path / "h.jsonl").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        code, _, said = isocheck("collect", *SMALL_RUN, "--out", tmp_path / "h.jsonl", "--force")
    assert code == 2 and said == f"isocheck: {tmp_path}/h.jsonl is being written by another run\n"


def test_a_record_written_to_a_device_is_not_compared_and_the_report_says_so(isocheck, tmp_path):
    null = device(tmp_path / "null")
    code, told, _ = isocheck("collect", *SMALL_RUN, "--out", null)
    assert code == 0 and f"not compared: the history went to {null}, which is no file to read again" in told
    assert isocheck("test", *SMALL_RUN, "--history", null)[0] == 2
    assert isocheck("scan", "good.json", "--results", null)[0] == 2


def test_a_record_may_have_a_name_as_long_as_the_system_allows(isocheck, tmp_path):
    for length in (246, 247, 250, 255):
        record = tmp_path / f"{'n' * (length - 6)}.jsonl"
        assert isocheck("collect", *SMALL_RUN, "--out", record)[0] == 0
        assert isocheck("check", record)[0] == 0
    assert len(os.listdir(tmp_path)) == 5


def test_a_full_disk_leaves_no_second_hidden_file(tmp_path, monkeypatch):
    from plume_py.collect.recorder import Recorder

    def full(self, **_):
        raise OSError(28, "No space left on device")

    for nameless in (True, False):
        if not nameless:
            monkeypatch.delattr(os, "O_TMPFILE", raising=False)
        with monkeypatch.context() as patch:
            patch.setattr(atomic_files.AtomicFile, "put_in_place", full)
            recorder = Recorder(str(tmp_path / "h.jsonl"), {"initial": 0}, force=True)
            recorder.close()
        assert "No space left" in recorder.problem and os.listdir(tmp_path) == ["h.jsonl"]
