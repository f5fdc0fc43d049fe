"""A training that was killed goes on behind its last whole epoch."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from typing import Any, Dict, List, Optional

from harness.adapter import Mismatch
from harness.feeding import Resuming

Curve = List[Dict[str, Any]]


class Checkpoint:
    """Of one rank of a training, in a folder that others may have theirs in: a file or folder of
    the framework's own for the last epoch, and a file of ours, which has the curve until then.

    Both are written beside their places and then moved there, ours last: whenever the process is
    killed, one of two epochs is whole. The epoch before is kept until all ranks have the next, so
    that ranks which were killed together have one epoch in common."""

    def __init__(self, folder: str, identity: Any, rank: int = 0, ranks: int = 1) -> None:
        """``identity``: JSON values that tell this training from all others. Raises
        :class:`Mismatch` while another process has the same training in this folder."""
        text = json.dumps(identity, sort_keys=True).encode()
        part = f"-rank{rank}" if ranks > 1 else ""
        self._stem = os.path.join(folder, hashlib.sha256(text).hexdigest()[:32] + part)
        self._ranks = ranks
        os.makedirs(folder, exist_ok=True)
        self._held = _held(self._stem + ".lock", folder)

    def load(self, adapter: Resuming) -> Curve:
        """Take the training up, and what it had left; empty where there is nothing to take up.
        Raises what the framework raises where its file is damaged."""
        known = self._read() or []
        # Ranks that were killed are one epoch apart at most: this is the one that all have.
        epoch = int(adapter.all_reduce(float(len(known)))) // self._ranks
        if len(known) > epoch:  # or a second kill would find states of other epochs than curves
            known = known[:epoch]
            self._write(known)
        if known:
            adapter.load_training(self._state(epoch))
        return known

    def save(self, adapter: Resuming, curve: Curve) -> None:
        """Behind an epoch, the last of ``curve``. Returns when all ranks have theirs."""
        state = self._state(len(curve))
        for before in (state + ".part", state):  # of a process that was killed at this place
            self._drop(before)
        adapter.save_training(state + ".part")
        os.replace(state + ".part", state)
        self._write(curve)
        if self._ranks > 1:
            adapter.all_reduce(1.0)
        self._drop(self._state(len(curve) - 1))

    def remove(self) -> None:
        """Behind a training that has ended."""
        known = self._read() or []
        self._drop(self._curve)
        for epoch in (len(known), len(known) - 1):
            self._drop(self._state(epoch))
        self._drop(self._stem + ".lock")
        self._held.close()

    def _write(self, curve: Curve) -> None:
        with open(self._curve + ".part", "w", encoding="utf-8") as file:
            json.dump(curve, file)
        os.replace(self._curve + ".part", self._curve)

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
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def _held(path: str, folder: str) -> Any:
    """The file ``path``, locked until this process closes it or ends. A lock of POSIX, which no
    child inherits: a loader's worker that outlives a killed rank must not keep it. Raises
    :class:`Mismatch`."""
    while True:
        file = open(path, "a")  # noqa: SIM115
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise Mismatch(
                f"another run trains the same with its checkpoints in {folder}: wait for it, or "
                "name another folder in `checkpoints`"
            ) from None
        # Whoever had it before may have removed it in the meantime: then nobody else would see it.
        with contextlib.suppress(OSError):
            if os.stat(path).st_ino == os.fstat(file.fileno()).st_ino:
                return file
        file.close()
