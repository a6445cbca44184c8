"""Other checkers, where the environment says where they are; whoever is not given is left out."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Run, run

TXT, BINCODE = "txt", "bincode"


@dataclass(frozen=True)
class Peer:
    """A checker: the format that it reads, its command for a file, and whether a run of it found a violation."""

    name: str
    format: str
    command: Callable[[str], list[str]]
    rejects: Callable[[Run], bool]

    def judge(self, path: Path, limit: int) -> Run | None:
        """One run, ended after ``limit`` CPU seconds; None if it was."""
        found = run(["prlimit", f"--cpu={limit}", *self.command(str(path))], expect=range(-64, 256))
        return None if found.cpu >= limit - 1 or found.code not in (0, 1, 255) else found


def _says(words: str) -> Callable[[Run], bool]:
    return lambda done: words in done.output


def peers() -> dict[str, Peer]:
    """Those that are given, by name."""
    found = []
    if awdit := os.environ.get("AWDIT"):
        found.append(Peer("AWDIT", TXT, lambda path: [awdit, "check", "-i", "causal", path], _says("Inconsistent")))
    if plume := os.environ.get("PLUME"):
        java = ["java", "-Xmx6g", "-jar", plume, "-t", "PLUME", "-i", "TCC"]
        found.append(Peer("Plume", TXT, lambda path: [*java, path], _says("TAP-")))
    if jar := os.environ.get("POLYSI"):
        audit = ["java", "-Xmx6g", f"-Djava.library.path={Path(jar).parent}", "-jar", jar, "audit", "--type=dbcop"]
        # It says so on standard error, which is not kept.
        found.append(Peer("PolySI", BINCODE, lambda path: [*audit, path], lambda done: done.code == 255))
    if checker := os.environ.get("VERISTRONG"):
        strong = [checker, "--pruning", "fast", "--solver", "acyclic-minisat", "--isolation-level", "si"]
        found.append(Peer("VeriStrong", BINCODE, lambda path: [*strong, path], _says("accept: false")))
    return {peer.name: peer for peer in found}
