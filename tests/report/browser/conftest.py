"""A system Chromium, headless, spoken to in the DevTools protocol: JSON in WebSocket frames, by the standard library alone."""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio")


def find() -> str | None:
    """The browser's path, if there is one."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Chromium:
    """One page of a browser. `events` holds what it reported, in order."""

    def __init__(self, program: str, profile: Path, wait: float = 30.0) -> None:
        self.events: list[dict[str, Any]] = []
        self._count = 0
        command = [program, *FLAGS, *QUIET, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._socket = self._connect(profile, time.monotonic() + wait)
        except BaseException:
            self.close()
            raise
        targets = self.call("Target.getTargets", session=None)["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session = self.call("Target.attachToTarget", session=None, targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, session: str | None = "page", **arguments: Any) -> dict[str, Any]:
        """A command's result; events that come before it are kept."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": arguments}
        self._send(json.dumps(message | ({"sessionId": self._session} if session else {})))
        while True:
            answer = json.loads(self._receive())
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path: Path, wait: float = 30.0) -> None:
        """Load a file, up to the end of its load event."""
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.until(lambda: self.run("document.readyState") == "complete", wait)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"]))
        return found["result"].get("value")

    def until(self, true: Callable[[], bool], wait: float = 10.0) -> None:
        """Wait for something to come true."""
        end = time.monotonic() + wait
        while not true():
            if time.monotonic() > end:
                raise TimeoutError(f"not true within {wait} s")
            time.sleep(0.05)

    def point(self, x: float, y: float, kind: str = "mouseMoved") -> None:
        """Move the mouse."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y)

    def close(self) -> None:
        """End the browser that this started."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        if hasattr(self, "_socket"):
            self._socket.close()

    def _connect(self, profile: Path, end: float) -> socket.socket:
        told = profile / "DevToolsActivePort"  # written once it listens
        while not (told.exists() and len(told.read_text().splitlines()) == 2):
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"Chromium did not start (exit code {self._process.poll()})")
            time.sleep(0.05)
        port, path = told.read_text().splitlines()
        connection = socket.create_connection(("127.0.0.1", int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade"
        connection.sendall("\r\n".join((*lines, f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", "")).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        if b" 101 " not in head:
            raise RuntimeError(head.decode())
        return connection

    def _send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = bytes([0x81]) + (
            bytes([0x80 | size])
            if size < 126
            else bytes([0x80 | 126]) + struct.pack(">H", size)
            if size < 65536
            else bytes([0x80 | 127]) + struct.pack(">Q", size)
        )
        self._socket.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def _receive(self) -> str:
        parts, last = b"", False
        while not last:
            first, second = self._exactly(2)
            size = second & 0x7F
            if size > 125:
                size = int.from_bytes(self._exactly(2 if size == 126 else 8), "big")
            last, data = bool(first & 0x80), self._exactly(size)
            parts += data if first & 0x0F in (0, 1) else b""
        return parts.decode()

    def _exactly(self, size: int) -> bytes:
        held = bytearray()
        while len(held) < size:
            part = self._socket.recv(size - len(held))
            if not part:
                raise RuntimeError("Chromium closed the connection")
            held += part
        return bytes(held)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A browser that is there for all tests; without one they are skipped, or fail where CI must have one."""
    program = find()
    if program is None:
        message = f"no Chromium on this machine: one of {', '.join(NAMES)} must be on the path"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    started = Chromium(program, tmp_path_factory.mktemp("profile"))
    yield started
    started.close()
