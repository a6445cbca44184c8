"""Transactions that mean to keep an invariant: they look first, and then act, more or less carefully."""

from .generate import NUMBERS, Body, N, T, U, col, count, equal, random_transaction, total, var
from .programs import App, Delete, For, If, Insert, Rollback, Scan, Select, Transaction, Update

ONE, OTHER, D = var("i"), var("j"), var("d")
GROUP = equal("g", 1)


class Recipe:
    """One kind of application: its tables, its invariant, and ways to write its transactions."""

    def __init__(self, rng):
        self.rng = rng

    def pick(self, *ways):
        return self.rng.choice(ways)()

    def read(self, table, key, into="q", lock=None):
        lock = self.rng.random() < 0.3 if lock is None else lock
        return Select((into,), (col(NUMBERS[table]),), table, equal("id", key), lock)

    def add(self, table, key, amount, sign="+", extra=None):
        """An UPDATE of its own, or of what was read as q."""
        column = NUMBERS[table]
        base = col(column) if extra is None else var(extra)
        return Update(table, ((column, (sign, base, amount)),), equal("id", key))

    def stale(self):
        return self.rng.choice((None, "q"))

    def when(self, condition, *then):
        """An IF around it, or a ROLLBACK in front."""
        negated = {">=": "<", "<=": ">", ">": "<=", "<": ">=", "=": "<>"}
        if self.rng.random() < 0.3 and condition[0] in negated:
            return (If((negated[condition[0]], *condition[1:]), (Rollback(),)), *then)
        return (If(condition, tuple(then)),)

    def replace(self, table, key=ONE):
        """A row is deleted and inserted again."""
        again = (key, self.rng.choice((0, 1)), var("q")) if table == "t" else (key, var("q"))
        return (self.read(table, key), Delete(table, equal("id", key)), Insert(table, again))

    def noise(self, tables):
        return random_transaction(self.rng, "", tables).body


class NonNegative(Recipe):
    tables = (T,)

    def invariants(self):
        return (("nonneg", ("=", count("t", ("<", col("v"), 0)), 0)),)

    def body(self):
        rng = self.rng
        taken = rng.choice((D, 1))

        def withdraw():
            return (
                self.read("t", ONE),
                *self.when((">=", var("q"), taken), self.add("t", ONE, taken, "-", self.stale())),
            )

        def guarded():
            where = ("and", equal("id", ONE), (">=", col("v"), taken))
            return (Update("t", (("v", ("-", col("v"), taken)),), where),)

        def transfer():
            moved = (self.add("t", ONE, taken, "-"), self.add("t", OTHER, taken))
            return (self.read("t", ONE), *self.when((">=", var("q"), taken), *moved))

        def sweep():
            where = rng.choice(((">=", col("v"), 1), ("and", GROUP, (">=", col("v"), 1))))
            return (Update("t", (("v", ("-", col("v"), 1)),), where),)

        def loop():
            scan = Scan(("id", "v"), "t", (">=", col("v"), 1), rng.random() < 0.5)
            row = var("r.v")
            change = rng.choice((("-", col("v"), 1), ("-", row, 1), ("-", col("v"), row)))
            return (For("r", scan, (Update("t", (("v", change),), equal("id", var("r.id"))),)),)

        def regroup():
            return (Update("t", (("g", rng.choice((0, 1))),), equal("id", ONE)),)

        def deposit():
            return (self.add("t", ONE, D),)

        def settle():
            return (self.read("t", ONE), Update("t", (("v", 0),), equal("id", ONE)), self.add("t", OTHER, var("q")))

        return self.pick(withdraw, guarded, transfer, sweep, loop, regroup, deposit, settle, lambda: self.replace("t"))


class Bounded(Recipe):
    tables = (T,)

    def __init__(self, rng):
        super().__init__(rng)
        self.where, self.most = rng.choice((None, None, GROUP)), rng.choice((3, 4))
        self.counts = rng.random() < 0.4

    def asked(self):
        return count("t", self.where) if self.counts else total("t", self.where)

    def invariants(self):
        return (("bound", ("<=", self.asked(), 2 if self.counts else self.most)),)

    def body(self):
        rng, most = self.rng, 2 if self.counts else self.most
        look = Select(("q",), (self.asked(),), "t", self.where)
        lock = (self.read("t", rng.choice((1, ONE)), "x", True),) if rng.random() < 0.3 else ()

        def grow():
            if self.counts:
                act = rng.choice((Insert("t", (ONE, 1, 1)), Update("t", (("g", 1),), equal("id", ONE))))
                return (*lock, look, *self.when(("<", var("q"), most), act))
            return (*lock, look, *self.when(("<=", var("q"), ("-", most, 1)), self.add("t", ONE, 1)))

        def shrink():
            return (rng.choice((Delete("t", equal("id", ONE)), Update("t", (("g", 0), ("v", 0)), equal("id", ONE)))),)

        def shift():
            return (
                Update("t", (("g", 0),), equal("id", ONE)),
                look,
                *self.when(("<", var("q"), most - 1), Update("t", (("g", 1), ("v", 1)), equal("id", ONE))),
            )

        return self.pick(grow, grow, shrink, shift, lambda: self.replace("t"))


