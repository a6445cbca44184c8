"""A proxy between a client and a database that fails at one message: it stalls, trickles, truncates or resets.

``python tests/collect/faulty_proxy.py [NUMBER]...`` runs the full campaign: each database that is installed, behind the
proxy, with each fault at many messages of both directions. It prints a line per fault, and what was wrong.
"""

import socket
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from plume_py.base.errors import InputError, IsocheckError
from plume_py.collect.adapter import Setup
from plume_py.collect.audit import audit
from plume_py.collect.client import Isolation
from plume_py.collect.cluster import MANAGED
from plume_py.collect.registry import open_adapter
from plume_py.collect.run import Plan, collect
from plume_py.collect.table_setup import new_name
from plume_py.collect.workload import Shape

ACTIONS = ("stall", "trickle", "truncate", "reset")
DIRECTIONS = ("up", "down")  # to the server, to the client
SECONDS, TIMEOUT, LONGEST = 1.0, 0.5, 11.0
PATIENCE = 300.0  # seconds for the direct connection, on a busy machine


def postgresql(data, is_first):
    """Return the length of the first message, or None if it is incomplete."""
    if is_first:  # without a type
        return struct.unpack(">I", data[:4])[0] if len(data) >= 4 else None
    return 1 + struct.unpack(">I", data[1:5])[0] if len(data) >= 5 else None


def mysql(data, is_first):
    return 4 + int.from_bytes(data[:3], "little") if len(data) >= 4 else None


def line(data, is_first):
    return data.index(b"\n") + 1 if b"\n" in data else None


PROTOCOLS = {"postgresql": postgresql, "mariadb": mysql, "redis": line, "etcd": line}


class Proxy:
    """Relays messages. At the ``number``-th in ``direction``, over all connections, it does ``action``."""

    def __init__(self, port, protocol, action, direction, number):
        self.to, self.protocol, self.action, self.direction, self.number = port, protocol, action, direction, number
        self.count, self.lock, self.over = 0, threading.Lock(), threading.Event()
        self.sockets, self.is_reset = [], set()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.over.set()
        for each in (self.listening, *self.sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def accept(self):
        while True:
            try:
                near = self.listening.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets += [near, far]
            threading.Thread(target=self.pass_on, args=(near, far, "up"), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(far, near, "down"), daemon=True).start()

    def pass_on(self, origin, goal, direction):
        data, is_first = b"", direction == "up"
        with suppress(OSError):
            while piece := origin.recv(1 << 16):
                data += piece
                while (size := self.protocol(data, is_first)) is not None and size <= len(data):
                    message, data, is_first = data[:size], data[size:], False
                    if direction == self.direction and self.is_due():
                        return self.fail(message, goal, (origin, goal))
                    goal.sendall(message)
                if self.protocol is line and data:  # data without lines, such as the body of an answer
                    goal.sendall(data)
                    data = b""
        if origin not in self.is_reset:
            for each in (origin, goal):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        return None

    def is_due(self):
        with self.lock:
            self.count += 1
            return self.count == self.number

    def fail(self, message, goal, both):
        if self.action == "stall":
            self.over.wait()
        elif self.action == "trickle":
            while not self.over.wait(0.1):
                goal.sendall(message[:1])
                message = message[1:] or b"\0"
        else:
            if self.action == "truncate":
                goal.sendall(message[: len(message) // 2])
            else:
                self.is_reset |= set(both)
            for each in both:
                if self.action == "reset":
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    each.shutdown(socket.SHUT_RD)  # wakes the other thread, which holds the socket open
                else:
                    each.shutdown(socket.SHUT_RDWR)
                each.close()


def attack(kind, url, action, direction, number, folder):
    """Run a workload behind the proxy. Return how it ended, its duration, and the errors found."""
    head, port = url.rpartition(":")[::2]
    port, slash, rest = port.partition("/")
    out = Path(folder, f"{kind}-{action}-{direction}-{number}.jsonl")
    with Proxy(int(port), PROTOCOLS[kind], action, direction, number) as proxy:
        behind = f"{head}:{proxy.port}{slash}{rest}" + ("?sslmode=disable" if kind == "postgresql" else "")
        setup = Setup(behind, new_name(), True, TIMEOUT)
        adapter = open_adapter(setup)
        isolation = next(iter(adapter.isolations))
        shape = Shape("append", sessions=3, transactions=10**6, keys=6, read_only=0.1, rotate=0)
        plan = Plan(shape, [Isolation(isolation, None)], str(out), seconds=SECONDS, timeout=TIMEOUT, keep_table=True)
        begin, wrong, ended = time.monotonic(), [], "done"
        try:
            counts = collect(adapter, plan).counts
            ended = " ".join(f"{count} {status}" for status, count in counts.items())
        except InputError as error:
            ended = str(error)
        took = time.monotonic() - begin
    # The proxy has closed all connections, including those in the middle of a transaction.
    direct = open_adapter(Setup(url, setup.table, True, PATIENCE))
    with suppress(Exception):
        direct.settle()
    if out.exists():
        wrong += [text for text in audit(str(out), direct.contents()).problems if "abort" in text or "lacks" in text]
    direct.drop()
    return ended, took, wrong


def attacks(kind, url, numbers, folder, workers=8):
    """Yield (action, direction, number) of all faults at these messages, with the result of ``attack``."""
    cases = [(action, direction, number) for action in ACTIONS for direction in DIRECTIONS for number in numbers]
    with ThreadPoolExecutor(workers) as pool:
        yield from zip(cases, pool.map(lambda case: attack(kind, url, *case, folder), cases), strict=True)


def main(numbers):
    runs = problems = 0
    longest = 0.0
    for kind in PROTOCOLS:
        with ExitStack() as stack:
            try:
                server = stack.enter_context(MANAGED[kind]())
            except IsocheckError as missing:
                print(f"{kind}: {missing}")
                continue
            folder = stack.enter_context(TemporaryDirectory())
            for case, (ended, took, wrong) in attacks(kind, server.nodes[0].url, numbers, folder):
                runs, longest = runs + 1, max(longest, took)
                if wrong or took > LONGEST:
                    problems += 1
                print(f"{kind} {' '.join(map(str, case))}: {took:.1f} s, {ended:.100} {wrong or ''}", flush=True)
    print(f"{runs} runs, the longest {longest:.1f} s, {problems} with a problem")


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]] or [*range(1, 60, 4), 80, 120, 200, 300, 301, 302, 303, 304])
