"""Ctrl-C and SIGTERM: finish the step, save, and leave."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupted(Exception):
    """Training was asked to stop and has saved where it was."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.exit_code = 128 + signum


class Interruption:
    """While entered, a first signal is remembered instead of obeyed; a second one is obeyed at once."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.requested: int = 0
        self.before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self.before = {signum: signal.signal(signum, self._remember) for signum in self.SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _remember(self, signum: int, frame: FrameType | None) -> None:
        self.requested = signum
        self._restore()

    def _restore(self) -> None:
        for signum, handler in self.before.items():
            signal.signal(signum, handler)
        self.before = {}
