"""A headless Chromium, spoken to in its DevTools protocol through a pipe."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# The protocol is spoken on the file descriptors 3 and 4, which the browser inherits.
START = "import os, sys; os.dup2(int(sys.argv[1]), 13); os.dup2(int(sys.argv[2]), 14); os.dup2(13, 3); os.dup2(14, 4); "
START += "os.execv(sys.argv[3], sys.argv[3:])"


class Browser:
    """One page in a browser of its own; ``problems`` are errors, and what its policy refused."""

    def __init__(self, profile: Path) -> None:
        found = next(filter(None, map(shutil.which, NAMES)), None)
        if found is None:
            pytest.skip("no Chromium on this machine: pages are not tested in a browser")
        theirs, self._out = os.pipe()
        self._in, answers = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        words = [sys.executable, "-c", START, str(theirs), str(answers), found, *flags]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(words, pass_fds=(theirs, answers), **quiet)
        os.close(theirs)
        os.close(answers)
        self._rest, self._sent, self._session = b"", 0, {}
        self.problems: list[str] = []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        for domain in ("Page", "Runtime", "Log"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **params: Any) -> dict:
        """Send a command, and return its result."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": params, **self._session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._sent:
                assert "error" not in found, found
                return found["result"]

    def _next(self) -> dict:
        while b"\0" not in self._rest:
            got = os.read(self._in, 1 << 16)
            assert got, "the browser has gone"
            self._rest += got
        message, _, self._rest = self._rest.partition(b"\0")
        found = json.loads(message)
        bad = found.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        self.problems += [json.dumps(found["params"])] if bad else []
        return found

    def open(self, page: Path, width: int = 1280) -> None:
        """Load a page in a window of this width."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self("Page.navigate", url=page.resolve().as_uri())
        while not (self.run("document.readyState") == "complete" and self.run("location.protocol") == "file:"):
            pass

    def run(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def close(self) -> None:
        """End the browser."""
        self._session = {}
        self("Browser.close")
        self._process.wait(30)
        os.close(self._out)
        os.close(self._in)
