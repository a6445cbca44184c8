"""The 14 transactional anomalous patterns (TAPs), and the four defects that only lists can show.

One table: the checker, the reports and the documentation all read it. ``t1 -WR(x)-> t3`` is the read in question and t2
another writer of x; CO is the causal order, CM the commit order that the pattern's own level forces.
"""

from dataclasses import dataclass

from plume_py.graph.lists import DUPLICATE, INCOMPATIBLE, TORN

VERSION_CYCLE = "version-order-cycle"


@dataclass(frozen=True)
class Tap:
    """One pattern; ``level`` is the weakest level that forbids it, ``aliases`` are Adya's and Jepsen's names for it."""

    letter: str
    name: str
    level: str
    description: str
    condition: str
    cause: str
    aliases: tuple[str, ...] = ()


TAPS: dict[str, Tap] = {
    tap.letter: tap
    for tap in (
        Tap(
            "a",
            "ThinAirRead",
            "RC",
            "a read returns a value that nobody wrote",
            "t3 reads x = v, no transaction writes v to x, and v is not the initial value",
            "corruption, a lost or mangled write, or a recorder that missed a transaction",
            ("garbage-read",),
        ),
        Tap(
            "b",
            "AbortedRead",
            "RC",
            "a read returns a value of a transaction that aborted",
            "t3 reads x = v, and the transaction that wrote v to x aborted",
            "uncommitted data is visible, or roll-back leaves it behind",
            ("G1a",),
        ),
        Tap(
            "c",
            "FutureRead",
            "RC",
            "a transaction reads a value that it writes only later",
            "t3 reads x = v and afterwards itself writes v to x",
            "writes are applied before their turn, or the recorder mixed up the order",
            ("future-read",),
        ),
        Tap(
            "d",
            "NotMyOwnWrite",
            "RC",
            "after its own write, a transaction reads another's value",
            "t3 writes x and afterwards reads x from another transaction",
            "a transaction's own writes are not overlaid on its reads, or are lost",
            ("internal",),
        ),
        Tap(
            "e",
            "NotMyLastWrite",
            "RC",
            "a transaction reads its own write, but not the last one",
            "t3 writes x = v, then x = u, and afterwards reads x = v",
            "own writes are buffered in the wrong order or partly lost",
            ("internal",),
        ),
        Tap(
            "f",
            "IntermediateRead",
            "RC",
            "a read returns a value that its writer overwrote before it committed",
            "t1 writes x = v and later x = u, and t3 reads x = v",
            "writes become visible one by one instead of at commit",
            ("G1b",),
        ),
        Tap(
            "g",
            "CyclicCO",
            "RC",
            "transactions causally precede each other",
            "SO and WR form a cycle",
            "transactions see each other's uncommitted writes, or effects precede causes",
            ("G1c",),
        ),
        Tap(
            "h",
            "NonMonoReadCO",
            "RC",
            "after seeing t2, a transaction reads an older version that t2 overwrote",
            "t3 reads from t2, and afterwards x from t1; t2 writes x; t1 CO t2",
            "reads go to replicas of different freshness, or to several snapshots in turn",
            ("G-single",),
        ),
        Tap(
            "i",
            "NonMonoReadCM",
            "RC",
            "as h, but t1 precedes t2 only by the commit order that other reads force",
            "t3 reads from t2, and afterwards x from t1; t2 writes x; t1 CM t2",
            "readers do not agree on the order of concurrent writes, within one transaction already",
            ("G-single",),
        ),
        Tap(
            "j",
            "NonRepeatableRead",
            "CI",
            "a transaction reads one key from two different transactions",
            "t3 reads x from t1 and from t2, t1 != t2, neither being t3",
            "reads of one transaction do not share a snapshot",
            ("internal", "P2"),
        ),
        Tap(
            "k",
            "FracturedReadCO",
            "RA",
            "a transaction sees part of t2 and, beside it, an older version of what t2 wrote",
            "t2 SO t3 or t2 WR t3; t3 reads x from t1; t2 writes x; t1 CO t2",
            "commit is not atomic for readers, or a session does not see its own past",
            ("G-single",),
        ),
        Tap(
            "l",
            "FracturedReadCM",
            "RA",
            "as k, but t1 precedes t2 only by the commit order that other reads force",
            "t2 SO t3 or t2 WR t3; t3 reads x from t1; t2 writes x; t1 CM t2",
            "concurrent writers win on some keys and lose on others",
            ("G-single",),
        ),
        Tap(
            "m",
            "COConflictCM",
            "TCC",
            "a transaction reads a version that something in its causal past overwrote",
            "t2 CO t3; t3 reads x from t1; t2 writes x; t1 CO t2",
            "causal dependencies are not tracked, or a dependency is shown before what it depends on",
            ("G-single",),
        ),
        Tap(
            "n",
            "ConflictCM",
            "TCC",
            "causally consistent readers disagree on the order of concurrent writes",
            "t2 CO t3; t3 reads x from t1; t2 writes x; t1 CM t2",
            "replicas do not converge on one order of concurrent writes",
            ("G-single",),
        ),
        Tap(
            DUPLICATE,
            "DuplicateElement",
            "RC",
            "a list shows an element twice",
            "a read returns a list in which a value occurs more than once",
            "an append was applied twice, for example by a retry that is not idempotent",
            ("duplicate-elements",),
        ),
        Tap(
            TORN,
            "TornAppend",
            "RC",
            "a list shows the appends of one transaction incompletely, apart, or in another order",
            "a read of x shows some appends of t1 to x, and not all of them together and as t1 made them; if only the "
            "last ones are missing, at the end of the list, it is TAP-f",
            "an append was lost, or the writes of a transaction are applied one by one, among those of others",
        ),
        Tap(
            INCOMPATIBLE,
            "IncompatibleOrder",
            "RC",
            "two reads show a list in orders that contradict each other",
            "neither of two reads of x is a prefix of the other",
            "appends were lost, or replicas apply them in different orders",
            ("incompatible-order",),
        ),
        Tap(
            VERSION_CYCLE,
            "CyclicVersionOrder",
            "RC",
            "the version orders that lists fix contradict each other or the causal order",
            "SO, WR and the version orders of lists form a cycle; who is in no list comes after the longest",
            "writes of two transactions are interleaved",
            ("G0", "G1c"),
        ),
    )
}

# The patterns that the triples (t1, t2, t3, x) can show: by level, first when t1 CO t2, else.
TRIPLES = {"RC": "hi", "RA": "kl", "TCC": "mn"}
ORDERED = ("RC", "RA", "TCC")


def forbidden_at(level: str) -> list[str]:
    """The patterns that count against ``level``, in the order of the table."""
    if level == "CI":
        return ["j"]
    allowed = ORDERED[: ORDERED.index(level) + 1] if level in ORDERED else ORDERED
    return [tap.letter for tap in TAPS.values() if tap.level in allowed or (tap.letter == "j" and level != "RC")]
