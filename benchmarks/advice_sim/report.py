"""What came of it, as a page."""

import json
import time

from .ask import allocated, inferred
from .schedules import ENGINES

NAMES = {"postgresql": "PostgreSQL", "mysql": "MariaDB (InnoDB)"}
PROOFS = ("by default", "with --prove", "proved")


def judged_cases(folder):
    """The advice for each file, on both stores."""
    began, rows = time.process_time(), {}
    for path in sorted(folder.glob("*.sql")):
        for store in ENGINES:
            row = rows.setdefault(path.name, {})
            row[f"allocate, {store}"] = _said(lambda p=path, s=store: _levels(allocated(p, s)))
            row[f"infer, {store}"] = _said(lambda p=path, s=store: _inferred(inferred(p, s, 60.0)))
    return rows, time.process_time() - began


def _said(ask):
    try:
        return ask()
    except Exception as error:  # a refusal is an answer
        return str(error).split(", ", 1)[-1]


def _levels(levels):
    return " ".join(f"{name} {level}" for name, level in levels.items())


def _inferred(answer):
    if not answer.vectors:
        return answer.open.split(", ", 1)[-1]
    return "; ".join(f"{claim}: {_levels(levels)}" for claim, levels in answer.vectors.items())


def page(files):
    """All parts that have been run."""
    known = {part: json.loads(path.read_text()) for part, path in files.items() if path.exists()}
    lines = ["### The advice of allocate and infer, attacked", ""]
    for part, found in known.items():
        lines += SECTIONS[part.split(" ")[0]](part, found["rows"], found["seconds"])
    return "\n".join(lines).rstrip() + "\n"


def _table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(r) + " |" for r in rows), ""]


def _number(counts, name):
    return f"{round(counts.get(name, 0)):,}"


def _allocate(part, rows, seconds):
    head = ["store", "programs", "some level below SERIALIZABLE", "runs", "rolled back", "not serializable"]
    names = ["programs", "some below SERIALIZABLE", "runs", "aborted", "wrong"]
    body = [[NAMES[store], *(_number(counts, name) for name in names)] for store, counts in rows.items()]
    down = [
        f"{NAMES[s]} {_number(c, 'one step down, refuted')} of {_number(c, 'one step down')}" for s, c in rows.items()
    ]
    return [
        f"**allocate**, at the levels it gives, in random interleavings of the simulator ({seconds:,} s of CPU)",
        "",
        *_table(head, body),
        f"One transaction one level lower, in every twentieth program: refuted by a run in {', '.join(down)}.",
        "",
    ]


def _infer(part, rows, seconds):
    head = ["store", "programs", "answer", "answers", "some level below SERIALIZABLE", "invariant broken"]
    body = [
        [
            NAMES[store],
            _number(counts, "programs"),
            claim,
            _number(counts, f"answers {claim}"),
            _number(counts, f"{claim}, some below SERIALIZABLE"),
            _number(counts, f"wrong {claim}"),
        ]
        for store, counts in rows.items()
        for claim in PROOFS
    ]
    runs = sum(counts.get("runs", 0) for counts in rows.values())
    return [
        f"**infer**, programs that keep their invariant alone, {runs:,} runs of the simulator ({seconds:,} s of CPU)",
        "",
        *_table(head, body),
    ]


def _stepped(part, rows, seconds):
    head = ["store", "stepped runs", "with a wait", "the same in the simulator", "elsewhere in it", "outside"]
    names = ["stepped runs", "with a wait", "the same", "elsewhere", "outside"]
    body = [[NAMES[store], *(_number(counts, name) for name in names)] for store, counts in rows.items()]
    return ["**The simulator against a server**, random programs at random levels", "", *_table(head, body)]


def _real(part, rows, seconds):
    head = ["server", "runs", "with a wait", "programs", "committed", "rolled back", "deadlocks", "failures", "broken"]
    body = [
        [
            NAMES[store],
            _number(counts, "runs"),
            _number(counts, "runs with a wait"),
            f"{_number(counts, 'programs, allocate')} of allocate, {_number(counts, 'programs, infer')} of infer",
            *(
                _number(counts, name)
                for name in ("committed", "aborted", "deadlocks", "serialization failures", "broken")
            ),
        ]
        for store, counts in rows.items()
    ]
    return [
        f"**Real runs** at advised levels, in which one connection waits for another ({seconds:,} s)",
        "",
        *_table(head, body),
    ]


def _cases(part, rows, seconds):
    found = [[name, asked, said] for name, row in rows.items() for asked, said in row.items()]
    return ["**Cases**", "", *_table(["file", "asked", "said"], found)]


SECTIONS = {"allocate": _allocate, "infer": _infer, "stepped": _stepped, "real": _real, "cases": _cases}
