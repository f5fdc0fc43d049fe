"""Continue a training that was killed after its last complete epoch."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from typing import Any, Dict, List

from core import bounded

from harness.batch_input import Checkpointing

Curve = List[Dict[str, Any]]


class Checkpoint:
    """Checkpoint of one rank of a training, in a folder that it may share with others.

    It consists of the framework's file or folder for the last epoch, and our file with the curve so
    far. Both are written under other names and then moved, ours last, so that one of two epochs is
    complete whenever the process is killed. The previous epoch is kept until all ranks have saved
    the next, so that killed ranks have an epoch in common."""

    def __init__(self, folder: str, identity: Any, rank: int = 0, ranks: int = 1) -> None:
        """Create the folder. ``identity``: JSON values that identify this training."""
        text = json.dumps(identity, sort_keys=True).encode()
        part = f"-rank{rank}" if ranks > 1 else ""
        self._stem = os.path.join(folder, hashlib.sha256(text).hexdigest()[:32] + part)
        self._ranks = ranks
        #: Path of the learning curve so far.
        self.curve_file = self._stem + ".json"
        os.makedirs(folder, exist_ok=True)

    def load(self, adapter: Checkpointing) -> Curve:
        """Restore the training and return its curve so far; empty where there is no checkpoint.
        Raises the framework's error for a damaged file."""
        known = self._read()
        # Killed ranks are at most one epoch apart; load the latest epoch that all ranks have saved.
        epoch = int(adapter.all_reduce(float(len(known)))) // self._ranks
        # otherwise a second kill could leave states and curves of different epochs
        if len(known) > epoch:
            known = known[:epoch]
            self._write(known)
        if known:
            adapter.load_training(self.state_file(epoch))
        return known

    def save(self, adapter: Checkpointing, curve: Curve) -> None:
        """Save the state after an epoch, the last of ``curve``. Returns when all ranks have saved
        theirs."""
        save_state(adapter, self.state_file(len(curve)))
        self._write(curve)
        if self._ranks > 1:
            adapter.all_reduce(1.0)
        _drop(self.state_file(len(curve) - 1))

    def remove(self) -> None:
        """Remove the checkpoint of a finished training."""
        epochs = len(self._read())
        for path in (self.curve_file, self.state_file(epochs), self.state_file(epochs - 1)):
            _drop(path)

    def state_file(self, epoch: int) -> str:
        """Return the path of the state after ``epoch``."""
        return f"{self._stem}-{epoch}"

    def _write(self, curve: Curve) -> None:
        with open(self.curve_file + ".part", "w", encoding="utf-8") as file:
            json.dump(curve, file)
        os.replace(self.curve_file + ".part", self.curve_file)

    def _read(self) -> Curve:
        """Return the curve so far; empty where its file is missing or damaged."""
        try:
            curve: Curve = bounded.read_json(self.curve_file)
        except (OSError, ValueError):
            return []
        return curve


def save_state(adapter: Checkpointing, path: str) -> None:
    """Save a training to ``path``, which appears when it is complete."""
    for before in (path + ".part", path):  # left by a process that was killed here
        _drop(before)
    adapter.save_training(path + ".part")
    os.replace(path + ".part", path)


def _drop(path: str) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
