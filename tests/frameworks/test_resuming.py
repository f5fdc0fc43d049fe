"""Two killed devices resume bit by bit, in every framework that trains on several.
Two other processes continue from the folder of checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .fork_server import ForkServers
from .training_compilers import TRAINING_COMPILERS

#: Frameworks that do not save the random state of dropout masks.
FORGETFUL = {"mindspore", "mxnet", "oneflow", "paddle"}
#: Frameworks without a second model next to one on several devices, or without several devices.
ALONE = {"megengine", "tensorflow1"}
EPOCHS, KEPT = 3, 2


@pytest.mark.parametrize("framework", sorted({*TRAINING_COMPILERS} - ALONE))
def test_two_devices_that_were_killed_go_on_bit_by_bit(
    fork_servers: ForkServers, framework: str, tmp_path: Path
) -> None:
    run = fork_servers(framework)
    given: dict[str, Any] = {"epochs": EPOCHS, "kept": KEPT}
    given["dropout"] = 0.0 if framework in FORGETFUL else 0.5
    given |= {"compiler": TRAINING_COMPILERS[framework], "folder": str(tmp_path / "checkpoints")}
    whole, resumed = (run("resuming.train_and_die", ranks=2, **given) for _ in range(2))
    assert [entry["resumed"] for entry in (*whole, *resumed)] == [0, 0, KEPT, KEPT]
    ends: list[Any] = [entry["seen"][-1] for entry in whole]
    assert [entry["seen"][-1] for entry in resumed] == ends
    (weights, statistics), (others, own) = ends
    assert weights == others, "the ranks have trained two models"
    # lost in a checkpoint of the first rank alone, and absent without one
    assert statistics != own
    assert all(entry["seen"][KEPT - 1] != end for entry, end in zip(whole, ends, strict=True))
