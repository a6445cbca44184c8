"""The table of anomalies: Plume's 14 transactional anomalous patterns (TAPs), four of lists, six of strong levels.

The checker, the reports and the documentation read this table. In conditions, t3 reads key x from t1, and t2 is another
writer of x. SO is session order, WR reads-from, CO causal order (SO and WR), and CM the commit order that the level of
the pattern forces. TAPs a to n are from Plume; the other patterns are ours.
"""

from dataclasses import dataclass
from enum import Enum, auto

DUPLICATE, TORN, INCOMPATIBLE = "duplicate-element", "torn-append", "incompatible-order"
VERSION_CYCLE = "version-order-cycle"
LOST_UPDATE, LONG_FORK, WRITE_SKEW = "lost-update", "long-fork", "write-skew"
READ_ONLY_ANOMALY, CAUSALITY, CYCLE = "read-only-anomaly", "causality", "cycle"


class Kind(Enum):
    """The evidence that shows a pattern."""

    READ = auto()  # one read
    REREAD = auto()  # two reads of one key by one transaction
    LIST = auto()  # one or two reads of a list
    CYCLE = auto()  # a cycle of known edges
    TRIPLE = auto()  # t1, t2, t3 and x: a level forces t2 before t1, but t1 comes first
    ARGUMENT = auto()  # a proof by cases that no commit order is possible


@dataclass(frozen=True)
class Pattern:
    """One pattern; ``level`` is the weakest level that forbids it, ``aliases`` are Adya's and Jepsen's names for it."""

    id: str
    name: str
    level: str
    kind: Kind
    description: str
    condition: str
    cause: str
    aliases: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """``TAP-k`` for a pattern of Plume, else the id."""
        return f"TAP-{self.id}" if self.has_letter else self.id

    @property
    def title(self) -> str:
        """``TAP-k FracturedReadCO`` for a pattern of Plume, else the name."""
        return f"{self.label} {self.name}" if self.has_letter else self.name

    @property
    def has_letter(self) -> bool:
        """Whether it is a pattern of Plume: their ids are letters."""
        return len(self.id) == 1


TAPS: dict[str, Pattern] = {
    tap.id: tap
    for tap in (
        Pattern(
            "a",
            "ThinAirRead",
            "RC",
            Kind.READ,
            "a read returns a value that nobody wrote",
            "t3 reads x = v, no transaction writes v to x, and v is not the initial value",
            "corruption, a lost or mangled write, or a recorder that missed a transaction",
            ("garbage-read",),
        ),
        Pattern(
            "b",
            "AbortedRead",
            "RC",
            Kind.READ,
            "a read returns a value of a transaction that aborted",
            "t3 reads x = v, and the transaction that wrote v to x aborted",
            "uncommitted data is visible, or roll-back leaves it behind",
            ("G1a",),
        ),
        Pattern(
            "c",
            "FutureRead",
            "RC",
            Kind.READ,
            "a transaction reads a value that it writes only later",
            "t3 reads x = v and afterwards itself writes v to x",
            "writes are applied before their turn, or the recorder mixed up the order",
            ("future-read",),
        ),
        Pattern(
            "d",
            "NotMyOwnWrite",
            "RC",
            Kind.READ,
            "after its own write, a transaction reads another's value",
            "t3 writes x and afterwards reads x from another transaction",
            "a transaction's own writes are not overlaid on its reads, or are lost",
            ("internal",),
        ),
        Pattern(
            "e",
            "NotMyLastWrite",
            "RC",
            Kind.READ,
            "a transaction reads its own write, but not the last one",
            "t3 writes x = v, then x = u, and afterwards reads x = v",
            "own writes are buffered in the wrong order or partly lost",
            ("internal",),
        ),
        Pattern(
            "f",
            "IntermediateRead",
            "RC",
            Kind.READ,
            "a read returns a value that its writer overwrote before it committed",
            "t1 writes x = v and later x = u, and t3 reads x = v",
            "writes become visible one by one instead of at commit",
            ("G1b",),
        ),
        Pattern(
            "g",
            "CyclicCO",
            "RC",
            Kind.CYCLE,
            "transactions causally precede each other",
            "SO and WR form a cycle",
            "transactions see each other's uncommitted writes, or effects precede causes",
            ("G1c",),
        ),
        Pattern(
            "h",
            "NonMonoReadCO",
            "RC",
            Kind.TRIPLE,
            "a transaction reads a version that another one, from which it has already read, overwrote",
            "t3 reads from t2, and afterwards x from t1; t2 writes x; t1 CO t2",
            "reads go to replicas of different freshness, or to several snapshots in turn",
            ("G-single",),
        ),
        Pattern(
            "i",
            "NonMonoReadCM",
            "RC",
            Kind.TRIPLE,
            "readers that have already read from both writers of a key disagree on their order",
            "t3 reads from t2, and afterwards x from t1; t2 writes x; t1 CM t2",
            "readers do not agree on the order of concurrent writes, within one transaction already",
            ("G-single",),
        ),
        Pattern(
            "j",
            "NonRepeatableRead",
            "CI",
            Kind.REREAD,
            "a transaction reads one key from two different transactions",
            "t3 reads x from t1 and from t2, t1 != t2, neither being t3",
            "reads of one transaction do not share a snapshot",
            ("internal", "P2"),
        ),
        Pattern(
            "k",
            "FracturedReadCO",
            "RA",
            Kind.TRIPLE,
            "a transaction sees its session's past, or whom it read from, only in part: it reads an older version",
            "t2 SO t3 or t2 WR t3; t3 reads x from t1; t2 writes x; t1 CO t2",
            "commit is not atomic for readers, or a session does not see its own past",
            ("G-single",),
        ),
        Pattern(
            "l",
            "FracturedReadCM",
            "RA",
            Kind.TRIPLE,
            "readers that see both writers of a key disagree on their order",
            "t2 SO t3 or t2 WR t3; t3 reads x from t1; t2 writes x; t1 CM t2",
            "concurrent writers win on some keys and lose on others",
            ("G-single",),
        ),
        Pattern(
            "m",
            "COConflictCM",
            "TCC",
            Kind.TRIPLE,
            "a transaction reads a version that something in its causal past overwrote",
            "t2 CO t3; t3 reads x from t1; t2 writes x; t1 CO t2",
            "causal dependencies are not tracked, or a dependency is shown before what it depends on",
            ("G-single",),
        ),
        Pattern(
            "n",
            "ConflictCM",
            "TCC",
            Kind.TRIPLE,
            "causally consistent readers disagree on the order of concurrent writes",
            "t2 CO t3; t3 reads x from t1; t2 writes x; t1 CM t2",
            "replicas do not converge on one order of concurrent writes",
            ("G-single",),
        ),
        Pattern(
            DUPLICATE,
            "DuplicateElement",
            "RC",
            Kind.LIST,
            "a list shows an element twice",
            "a read returns a list in which a value occurs more than once",
            "an append was applied twice, for example by a retry that is not idempotent",
            ("duplicate-elements",),
        ),
        Pattern(
            TORN,
            "TornAppend",
            "RC",
            Kind.LIST,
            "a list shows the appends of one transaction incompletely, apart, or in another order",
            "a read of x shows some appends of t1 to x, and not all of them together and as t1 made them; if only the "
            "last ones are missing, at the end of the list, it is TAP-f",
            "an append was lost, or the writes of a transaction are applied one by one, among those of others",
        ),
        Pattern(
            INCOMPATIBLE,
            "IncompatibleOrder",
            "RC",
            Kind.LIST,
            "two reads show a list in orders that contradict each other",
            "neither of two reads of x is a prefix of the other",
            "appends were lost, or replicas apply them in different orders",
            ("incompatible-order",),
        ),
        Pattern(
            VERSION_CYCLE,
            "CyclicVersionOrder",
            "RC",
            Kind.CYCLE,
            "the version orders that lists fix contradict each other or the causal order",
            "SO, WR and the version orders of lists form a cycle; who is in no list comes after the longest",
            "writes of two transactions are interleaved",
            ("G0", "G1c"),
        ),
    )
}

