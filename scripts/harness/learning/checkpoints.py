"""Continue a training that was killed after its last complete epoch."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from typing import Any, Dict, List

from core import bounded

from harness.adapter import Mismatch
from harness.batch_input import Checkpointing

Curve = List[Dict[str, Any]]


class Checkpoint:
    """Checkpoint of one rank of a training, in a folder that it may share with others.

    It is a file or folder of the framework for the last epoch, and a file of ours with the curve so
    far. Both are written under other names and then moved, ours last, so that one of two epochs is
    complete whenever the process is killed. The epoch before is kept until all ranks have the next,
    so that ranks that were killed together have one in common."""

    def __init__(self, folder: str, identity: Any, rank: int = 0, ranks: int = 1) -> None:
        """Lock the checkpoint. ``identity``: JSON values that identify this training.

        Raises :class:`Mismatch` while another process runs the same training in this folder."""
        text = json.dumps(identity, sort_keys=True).encode()
        part = f"-rank{rank}" if ranks > 1 else ""
        self._stem = os.path.join(folder, hashlib.sha256(text).hexdigest()[:32] + part)
        self._ranks = ranks
        os.makedirs(folder, exist_ok=True)
        self.lock_file = lock_file(self._stem + ".lock", folder)

    def load(self, adapter: Checkpointing) -> Curve:
        """Restore the training and return its curve so far; empty where there is no checkpoint.
        Raises the framework's error for a damaged file."""
        known = self._read()
        # Killed ranks are at most one epoch apart; this is the epoch that all have.
        epoch = int(adapter.all_reduce(float(len(known)))) // self._ranks
        if len(known) > epoch:  # or a second kill would find states of other epochs than curves
            known = known[:epoch]
            self._write(known)
        if known:
            adapter.load_training(self.state_file(epoch))
        return known

    def save(self, adapter: Checkpointing, curve: Curve) -> None:
        """Save the state after an epoch, the last of ``curve``. Returns when all ranks have saved
        theirs."""
        state = self.state_file(len(curve))
        for before in (state + ".part", state):  # of a process that was killed at this place
            self._drop(before)
        adapter.save_training(state + ".part")
        os.replace(state + ".part", state)
        self._write(curve)
        if self._ranks > 1:
            adapter.all_reduce(1.0)
        self._drop(self.state_file(len(curve) - 1))

    def remove(self) -> None:
        """Remove the checkpoint of a finished training."""
        known = self._read()
        self._drop(self.curve_file)
        for epoch in (len(known), len(known) - 1):
            self._drop(self.state_file(epoch))
        self._drop(self._stem + ".lock")
        self.lock_file.close()

    def _write(self, curve: Curve) -> None:
        with open(self.curve_file + ".part", "w", encoding="utf-8") as file:
            json.dump(curve, file)
        os.replace(self.curve_file + ".part", self.curve_file)

    @property
    def curve_file(self) -> str:
        """Path of the learning curve so far."""
        return self._stem + ".json"

    def state_file(self, epoch: int) -> str:
        """Return the path of the state after ``epoch``."""
        return f"{self._stem}-{epoch}"

    def _read(self) -> Curve:
        """Return the curve so far; empty where its file is missing or damaged."""
        try:
            curve: Curve = bounded.read_json(self.curve_file)
        except (OSError, ValueError):
            return []
        return curve

    @staticmethod
    def _drop(path: str) -> None:
        with contextlib.suppress(OSError):
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def lock_file(path: str, folder: str) -> Any:
    """Return the file ``path``, locked until this process closes it or ends. Raises
    :class:`Mismatch`.

    POSIX locks are not inherited, so a loader's worker that outlives a killed rank does not keep
    it."""
    while True:
        file = open(path, "a", encoding="utf-8")  # noqa: SIM115
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise Mismatch(
                f"another run trains the same with its checkpoints in {folder}: wait for it, or "
                "name another folder in `checkpoints`"
            ) from None
        # A previous holder may have removed the file meanwhile, and then nobody else would see it.
        with contextlib.suppress(OSError):
            if os.stat(path).st_ino == os.fstat(file.fileno()).st_ino:
                return file
        file.close()
