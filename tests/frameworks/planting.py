"""Mistakes planted in a copy of an adapter, compared with the reference.
The process is forked where the framework is already imported."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from core.axes import GENERATE, INFERENCE
from core.parallelism import DATA

from ..conftest import ROOT
from ..planting import Change, change
from .comparing import Errors
from .fork_server import ForkServer
from .mistakes.planted import FP32_TRAINING, Computation, PlantedMistake
from .models import BLOCKS, EMBEDDING, LSTM, MODELS
from .optimizers import BRANCHES
from .transformers import COMPARED, GENERATED, LONG

ADAPTERS = ROOT / "scripts/frameworks"
#: Block of a network, which is trained by SGD, and quick.
BLOCK = "basic residual, halving"
#: Names of the small references in which mistakes are planted.
PLANTED_IN = (
    *(*MODELS, BLOCKS, EMBEDDING, LSTM, BLOCK),
    *(*COMPARED, LONG, *GENERATED.values(), *BRANCHES.values()),
)
PYTORCH = ADAPTERS / "pytorch"


def plant(folder: Path, mistakes: Iterable[Change], framework: str = "pytorch") -> Path:
    """Copy the adapter to ``folder`` with ``mistakes``. Raises AssertionError where a text does
    not stand in its file."""
    adapter = folder / framework
    shutil.copytree(ADAPTERS / framework, adapter)
    change(adapter, mistakes)
    return adapter


def references_of(
    small: Mapping[str, Path], decoders: Path, blocks: Path, branches: Path
) -> dict[str, Path]:
    """Return the folders of all PLANTED_IN by name, from those of small models, and from the
    folders that hold the references of language models, of blocks and of optimizers' branches."""
    return {
        **small,
        **{name: branches / name for name in BRANCHES.values()},
        **{name: decoders / name for name in (*COMPARED, LONG, *GENERATED.values())},
        BLOCK: blocks / BLOCK,
    }


def planted_errors(
    run: ForkServer, mistake: PlantedMistake, references: Mapping[str, Path], folder: Path
) -> Errors:
    """Return the errors of the comparison with ``mistake`` planted in a copy of the adapter in
    ``folder``, by rank. ``references``: their folders by name."""
    adapter = plant(folder, mistake.changes, run.framework)
    return errors_of(run, references[mistake.model], adapter, mistake.computation)


def errors_of(
    run: ForkServer, reference: Path, adapter: Path, computation: Computation = FP32_TRAINING
) -> Errors:
    """Return the errors of the ``adapter`` in the ``computation``, by rank."""
    generated = computation.mode == GENERATE
    mode = INFERENCE if generated else computation.mode
    options = {"mode": mode, "precision": computation.precision}
    # some frameworks have a compiler of their own here
    options |= {"compiler": computation.compiler} if computation.compiler else {}
    steps = {"steps": computation.micro_steps} if computation.micro_steps > 1 else {}
    if computation.parallelism != DATA:
        options["parallelism"] = computation.parallelism
    answers = run(
        "comparing.compare_copy",
        computation.ranks,
        reference=str(reference),
        copy=str(adapter),
        config_name=computation.config_name,
        generated=generated,
        options={**options, **steps},
    )
    return {
        f"{reference.name} {rank}": (computation.precision, answer["errors"])
        for rank, answer in enumerate(answers)
    }
