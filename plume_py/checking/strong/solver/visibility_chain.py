"""Why a transaction sees another one in a given commit order: the chain that leads from one to the other."""

from collections import deque
from typing import NamedTuple

import numpy as np

from plume_py.checking.strong.solver.layout import SolverColumns
from plume_py.checking.strong.solver.saturation import SO, WR, WW
from plume_py.history.model import Int32s
from plume_py.levels.table import EVERYTHING, PREFIX, WRITERS


class ChainLink(NamedTuple):
    """a is seen by b: a row (a, b, relation, key, read)."""

    a: int
    b: int
    relation: int
    key: int
    read: int


class Chains:
    """Chains in one commit order."""

    def __init__(self, layout: SolverColumns, order: Int32s) -> None:
        self.layout = layout
        self.place = np.full(layout.transactions, -1, np.int64)
        self.place[order] = np.arange(len(order))

    def chain(self, t2: int, t3: int) -> list[ChainLink]:
        """A shortest chain of links by which t3 sees t2; the first link may start behind t2, in a prefix with it."""
        sees = self.layout.sees
        parent: dict[int, ChainLink] = {}
        queue = deque([t3])
        while queue:
            b = queue.popleft()
            for link in self._links(b, int(self.place[t2])):
                prefix = sees[b] & (PREFIX | EVERYTHING) == PREFIX or sees[link.a] & EVERYTHING
                if link.a == t2 or prefix:
                    return self._followed(link, t3, parent)
                if link.a not in parent and link.a != t3:
                    parent[link.a] = link
                    queue.append(link.a)
        return []

    def _followed(self, link: ChainLink, t3: int, parent: dict[int, ChainLink]) -> list[ChainLink]:
        links = [link]
        while links[-1].b != t3:
            links.append(parent[links[-1].b])
        return links

    def _links(self, b: int, earliest: int) -> list[ChainLink]:
        """Who is seen by b directly, from ``earliest`` on in the order."""
        layout, place = self.layout, self.place
        found = []
        previous = layout.analysis.previous_in_session(b)
        while previous >= 0 and not layout.reads.live[previous]:
            previous = layout.analysis.previous_in_session(previous)
        if previous >= 0:
            found.append(ChainLink(previous, b, SO, -1, -1))
        if layout.analysis.real_time is not None:
            ended = layout.analysis.real_time.before(b)
            found += [ChainLink(a, b, SO, -1, -1) for a in ended[place[ended] >= earliest].tolist()]
        for r in range(layout.reads.read_start[b], layout.reads.read_start[b + 1]):
            if layout.read_source[r] >= 0:
                found.append(ChainLink(int(layout.read_source[r]), b, WR, int(layout.read_key[r]), r))
        if layout.sees[b] & (WRITERS | EVERYTHING) == WRITERS:
            start, key, _ = layout.writes
            for x in key[start[b] : start[b + 1]].tolist():
                writers = layout.key_writers[layout.key_start[x] : layout.key_start[x + 1]]
                earlier = writers[(place[writers] >= earliest) & (place[writers] < place[b])]
                found += [ChainLink(a, b, WW, x, -1) for a in earlier.tolist()]
        return [link for link in found if place[link.a] >= earliest]
