"""How input is damaged: byte by byte, word by word, and by the structure of what it holds."""

import json
import random
import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

NUMBERS = (
    b"0",
    b"-1",
    b"9223372036854775808",
    b"18446744073709551616",
    b"1e400",
    b"0.5",
    b"9" * 5000,
    b"-" + b"9" * 300,
)
NESTING = (b"[", b"{", b"(", b'{"a":', b"[[{", b"#_", b"- ")
PIECES = (
    b"null",
    b"nil",
    b"true",
    b'"',
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\x00",
    b"\n",
    b"\r\n",
    b"\xef\xbb\xbf",
    b",",
    b":",
)


def spot(content: bytes, rng: random.Random) -> tuple[int, int]:
    one, other = rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)
    return min(one, other), max(one, other)


def flip(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content or b"x")
    for _ in range(rng.randint(1, 4)):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def duplicate(content: bytes, rng: random.Random) -> bytes:
    begin, end = spot(content, rng)
    return content[:end] + content[begin:end] * rng.choice((1, 1, 2, 40)) + content[end:]


def delete(content: bytes, rng: random.Random) -> bytes:
    begin, end = spot(content, rng)
    return content[:begin] + content[min(end, begin + rng.randint(1, 20)) :]


def insert(content: bytes, rng: random.Random) -> bytes:
    at, _ = spot(content, rng)
    return content[:at] + rng.choice((*PIECES, rng.randbytes(3))) + content[at:]


def blow_up(content: bytes, rng: random.Random) -> bytes:
    found = list(re.finditer(rb"-?\d+", content))
    if not found:
        return flip(content, rng)
    one = rng.choice(found)
    return content[: one.start()] + rng.choice(NUMBERS) + content[one.end() :]


def nest(content: bytes, rng: random.Random) -> bytes:
    at, _ = spot(content, rng)
    return content[:at] + rng.choice(NESTING) * rng.choice((3, 70, 3000)) + content[at:]


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...]
BYTES = flip, truncate, duplicate, delete, insert, blow_up, nest


# By words: numbers, names, strings and signs, of the file itself and of those that mean something somewhere.

WORD = re.compile(rb'"(?:[^"\\]|\\.)*"|[\w.:@$-]+|\s+|.', re.S)
WORDS = (
    *(b"w r append read write ok info fail invoke committed aborted unknown".split()),
    *(b"sessions ops status initial level id".split()),
    *(b":f :value :type :process :txn nil #{} #inst -1 0 1e9 NaN 0x10 true false null".split()),
    *(b"16r1F 017 08 1/2 4/2 1/0 1.50M 0x \\a \\newline \\u0041 sym 'x isInitial range".split()),
    *(b"SELECT UPDATE INSERT DELETE WHERE FROM SET VALUES AND OR NOT BEGIN COMMIT ROLLBACK IF THEN ELSE END".split()),
    *(b"; ( ) , = <> <= + - * / % ' -- /* */ :x @x $1 ? NULL DEFAULT PRIMARY KEY CHECK REFERENCES".split()),
)


def words(content: bytes, rng: random.Random) -> bytes:
    """Leave out, double, exchange or replace some words."""
    parts = WORD.findall(content)
    for _ in range(rng.randint(1, 3)):
        if not parts:
            break
        at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
        match rng.randrange(5):
            case 0:
                del parts[at]
            case 1:
                parts.insert(at, parts[other])
            case 2:
                parts[at], parts[other] = parts[other], parts[at]
            case 3:
                parts[at] = rng.choice(WORDS)
            case _:
                parts[at:at] = parts[min(at, other) : max(at, other)] * rng.choice((1, 1, 30))
    return b"".join(parts)


def kind_of(word: bytes) -> int:
    """Words of one kind can stand for each other without harm to the syntax."""
    if word.startswith(b'"'):
        return 1
    if re.fullmatch(rb"-?\d+", word):
        return 2
    return 3 if re.fullmatch(rb"[A-Za-z_]\w*", word) else 0


def exchange(content: bytes, rng: random.Random) -> bytes:
    """Put words in the place of others of their kind: mostly another valid file, with other readers."""
    parts = WORD.findall(content)
    kinds = [kind_of(part) for part in parts]
    alike = {kind: [i for i, k in enumerate(kinds) if k == kind] for kind in (1, 2, 3)}
    for _ in range(rng.randint(1, 5)):
        spots = alike[rng.choice((1, 2, 2, 3))]
        if spots:
            source = parts[rng.choice(spots)]
            parts[rng.choice(spots)] = source if rng.random() < 0.9 else source + b"1"
    return b"".join(parts)


# By structure: JSON, and JSON line by line.

HOSTILE = (
    *(None, True, False, 0, -1, 1.5, 2**53, 2**63, -(2**63) - 1, 10**400, 1e308),
    *("", "x", "0", " ", "\x00", "\x1b[31m"),
    *("::error::x", "##[error]x", "\u202e", "\ud800", "a\nb", "é" * 5_000, [], {}, [[]], {"": None}, [0] * 5_000),
)


def places(value: Any, parent: Any = None, at: Any = None) -> list[tuple[Any, Any]]:
    """Every spot of a document, as (what holds it, where)."""
    found, todo = [], [(parent, at, value)]
    while todo:
        parent, at, value = todo.pop()
        if parent is not None:
            found.append((parent, at))
        if isinstance(value, dict):
            todo += [(value, key, item) for key, item in value.items()]
        elif isinstance(value, list):
            todo += [(value, i, item) for i, item in enumerate(value)]
    return found


def change(document: Any, rng: random.Random) -> Any:
    """One change somewhere in a document."""
    spots = places(document)
    if not spots:
        return deepcopy(rng.choice(HOSTILE))
    parent, at = rng.choice(spots)
    other, there = rng.choice(spots)
    match rng.randrange(7):
        case 0:
            del parent[at]
        case 1:
            parent[at] = deepcopy(rng.choice(HOSTILE))
        case 2:
            parent[at] = deepcopy(other[there])
        case 3:
            parent[at] = [parent[at]]
        case 4:
            parent[at] = {"id": parent[at]}
        case 5 if isinstance(parent, list):
            parent[at:at] = [deepcopy(other[there]) for _ in range(rng.choice((1, 2, 50)))]
        case _ if isinstance(parent, dict):
            parent[rng.choice((*WORDS[:17], b"x", b"")).decode()] = parent.pop(at)
    return document


def tree(content: bytes, rng: random.Random) -> bytes:
    """Some changes in a JSON document, or in some lines of one per line; other content is damaged by words."""
    try:
        document, lines = json.loads(content), False
    except ValueError:
        try:
            document, lines = [json.loads(line) for line in content.splitlines()], True
        except ValueError:
            return words(content, rng)
    for _ in range(rng.randint(1, 3)):
        document = change(document, rng)
    if lines and isinstance(document, list):
        return b"\n".join(json.dumps(item).encode() for item in document) + b"\n"
    return json.dumps(document).encode()


def damage(content: bytes, rng: random.Random) -> bytes:
    """Mostly by structure: files that are broken as text are turned down before anything interesting happens."""
    kind = rng.random()
    if kind < 0.5:
        return exchange(content, rng)
    if kind < 0.75:
        return tree(content, rng)
    if kind < 0.9:
        return words(content, rng)
    for _ in range(rng.choice((1, 1, 2, 3))):
        content = rng.choice(BYTES)(content, rng)
    return content
