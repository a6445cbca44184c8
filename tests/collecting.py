"""Shared by the tests of ``plume_py.collect``: small runs, and a store that fails by a script."""

import json
import threading
from pathlib import Path

from plume_py.collect.adapter import AbortedError, Adapter, Connection, LostError, Promise, Setup
from plume_py.collect.client import Isolation
from plume_py.collect.registry import open_adapter
from plume_py.collect.run import Plan, collect
from plume_py.collect.workload import Shape


def gather(url, out, *, isolation="serializable", level="SER", adapter=None, server=None, how=None, **shape):
    """Run a small workload and return its result."""
    shape = Shape(**{"sessions": 4, "transactions": 30, "keys": 6, **shape})
    adapter = adapter or open_adapter(Setup(url, lists=shape.lists))
    plan = Plan(shape, [Isolation(isolation, level)], str(out), force=True, **(how or {}))
    return collect(adapter, plan, server)


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


class Scripted(Adapter):
    """A dictionary, locked for whole transactions. ``script`` maps the number of a commit to its failure."""

    name = "scripted"
    isolations = {"serializable": Promise("SER")}  # noqa: RUF012
    can_kill = True

    def __init__(self, setup=Setup(""), script=None, isolations=None):  # noqa: B008
        super().__init__(setup)
        self.script = script or {}
        self.isolations = isolations or self.isolations
        self.data, self.lock, self.commits, self.connections = {}, threading.Lock(), 0, 0

    def version(self):
        return "1"

    def create(self, keys):
        self.data = dict.fromkeys(keys, 0)

    def connect(self):
        self.connections += 1
        return ScriptedConnection(self)

    def contents(self):
        return self.data

    def drop(self):
        pass


class ScriptedConnection(Connection):
    def __init__(self, store):
        self.store, self.mine, self.closed = store, None, threading.Event()

    def begin(self, isolation):
        self.store.lock.acquire()
        self.mine = dict(self.store.data)

    def read(self, key):
        return self.mine[key]

    def write(self, key, value):
        self.mine[key] = value
        if self.store.script.get("write") == value:
            raise LostError("lost in a write")

    append = write

    def commit(self):
        self.store.commits += 1
        action = self.store.script.get(self.store.commits)
        if action == "hang":
            self.closed.wait(30)
            raise OSError("cut off")
        if action == "refuse":
            raise AbortedError("conflict")
        if action != "lose before":
            self.store.data = self.mine
        if action in ("lose before", "lose after"):
            raise LostError("no answer")
        self._end()

    def rollback(self):
        self._end()

    def _end(self):
        if self.mine is not None:
            self.mine = None
            self.store.lock.release()

    def close(self):
        self._end()

    def abandon(self):
        self.closed.set()


def scripted(tmp_path, script, **options):
    adapter = Scripted(script=script)
    how = {"timeout": options.pop("timeout", 10.0), **options.pop("how", {})}
    collected = gather("", tmp_path / "h.jsonl", adapter=adapter, how=how, **{"sessions": 1, **options})
    return adapter, collected, lines(tmp_path / "h.jsonl")[1:]
