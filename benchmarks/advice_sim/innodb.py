"""InnoDB, from its manual and the stepped experiments of this benchmark.

Plain SELECTs are consistent reads: of what was committed when the statement began (READ COMMITTED), when the first of
them began (REPEATABLE READ), or they lock what they read to share it (SERIALIZABLE). UPDATE, DELETE and SELECT … FOR
UPDATE read the newest versions, one record after the other in the order of the key, and lock each. At READ COMMITTED
what does not match is let go, and a scanning UPDATE does not wait for what does not match as committed. At the other
levels every record that was passed stays locked, and so do the gaps between them, in which nobody else can insert.
Locks of gaps are taken as narrow as they can be, so that more can happen here than there.
"""

from .engine import AbortError, Engine, Wait
from .programs import NOTHING, Delete, Insert, Scan, Select, Update, aggregate, pinned, value
from .serial import frozen, selected

LOWEST, HIGHEST = float("-inf"), float("inf")


class Record:
    """Versions (time, values or None), the newest last; ``pending`` if ``writer`` has not committed."""

    def __init__(self):
        self.versions, self.writer, self.pending, self.locks = [], None, None, {}

    def newest(self, txn):
        return self.pending if self.writer is txn else self.committed()

    def committed(self):
        return self.versions[-1][1] if self.versions else None

    def visible(self, txn, snapshot):
        if self.writer is txn:
            return self.pending
        return next((values for time, values in reversed(self.versions) if time <= snapshot), None)

    def in_the_way(self, txn, mode):
        """Who holds what does not go with a lock of this mode."""
        return {other for other, held in self.locks.items() if other is not txn and (mode == "X" or held == "X")}


