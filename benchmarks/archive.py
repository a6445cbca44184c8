"""An archive of histories of which is known what a scan must find: ``python -m benchmarks.archive FOLDER``.

Every history is generated to keep a level and then has patterns planted in it, so its verdicts are known without any
checker. Some files are broken, some are no histories at all, and three ask for more than a scan's limits allow.
"""

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plume_py.base.errors import ConversionError
from plume_py.history.formats.registry import FORMATS
from plume_py.history.generate import generate
from plume_py.history.inject import inject
from plume_py.history.model import History

LEVELS = ("CI", "RC", "RA", "TCC")
EXTENSIONS = {"json": "json", "jsonl": "jsonl", "plume": "txt", "dbcop": "bincode", "edn": "edn"}
GUARANTEES = ("SER", "SI", "PSI", "PC", "TCC", "RA", "RC")
BREAKS = {  # which of LEVELS a planted pattern breaks
    **dict.fromkeys("abcdefghi", ("RC", "RA", "TCC")),
    "j": ("CI", "RA", "TCC"),
    **dict.fromkeys("kl", ("RA", "TCC")),
    **dict.fromkeys("mn", ("TCC",)),
}
# (share, sessions, transactions per session, operations per transaction): mostly tiny, a few large.
SIZES = ((0.85, 3, 5, 4), (0.12, 10, 20, 8), (0.027, 25, 40, 10), (0.003, 25, 200, 20))

TIME, MEMORY = "time limit", "memory limit"


@dataclass(frozen=True)
class Expected:
    """What a scan must say about one history; ``taps`` is None where more than the planted patterns may show."""

    outcome: str
    broken: tuple[str, ...] = ()
    taps: tuple[str, ...] | None = None
    reason: str = ""


