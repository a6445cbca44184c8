"""``isocheck watch`` (cli/watch.py, checking/stream/watch.py): its output, when it appears, and how it ends."""

import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest
from click.testing import CliRunner
from fuzz.seeds import TIMED
from paths import ROOT
from program import PATIENCE, PROGRAM, wait_until

import plume_py
from plume_py.cli.main import cli
from plume_py.cli.watch import Stop

WATCH = [sys.executable, "-u", *PROGRAM[1:], "watch"]

# s reads x = 1 and, afterwards, the initial x: RA is broken by its second transaction, CI and RC are not.
WRITE = '{"session":"s","ops":[["w","x",1]]}\n'
STALE = '{"session":"s","ops":[["r","x",null]]}\n'
READ = '{"session":"r","ops":[["r","x",1]]}\n'
LOST = '{"session":"r","ops":[["r","y",7]]}\n'  # nobody writes y = 7
HALF = '{"session":"s","ops":[["w"'


class Watching:
    """A running ``isocheck watch``, and what it has printed so far."""

    def __init__(self, child, *arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE):
        self.process = child(
            [*WATCH, *map(str, arguments)], cwd=ROOT, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr
        )
        self.text = {"out": "", "err": ""}
        streams = {"out": self.process.stdout, "err": self.process.stderr}
        self.threads = [
            threading.Thread(target=self._collect, args=item, daemon=True) for item in streams.items() if item[1]
        ]
        for thread in self.threads:
            thread.start()

    def _collect(self, name, stream):
        while data := os.read(stream.fileno(), 4096):
            self.text[name] += data.decode()

    @property
    def out(self):
        return self.text["out"]

    @property
    def err(self):
        return self.text["err"]

    def until(self, condition):
        wait_until(condition, self.process, lambda: (self.out, self.err))

    def end(self, number=None):
        """Its exit code, after a signal if one is given."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        for thread in self.threads:
            thread.join(PATIENCE)
        assert "Traceback" not in self.err
        return code


@pytest.fixture
def start(child):
    """Start a watch."""
    return partial(Watching, child)


def run(path, content, *arguments):
    """Watch what is in the file, in this process."""
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return CliRunner().invoke(cli, ["watch", str(path), "--no-follow", *arguments])


def seen_until(terminal, text):
    """What a terminal shows, up to some text."""
    seen, deadline = b"", time.monotonic() + PATIENCE
    while text not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 1000)
    return seen


def append(path, text):
    with path.open("a") as file:
        file.write(text)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "h.jsonl"


# how it ends


def test_exit_codes(path):
    assert run(path, WRITE + READ).exit_code == 0
    assert run(path, WRITE + STALE).exit_code == 1
    assert run(path, WRITE + STALE, "-l", "RC").exit_code == 0
    assert run(path, WRITE + LOST).exit_code == 1
    assert run(path, WRITE, "--level", "SI").exit_code == 2
    assert run(path, WRITE, "--input-format", "edn").exit_code == 2
    assert run(path, WRITE + "hello\n").exit_code == 4


def test_strong_levels_and_other_formats_are_sent_to_check(path):
    for level in ("SI", "SER", "all", "declared"):
        assert "run isocheck check when it is whole" in run(path, WRITE, "--level", level).stderr
    assert "edn cannot be watched, only jsonl and plume" in run(path, WRITE, "--input-format", "edn").stderr


def test_watch_ends_with_the_output_of_check(path):
    for content in (WRITE + READ, WRITE + STALE, WRITE + STALE + LOST):
        printed = run(path, content, "-l", "weak").stdout
        checked = CliRunner().invoke(cli, ["check", str(path), "-l", "weak"]).stdout
        heads, _, examples = checked.partition("\n\n")
        assert heads in printed and all(line in printed for line in examples.splitlines())
        assert printed.count("Hence") == checked.count("Hence"), "no proof is printed twice"
        assert (printed == checked) == (STALE not in content)


def test_the_result_as_json_equals_that_of_check(path):
    for content in (WRITE + READ, WRITE + STALE, WRITE + STALE + LOST):
        *lines, last = run(path, content, "-l", "weak", "--format", "jsonl").stdout.splitlines()
        (checked,) = (
            CliRunner().invoke(cli, ["check", str(path), "-l", "weak", "--format", "jsonl"]).stdout.splitlines()
        )
        result, expected = json.loads(last), json.loads(checked)
        assert result | {"seconds": 0} == expected | {"seconds": 0}
        assert [json.loads(line)["tap"] for line in lines] == (["k"] if STALE in content else [])
        assert all(json.loads(line).keys() == expected["violations"][0].keys() for line in lines)


def test_the_notes_are_those_of_check(path):
    """Also where every level holds, and the monitor alone can give the verdict."""
    other = '{"session":"r","ops":[["w","x",2]]}\n'
    twice = '{"session":"q","ops":[["r","z",null],["w","x",2]]}\n'
    cases = {
        WRITE + READ: ["transaction T1 is taken as the initial state"],
        WRITE + other + READ: ["T1 may have set up the initial state, and is judged like any other transaction"],
        other + twice: ["1 (key, value) pairs were written by two transactions; nobody read them"],
        READ + WRITE: [],
    }
    for content, notes in cases.items():
        ours = run(path, content, "-l", "weak", "--format", "jsonl").stdout
        checked = CliRunner().invoke(cli, ["check", str(path), "-l", "weak", "--format", "jsonl"]).stdout
        result, expected = json.loads(ours), json.loads(checked)
        assert result | {"seconds": 0} == expected | {"seconds": 0}
        assert (result["ok"], result["notes"]) == (True, notes)


def test_a_violation_is_headed_by_the_line_that_completes_it(path):
    out = run(path, WRITE + READ + STALE, "-l", "weak").stdout
    assert out.startswith(f"{path}, line 3: RA TCC are broken from here on\n  T3 read the initial value of x")
    aborted = '{"session":"a","status":"aborted","ops":[["w","y",7]]}\n'
    out = run(path, WRITE + LOST + STALE + aborted, "-l", "TCC").stdout
    assert f"{path}, line 3: TCC is broken from here on\n  T3 read the initial value of x" in out
    assert f"{path}, line 4: another violation of TCC\n  T2 read y = 7 from" in out


def test_fail_fast_stops_at_the_first_violation_and_leaves_pending_reads_undecided(path):
    ran = run(path, WRITE + LOST + STALE + "hello\n", "--fail-fast")
    assert ran.exit_code == 1
    assert f"{path}, line 3: RA TCC are broken from here on" in ran.stdout
    assert "TAP-k" in ran.stdout and "TAP-a" not in ran.stdout
    assert "1 reads were still waiting for their writers" in " ".join(ran.stdout.split())


def test_quiet(path):
    assert run(path, WRITE + READ, "--quiet").output == ""
    assert "RA TCC violated" in run(path, WRITE + STALE, "--quiet").stdout


def test_colours(path):
    assert "\x1b[" in run(path, WRITE + STALE, "--color", "always").stdout
    assert "\x1b[" not in run(path, WRITE + STALE, "--color", "never").stdout


def test_plume_text(path):
    ran = run(path, "w(1,5,0,0)\nr(1,0,0,1)\nw(2,5,0,2)\n")
    assert ran.exit_code == 1 and f"{path}, line 2: RA TCC are broken from here on" in ran.stdout
    assert run(path, "w(1,5,0,0)\nw(1,6,1,-1)\nw(1,7,1,-1)\nr(1,5,1,1)\nw(1,8,1,-1)\n").exit_code == 0
    assert "TAP-b" in run(path, "w(1,5,0,-1)\nr(1,5,1,1)\nw(1,6,0,-1)\n").stdout


def test_an_empty_history_holds_but_an_empty_input_is_bad_input(tmp_path):
    path = tmp_path / "h"
    ran = run(path, '{"initial":0}\n')
    assert ran.exit_code == 0 and "0 transactions" in ran.stdout
    for nothing in ("", "\n\n", "# remark\n"):
        ran = run(path, nothing)
        assert (ran.exit_code, ran.stdout) == (4, "")
        assert ran.stderr == f"isocheck: {path}: nothing has arrived, so there is nothing to judge\n"


# bad input

AMBIGUOUS = WRITE + '{"session":"t","ops":[["w","x",1]]}\n' + READ
BAD = {
    "malformed": (WRITE + "hello\n", ", line 2: malformed JSON"),
    "ambiguous": (AMBIGUOUS, "which two transactions wrote: T1 (line 1) and T2 (line 2)"),
    "same id": ('{"session":1,"id":"a","ops":[]}\n' * 2, "two transactions have the id 'a'"),
    "list": ('{"initial":[1]}\n', ", line 1: the initial value of a list"),
    "binary": (b"\x00\x01\x02", ": not text, perhaps compressed"),
    "gzip": (b"\x1f\x8b\x08\x00", ": not text, perhaps compressed"),
    "prose": ("hello\n", ": not a history in any known format"),
    "document": ('{"sessions": []}\n', ": this looks like json, which cannot be watched"),
    "deep": ('{"session":1,"ops":' + "[" * 100_000 + "\n", ", line 1: "),
    "surrogate": ('{"session":1,"ops":[["w","\\ud800",1]]}\n', ", line 1: "),
    "escape": ('{"session":1,"ops":[["\\u001b[31m","x",1]]}\n', "\\x1b[31m"),
    "text": ("w(1,1,0,0)\nw(1,2\n", ", line 2: not an operation: 'w(1,2'"),
    "large": ("w(1,99999999999999999999,0,0)\n", ", line 1: a number does not fit in 64 bits"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_4(name, tmp_path):
    content, problem = BAD[name]
    path = tmp_path / "h"
    ran = run(path, content)
    assert (ran.exit_code, ran.stdout) == (4, "")
    assert ran.stderr.count("\n") == 1 and ran.stderr.isprintable() is False and "\x1b" not in ran.stderr
    assert ran.stderr.startswith(f"isocheck: {path}") and problem in ran.stderr
    (line,) = run(path, None, "--format", "jsonl").stdout.splitlines()
    assert problem in json.loads(line)["error"] or name == "escape"


def test_no_file_and_a_folder(tmp_path):
    ran = run(tmp_path / "none", None)
    assert (ran.exit_code, ran.stderr) == (4, f"isocheck: {tmp_path / 'none'}: No such file or directory\n")
    ran = run(tmp_path, None)
    assert (ran.exit_code, ran.stderr) == (
        4,
        f"isocheck: {tmp_path}: a folder cannot be watched; name the file in it that grows\n",
    )


def test_violations_before_a_bad_line_are_printed(path):
    ran = run(path, WRITE + STALE + "hello\n")
    assert ran.exit_code == 4
    assert f"{path}, line 2: RA TCC are broken from here on" in ran.stdout
    assert "transactions," not in ran.stdout, "there is no verdict on what was not read"


def test_hostile_text_stays_harmless(path):
    key = "\x1b[2J\nx‮"
    lines = [{"session": key, "ops": [["w", key, 1]]}, {"session": key, "id": key, "ops": [["r", key, None]]}]
    out = run(path, "".join(json.dumps(line) + "\n" for line in lines)).stdout
    assert "TAP-k" in out and "\x1b" not in out and "‮" not in out


@pytest.mark.parametrize("order", ["session", "realtime"])
@pytest.mark.parametrize(
    "good",
    [WRITE + STALE + READ + LOST, "w(1,5,0,0)\nr(1,5,1,1)\nr(1,0,0,2)\nw(2,6,1,-1)\n", TIMED.decode()],
    ids=["lines", "text", "times"],
)
def test_mangled_input_ends_in_a_verdict_or_in_one_line(path, good, order):
    rng = random.Random(3)
    junk = [b"", b"\n", b"[", b"0", b"-", b'"', b"9" * 30, b"\xff", b"\0"]
    for _ in range(80):
        content = bytearray(good.encode())
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(content))
            content[at : at + rng.randrange(3)] = rng.choice(junk)
        ran = run(path, bytes(content), "-l", "weak", "--order", order)
        assert isinstance(ran.exception, SystemExit | None), content
        assert ran.exit_code in ((0, 1, 4) if order == "session" else (0, 1, 3, 4)), content
        assert ran.stderr.count("\n") == (ran.exit_code == 4), (content, ran.stderr)


def test_an_unfinished_last_line_is_left_out_with_a_message(path):
    ran = run(path, WRITE + STALE + HALF)
    assert ran.exit_code == 4, "the input ended, and some of it could not be read"
    assert ran.stderr == f"isocheck: {path}, line 3: unfinished, left out\n"
    assert "2 transactions" in ran.stdout and "RA TCC violated" in ran.stdout
    result = json.loads(run(path, None, "--format", "jsonl").stdout.splitlines()[-1])
    assert result["error"] == f"{path}, line 3: unfinished, left out" and result["ok"] is False
    ran = run(path, HALF)
    assert (ran.exit_code, ran.stdout) == (4, "")


def test_a_last_line_without_a_line_break_counts(path):
    ran = run(path, (WRITE + STALE).rstrip("\n"))
    assert ran.exit_code == 1 and ran.stderr == "" and "2 transactions" in ran.stdout
    assert run(path, "w(1,5,0,0)\nr(1,0,0,1)").exit_code == 1


# in processes of their own


def test_a_file_that_grows_is_rotated_truncated_and_ends_in_half_a_line(start, path):
    path.write_text('{"initial":null}\n' + WRITE)
    watching = start(path, "-l", "weak", "--max-examples", "5")
    append(path, STALE[:20])
    append(path, STALE[20:])
    watching.until(lambda: f"{path}, line 3: RA TCC are broken from here on" in watching.out)

    path.rename(path.with_suffix(".1"))
    path.write_text('{"session":"t","ops":[["w","z",1]]}\n{"session":"t","ops":[["r","z",null]]}\n')
    watching.until(lambda: f"{path}, line 2: another violation of RA TCC" in watching.out)
    watching.until(lambda: f"isocheck: {path}: it was replaced; reading goes on in the new file" in watching.err)

    os.truncate(path, 0)
    watching.until(lambda: f"isocheck: {path}: it was truncated; reading goes on at its start" in watching.err)
    append(path, '{"session":"u","ops":[["w","u",1]]}\n{"session":"u","ops":[["r","u",null]]}\n' + HALF)
    watching.until(lambda: watching.out.count("another violation") == 2)

    assert watching.end(signal.SIGINT) == 1
    assert f"{path}: 6 transactions, 6 operations, 3 sessions" in watching.out
    assert watching.err.endswith(f"isocheck: {path}, line 3: unfinished, left out\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_ends_in_the_verdict(start, path, number):
    path.write_text(WRITE + STALE)
    watching = start(path, "-l", "RA")
    watching.until(lambda: "broken from here on" in watching.out)
    path.write_text(path.read_text() + READ + HALF)
    assert watching.end(number) == 1
    assert "3 transactions" in watching.out and "RA   violated" in watching.out


def test_reads_that_wait_for_their_writers_are_undecided_when_stopped(start, path):
    path.write_text(WRITE + LOST + '{"session":"s","ops":[["w","q",1]]}\n')
    terminal, theirs = pty.openpty()
    watching = start(path, "-l", "weak", "--fail-fast", stderr=theirs)
    os.close(theirs)
    seen_until(terminal, b"1 reads pending, CI RC RA TCC holding")
    append(path, HALF)
    assert watching.end(signal.SIGTERM) == 3
    assert "CI   holds" in watching.out
    assert "undecided: 1 reads were still waiting for their writers" in watching.out.replace("\n       ", " ")
    seen_until(terminal, f"isocheck: {path}, line 4: unfinished, left out".encode())
    os.close(terminal)


def test_a_second_signal_ends_at_once():
    with Stop() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.is_requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_pipe(start):
    watching = start("-", "--format", "jsonl", stdin=subprocess.PIPE)
    pipe = watching.process.stdin
    pipe.write((WRITE + STALE[:20]).encode())
    pipe.flush()
    pipe.write((STALE[20:] + HALF).encode())
    pipe.flush()
    watching.until(lambda: watching.out.count("\n") == 1)
    assert json.loads(watching.out)["tap"] == "k"
    pipe.close()
    assert watching.end() == 4
    result = json.loads(watching.out.splitlines()[1])
    assert (result["history"], result["ok"], result["transactions"]) == ("-", False, 2)
    assert result["error"] == "standard input, line 3: unfinished, left out"


def test_until_idle(start, path):
    path.write_text(WRITE + LOST)
    watching = start(path, "--until-idle", "0.3")
    assert watching.end() == 1
    assert "TAP-a" in watching.out, "what nobody has written by then, nobody wrote"


def test_a_reader_of_the_output_that_goes_away(path):
    path.write_text(WRITE + STALE)
    ours, theirs = os.pipe()
    os.close(ours)
    ran = subprocess.run([*WATCH, path], stdout=theirs, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    os.close(theirs)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_the_status_line_is_for_terminals(start, path):
    path.write_text(WRITE + LOST)
    terminal, theirs = pty.openpty()
    watching = start(path, "-l", "weak", stderr=theirs)
    os.close(theirs)
    seen = seen_until(terminal, b"CI RC RA TCC holding")
    assert re.search(rb"\r2 transactions, \d+/s, 1 reads pending, CI RC RA TCC holding", seen)
    append(path, STALE)
    watching.until(lambda: "RA TCC are broken from here on" in watching.out)
    seen_until(terminal, b"1 reads pending, CI RC holding")
    assert watching.end(signal.SIGINT) == 1
    os.close(terminal)


def test_watch_and_check_agree_on_generated_histories(start, path):
    shape = ["--sessions", "6", "--transactions", "30", "--operations", "6", "--keys", "40", "--inject", "m=1,n=1,b=1"]
    for name in ("jsonl", "plume"):
        target = path.with_suffix("." + {"jsonl": "jsonl", "plume": "txt"}[name])
        assert CliRunner().invoke(cli, ["generate", str(target), "--guarantee", "TCC", *shape]).exit_code == 0
        result = json.loads(run(target, None, "--format", "jsonl").stdout.splitlines()[-1])
        checked = plume_py.check(plume_py.load(target), "TCC")
        assert result["levels"]["TCC"]["taps"] == list(checked.levels["TCC"].taps) == ["b", "m", "n"]
        assert result["counts"] == checked.counts


@pytest.mark.parametrize("arguments", [(), ("--fail-fast",)], ids=["", "fail fast"])
def test_a_violated_level_without_an_example_is_reported(path, monkeypatch, arguments):
    feed_all = plume_py.Monitor.feed_all
    monkeypatch.setattr(plume_py.Monitor, "feed_all", lambda *given: iter(list(feed_all(*given))[:0]))
    ran = run(path, WRITE + STALE + READ, "-l", "weak", *arguments)
    assert ran.exit_code == 1
    assert ran.stderr == f"isocheck: {path}, up to line 3: RA TCC are broken; the proof comes at the end\n"
    assert "3 transactions" in ran.stdout and "TAP-k" in ran.stdout


# in other orders between transactions

BEFORE = '{"initial":0,"ticks_per_second":1000}\n{"session":"a","start":0,"end":10,"ops":[["w","x",1]]}\n'
LATER = '{"session":"b","start":20,"end":30,"ops":[["r","x",0]]}\n'


@pytest.mark.parametrize("order", ["none", "session", "realtime"])
@pytest.mark.parametrize("content", [WRITE + STALE, BEFORE + LATER, BEFORE + LOST], ids=["session", "time", "lost"])
def test_watch_and_check_agree_in_every_order(path, order, content):
    arguments = ("-l", "weak", "--order", order, "--format", "jsonl")
    ran = run(path, content, *arguments)
    checked = CliRunner().invoke(cli, ["check", str(path), *arguments])
    result, expected = (json.loads(each.stdout.splitlines()[-1]) for each in (ran, checked))
    exact = {"seconds": 0, "counts_exact": 0, "format": 0}  # what is settled while it arrives needs no second look
    assert result | exact == expected | exact
    assert ran.exit_code == checked.exit_code


def test_watch_prints_real_time_violations_as_check_does(path):
    ran = run(path, BEFORE + LATER, "--order", "realtime")
    assert ran.exit_code == 1
    assert f"{path}, line 3: RA TCC are broken from here on\n" in ran.stdout
    assert "T1 had ended (at 0.010 s) before T2 began (at 0.020 s)" in " ".join(ran.stdout.split())
    assert "CI RC hold (order: realtime)" in ran.stdout
    ran = run(path, None, "-l", "strong-read-atomic")
    assert "line 3: StrongRA is broken from here on\n" in ran.stdout and "StrongRA violated" in ran.stdout
    assert run(path, None, "--order", "session").exit_code == 0


def test_real_time_without_times_is_undecided(path):
    for content in (WRITE + READ, WRITE + STALE):
        ran = run(path, content, "--order", "realtime", "-l", "weak")
        assert ran.exit_code == 3
        assert "undecided: the history does not say when" in ran.stdout and "broken" not in ran.output
    text = path.with_suffix(".txt")
    assert run(text, "w(1,5,0,0)\nr(1,5,1,1)\n", "--order", "realtime").exit_code == 3


def test_times_that_contradict_each_other_are_bad_input(path):
    early = '{"session":"a","start":5,"end":12,"ops":[["r","x",1]]}\n'
    ran = run(path, BEFORE + early + LATER, "--order", "realtime")
    assert ran.exit_code == 4
    assert ran.stderr.startswith(
        f"isocheck: {path}, line 3: T2 begins (at 5) before T1, which its session ran first (line 2), was over (at 10)"
    )
    assert CliRunner().invoke(cli, ["check", str(path), "-l", "RA"]).stderr == ran.stderr
    ran = run(path, BEFORE + '{"session":"b","start":"now","ops":[]}\n')
    assert ran.exit_code == 4 and "line 3, start" in ran.stderr and "in whole numbers" in ran.stderr


def test_times_in_seconds_and_ticks(path):
    """As they were recorded before whole numbers were."""
    header = '{"initial":0,"collected":{}}\n'
    lines = '{"session":"a","start":0.5,"end":0.75,"ops":[["w","x",1]]}\n'
    lines += '{"session":"b","start":0.875,"end":1,"ops":[["r","x",0]]}\n'
    told = "T1 had ended (at 0.750000 s) before T2 began (at 0.875000 s)"
    for end in ("", "\n"):  # an empty line has it read line by line
        assert told in " ".join(run(path, header + lines + end, "--order", "realtime").stdout.split())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--order", "realtime-per-key"), "run isocheck check --order realtime-per-key when it is whole"),
        (("-l", "SSER"), "SSER is not decided while a history grows"),
        (("-l", "StrongRA", "-l", "RA"), "RA StrongRA mean several orders, and only one is watched at a time"),
        (("--order", "none", "--window", "5"), "with --order none nothing can be forgotten"),
    ],
)
def test_levels_and_orders_that_watch_does_not_support_name_the_command_to_use(path, arguments, why):
    ran = run(path, WRITE, *arguments)
    assert ran.exit_code == 2 and why in ran.stderr