class Innodb(Engine):
    levels = ("RC", "RR", "SER")

    def load(self, state):
        self.hidden, self.records, self.gaps = 0, {name: {} for name in state}, []
        for name, rows in state.items():
            for values in rows:
                record = self.records[name][self.key_of(name, values)] = Record()
                record.versions.append((0, dict(values)))

    def key_of(self, name, values):
        key = self.app.table(name).key
        if key:
            return values[key]
        self.hidden += 1
        return self.hidden

    def state(self):
        return {
            name: [r.committed() for _, r in sorted(records.items()) if r.committed() is not None]
            for name, records in self.records.items()
        }

    def execute(self, txn, stmt):
        moment = self.time  # of a consistent read at READ COMMITTED
        if isinstance(stmt, Insert):
            yield from self.insert(txn, stmt, moment)
            return 1
        if isinstance(stmt, Select | Scan) and not stmt.lock:
            rows = yield from self.read(txn, stmt.table, stmt.where, moment)
            return selected(stmt, rows)
        taken = yield from self.take(txn, stmt, moment)
        return selected(stmt, taken) if isinstance(stmt, Select | Scan) else len(taken)

    def read(self, txn, table, where, moment):
        """A plain SELECT, or a subquery."""
        if txn.level == "SER":
            return (yield from self.scan(txn, table, where, "S", moment))
        if txn.level == "RR" and txn.snapshot is None:
            txn.snapshot = self.time
        snapshot = txn.snapshot if txn.level == "RR" else moment
        shown = [record.visible(txn, snapshot) for _, record in sorted(self.records[table].items())]
        return [v for v in shown if v is not None and (where is None or value(where, {}, v) is True)]

    def asked(self, txn, exprs, moment):
        """The subqueries in these expressions, answered; those of a statement that locks are locked, but not at RC."""
        answers = {}
        for expr in exprs:
            for query in _queries(expr):
                _, function, column, table, where = query
                if txn.level == "RC":
                    rows = yield from self.read(txn, table, where, moment)
                else:
                    rows = yield from self.scan(txn, table, where, "S", moment)
                answers[query] = aggregate(function, column, rows)
        return answers.__getitem__

    def settled(self, txn, where):
        """A condition without subqueries."""
        if not any(_queries(where)):
            return where
        return _answered(where, (yield from self.asked(txn, [where], self.time)))

    def scan(self, txn, table, where, mode, moment, each=None, semi=False):
        """Go over records, lock them, and do something with those that match.

        Subqueries are answered when a row is there to be looked at.
        """
        key = self.app.table(table).key
        fixed = pinned(where, key) if key else None
        if fixed is NOTHING:
            return []
        records, kept, last = self.records[table], [], LOWEST
        while True:
            yield from self.between()
            if fixed is not None:
                here = fixed if fixed in records and last is LOWEST else None
            else:
                here = min((k for k in records if k > last), default=None)
            if here is None:
                break
            self.lock_gap(txn, table, last, here, everything=fixed is None)
            record, last = records[here], here
            had = record.locks.get(txn)
            if semi and fixed is None and record.in_the_way(txn, mode):
                where = yield from self.settled(txn, where)
                shown = record.committed()
                if shown is None or (where is not None and value(where, {}, shown) is not True):
                    continue
            while record.in_the_way(txn, mode):
                yield Wait(lambda record=record: record.in_the_way(txn, mode))
            if records.get(here) is not record:  # its INSERT was undone
                continue
            record.locks[txn] = "X" if "X" in (mode, had) else "S"
            where = yield from self.settled(txn, where)
            values = record.newest(txn)
            if values is None or (where is not None and value(where, {}, values) is not True):
                if txn.level == "RC" and record.writer is not txn:
                    if had is None:
                        del record.locks[txn]
                    else:
                        record.locks[txn] = had
                continue
            kept.append(values)
            if each is not None:
                yield from each(here, record, values)
        if fixed is None or last is LOWEST:
            point = fixed is not None
            below = max((k for k in records if k < fixed), default=LOWEST) if point else last
            above = min((k for k in records if k > fixed), default=HIGHEST) if point else HIGHEST
            self.lock_gap(txn, table, below, above, everything=True)
        return kept

    def lock_gap(self, txn, table, below, above, everything):
        if txn.level != "RC" and everything:
            self.gaps.append((txn, table, below, above))

    def take(self, txn, stmt, moment):
        sets = stmt.sets if isinstance(stmt, Update) else ()
        answers = None

        def change(key, record, values):
            nonlocal answers
            table = self.app.table(stmt.table)
            if isinstance(stmt, Update):
                if answers is None:
                    answers = yield from self.asked(txn, [expr for _, expr in sets], self.time)
                ask = answers
                new = {**values, **{column: value(expr, {}, values, ask) for column, expr in stmt.sets}}
                if table.key and new[table.key] != values[table.key]:
                    self.write(txn, record, None)
                    yield from self.put(txn, stmt.table, new[table.key], new)
                elif new != values:  # what changes nothing is no new version
                    self.write(txn, record, new)
            elif isinstance(stmt, Delete):
                self.write(txn, record, None)
            yield from ()

        semi = txn.level == "RC" and isinstance(stmt, Update)
        return (yield from self.scan(txn, stmt.table, stmt.where, "X", moment, change, semi))

    def write(self, txn, record, values):
        record.writer, record.pending, record.locks[txn] = txn, values, "X"
        txn.writes.append(record)

    def insert(self, txn, stmt, moment):
        table = self.app.table(stmt.table)
        ask = yield from self.asked(txn, stmt.values, moment)
        values = dict(zip(table.columns, (value(v, {}, None, ask) for v in stmt.values), strict=True))
        key = self.key_of(stmt.table, values)
        if key is None:
            raise AbortError("null key")
        yield from self.put(txn, stmt.table, key, values)

    def put(self, txn, table, key, values):
        """Look whether the key is there, which locks it to share it; wait for gaps that others keep; write."""
        records = self.records[table]
        while key in records:
            record = records[key]
            if record.in_the_way(txn, "S"):
                yield Wait(lambda record=record: record.in_the_way(txn, "S"))
                continue
            if record.newest(txn) is not None:
                raise AbortError("duplicate key")
            record.locks.setdefault(txn, "S")
            if record.in_the_way(txn, "X"):
                yield Wait(lambda record=record: record.in_the_way(txn, "X"))
                continue
            break

        def keepers():
            return {t for t, name, low, high in self.gaps if t is not txn and name == table and low < key < high}

        if keepers():
            yield Wait(keepers)
            yield from self.put(txn, table, key, values)
            return
        self.write(txn, records.setdefault(key, Record()), values)

    def release(self, txn):
        self.gaps = [gap for gap in self.gaps if gap[0] is not txn]
        for records in self.records.values():
            for key, record in list(records.items()):
                record.locks.pop(txn, None)
                if not record.versions and record.writer is None and not record.locks:
                    del records[key]

    def commit(self, txn):
        for record in txn.writes:
            if record.writer is txn:
                record.versions.append((self.time, record.pending))
                record.writer = None
        self.release(txn)

    def undo(self, txn):
        for record in txn.writes:
            if record.writer is txn:
                record.writer, record.pending = None, None
        self.release(txn)

    def accepts(self, txns):
        """Locks decide, so whatever has happened can."""
        return True

    def ends(self):
        return frozen(self.state())


def _answered(expr, ask):
    """An expression with the answers in place of its subqueries."""
    if not isinstance(expr, tuple):
        return expr
    return ask(expr) if expr[0] == "agg" else (expr[0], *(_answered(part, ask) for part in expr[1:]))


def _queries(expr):
    if isinstance(expr, tuple):
        if expr[0] == "agg":
            yield expr
        else:
            for part in expr[1:]:
                yield from _queries(part)
