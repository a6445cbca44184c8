"""Random applications: one to three tables, two or three transactions, and an invariant that each keeps by itself."""

from .programs import App, Delete, For, If, Insert, Rollback, Scan, Select, Table, Transaction, Update, value
from .schedules import Setting
from .serial import holds, run_one

T = Table("t", ("id", "g", "v"), "id")
U = Table("u", ("id", "w"), "id")
N = Table("n", ("k", "x"))
KEYS = (1, 2, 3)
NUMBERS = {"t": "v", "u": "w", "n": "x"}


def var(name):
    return ("var", name)


def col(name):
    return ("col", name)


def equal(column, expr):
    return ("=", col(column), expr)


def count(table, where=None):
    return ("agg", "COUNT", "*", table, where)


def total(table, where=None):
    return ("agg", "SUM", NUMBERS[table], table, where)


class Body:
    """Statements one after the other; ``found`` are the variables that have a value by now."""

    def __init__(self, rng, tables, params, style):
        self.rng, self.tables, self.params, self.style = rng, tables, params, style
        self.asks_null = style.get("null", 0)
        self.found, self.fresh, self.rows, self.steps = [], 0, [], rng.choice((0, 0, 1, 2))

    def new(self):
        self.fresh += 1
        return f"q{self.fresh}"

    def keyed(self):
        return self.rng.choice([t for t in self.tables if t.key])

    def key(self):
        if self.rows and self.rng.random() < 0.4:
            return var(f"{self.rng.choice(self.rows)}.id")
        keys = [var(p) for p in self.params if p != "d"]
        return self.rng.choice([*keys, *keys, *keys, self.rng.choice(KEYS)]) if keys else self.rng.choice((1, 1, 2))

    def small(self):
        choices = [0, 1, 1, 2]
        if "d" in self.params:
            choices += [var("d")] * 2
        return self.rng.choice(choices)

    def step(self):
        """By how much a number changes: no two alike, so that nothing is undone or done twice unseen."""
        self.steps += 1
        return var("d") if "d" in self.params and self.rng.random() < 0.3 else self.steps

    def known(self):
        choices = [var(name) for name in self.found] + [var(f"{row}.v") for row in self.rows]
        return self.rng.choice(choices) if choices else self.small()

    def amount(self):
        base = self.known() if self.rng.random() < 0.8 else self.small()
        return (self.rng.choice("+-"), base, self.step()) if self.rng.random() < 0.7 else base

    def condition(self):
        """Of rows, other than by their key."""
        table = self.rng.choice(self.tables)
        return table, self.on(table)

    def on(self, table):
        if table.name == "t" and self.rng.random() < 0.6:
            return equal("g", self.small())
        if table.name == "n" and self.rng.random() < 0.4:
            return equal("k", self.key())
        return (self.rng.choice(("=", ">", "<=", ">=")), col(NUMBERS[table.name]), self.small())

    def statements(self, most, depth=0):
        return tuple(s for _ in range(self.rng.randint(min(most, 2), most)) for s in self.one(depth))

    def one(self, depth):
        kinds = {
            "get": 6, "lock": 3, "count": 4, "change": 5, "set": 4, "guarded": 3, "scan": 3, "insert": 3, "delete": 2,
            "replace": 2, "sweep": 1, "log": 2, "move": 2, "ask": 2,
        }  # fmt: skip
        if depth < 2:
            kinds |= {"if": 6, "for": 2}
        kinds = {kind: weight * self.style.get(kind, 1) for kind, weight in kinds.items()}
        kind = self.rng.choices(list(kinds), list(kinds.values()))[0]
        return getattr(self, f"make_{kind}")(depth)

    def make_get(self, depth, lock=False):
        table, name = self.keyed(), self.new()
        made = Select((name,), (col(NUMBERS[table.name]),), table.name, equal("id", self.key()), lock)
        self.found.append(name)
        return [made]

    def make_lock(self, depth):
        return self.make_get(depth, True)

    def make_count(self, depth):
        table, where = self.condition()
        where = self.rng.choice((where, None))
        name = self.new()
        asked = self.rng.choice((count(table.name, where), total(table.name, where)))
        self.found.append(name)
        return [Select((name,), (asked,), table.name, where)]

    def make_change(self, depth):
        table = self.keyed()
        column = NUMBERS[table.name]
        change = (self.rng.choice("+-"), col(column), self.rng.choice((self.step(), self.known())))
        return [Update(table.name, ((column, change),), equal("id", self.key()))]

    def make_set(self, depth):
        table = self.keyed()
        column = "g" if table.name == "t" and self.rng.random() < 0.3 else NUMBERS[table.name]
        return [
            Update(table.name, ((column, self.small() if column == "g" else self.amount()),), equal("id", self.key()))
        ]

    def make_guarded(self, depth):
        table = self.keyed()
        column, amount = NUMBERS[table.name], self.step()
        guard = self.rng.choice(((">=", col(column), amount), self.on(table)))
        return [Update(table.name, ((column, ("-", col(column), amount)),), ("and", equal("id", self.key()), guard))]

    def make_scan(self, depth):
        table, where = self.condition()
        column = NUMBERS[table.name]
        new = self.rng.choice((("+", col(column), self.step()), self.amount()))
        sets = (("g", self.small()),) if table.name == "t" and self.rng.random() < 0.3 else ((column, new),)
        return [Update(table.name, sets, self.rng.choice((where, where, None)))]

    def make_ask(self, depth):
        """A subquery in an UPDATE: what to set, or whether to."""
        table = self.keyed()
        column, (other, where) = NUMBERS[table.name], self.condition()
        asked = self.rng.choice((count(other.name, where), total(other.name, where), count(other.name)))
        if self.rng.random() < 0.5:
            return [Update(table.name, ((column, ("+", asked, self.step())),), equal("id", self.key()))]
        guard = ("and", equal("id", self.key()), (self.rng.choice((">", "<=", "=")), asked, self.small()))
        return [Update(table.name, ((column, ("+", col(column), self.step())),), guard)]

    def make_insert(self, depth):
        table = self.keyed()
        values = (self.key(), self.small(), self.amount()) if table.name == "t" else (self.key(), self.amount())
        return [Insert(table.name, values)]

    def make_delete(self, depth):
        table = self.keyed()
        return [Delete(table.name, equal("id", self.key()))]

    def make_replace(self, depth):
        table, key, name = self.keyed(), self.key(), self.new()
        read = Select((name,), (col(NUMBERS[table.name]),), table.name, equal("id", key), self.rng.random() < 0.5)
        again = self.rng.choice((var(name), ("+", var(name), 1)))
        self.found.append(name)
        values = (key, self.small(), again) if table.name == "t" else (key, again)
        return [read, Delete(table.name, equal("id", key)), Insert(table.name, values)]

    def make_sweep(self, depth):
        table, where = self.condition()
        return [Delete(table.name, where)]

    def make_log(self, depth):
        if N not in self.tables:
            return self.make_insert(depth)
        return [Insert("n", (self.key(), self.amount()))]

    def make_move(self, depth):
        table, amount = self.keyed(), self.rng.choice((self.step(), self.known()))
        column, one, other = NUMBERS[table.name], self.key(), self.key()
        return [
            Update(table.name, ((column, ("-", col(column), amount)),), equal("id", one)),
            Update(table.name, ((column, ("+", col(column), amount)),), equal("id", other)),
        ]

    def make_if(self, depth):
        before = [] if self.found or self.rows else self.make_get(depth)
        if self.asks_null and self.rng.random() < 0.4:
            return [*before, self.branches(("isnull", self.known()), depth)]
        condition = (self.rng.choice(("=", ">", "<=", ">=", "<")), self.known(), self.small())
        return [*before, self.branches(condition, depth)]

    def branches(self, condition, depth):
        before = list(self.found)
        if self.rng.random() < 0.3:
            return If(condition, (Rollback(),))
        then = self.statements(2, depth + 1)
        self.found = list(before)
        otherwise = self.statements(1, depth + 1) if self.rng.random() < 0.25 else ()
        self.found = before
        return If(condition, then, otherwise)

    def make_for(self, depth):
        if T not in self.tables:
            return self.make_count(depth)
        row = f"r{self.new()}"
        before = list(self.found)
        self.rows.append(row)
        body = self.statements(1, depth + 2)
        self.rows.pop()
        self.found = before
        return [For(row, Scan(("id", "v"), "t", self.on(T), self.rng.random() < 0.3), body)]


