"""How much memory there is, and how much a process uses."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# The share of a machine's memory that its workers together may fill, unless the user says otherwise.
SHARE = 0.8
# Less would decide nothing.
SMALLEST = 64 << 20

# Where the limits of control groups are, by what /proc/self/cgroup says of them: nothing in version 2.
_CONTROL_GROUPS = {
    "": (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/unified", "memory.max")),
    "memory": (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),),
}


def share_of_machine(workers: int) -> int | None:
    """The bytes that each of ``workers`` may ask for; None where the system does not say how much there is."""
    total = available()
    return None if total is None else max(SMALLEST, int(total * SHARE) // max(1, workers))


def available() -> int | None:
    """The bytes that this process could ever get: the machine's, or those of its container or control group."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return min([total, *control_group_limits()])


def control_group_limits(root: str = "") -> Iterator[int]:
    """The memory limits of the control groups, versions 1 and 2, that this process is in; ``root`` is for tests."""
    try:
        with open(f"{root}/proc/self/cgroup") as file:  # noqa: PTH123
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        inner = [part for part in group.split("/") if part and part != ".."]
        # a limit of any group around it holds, too; in a container, only the outermost of these folders may be there
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
    """Bytes of this process that are in memory; 0 where the system does not say."""
    return _pages("/proc/self/statm", 1) or _peak()


def _peak() -> int:
    """The most that it ever had, where the system does not tell how much it has."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident(pid: int) -> int:
    """Bytes of a process that are in memory; 0 where the system does not say."""
    return _pages(f"/proc/{pid}/statm", 1)


def own_data() -> int:
    """Bytes of private, writable memory that this process has asked for; 0 where the system does not say."""
    return _pages("/proc/self/statm", 5)


def _pages(path: str, field: int) -> int:
    try:
        with open(path, "rb", 0) as file:  # noqa: PTH123
            return int(file.read().split()[field]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def limit_data(limit: int | None) -> None:
    """From now on this process may have ``limit`` bytes of private, writable memory; None lifts the limit."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = hard if limit is None else limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def is_data_limited() -> bool:
    """May this process have no more than so much private, writable memory?"""
    try:
        import resource
    except ImportError:  # not on Windows
        return False
    return resource.getrlimit(resource.RLIMIT_DATA)[0] != resource.RLIM_INFINITY


@contextmanager
def data_limited_to(limit: int | None) -> Iterator[None]:
    """Inside, the process gets no more private, writable memory than ``limit`` bytes; None leaves it as it is."""
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
