"""What breaks the strong levels, by the names that people use for it; the same table as for the weak patterns."""

from plume_py.weak.taps import TAPS, Tap

LOST_UPDATE, LONG_FORK, WRITE_SKEW = "lost-update", "long-fork", "write-skew"
READ_ONLY_ANOMALY, CAUSALITY, CYCLE = "read-only-anomaly", "causality", "cycle"

STRONG: dict[str, Tap] = {
    tap.letter: tap
    for tap in (
        Tap(
            CAUSALITY,
            "Causality",
            "TCC",
            "a transaction misses what it must have seen through another one",
            "t2 CO t3, as the levels of those in between have it; t3 reads x from before t2's write",
            "levels are mixed, and a transaction trusts one that was promised less",
            ("G-single",),
        ),
        Tap(
            LOST_UPDATE,
            "LostUpdate",
            "PSI",
            "a transaction overwrites a version that it has not seen",
            "t1 WW(x) t2 and t2 RW(x) t1, in whatever order t1 and t2 wrote x",
            "first-committer-wins is not enforced: two read-modify-writes of one key ran side by side",
            ("lost-update", "P4", "G-single"),
        ),
        Tap(
            LONG_FORK,
            "LongFork",
            "PC",
            "readers see independent writes in orders that contradict each other",
            "t1 WR t3 RW t2 WR t4 RW t1: t3 saw t1 but not t2, t4 saw t2 but not t1; or a longer round of that kind",
            "snapshots are taken from replicas that apply commits in different orders",
            ("long-fork", "G-nonadjacent"),
        ),
        Tap(
            WRITE_SKEW,
            "WriteSkew",
            "SER",
            "transactions each read what another one overwrites, and write apart",
            "a cycle of RW alone: none saw what the next one wrote",
            "snapshot isolation where serializability was promised: reads are not validated at commit",
            ("write-skew", "A5B", "G2-item"),
        ),
        Tap(
            READ_ONLY_ANOMALY,
            "ReadOnlyAnomaly",
            "SER",
            "a transaction that only reads rules out every order of the others",
            "a cycle with two RW in a row, on which some transaction writes nothing",
            "read-only transactions are let through unvalidated beside serializable writers",
            ("G2-item",),
        ),
        Tap(
            CYCLE,
            "DependencyCycle",
            "SER",
            "transactions would have to precede each other",
            "a cycle of SO, WR, WW and RW that the level does not allow",
            "transactions ran interleaved, and the conflict went unnoticed",
            ("G-single", "G-nonadjacent", "G2-item"),
        ),
    )
}

PATTERNS: dict[str, Tap] = TAPS | STRONG
