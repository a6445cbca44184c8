"""PostgreSQL, from chapter 13 of its manual and the stepped experiments of this benchmark.

READ COMMITTED: a statement sees what was committed when it began. UPDATE, DELETE and SELECT … FOR UPDATE look for rows
there, wait for whoever holds one, and look at its newest version again: if it is gone it is left out, also if another
row has its key now; if it does not match any more, too. Subqueries are answered as of the beginning. REPEATABLE READ
sees what was committed when its first statement began, and fails where it would lock what was changed since.
SERIALIZABLE is the same, and of runs with a dangerous structure among serializable transactions some member fails.
An INSERT waits for whoever is writing a row with its key, and then looks whether one is there, at every level.
"""

from .engine import AbortError, Engine, Wait
from .programs import Delete, Insert, Scan, Select, Update, aggregate, pinned, value
from .serial import frozen, selected


class Row:
    """A chain of versions (time, place, values or None), the newest last; one that is not committed in ``pending``."""

    def __init__(self):
        self.versions, self.holder, self.pending, self.is_written = [], None, None, False

    def newest(self, txn=None):
        if self.is_written and self.holder is txn:
            return self.pending
        return self.versions[-1][2] if self.versions else None

    def visible(self, txn, snapshot):
        if self.is_written and self.holder is txn:
            return self.pending
        return next((values for time, _, values in reversed(self.versions) if time <= snapshot), None)

    def place(self, txn, snapshot):
        if self.is_written and self.holder is txn:
            return (1, self.pending_place)
        return (0, next(place for time, place, _ in reversed(self.versions) if time <= snapshot))

    def changed_since(self, snapshot):
        return bool(self.versions) and self.versions[-1][0] > snapshot


