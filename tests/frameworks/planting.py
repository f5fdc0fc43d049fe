"""Mistakes planted in a copy of an adapter, compared with the reference.
The process is forked where the framework is already imported."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from core.parallelism import DATA

from ..conftest import ROOT
from .comparing import Errors
from .fork_server import ForkServer

ADAPTERS = ROOT / "scripts/frameworks"
PYTORCH = ADAPTERS / "pytorch"


class Computation(NamedTuple):
    """Computation that is compared with the reference: of the model config ``config_name``
    (``model_config-dropout``: with the model's own dropout), on ``ranks`` devices, with so many
    ``micro_steps`` of gradient accumulation. ``parallelism``: how the devices share a step."""

    mode: str = "train"
    precision: str = "fp32"
    ranks: int = 1
    config_name: str = "model_config"
    micro_steps: int = 1
    parallelism: str = DATA


FP32_TRAINING = Computation()


def plant(folder: Path, mistakes: Iterable[tuple[str, str, str]]) -> Path:
    """Copy PyTorch's adapter to ``folder`` with ``mistakes``: file, text and its replacement.
    Raises AssertionError where a text does not stand in its file."""
    adapter = folder / PYTORCH.name
    shutil.copytree(PYTORCH, adapter)
    for file, right, wrong in mistakes:
        text = (adapter / file).read_text()
        assert right in text, f"cannot be planted: {file} has no {right!r}"
        (adapter / file).write_text(text.replace(right, wrong))
    return adapter


def errors_of(
    run: ForkServer, reference: Path, adapter: Path, computation: Computation = FP32_TRAINING
) -> Errors:
    """Return the errors of the ``adapter`` in the ``computation``, by rank."""
    answers = run(
        "comparing.compare_copy",
        computation.ranks,
        reference=str(reference),
        copy=str(adapter),
        config_name=computation.config_name,
        options={
            "mode": computation.mode,
            "precision": computation.precision,
            "parallelism": computation.parallelism,
            "steps": computation.micro_steps,
        },
    )
    return {
        f"{reference.name} {rank}": (computation.precision, answer["errors"])
        for rank, answer in enumerate(answers)
    }