STRONG: dict[str, Pattern] = {
    tap.id: tap
    for tap in (
        Pattern(
            CAUSALITY,
            "Causality",
            "TCC",
            Kind.ARGUMENT,
            "a transaction misses what it must have seen through another one",
            "t2 CO t3, as the levels of those in between have it; t3 reads x from before t2's write",
            "levels are mixed, and a transaction trusts one that was promised less",
            ("G-single",),
        ),
        Pattern(
            LOST_UPDATE,
            "LostUpdate",
            "PSI",
            Kind.ARGUMENT,
            "a transaction overwrites a version that it has not seen",
            "t1 WW(x) t2 and t2 RW(x) t1, in whatever order t1 and t2 wrote x",
            "first-committer-wins is not enforced: two read-modify-writes of one key ran side by side",
            ("lost-update", "P4", "G-single"),
        ),
        Pattern(
            LONG_FORK,
            "LongFork",
            "PC",
            Kind.ARGUMENT,
            "readers see independent writes in orders that contradict each other",
            "t1 WR t3 RW t2 WR t4 RW t1: t3 saw t1 but not t2, t4 saw t2 but not t1; or a longer round of that kind",
            "snapshots are taken from replicas that apply commits in different orders",
            ("long-fork", "G-nonadjacent"),
        ),
        Pattern(
            WRITE_SKEW,
            "WriteSkew",
            "SER",
            Kind.ARGUMENT,
            "transactions each read what another one overwrites, and write apart",
            "a cycle of RW alone: none saw what the next one wrote",
            "snapshot isolation where serializability was promised: reads are not validated at commit",
            ("write-skew", "A5B", "G2-item"),
        ),
        Pattern(
            READ_ONLY_ANOMALY,
            "ReadOnlyAnomaly",
            "SER",
            Kind.ARGUMENT,
            "a transaction that only reads rules out every order of the others",
            "a cycle with two RW in a row, on which some transaction writes nothing",
            "read-only transactions are let through unvalidated beside serializable writers",
            ("G2-item",),
        ),
        Pattern(
            CYCLE,
            "DependencyCycle",
            "SER",
            Kind.ARGUMENT,
            "transactions would have to precede each other",
            "a cycle of SO, WR, WW and RW that the level does not allow",
            "transactions ran interleaved, and the conflict went unnoticed",
            ("G-single", "G-nonadjacent", "G2-item"),
        ),
    )
}

PATTERNS: dict[str, Pattern] = TAPS | STRONG
LABELS = frozenset(pattern.label for pattern in PATTERNS.values())

# Patterns that a read or list shows without other transactions; they violate every level except CI.
BASE: tuple[str, ...] = tuple(tap.id for tap in TAPS.values() if tap.kind in (Kind.READ, Kind.LIST))

# The patterns of triples (t1, t2, t3, x) by level: the first if t1 CO t2, the second otherwise.
TRIPLES = {"RC": "hi", "RA": "kl", "TCC": "mn"}
ORDERED = ("RC", "RA", "TCC")


def forbidden_at(level: str) -> list[str]:
    """Return the ids of the patterns that violate a weak level, in the order of the table."""
    if level == "CI":
        return ["j"]
    allowed = ORDERED[: ORDERED.index(level) + 1] if level in ORDERED else ORDERED
    return [tap.id for tap in TAPS.values() if tap.level in allowed or (tap.id == "j" and level != "RC")]
