"""A small multi-version engine that runs a tiny workload in a random interleaving, each transaction at its own level.

It keeps what the documentation of the engines promises and no more. READ COMMITTED reads the latest committed version
at each statement; a snapshot level (PC, SI) reads as of its first statement, and SI fails when it writes what was
committed since. Writers hold their rows until the end. SERIALIZABLE is one of two: ``locks`` (readers hold their rows,
too), or ``ssi``: SI, and whoever would complete a pair of RW edges between three SERIALIZABLE transactions of which
the last committed first, fails; others are not looked at. A run is judged by the serial runs of what committed, their
reads and what they leave.

Two more kinds of access: "l" locks its cell and reads it, "g" is a guarded update: it updates, or has only looked.
"""

from oracle_runs import Txn, serial_reads


class Run:
    """One run; ``step`` moves a transaction on, if it is not blocked."""

    def __init__(self, txns, levels, outcome, serializable):
        self.txns, self.levels, self.serializable = txns, levels, serializable
        self.ops = [[op for op, kept in zip(txn.ops, kept_ops, strict=True) if kept] for txn, kept_ops in outcome]
        n = len(txns)
        self.at, self.state = [0] * n, ["waiting"] * n
        self.snapshot, self.ended = [None] * n, [None] * n
        self.reads, self.writes, self.held = [{} for _ in txns], [set() for _ in txns], [set() for _ in txns]
        self.read_order = [[] for _ in txns]
        self.versions = {}  # cell -> [(time, writer)]
        self.clock = 0

    def running(self, t):
        return self.state[t] == "running"

    def may_start(self, t):
        """Its session predecessor is done."""
        return all(
            self.state[s] in ("committed", "failed") for s in range(t) if self.txns[s].session == self.txns[t].session
        )

    def blocked(self, t):
        kind, cell, _ = self.ops[t][self.at[t]]
        others = [s for s in range(len(self.txns)) if s != t and self.running(s)]
        locking = self.levels[t] == "SER" and self.serializable == "locks"
        if (kind != "r" or locking) and any(cell in self.writes[s] | self.held[s] for s in others):
            return True
        if kind != "r" and self.serializable == "locks":
            return any(self.levels[s] == "SER" and cell in self.reads[s] for s in others)
        return False

    def step(self, t):
        """Do the next thing of t: begin, a statement, or the end. False if it has to wait."""
        if self.state[t] == "waiting":
            if not self.may_start(t):
                return False
            self.state[t] = "running"
        if self.at[t] == len(self.ops[t]):
            self.commit(t)
            return True
        if self.blocked(t):
            return False
        self.clock += 1
        if self.snapshot[t] is None:
            self.snapshot[t] = self.clock
        self.statement(t, *self.ops[t][self.at[t]][:2])
        self.at[t] += 1
        return True

    def by_snapshot(self, t):
        return self.levels[t] in ("PC", "SI") or (self.levels[t] == "SER" and self.serializable == "ssi")

    def statement(self, t, kind, cell):
        committed = self.versions.get(cell, [])
        if kind != "w" and cell not in self.writes[t]:
            seen = [w for time, w in committed if not self.by_snapshot(t) or time < self.snapshot[t]]
            if cell not in self.reads[t]:
                self.reads[t][cell] = seen[-1] if seen else -1
                self.read_order[t].append(cell)
            elif self.reads[t][cell] != (seen[-1] if seen else -1):
                self.state[t] = "split"  # two versions of one cell: no serial run shows that
        if kind == "l":
            self.held[t].add(cell)
        if kind != "r":
            snapshot_writer = self.by_snapshot(t) and self.levels[t] != "PC"
            if snapshot_writer and any(time > self.snapshot[t] for time, _ in committed):
                self.state[t] = "failed"
                return
        if kind in "wu":
            self.writes[t].add(cell)

    def commit(self, t):
        self.clock += 1
        self.ended[t] = self.clock
        self.state[t] = "committed"
        if self.serializable == "ssi" and self.levels[t] == "SER" and self.dangerous():
            self.state[t] = "failed"
            return
        for cell in self.writes[t]:
            self.versions.setdefault(cell, []).append((self.clock, t))

    def overwrites(self, b, a):
        """a -RW-> b between concurrent SERIALIZABLE transactions."""
        if a == b or self.ended[b] < self.snapshot[a] or self.ended[a] < self.snapshot[b]:
            return False
        return any(
            cell in self.writes[b] and (w == -1 or self.ended[w] < self.ended[b]) and w != b
            for cell, w in self.reads[a].items()
        )

    def dangerous(self):
        done = [
            t
            for t in range(len(self.txns))
            if self.state[t] == "committed" and self.levels[t] == "SER" and self.snapshot[t] is not None
        ]
        return any(
            self.overwrites(b, a) and self.overwrites(c, b) and self.ended[c] <= min(self.ended[a], self.ended[b])
            for a in done
            for b in done
            for c in done
        )


def random_run(rng, txns, levels, serializable):
    """A run to its end, or None if it came to a deadlock."""
    txns = [Txn(txn.session, [_turned_out(rng, op) for op in txn.ops]) for txn in txns]
    outcome = [(txn, [not op[2] or rng.random() < 0.5 for op in txn.ops]) for txn in txns]
    run = Run(txns, levels, outcome, serializable)
    while True:
        left = [t for t in range(len(txns)) if run.state[t] in ("waiting", "running")]
        if not left:
            return run
        rng.shuffle(left)
        if not any(run.step(t) for t in left):
            return None


def _turned_out(rng, op):
    kind, cell, maybe = op
    return (rng.choice("ur") if kind == "g" else kind), cell, maybe


def anomaly(run):
    """Is what committed (or read two versions of a cell) no serial run?"""
    if "split" in run.state:
        return True
    kept = [t for t, state in enumerate(run.state) if state == "committed"]
    number = {t: i for i, t in enumerate(kept)} | {-1: -1}
    so = {(number[a], number[b]) for b in kept for a in kept if a < b and run.txns[a].session == run.txns[b].session}
    sets = [(tuple(run.read_order[t]), frozenset(run.writes[t])) for t in kept]
    shown = tuple(tuple(number[run.reads[t][cell]] for cell in run.read_order[t]) for t in kept)
    left = sorted((cell, number[versions[-1][1]]) for cell, versions in run.versions.items())
    return (shown, tuple(left)) not in serial_reads(sets, so, left=True)
