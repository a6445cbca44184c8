"""How much memory there is, and how much a process uses."""

import os
import sys

# The share of a machine's memory that its workers together may fill, unless the user says otherwise.
SHARE = 0.8
# Less would decide nothing.
SMALLEST = 64 << 20


def share_of_machine(workers: int) -> int | None:
    """The bytes that each of ``workers`` may ask for; None where the system does not say how much there is."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return max(SMALLEST, int(min(total, _container_limit() or total) * SHARE) // max(1, workers))


def _container_limit() -> int | None:
    try:
        with open("/sys/fs/cgroup/memory.max") as file:  # noqa: PTH123
            return int(file.read())
    except (OSError, ValueError):  # no such limit, or "max"
        return None


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
