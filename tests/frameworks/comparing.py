"""Comparison of several small models with their references in one process of a framework."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from framebench.records import verifications

from .fork_server import ForkServer

#: Model config with the model's own dropout.
DROPOUT = "model_config-dropout"


#: Precision and findings of each computation, by name.
Errors = Mapping[str, tuple[str, Sequence[Mapping[str, Any]]]]


def compared(
    run: ForkServer,
    folders: Sequence[Path],
    precisions: Sequence[str] = ("fp32",),
    modes: Sequence[str] = ("train", "inference"),
    training_only: Collection[Path] = (),
) -> Errors:
    """Compare training and inference of the model in each folder, with dropout if it has some.
    ``modes``: which of both; ``training_only``: folders compared only in training without dropout.
    """
    computations = [
        (str(folder), name, mode, precision)
        for folder in folders
        for name, mode in _compared(folder, modes, folder in training_only)
        for precision in precisions
    ]
    (actual,) = run("comparing.compare_all", computations=computations)
    errors: Errors = actual["errors"]
    assert len(errors) == len(computations)
    return errors


def _compared(folder: Path, modes: Sequence[str], training_only: bool) -> list[tuple[str, str]]:
    """Return names of model configs and the modes in which they are compared."""
    if training_only:
        return [("model_config", "train")]
    has_dropout = (folder / f"{DROPOUT}.json").exists()
    # inference is verified without dropout, as it is timed
    inference = DROPOUT if has_dropout else "model_config"
    plain = [({"train": "model_config", "inference": inference}[mode], mode) for mode in modes]
    return [*plain, *[(DROPOUT, "train")] * has_dropout]


def compared_by_rank(run: ForkServer, reference: Path, ranks: int = 1, **options: object) -> Errors:
    """Return the errors of training on ``ranks`` devices, by rank; ``options``: of the case."""
    answers = run("comparing.compare_rank", ranks, reference=str(reference), options=options)
    precision = str(options.get("precision", "fp32"))
    return {f"rank {rank}": (precision, answer["errors"]) for rank, answer in enumerate(answers)}


def beyond(errors: Errors, bounds: Mapping[str, float] | None = None) -> dict[Any, float]:
    """Return the errors above the bounds of their precision, or above ``bounds`` by quantity."""
    own = bounds or {}
    return {
        (computation, entry["quantity"], entry["where"]): entry["error"]
        for computation, (precision, measured) in errors.items()
        for entry in measured
        for bound in [{**verifications.bounds_in(precision), **own}[entry["quantity"]]]
        if not entry["error"] - entry.get("rounding", 0.0) <= bound
    }
