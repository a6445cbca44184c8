"""Runs of an application at given levels: calls, a state to begin with, and who is next."""

from dataclasses import dataclass

from .engine import Run, Txn
from .innodb import Innodb
from .postgres import Postgres
from .serial import holds, serial_outcomes

ENGINES = {"postgresql": Postgres, "mysql": Innodb}


@dataclass(frozen=True)
class Setting:
    """Calls (session, name of a transaction, arguments) from a state."""

    state: dict
    calls: tuple

    def bodies(self, app):
        found = {txn.name: txn.body for txn in app.transactions}
        return [(session, found[name], dict(args)) for session, name, args in self.calls]


def begin(app, store, levels, setting, fine=True):
    """The run, nobody having done anything."""
    engine = ENGINES[store](app, setting.state, fine)
    txns = [
        Txn(i, session, levels[name], body, args)
        for i, ((session, body, args), (_, name, _)) in enumerate(zip(setting.bodies(app), setting.calls, strict=True))
    ]
    return Run(engine, txns)


class Choices:
    """Who is next, at random: at every step anyone, or the same one as before for most of the time."""

    def __init__(self, rng):
        self.rng, self.last, self.stay = rng, None, rng.choice((0.0, 0.5, 0.8))
        self.made = []

    def __call__(self, ready):
        stays = self.last in ready and self.rng.random() < self.stay
        chosen = self.last if stays else self.rng.choice(ready)
        self.last = chosen
        self.made.append(chosen.number)
        return chosen


class Serializable:
    """Judges runs of one setting: is what those that committed did what some serial run does?"""

    def __init__(self, app, setting):
        self.app, self.setting, self.known = app, setting, {}

    def allows(self, run, kept, logs):
        return (logs, run.engine.ends()) in self.outcomes(tuple(t.number for t in kept))

    def outcomes(self, numbers):
        """What these calls, and no others, can have read, and how it ends."""
        if numbers not in self.known:
            bodies = self.setting.bodies(self.app)
            calls = [bodies[i] for i in numbers]
            self.known[numbers] = serial_outcomes(self.app, self.setting.state, calls)
        return self.known[numbers]


def broken_after(app, run, choose):
    """Drive a run; the invariants that are broken after some commit."""
    broken = []

    def look():
        broken.extend(holds(app, run.engine.state()))

    run.drive(choose, look)
    return broken


def follow(run, order, victim=0):
    """The calls in this order, a statement each; who was let go goes on at once. Did anybody wait?"""
    waited = False

    def settle():
        nonlocal waited
        while True:
            stuck = run.deadlocked()
            if stuck:
                waited = True
                run.kill(sorted(stuck, key=lambda t: t.number)[victim % len(stuck)])
                continue
            freed = [t for t in run.runnable() if t.wait is not None]
            if not freed:
                waited |= any(t.wait is not None for t in run.txns)
                return
            run.step(freed[0])

    def go(number):
        if any(t.number == number and t.wait is None for t in run.runnable()):
            run.step(run.txns[number])
            settle()

    for number in order:
        go(number)
    while not all(txn.is_over for txn in run.txns):
        for number in range(len(run.txns)):
            go(number)
    return waited
