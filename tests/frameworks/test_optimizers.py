"""Verification passes in every branch of the optimizers' formulas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from harness.request.declaration import read_framework

from ..conftest import ROOT
from .comparing import beyond, compared
from .fork_server import ForkServer, served
from .optimizers import BRANCHES, UNCHANGED, ZERO

ADAPTERS = ROOT / "scripts" / "frameworks"

run = served(*sorted(path.parent.name for path in ADAPTERS.glob("*/framework.json")))


def test_what_is_right_passes_in_every_branch(run: ForkServer, branch_references: Path) -> None:
    declared = read_framework(str(ADAPTERS / run.framework))
    folders = [branch_references / BRANCHES[optimizer] for optimizer in declared.optimizers]
    assert not beyond(compared(run, folders, modes=("train",)))


def test_norms_of_lamb_are_zero_in_the_first_step_alone(branch_references: Path) -> None:
    folder = branch_references / BRANCHES["lamb"]
    start, first, both = (
        np.load(folder / f"{name}.npz") for name in ("weights", "update-1-0", "update-1-1")
    )
    taken = {
        name: [array[name].any() for array in (start, first, both)] for name in (ZERO, UNCHANGED)
    }
    assert taken == {ZERO: [False, True, True], UNCHANGED: [True, False, True]}
