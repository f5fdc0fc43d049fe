"""A training that was killed goes on behind its last whole epoch."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import Any, Dict, List, Optional

from harness.feeding import Resuming

Curve = List[Dict[str, Any]]


class Checkpoint:
    """Of one training in a folder that others may have theirs in: a file of the framework's own for
    the last epoch, and one of ours, which names it and has the curve until then.

    Both are written beside their places and then moved there, ours last: whenever the process is
    killed, one of two epochs is whole."""

    def __init__(self, folder: str, identity: Any) -> None:
        """``identity``: JSON values that tell this training from all others."""
        text = json.dumps(identity, sort_keys=True).encode()
        self._stem = os.path.join(folder, hashlib.sha256(text).hexdigest()[:32])
        os.makedirs(folder, exist_ok=True)

    def load(self, adapter: Resuming) -> Curve:
        """Take the training up, and what it had left; empty where there is nothing to take up.
        Raises what the framework raises where its file is damaged."""
        known = self._read()
        if known is None:
            return []
        adapter.load_training(self._state(len(known)))
        return known

    def save(self, adapter: Resuming, curve: Curve) -> None:
        """Behind an epoch, the last of ``curve``."""
        state = self._state(len(curve))
        adapter.save_training(state + ".part")
        os.replace(state + ".part", state)
        with open(self._curve + ".part", "w", encoding="utf-8") as file:
            json.dump(curve, file)
        os.replace(self._curve + ".part", self._curve)
        self._drop(self._state(len(curve) - 1))

    def remove(self) -> None:
        """Behind a training that has ended."""
        known = self._read()
        self._drop(self._curve)
        if known:
            self._drop(self._state(len(known)))

    @property
    def _curve(self) -> str:
        return self._stem + ".json"

    def _state(self, epoch: int) -> str:
        return f"{self._stem}-{epoch}"

    def _read(self) -> Optional[Curve]:
        try:
            with open(self._curve, encoding="utf-8") as file:
                found: Curve = json.load(file)
        except (OSError, ValueError):
            return None
        return found

    @staticmethod
    def _drop(path: str) -> None:
        with contextlib.suppress(OSError):
            os.remove(path)
