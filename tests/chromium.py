"""Headless Chromium, driven through the DevTools protocol over a pair of pipes: no driver, no websocket, no network."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from program import PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# Chromium expects its pipes as descriptors 3 and 4.
_EXEC = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_KEY_CODES = {"ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Escape": 27, "Tab": 9}


class Browser:
    """One browser with one page; what the page complains about is kept in ``complaints``."""

    def __init__(self, profile: Path, width: int = 1400, height: int = 900) -> None:
        assert CHROMIUM is not None
        ours, theirs = [_high(fd) for fd in os.pipe()], [_high(fd) for fd in os.pipe()]
        self._in, self._out = ours[1], theirs[0]
        command = [sys.executable, "-c", _EXEC, str(ours[0]), str(theirs[1]), CHROMIUM, *_FLAGS]
        command += [f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"]
        with (profile / "stderr.txt").open("wb") as errors:
            self._process = subprocess.Popen(command, pass_fds=(ours[0], theirs[1]), stdout=errors, stderr=errors)
        os.close(ours[0])
        os.close(theirs[1])
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        attached = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command, and its answer; what else arrives meanwhile is kept as events."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            received = self._receive()
            if received.get("id") == self._number:
                if "error" in received:
                    raise RuntimeError(f"{method}: {received['error']}")
                answer: dict[str, Any] = received["result"]
                return answer
            self.events.append(received)

    def _receive(self, patience: float = PATIENCE) -> dict[str, Any]:
        until = time.monotonic() + patience
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._out], [], [], max(0, until - time.monotonic()))
            more = os.read(self._out, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError("Chromium does not answer")
            self._unread += more
        message, self._unread = self._unread.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a page from disk and wait until it is there."""
        for url in ("about:blank", path.as_uri() + fragment):  # another fragment alone would not load anything
            self.events.clear()
            self.call("Page.navigate", url=url)
            while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
                self.events.append(self._receive())

    def run(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def run_in_frames(self, expression: str) -> list[Any]:
        """The values of an expression in the isolated frames of the page, each of which has a process of its own."""
        page, found = self._session, []
        self._session = None
        targets = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "iframe"]
        for target in targets:
            self._session = None
            self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
            found.append(self.run(expression))
        self._session = page
        return found

    def press(self, key: str) -> None:
        """A key, as from a keyboard."""
        words = {"text": key} if len(key) == 1 else {}
        code = _KEY_CODES.get(key, ord(key[0].upper()))
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **words)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, words: str) -> None:
        """Text into whatever has the focus."""
        self.call("Input.insertText", text=words)

    def complaints(self) -> list[dict[str, Any]]:
        """Errors, warnings, and requests for anything but the page itself."""
        self.run("1")  # whatever happened before has arrived by now
        kinds = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
        return [e for e in self.events if e.get("method") in kinds] + self._requests()[1:]

    def _requests(self) -> list[dict[str, Any]]:
        return [e["params"]["request"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, path: Path, full: bool = False) -> None:
        """What the page looks like now."""
        image = self.call("Page.captureScreenshot", captureBeyondViewport=full)["data"]
        path.write_bytes(base64.b64decode(image))

    def pdf(self) -> bytes:
        """The page as printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def close(self) -> None:
        """Ask it to end, and make sure."""
        try:
            self._session = None
            self.call("Browser.close")
            self._process.wait(5)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)


def _high(fd: int) -> int:
    """The same pipe under a number that cannot collide with 3 and 4."""
    moved: int = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return moved
