"""When the transactions of a session are due, if they do not simply follow each other.

An open loop: transactions arrive whether those before have ended or not, as those of people do who know nothing of each
other. Who has to wait for a session that is busy waits longer, and that is part of what the database is measured by.
"""

import random
from collections.abc import Iterator
from itertools import count

from plume_py.collect.workload import Shape

ARRIVALS = ("poisson", "fixed")

NANOSECONDS = 10**9


def arrivals(shape: Shape, session: int) -> Iterator[int]:
    """In nanoseconds from the beginning of the run, without end; those of all sessions together come at ``rate``."""
    assert shape.rate
    if shape.arrivals == "fixed":
        for number in count(session, shape.sessions):
            yield round(number * NANOSECONDS / shape.rate)
    rng = random.Random(f"{shape.seed}:{session}:arrivals")
    at = 0.0
    while True:
        at += rng.expovariate(shape.rate / shape.sessions)
        yield round(at * NANOSECONDS)
