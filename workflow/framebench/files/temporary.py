"""Temporary folders, removed on errors and on signals."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from core import signals


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder that is removed on exit. Raises OSError.

    A signal that ends this process raises SystemExit meanwhile; ignored signals stay ignored."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        usual = (signal.SIG_DFL, signal.default_int_handler)
        before = {number: signal.getsignal(number) for number in signals.ENDING}
        before = {number: handler for number, handler in before.items() if handler in usual}
    for number in before:
        signal.signal(number, leave)
    try:
        with tempfile.TemporaryDirectory(prefix="framebench-") as path:
            yield Path(path)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
