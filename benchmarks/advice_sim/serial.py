"""Transactions one after the other: what every other run is measured by."""

from itertools import permutations

from .programs import Delete, GaveUpError, Insert, Scan, Select, Update, aggregate, in_order, interpret, value


class RefusedError(Exception):
    """A key is there already."""


def matching(state, table, where):
    return [row for row in state[table] if where is None or value(where, {}, row, asker(state)) is True]


def asker(state):
    def ask(expr):
        _, function, column, table, where = expr
        return aggregate(function, column, matching(state, table, where))

    return ask


def execute(app, state, stmt):
    """One statement with its values filled in, on a state that it changes."""
    if isinstance(stmt, Insert):
        table = app.table(stmt.table)
        row = dict(zip(table.columns, (value(v, {}, None, asker(state)) for v in stmt.values), strict=True))
        if table.key and (
            row[table.key] is None or any(other[table.key] == row[table.key] for other in state[stmt.table])
        ):
            raise RefusedError
        state[stmt.table].append(row)
        return 1
    rows = matching(state, stmt.table, stmt.where)
    if isinstance(stmt, Select | Scan):
        return selected(stmt, rows)
    if isinstance(stmt, Update):
        new = [{c: value(v, {}, row, asker(state)) for c, v in stmt.sets} for row in rows]
        for row, sets in zip(rows, new, strict=True):
            row.update(sets)
    elif isinstance(stmt, Delete):
        state[stmt.table] = [row for row in state[stmt.table] if not any(row is gone for gone in rows)]
    return len(rows)


def selected(stmt, rows):
    """What a SELECT returns of the rows that match."""
    if isinstance(stmt, Scan):
        return [tuple(row[c] for c in stmt.columns) for row in rows]
    if any(isinstance(w, tuple) and w[0] == "agg" for w in stmt.what):
        return [tuple(aggregate(w[1], w[2], rows) for w in stmt.what)]
    return [tuple(value(w, {}, row) for w in stmt.what) for row in rows]


def run_one(app, state, body, args):
    """A transaction by itself: the state after it, and what it has read; the state as it was if it gives up."""
    now = {table: [dict(row) for row in rows] for table, rows in state.items()}
    running, log, answer = interpret(body, dict(args), app.missing), [], None
    try:
        while True:
            stmt = running.send(answer)
            answer = execute(app, now, stmt)
            if isinstance(stmt, Select | Scan):
                log.append(tuple(in_order(answer)))
    except StopIteration:
        return now, tuple(log), True
    except (GaveUpError, RefusedError):
        return state, tuple(log), False


def frozen(state):
    return tuple((name, tuple(in_order(tuple(row.values()) for row in rows))) for name, rows in sorted(state.items()))


def serial_outcomes(app, state, calls):
    """For each order of calls (session, body, args) that keeps sessions' orders: what each reads, and the end."""
    found = set()
    for order in permutations(range(len(calls))):
        if any(order.index(a) > order.index(b) for b in order for a in range(b) if calls[a][0] == calls[b][0]):
            continue
        now, logs = state, [()] * len(calls)
        for i in order:
            now, logs[i], done = run_one(app, now, calls[i][1], calls[i][2])
            if not done:
                break
        else:
            found.add((tuple(logs), frozen(now)))
    return found


def holds(app, state):
    """The names of the invariants that are broken."""
    ask = asker(state)
    return [name for name, condition in app.invariants if value(condition, {}, None, ask) is not True]
