"""One small valid file of everything that is read."""

import struct

from plume_py.history.builder import HistoryBuilder
from plume_py.history.formats.registry import FORMATS

FOLDERS = {"cobra": "T1.log", "viper": "J1.log"}  # formats of which a history is a folder


def histories() -> dict[str, bytes]:
    """One small file of each format."""
    builder = HistoryBuilder(0)
    builder.add(0, [("w", 1, 5), ("w", 2, 6), ("r", 3, 0)])
    builder.add(1, [("r", 1, 5), ("w", 3, 7)])
    builder.add(1, [("w", 4, 8), ("r", 1, 5)], status="aborted")
    builder.add(2, [("r", 3, 7), ("r", 2, 6)])
    plain = builder.build()
    builder = HistoryBuilder(None, per_second=1000)
    builder.add("a", [("w", "x", 1), ("append", ":l", 2), ("r", 'q"\n', None)], id="t1", begin=1, end=5)
    builder.add("b", [("r", "x", 1), ("r", ":l", [2, 3])], status="unknown", begin=3)
    builder.add("b", [("append", ":l", 3), ("r", ":m", [])], begin=4, end=9)
    rich = builder.build()
    files = {
        name: b"".join(FORMATS[name].load_writer()(rich if name in ("json", "jsonl", "edn") else plain).chunks)
        for name, fmt in FORMATS.items()
        if fmt.writer
    }
    invoke = b'{"type":"invoke","process":0,"f":"txn","value":[["append","x",1],["r","y",null]],"time":3}'
    ok = b'{"type":"ok","process":0,"f":"txn","value":[["append","x",1],["r","y",[3]]],"time":8}'
    event = b"    - write: true\n      variable: 1\n      value: 2\n      success: true\n"
    begin, end = b"S" + struct.pack(">q", 1), b"C" + struct.pack(">q", 1)
    return files | {
        "dbcop-hist": b"// first\n[x:=1 y:=1] [x==1 z==?]\n[y:=3]!\n---\n[y==1]\n",
        "dbcop-yaml": b"---\n- - events:\n" + event * 2 + b"    success: true\n- []\n",
        "elle-json": b"[" + invoke + b",\n" + ok + b"]",
        "awdit": b"w 0 1\nr 1 0\n-----\nr 0 1\n=====\nw 1 2\n",
        "isopredict": b"WRITE KEY[x] Txn(1, 0)\nREAD KEY[x] Txn(2, 1) From(1, 0)\nREAD KEY[y] Txn(2, 0) From(0, 0)\n",
        "cobra": begin + b"W" + struct.pack(">3q", 7, -5, 9) + b"R" + struct.pack(">4q", 1, 0xABDDEFEE, -5, 9) + end,
        "viper": b'{"value":[["w",5,1,true],["range",0,9,[{"id":7,"val":3}]]],"isInitial":true}\n'
        b'{"value":[["w",5,2,true],["r",6,8,false]]}\n{"value":[["r",7,3],["w",6,2,false]]}\n',
    }


HISTORIES = histories()

# Native JSON Lines that say when everything began and ended.
TIMED = b"""{"initial": 0, "ticks_per_second": 1000}
{"session": "a", "start": 0, "end": 10, "ops": [["w", "x", 1]]}
{"session": "b", "start": 20, "end": 30, "ops": [["r", "x", 0]]}
{"session": "a", "start": 15, "status": "unknown", "ops": [["w", "x", 2]]}
{"session": "c", "start": 40, "end": null, "ops": [["r", "x", 2]]}
"""
