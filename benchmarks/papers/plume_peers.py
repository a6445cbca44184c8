"""Other checkers, where the environment says where they are; whoever is not given is left out."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Run, run

TXT, BINCODE = "txt", "bincode"


@dataclass(frozen=True)
class Peer:
    """A checker: what it judges, its format, its command (a file follows), and what its output says of a violation."""

    name: str
    level: str
    format: str
    command: Sequence[str]
    bad: str

    def rejects(self, output: str) -> bool:
        """Does it speak of a violation?"""
        return self.bad in output

    def judge(self, path: Path, limit: int) -> Run | None:
        """One run, ended after ``limit`` CPU seconds; None if it was."""
        # Some speak on standard error.
        both = ["sh", "-c", 'exec "$@" 2>&1', "sh", *self.command, str(path)]
        found = run(["prlimit", f"--cpu={limit}", *both], expect=range(-64, 256))
        return None if found.cpu >= limit - 1 or found.code not in (0, 1, 255) else found


def peers() -> dict[str, Peer]:
    """Those that are given, by name."""
    found = []
    if awdit := os.environ.get("AWDIT"):
        found.append(Peer("AWDIT", "TCC", TXT, (awdit, "check", "-i", "causal"), "Inconsistent"))
    if plume := os.environ.get("PLUME"):
        found.append(Peer("Plume", "TCC", TXT, ("java", "-Xmx6g", "-jar", plume, "-t", "PLUME", "-i", "TCC"), "TAP-"))
    if jar := os.environ.get("POLYSI"):
        java = ("java", "-Xmx6g", f"-Djava.library.path={Path(jar).parent}", "-jar", jar)
        found.append(Peer("PolySI", "SI", BINCODE, (*java, "audit", "--type=dbcop"), "REJECT"))
    if checker := os.environ.get("VERISTRONG"):
        strong = (checker, "--pruning", "fast", "--solver", "acyclic-minisat", "--isolation-level", "si")
        found.append(Peer("VeriStrong", "SI", BINCODE, strong, "accept: false"))
    return {peer.name: peer for peer in found}
