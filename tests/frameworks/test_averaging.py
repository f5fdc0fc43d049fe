"""Updates with gradients averaged over two ranks, compared with the reference.
Mistakes behind the all-reduce leave the gradients right, and are found by the updates."""

from __future__ import annotations

from pathlib import Path

import pytest

from .comparing import beyond
from .fork_server import ForkServers
from .models import EMBEDDING
from .planting import plant, training_errors

SGD = "basic residual, halving"
CLIPPED = '_clipped(gradients, model_config["hyperparameters"].get("clip_global_norm"))'

#: Framework, model, file, text and replacement. AdamW behind a clipped norm
#: does not see the scale of gradients, SGD does.
MISTAKES = {
    "the sum over ranks": (
        *("mxnet", SGD, "steps.py"),
        *("trainer.update(ranks)", "trainer.update(1)"),
    ),
    "averaged twice": (
        *("tensorflow", SGD, "steps.py"),
        "optimizer.apply(gradients, variables)",
        "optimizer.apply([gradient / ranks for gradient in gradients], variables)",
    ),
    "clipped before the all-reduce": (
        *("tensorflow1", EMBEDDING, "steps.py"),
        *(CLIPPED, f"average({CLIPPED.replace('gradients', 'local', 1)})"),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_update_with_other_than_the_mean_gradient_is_found(
    mistake: str,
    fork_servers: ForkServers,
    references: dict[str, Path],
    block_references: Path,
    tmp_path: Path,
) -> None:
    framework, model, *planted = MISTAKES[mistake]
    reference = block_references / model if model == SGD else references[model]
    folders = [tmp_path / name for name in ("right", "wrong")]
    right, wrong = (
        training_errors(
            fork_servers(framework),
            reference,
            plant(folder, mistakes, framework),
            ranks=2,
        )
        for folder, mistakes in zip(folders, ([], [tuple(planted)]), strict=True)
    )
    assert not beyond(right)
    quantities = {quantity.partition(",")[0] for _, quantity, _ in beyond(wrong)}
    assert "gradients" not in quantities
    assert {"first update", "two updates"} & quantities, f"not found: {mistake}"
