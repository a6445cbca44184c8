"""Writes a history in which every transaction reads and writes one hot key, and a key of its session's own.

``python -m benchmarks.hot_key OUT SER|TCC SESSIONS TRANSACTIONS``. The generator draws keys for each operation anew, so
it cannot promise a key that everybody writes. Version n of the hot key is the n-th commit.
"""

import random
import sys

HOT = 0


def history(guarantee: str, sessions: int, transactions: int) -> list[str]:
    """Lines of Plume text, session by session."""
    rng = random.Random(0)
    order = [session for session in range(sessions) for _ in range(transactions)]
    rng.shuffle(order)
    newest = [0] * sessions  # the newest version that a session knows of
    done = [0] * sessions
    lines: list[list[str]] = [[] for _ in range(sessions)]
    for commit, s in enumerate(order, 1):
        # Under SER everything is known; under TCC what the session knows and, at times, what another one does.
        known = commit - 1 if guarantee == "SER" else max(newest[s], newest[rng.randrange(sessions)])
        txn = s * transactions + done[s]
        steps = (("r", HOT, known), ("w", HOT, commit), ("r", s + 1, done[s]), ("w", s + 1, done[s] + 1))
        lines[s] += [f"{kind}({key},{value},{s},{txn})\n" for kind, key, value in steps]
        newest[s] = commit
        done[s] += 1
    return [line for session in lines for line in session]


if __name__ == "__main__":
    target, level, how_many, each = sys.argv[1:]
    with open(target, "w") as file:  # noqa: PTH123
        file.writelines(history(level, int(how_many), int(each)))