WRITES = ("change", "set", "guarded", "scan", "insert", "delete", "replace", "sweep", "log", "move", "ask")


def random_style(rng):
    """Some kinds of statements and no others, so that not every application has a bit of everything."""
    kinds = ["get", "lock", "count", "if", "for", *WRITES]
    left_out = rng.sample(kinds, rng.choice((0, 6, 9, 11)))
    return dict.fromkeys(left_out, 0) if {"change", "get"} & ({*kinds} - {*left_out}) else {}


def random_transaction(rng, name, tables, style=None):
    params = rng.choice((("i",), ("i",), ("i", "d"), ("i", "j"), ("i", "j", "d"), ()))
    style = style or {}
    if rng.random() < 0.25:
        style = {**style, **dict.fromkeys(WRITES, 0), "get": 1}
    body = Body(rng, tables, params, style).statements(rng.choice((1, 2, 2, 3, 4)))
    assume = (">=", var("d"), 1) if "d" in params and rng.random() < 0.5 else None
    return Transaction(name, params, body, assume)


def random_invariants(rng, tables):
    """One or two conditions on states."""
    names = [t.name for t in tables]
    number = NUMBERS[names[0]]
    choices = [
        ("nonneg", ("=", count(names[0], ("<", col(number), 0)), 0)),
        ("bound", ("<=", total(names[0]), rng.choice((3, 4, 5)))),
        ("some", (">=", total(names[0]), rng.choice((0, 1)))),
        ("there", (">=", count(names[0], equal("id", 1)), 1)),
        ("few", ("<=", count(names[0]), rng.choice((2, 3)))),
    ]
    if T in tables:
        group = equal("g", 1)
        choices += [("group_few", ("<=", count("t", group), 2)), ("group_some", (">=", count("t", group), 1))]
        choices += [("group_sum", (">=", total("t", group), 0))]
    if U in tables and T in tables:
        choices += [
            ("balanced", ("=", total("t"), total("u"))),
            ("covered", (">=", total("u"), count("t", group))),
            ("follows", ("or", ("=", count("u", equal("w", 1)), 0), (">=", count("t", equal("v", 1)), 1))),
        ]
    if N in tables:
        choices += [("log_few", ("<=", count("n"), 3)), ("log_pays", ("<=", count("n"), total(names[0])))]
    return tuple(rng.sample(choices, 1 if rng.random() < 0.8 else 2))