class Postgres(Engine):
    levels = ("RC", "SI", "SER")

    def load(self, state):
        self.places, self.rows = 0, {name: [] for name in state}
        for name, rows in state.items():
            for values in rows:
                row = Row()
                row.versions.append((0, self.next_place(), dict(values)))
                self.rows[name].append(row)

    def next_place(self):
        self.places += 1
        return self.places

    def state(self):
        return {name: [r.newest() for r in rows if r.newest() is not None] for name, rows in self.rows.items()}

    def begin_statement(self, txn):
        if txn.level == "RC" or txn.snapshot is None:
            txn.snapshot = self.time
        return txn.snapshot

    def execute(self, txn, stmt):
        snapshot = self.begin_statement(txn)
        if isinstance(stmt, Insert):
            yield from self.insert(txn, stmt, snapshot)
            return 1
        if isinstance(stmt, Select | Scan) and not stmt.lock:
            return selected(stmt, [values for _, values in self.find(txn, stmt.table, stmt.where, snapshot)])
        taken = yield from self.take(txn, stmt, snapshot)
        if isinstance(stmt, Select | Scan):
            return selected(stmt, [values for _, values in taken])
        return len(taken)

    def find(self, txn, table, where, snapshot):
        """Rows and what the snapshot shows of them, where they match."""
        self.note_read(txn, table, where)
        shown = [(row, row.visible(txn, snapshot)) for row in self.rows[table]]
        shown = [(row, values) for row, values in shown if values is not None]
        shown.sort(key=lambda pair: pair[0].place(txn, snapshot))
        ask = self.asker(txn, snapshot)
        return [(row, v) for row, v in shown if where is None or value(where, {}, v, ask) is True]

    def asker(self, txn, snapshot):
        def ask(expr):
            _, function, column, table, where = expr
            return aggregate(function, column, [v for _, v in self.find(txn, table, where, snapshot)])

        return ask

    def take(self, txn, stmt, snapshot):
        """Find rows, lock each, look again, and change it."""
        found = self.find(txn, stmt.table, stmt.where, snapshot)
        ask = self.asker(txn, snapshot)
        # what an uncorrelated subquery of SET says is settled before the first row is waited for
        taken = []
        for row, values in found:
            yield from self.between()
            while row.holder not in (None, txn):
                yield Wait(lambda row=row: {row.holder} - {None})
            now = values
            if row.holder is not txn and row.changed_since(snapshot):
                if txn.level != "RC":
                    raise AbortError("could not serialize access")
                now = row.newest()
                if now is None:
                    continue
                row.holder = txn
                if stmt.where is not None and value(stmt.where, {}, now, ask) is not True:
                    continue
            row.holder = txn
            taken.append((row, now))
            yield from self.change(txn, stmt, row, now, ask)
        return taken

    def change(self, txn, stmt, row, now, ask):
        table = self.app.table(stmt.table)
        if isinstance(stmt, Update):
            new = {**now, **{column: value(expr, {}, now, ask) for column, expr in stmt.sets}}
            if table.key and new[table.key] != now[table.key]:
                yield from self.claim(txn, table, new[table.key])
                self.note_write(txn, table, new)
            self.note_write(txn, table, now)
            row.is_written, row.pending, row.pending_place = True, new, self.next_place()
        elif isinstance(stmt, Delete):
            self.note_write(txn, table, now)
            row.is_written, row.pending, row.pending_place = True, None, self.next_place()

    def insert(self, txn, stmt, snapshot):
        table, ask = self.app.table(stmt.table), self.asker(txn, snapshot)
        values = dict(zip(table.columns, (value(v, {}, None, ask) for v in stmt.values), strict=True))
        if table.key:
            if values[table.key] is None:
                raise AbortError("null key")
            yield from self.claim(txn, table, values[table.key])
        row = Row()
        row.holder, row.is_written, row.pending, row.pending_place = txn, True, values, self.next_place()
        self.note_write(txn, table, values)
        self.rows[stmt.table].append(row)

    def claim(self, txn, table, key):
        """Wait for whoever writes a row of this key; fail if one is there then."""

        def has_key(values):
            return values is not None and values[table.key] == key

        def writers():
            return {
                row.holder
                for row in self.rows[table.name]
                if row.is_written and row.holder is not txn and (has_key(row.pending) or has_key(row.newest()))
            }

        while writers():
            yield Wait(writers)
        if any(has_key(row.newest(txn)) for row in self.rows[table.name]):
            raise AbortError("duplicate key")

    def commit(self, txn):
        for rows in self.rows.values():
            for row in rows:
                if row.holder is txn:
                    if row.is_written:
                        row.versions.append((self.time, row.pending_place, row.pending))
                    row.holder, row.is_written = None, False

    def undo(self, txn):
        for name, rows in self.rows.items():
            for row in rows:
                if row.holder is txn:
                    row.holder, row.is_written, row.pending = None, False, None
            self.rows[name] = [row for row in rows if row.versions or row.holder is not None]

    def note_read(self, txn, table, where):
        key = self.app.table(table).key
        txn.reads.append((table, pinned(where, key) if key else None))

    def note_write(self, txn, table, values):
        txn.writes.append((table.name, values[table.key] if table.key else None))

    def accepts(self, txns):
        """No dangerous structure among serializable transactions that have committed."""
        done = [t for t in txns if t.status == "committed" and t.level == "SER" and t.snapshot is not None]
        edges = {(a, b) for a in done for b in done if a is not b and _misses(a, b)}
        for a, b in edges:
            for c in done:
                first = (b, c) in edges and c.ended <= a.ended and c.ended <= b.ended
                if first and (a.writes or c.ended <= a.snapshot):
                    return False
        return True

    def ends(self):
        return frozen(self.state())


def _misses(a, b):
    """Did a read, without seeing it, what b wrote while both ran?"""
    if b.ended <= a.snapshot or a.ended <= b.snapshot:
        return False
    return any(
        table == other and (key is None or own is None or key == own)
        for table, key in a.reads
        for other, own in b.writes
    )
