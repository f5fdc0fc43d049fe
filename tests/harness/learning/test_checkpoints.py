"""Checkpoints of several ranks in one folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.learning.checkpoints import Checkpoint

IDENTITY = {"case": "digits"}


class Trained:
    """Double of an adapter for checkpoints; ``others``: epochs that the other ranks have."""

    def __init__(self, others: float = 0.0) -> None:
        self.others, self.taken = others, ""

    def all_reduce(self, value: float) -> float:
        return value + self.others

    def save_training(self, path: str) -> None:
        Path(path).write_text(path)

    def load_training(self, path: str) -> None:
        self.taken = path


def curve(epochs: int) -> list[dict[str, Any]]:
    return [{"epoch": number + 1} for number in range(epochs)]


def names(folder: Path) -> list[str]:
    return sorted(path.name.partition("-")[2] for path in folder.iterdir())


def test_ranks_go_on_from_the_epoch_that_all_have(tmp_path: Path) -> None:
    """Fail if ranks do not resume from the last epoch that all have.
    Two were killed between their files: the first has two epochs, the second one."""
    first = Checkpoint(str(tmp_path), IDENTITY, 0, 2)
    for epochs in (1, 2):
        kept = first.state_file(epochs)
        Path(kept).write_text("state")
    Path(first.curve_file).write_text(json.dumps(curve(2)))
    adapter: Any = Trained(others=1.0)
    assert first.load(adapter) == curve(1)
    assert adapter.taken == first.state_file(1)
    reported = json.loads(Path(first.curve_file).read_text())
    assert reported == curve(1), "killed again before its second epoch, it would look for its state"
    # planted: the other rank has both
    Path(first.curve_file).write_text(json.dumps(curve(2)))
    other: Any = Trained(others=2.0)
    assert first.load(other) == curve(2)
    nothing: Any = Trained(others=0.0)
    first.remove()
    assert first.load(nothing) == []


def test_an_epoch_is_kept_until_all_ranks_have_the_next(tmp_path: Path) -> None:
    entry = Checkpoint(str(tmp_path), IDENTITY, 0, 2)
    seen: list[list[str]] = []

    class Watched(Trained):
        def all_reduce(self, value: float) -> float:
            seen.append(names(tmp_path))
            return value

    adapter: Any = Watched()
    for epochs in (1, 2):
        entry.save(adapter, curve(epochs))
    assert [name for name in seen[1] if name[-1].isdigit()] == ["rank0-1", "rank0-2"]
    assert [name for name in names(tmp_path) if name[-1].isdigit()] == ["rank0-2"]
    entry.remove()
    assert not [*tmp_path.iterdir()]