def random_app(rng, nulls=False):
    """``nulls``: SELECT … INTO without a row gives NULL, and the program may ask."""
    tables = rng.choice(((T,), (T,), (T, U), (T, U), (U,), (T, N), (U, N)))
    names = "PQR"[: rng.choice((1, 2, 2, 2, 2, 3))]
    style = random_style(rng) | {"null": nulls}
    transactions = tuple(random_transaction(rng, name, tables, style) for name in names)
    return App(tables, transactions, random_invariants(rng, tables), "null" if nulls else "rollback")


def shrinking(app):
    """The tables in which rows come or go."""
    found = set()

    def look(body):
        for stmt in body:
            if isinstance(stmt, Insert | Delete):
                found.add(stmt.table)
            elif isinstance(stmt, If):
                look((*stmt.then, *stmt.otherwise))
            elif isinstance(stmt, For):
                look(stmt.body)

    for txn in app.transactions:
        look(txn.body)
    return found


def random_state(rng, app):
    """Rows that are updated by key are there in tables to which none are added, as allocate says that it assumes."""
    come = shrinking(app)
    numbers = rng.choice(((0, 0, 1, 1, 2, 3),) * 4 + ((-2, -1, 0, 1, 2, 5),))
    if app.missing == "null":
        numbers = (*numbers, rng.choice((0, None)))
    there, state = rng.choice((0.0, 0.3, 0.8, 1.0)), {}
    for table in app.tables:
        keys = [k for k in KEYS if table.name not in come or rng.random() < there]
        if table.key is None:
            keys = [rng.choice(KEYS) for _ in range(rng.choice((0, 1, 2)))]
        state[table.name] = [
            {c: k if c in ("id", "k") else rng.choice((0, 1, 1) if c == "g" else numbers) for c in table.columns}
            for k in keys
        ]
    return state


def random_args(rng, txn, keys=(1, 1, 1, 1, 2, 3)):
    while True:
        args = {p: rng.choice((-1, 0, 1, 2)) if p == "d" else rng.choice(keys) for p in txn.params}
        if txn.assume is None or value(txn.assume, args) is True:
            return args


def random_setting(rng, app, most=3, keeping=False):
    """Two or three calls, mostly in sessions of their own; ``keeping``: from a state that keeps the invariant."""
    for _ in range(200):
        state = random_state(rng, app)
        if not keeping or not holds(app, state):
            break
    else:
        return None
    calls = []
    keys = rng.choice(((1,), (1, 2), KEYS))
    chosen = rng.sample(app.transactions, len(app.transactions)) if rng.random() < 0.6 else []
    for i in range(rng.choice((2, 2, most))):
        txn = chosen.pop() if chosen else rng.choice(app.transactions)
        session = i - 1 if i and rng.random() < 0.15 else i
        calls.append((session, txn.name, tuple(random_args(rng, txn, keys).items())))
    return Setting(state, tuple(calls))


def keeps_alone(rng, app, tries=60):
    """Does each transaction keep the invariant when it runs by itself, as far as can be seen? And do any write?"""
    changes = False
    for txn in app.transactions:
        for _ in range(tries):
            setting = random_setting(rng, app, keeping=True)
            if setting is None:
                return False
            after, _, done = run_one(app, setting.state, txn.body, random_args(rng, txn))
            changes |= done and after != setting.state
            if done and holds(app, after):
                return False
    return changes