def make(folder: Path, histories: int = 5_000, corrupt: int = 50, limits: bool = True) -> dict[str, Expected]:
    """Fill ``folder``; what must be found, by path below it. Kept in a file beside it, so that it is made only once."""
    manifest = folder.with_name(f"{folder.name}-expected.json")
    if manifest.exists():
        return {name: Expected(**_tuples(fields)) for name, fields in json.loads(manifest.read_text()).items()}
    folder.mkdir(parents=True)
    expected: dict[str, Expected] = {}
    sound = histories - corrupt - (3 if limits else 0)
    for i in range(sound):
        name, content, found = _history(i, sound)
        _write(folder / name, content)
        expected[name.removesuffix("/history.edn")] = found
    for i in range(corrupt):
        name, content = _corrupt(i)
        _write(folder / name, content)
        expected[name] = Expected("unreadable")
    if limits:
        expected |= _beyond_limits(folder)
    _others(folder)
    manifest.write_text(json.dumps({name: vars(found) for name, found in expected.items()}))
    return expected


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _history(i: int, of: int) -> tuple[str, bytes, Expected]:
    """The i-th: size, level, patterns and format each go round at a pace of their own."""
    share, shape = (i * 0.618034) % 1, SIZES[0]
    for shape in SIZES:
        share -= shape[0]
        if share < 0:
            break
    _, sessions, transactions, operations = shape
    guarantee = GUARANTEES[i % len(GUARANTEES)]
    keys = max(10, sessions * transactions // 2)
    history = generate(
        guarantee, sessions=sessions, transactions=transactions, operations=operations, keys=keys, seed=i
    )
    planted = _planted(i, guarantee)
    if planted:
        history, _ = inject(history, dict.fromkeys(planted, 1), i)
    broken = {level for tap in planted for level in BREAKS[tap]}
    # Weaker bases may show more than what was planted, and what breaks CI shows as a fractured read, too.
    exact = guarantee not in ("RA", "RC") and "j" not in planted
    found = Expected(
        "violated" if broken else "holds",
        tuple(level for level in LEVELS if level in broken),
        tuple(planted) if exact else None,
    )
    name, content = _encoded(i, history)
    return name, content, found


def _planted(i: int, guarantee: str) -> list[str]:
    """Nothing in most; in bases below TCC enough that each level's verdict is known."""
    n = i // len(GUARANTEES)
    if guarantee == "RC":
        return ["j", "hiklabcdefg"[n % 11]]
    if guarantee == "RA":
        return ["abcdefghiklmn"[n % 13]]
    return ["abcdefghijklmn"[n // 4 % 14]] if n % 4 == 0 else []


def _encoded(i: int, history: History) -> tuple[str, bytes]:
    """A path and the bytes: all formats that we write, some compressed, some as a Jepsen run."""
    format = list(EXTENSIONS)[i // 3 % len(EXTENSIONS)]
    try:
        content = b"".join(FORMATS[format].load_writer()(history).chunks)
    except ConversionError:  # what the format cannot express
        format = "json"
        content = b"".join(FORMATS[format].load_writer()(history).chunks)
    folder = f"run-{i // 500:02}/{format}"
    if format == "edn" and i % 7 == 0:
        return f"{folder}/{i:05}/history.edn", content
    name = f"{folder}/{i:05}.{EXTENSIONS[format]}"
    if i % 11 == 0:
        return f"{name}.gz", gzip.compress(content, 1, mtime=0)
    return name, content


def _corrupt(i: int) -> tuple[str, bytes]:
    """Files that begin as histories do, and then go wrong."""
    history = generate("SER", sessions=3, transactions=5, operations=4, keys=10, seed=i)
    whole = {name: b"".join(FORMATS[name].load_writer()(history).chunks) for name in EXTENSIONS}
    kinds = (
        ("json", whole["json"][: -20 - i]),
        ("edn", whole["edn"][: -15 - i]),
        ("json.gz", gzip.compress(whole["json"], mtime=0)[: -10 - i % 5]),
        ("bincode", whole["dbcop"][: -9 - i % 20]),
        ("txt", whole["plume"] + b"r(1,2,\xff\n"),
        ("json", b'{"sessions":[[{"ops":[["w","x",1]]}],[{"ops":[["w","x",1],["r","x",1]]}]]}'),
        ("jsonl", whole["jsonl"] + b'{"session":0,"ops":[["w","x"]]}\n'),
    )
    ending, content = kinds[i % len(kinds)]
    return f"broken/{i:03}.{ending}", content


def _beyond_limits(folder: Path) -> dict[str, Expected]:
    """Two small files that unpack to very much, one of them without end in sight, and an honest large history."""
    endless = [b'{"session":0,"ops":[["w","x",1]]}\n' * 10, *[b"\n" * (64 << 20)] * 600]
    _write_members(folder / "large/endless.jsonl.gz", endless)
    _write_members(folder / "large/huge.json.gz", [b'{"sessions":[[', *[b" " * (64 << 20)] * 64, b"]]}"])
    history = generate("SER", sessions=50, transactions=4_000, operations=20, keys=10_000)
    with (folder / "large/honest.txt").open("wb") as file:
        file.writelines(FORMATS["plume"].load_writer()(history).chunks)
    return {
        "large/endless.jsonl.gz": Expected("undecided", reason=TIME),
        "large/huge.json.gz": Expected("undecided", reason=MEMORY),
        "large/honest.txt": Expected("undecided", reason=MEMORY),
    }


def _write_members(path: Path, pieces: list[bytes]) -> None:
    """A gzip file of many members, equal ones compressed only once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packed: dict[int, bytes] = {}
    with path.open("wb") as file:
        for piece in pieces:
            if id(piece) not in packed:
                packed[id(piece)] = gzip.compress(piece, 9, mtime=0)
            file.write(packed[id(piece)])


OTHERS: dict[str, bytes] = {
    "README.md": b"# Histories\n\nfrom many runs\n",
    "notes.txt": b"remember the milk\n",
    "setup/config.json": b'{"nodes": 5, "rate": 100}\n',
    "setup/versions.csv": b"name,version\ndb,3.1\n",
    "setup/picture.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "setup/run.log": b"Starting the run\nall done\n",
    "empty.log": b"",
}


def _others(folder: Path) -> None:
    """Files that are no histories: a scan skips them."""
    for name, content in OTHERS.items():
        _write(folder / name, content)
    for run in folder.glob("**/history.edn"):
        _write(run.with_name("results.edn"), b"{:valid? true}\n")
        _write(run.with_name("jepsen.log"), b"INFO everything looks good\n")


def mistakes(expected: dict[str, Expected], folder: Path, lines: Iterator[dict[str, Any]]) -> list[str]:
    """Where the results differ from what was planted: nowhere, one hopes."""
    found, missing = [], dict(expected)
    for line in lines:
        name = str(Path(line["history"]).relative_to(folder))
        wanted = missing.pop(name, None)
        if wanted is None:
            found.append(f"{name}: not expected, or twice")
            continue
        broken = tuple(level for level, verdict in line["levels"].items() if verdict["ok"] is False)
        reasons = {verdict["reason"] for verdict in line["levels"].values()}
        taps = tuple(sorted(line["counts"])) if wanted.taps is not None else None
        told = all(wanted.reason in str(reason) for reason in reasons)
        if (line["outcome"], broken, taps) != (wanted.outcome, wanted.broken, wanted.taps) or not told:
            found.append(f"{name}: {line['outcome']} {broken} {taps} {reasons}, and not {wanted}")
    return found + [f"{name}: no result" for name in missing]


if __name__ == "__main__":
    print(len(make(Path(sys.argv[1]))), "histories")
