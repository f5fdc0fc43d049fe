"""Continue a training that was killed after its last complete epoch."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from typing import Any, Dict, List, Optional

from core import bounded

from harness.adapter import Mismatch
from harness.batch_input import Checkpointing

Curve = List[Dict[str, Any]]

#: Suffix of the file with the identity of a training.
_IDENTITY = ".training"
#: Most differences of two trainings to list.
_SHOWN = 4


class Checkpoint:
    """Checkpoint of one rank of a training, in a folder that it may share with others.

    It is a file or folder of the framework for the last epoch, and a file of ours with the curve so
    far. Both are written under other names and then moved, ours last, so that one of two epochs is
    complete whenever the process is killed. The epoch before is kept until all ranks have the next,
    so that ranks that were killed together have one in common."""

    def __init__(self, folder: str, identity: Any, rank: int = 0, ranks: int = 1) -> None:
        """Lock the checkpoint. ``identity``: JSON values that identify this training.

        Raises :class:`Mismatch` while another process runs the same training in this folder."""
        self._identity = json.loads(json.dumps(identity, sort_keys=True))
        text = json.dumps(identity, sort_keys=True).encode()
        part = f"-rank{rank}" if ranks > 1 else ""
        self._stem = os.path.join(folder, hashlib.sha256(text).hexdigest()[:32] + part)
        self._folder, self._ranks = folder, ranks
        os.makedirs(folder, exist_ok=True)
        self.lock_file = lock_file(self._stem + ".lock", folder)

    def load(self, adapter: Checkpointing) -> Curve:
        """Restore the training and return its curve so far; empty where there is no checkpoint.
        Raises the framework's error for a damaged file."""
        known = self._read() or []
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
        known = self._read() or []
        self._drop(self.curve_file)
        self._drop(self._stem + _IDENTITY)
        for epoch in (len(known), len(known) - 1):
            self._drop(self.state_file(epoch))
        self._drop(self._stem + ".lock")
        self.lock_file.close()

    def another(self) -> str:
        """Return the most similar checkpoint of this model, framework and seed, and its
        differences; "" without one."""
        kin, candidates = _kin(self._identity), []
        for name in sorted(os.listdir(self._folder)):
            stem = name[: -len(_IDENTITY)]
            path = os.path.join(self._folder, stem)
            identity = _json(path + _IDENTITY) if name.endswith(_IDENTITY) else None
            epochs = len(_json(path + ".json") or ())
            if path != self._stem and epochs and kin and _kin(identity) == kin:
                candidates.append((differences(identity, self._identity), epochs, stem))
        if not candidates:
            return ""
        differ, epochs, stem = min(candidates, key=lambda candidate: len(candidate[0]))
        more = f" and {len(differ) - _SHOWN} more" if len(differ) > _SHOWN else ""
        return (
            f"training begins anew: the checkpoint {stem}* behind epoch {epochs} in {self._folder} "
            f"is of another training, with {', '.join(differ[:_SHOWN])}{more}. It is kept: remove "
            "it if that training will not go on"
        )

    def _write(self, curve: Curve) -> None:
        for path, content in ((self._stem + _IDENTITY, self._identity), (self.curve_file, curve)):
            with open(path + ".part", "w", encoding="utf-8") as file:
                json.dump(content, file)
            os.replace(path + ".part", path)

    @property
    def curve_file(self) -> str:
        """Path of the learning curve so far."""
        return self._stem + ".json"

    def state_file(self, epoch: int) -> str:
        """Return the path of the state after ``epoch``."""
        return f"{self._stem}-{epoch}"

    def _read(self) -> Optional[Curve]:
        curve: Optional[Curve] = _json(self.curve_file)
        return curve

    @staticmethod
    def _drop(path: str) -> None:
        with contextlib.suppress(OSError):
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def differences(there: Any, here: Any, name: str = "") -> List[str]:
    """Return each value in which two trainings differ, as ``threads 1 (here 2)``."""
    if isinstance(there, dict) and isinstance(here, dict):
        both = sorted({*there, *here})
        return [
            text for key in both for text in differences(there.get(key), here.get(key), str(key))
        ]
    return [] if there == here else [f"{name} {there} (here {here})"]


def _kin(identity: Any) -> Any:
    """Return what a training shares with others that differ from it by a change only, else None."""
    try:
        case = identity["case"]
        return [case["framework"], case["model"], identity["seed"]]
    except (KeyError, TypeError):
        return None


def _json(path: str) -> Any:
    """Return the content of a file; None where it is missing or damaged."""
    try:
        return bounded.read_json(path)
    except (OSError, ValueError):
        return None


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