class OnCall(Recipe):
    tables = (T,)

    def invariants(self):
        return (("some", (">=", count("t", GROUP), 1)),)

    def body(self):
        rng = self.rng
        look = Select(("q",), (count("t", GROUP),), "t", GROUP)
        leave = rng.choice((Update("t", (("g", 0),), equal("id", ONE)), Delete("t", equal("id", ONE))))
        lock = (self.read("t", ONE, "x", True),) if rng.random() < 0.4 else ()

        def off():
            return (*lock, look, *self.when((">", var("q"), 1), leave))

        def on():
            return (Update("t", (("g", 1),), equal("id", ONE)),)

        def swap():
            return (Update("t", (("g", 1),), equal("id", OTHER)), *self.replace("t", ONE)[:2])

        def come():
            return (Insert("t", (ONE, 1, 0)),)

        return self.pick(off, off, on, swap, come, lambda: self.replace("t"))


class Twins(Recipe):
    """What two tables say belongs together."""

    tables = (T, U)

    def __init__(self, rng):
        super().__init__(rng)
        self.kind = rng.choice(("balanced", "covered", "follows", "row"))

    def invariants(self):
        follows = (
            "or",
            ("=", count("u", ("and", equal("id", 1), equal("w", 1))), 0),
            (">=", count("t", ("and", equal("id", 1), equal("v", 1))), 1),
        )
        condition = {
            "balanced": ("=", total("t"), total("u")),
            "covered": (">=", total("u"), total("t")),
            "follows": follows,
            "row": ("or", (">=", count("t", equal("id", 1)), 1), ("=", count("u", equal("w", 1)), 0)),
        }[self.kind]
        return ((self.kind, condition),)

    def body(self):
        rng = self.rng
        if self.kind in ("follows", "row"):
            on = (Update("t", (("v", 1),), equal("id", 1)), Update("u", (("w", 1),), equal("id", 1)))
            off = (Update("u", (("w", 0),), equal("id", 1)), Update("t", (("v", 0),), equal("id", 1)))
            drop = (self.read("u", 1), *self.when(("=", var("q"), 0), Delete("t", equal("id", 1))))
            drop_all = (Update("u", (("w", 0),), rng.choice((None, equal("w", 1)))), Delete("t", equal("id", 1)))
            guarded = (
                self.read("t", 1, "q", True),
                *self.when(("=", var("q"), 1), Update("u", (("w", 1),), equal("id", 1))),
            )
            return rng.choice((on, off, drop, drop_all, guarded, (Insert("t", (1, 0, 1)),), self.replace("t", 1)))
        both = (self.add("t", ONE, D), self.add("u", OTHER, D))
        stale = (self.read("t", ONE), self.add("t", ONE, D, "+", "q"), self.add("u", ONE, D))
        copy = (
            Select(("q",), (total("t"),), "t", None),
            Update("u", (("w", 0),), None),
            Update("u", (("w", var("q")),), equal("id", 1)),
        )
        drain = (self.read("t", ONE), Update("t", (("v", 0),), equal("id", ONE)), self.add("u", ONE, var("q"), "-"))
        return rng.choice((both, both, stale, copy, drain, self.replace("t"), self.replace("u")))


class Ledger(Recipe):
    """A log beside what it is about."""

    tables = (U, N)

    def __init__(self, rng):
        super().__init__(rng)
        self.kind = rng.choice(("few", "pays", "sum"))

    def invariants(self):
        condition = {
            "few": ("<=", count("n", equal("k", 1)), 2),
            "pays": ("<=", count("n"), total("u")),
            "sum": ("=", total("n"), total("u")),
        }[self.kind]
        return ((self.kind, condition),)

    def body(self):
        rng = self.rng
        lock = (self.read("u", rng.choice((1, ONE)), "x", True),) if rng.random() < 0.4 else ()
        look = Select(("q",), (count("n", equal("k", ONE)),), "n", equal("k", ONE))
        if self.kind == "few":
            book = (*lock, look, *self.when(("<", var("q"), 2), Insert("n", (ONE, 1))))
            return rng.choice((book, book, (Delete("n", equal("k", ONE)),), (Update("n", (("x", 2),), None),)))
        if self.kind == "pays":
            grow = (self.add("u", ONE, 1), Insert("n", (ONE, 1)))
            cut = (Delete("n", equal("k", ONE)), self.add("u", ONE, 1))
            return rng.choice((grow, cut, (self.add("u", ONE, D),), self.replace("u")))
        stale = self.stale()
        pay = ((self.read("u", ONE),) if stale else ()) + (self.add("u", ONE, D, "+", stale), Insert("n", (ONE, D)))
        void = (
            Select(("q",), (total("n", equal("k", ONE)),), "n", equal("k", ONE)),
            Delete("n", equal("k", ONE)),
            self.add("u", ONE, var("q"), "-"),
        )
        return rng.choice((pay, pay, void, self.replace("u")))


RECIPES = (NonNegative, Bounded, OnCall, Twins, Ledger)


def careful_app(rng):
    """An application after a recipe; now and then with a statement more, or a transaction of any kind."""
    recipe = rng.choice(RECIPES)(rng)
    transactions = []
    for name in "PQR"[: rng.choice((1, 2, 2, 2, 3))]:
        body = list(recipe.body())
        if rng.random() < 0.15:
            body = list(recipe.noise(recipe.tables))
        if rng.random() < 0.2:
            extra = Body(rng, recipe.tables, ("i", "j", "d"), {}).one(2)
            at = rng.randint(0, len(body))
            body[at:at] = extra
        transactions.append(Transaction(name, ("i", "j", "d"), tuple(body), (">=", D, rng.choice((0, 1, 1)))))
    return App(recipe.tables, tuple(transactions), recipe.invariants())
