"""Measure and limit memory: of the machine, of control groups, of a process."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# The share of the machine's memory that all workers together may use by default.
SHARE = 0.8
# The smallest default limit of a worker; with less memory it could check nothing.
SMALLEST = 64 << 20

# Files with the limits of control groups, by the controllers in /proc/self/cgroup; version 2 lists none there.
_CONTROL_GROUPS = {
    "": (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/unified", "memory.max")),
    "memory": (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),),
}


def share_of_machine(workers: int) -> int | None:
    """Return the bytes that each of ``workers`` may use; None if the size of memory is unknown."""
    total = available()
    return None if total is None else max(SMALLEST, int(total * SHARE) // max(1, workers))


def available() -> int | None:
    """Return the bytes that this process could get: the memory of the machine, container or control group."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return min([total, *control_group_limits()])


def control_group_limits(root: str = "") -> Iterator[int]:
    """Yield the memory limits of this process's control groups, versions 1 and 2; ``root`` is for tests."""
    try:
        with open(f"{root}/proc/self/cgroup") as file:  # noqa: PTH123
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        inner = [part for part in group.split("/") if part and part != ".."]
        # limits of enclosing groups also apply; in a container, perhaps only the outermost folder exists
        for folder, name in _CONTROL_GROUPS.get("memory" if "memory" in controllers.split(",") else controllers, ()):
            for depth in range(len(inner) + 1):
                yield from _limit_in("/".join((root + folder, *inner[:depth], name)))


def _limit_in(path: str) -> Iterator[int]:
    try:
        with open(path) as file:  # noqa: PTH123
            limit = int(file.read())
    except (OSError, ValueError):  # no such limit, or "max"
        return
    if limit > 0:
        yield limit


def in_use() -> int:
    """Return the resident bytes of this process; 0 if unknown."""
    return _pages("/proc/self/statm", 1) or _peak()


def _peak() -> int:
    """Return the peak of resident bytes, for systems that do not report the current value."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident(pid: int) -> int:
    """Return the resident bytes of a process; 0 if unknown."""
    return _pages(f"/proc/{pid}/statm", 1)


def own_data() -> int:
    """Return the bytes of private, writable memory that this process has requested; 0 if unknown."""
    return _pages("/proc/self/statm", 5)


def _pages(path: str, field: int) -> int:
    try:
        with open(path, "rb", 0) as file:  # noqa: PTH123
            return int(file.read().split()[field]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def limit_data(limit: int | None) -> None:
    """Limit the private, writable memory of this process to ``limit`` bytes; None removes the limit."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = hard if limit is None else limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def is_data_limited() -> bool:
    """Return whether the private, writable memory of this process is limited."""
    try:
        import resource
    except ImportError:  # not on Windows
        return False
    return resource.getrlimit(resource.RLIMIT_DATA)[0] != resource.RLIM_INFINITY


@contextmanager
def data_limited_to(limit: int | None) -> Iterator[None]:
    """Limit private, writable memory to ``limit`` bytes inside the block; None changes nothing."""
    try:
        import resource
    except ImportError:  # not on Windows
        limit = None
    if limit is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit_data(limit if before[0] == resource.RLIM_INFINITY else min(limit, before[0]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
