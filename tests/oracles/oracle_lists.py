"""What the reads of lists say (decision 6), from the definition alone and for tiny histories.

A read of a list splits into an external part, which others appended, and an own part. Here is what can be wrong with
either, and the order of the writers that clean lists fix.
"""

from itertools import combinations


def split(items, own, later):
    """(external part, what is wrong with the own part) of a read that has the appends ``own`` before it."""
    found = set()
    future = set(later) - set(own)
    if future.intersection(items):
        found.add("c")
    shown = [v for v in items if v not in future]
    if own and (shown[-len(own) :] != own or set(own).intersection(shown[: -len(own)])):
        found.add("e" if shown and shown[-1] in own else "d")
    return [v for v in items if v not in own and v not in future], found


def judge(part, appends, aborted):
    """What is wrong with an external part.

    ``appends(v)`` is all that the writer of v appended, in its order, or None if nobody appended v; ``aborted(v)`` says
    whether that writer aborted. What stands there too often is set aside, and the rest is judged without it.
    """
    found, once = set(), []
    for v in part:
        if appends(v) is None:
            found.add("a")
        elif aborted(v):
            found.add("b")
        if once.count(v) == (appends(v) or [v]).count(v):
            found.add("duplicate")
        else:
            once.append(v)
    whole = {tuple(appends(v)) for v in once if appends(v) is not None and not aborted(v)}
    return found.union(*(_judge_block(once, block) for block in whole))


def _judge_block(part, block):
    """One writer's appends must be there whole, together and in order; at the end its last may be missing: f."""
    places = [at for at, v in enumerate(part) if v in block]
    shown = tuple(part[at] for at in places)
    together = places[-1] - places[0] == len(places) - 1
    if not together or shown != block[: len(shown)]:
        return {"torn"}
    if len(shown) < len(block):
        return {"f"} if places[-1] == len(part) - 1 else {"torn"}
    return set()


class KeyOrder:
    """The order of the writers of one key that its clean lists fix; each list is followed by what its reader adds."""

    def __init__(self, lists, writer):
        self.lists, self.writer = lists, writer
        self.longest = max(lists, key=len, default=[])
        self.compatible = all(self.longest[: len(items)] == items for items in lists)

    def shown(self):
        """Pairs of writers in the order in which some list shows them."""
        for items in self.lists:
            yield from ((a, b) for a, b in combinations(map(self.writer, items), 2) if a != b)

    def unseen(self, writers):
        """A writer that the longest list does not show comes after all that it shows."""
        shown = [self.writer(v) for v in self.longest]
        return {(shown[-1], t) for t in writers if shown and t not in shown}
