"""Squares of three colours are learned, through the framework's own loader and the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from framebench.records import record_sets
from harness.learning import sources
from harness.samples import folder
from PIL import Image

from ..bench import ROOT, Bench
from ..conftest import build_environment
from ..harness.validity import assert_outcome

COLOURS = ((200, 40, 40), (40, 200, 40), (40, 40, 200))
EACH = {"train": 16, "val": 5}
MODEL: dict[str, Any] = {
    "name": "colours",
    "title": "One convolution for colours",
    "base": "cnn",
    "trainable_parameters": 12 * 27 + 24 + 12 * 3 + 3,
    "forward_multiply_adds": {"per_sample": 12 * 27 * 64 + 36},
    "inputs": [
        {"name": "images", "shape": ["batch", 8, 8, 3], "distribution": "normal"},
        {"name": "labels", "shape": ["batch"], "distribution": "integers", "below": 3},
    ],
    "hyperparameters": {
        "family": "layers",
        "classes": 3,
        "learning_rate": 0.1,
        "layers": [
            {"op": "convolution", "name": "conv", "channels": 12, "kernel": 3},
            {"op": "batch_norm", "name": "bn"},
            {"op": "relu", "name": "relu"},
            {"op": "global_average_pool", "name": "pool"},
            {"op": "linear", "name": "fc", "features": 3},
        ],
    },
}


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in ImageNet's layout, with noise around a colour for each class."""
    root = tmp_path_factory.mktemp("colours")
    random = np.random.RandomState(0)
    for split, count in EACH.items():
        for label, colour in enumerate(COLOURS):
            folder = root / split / f"class{label}"
            folder.mkdir(parents=True)
            for number in range(count):
                noise = random.randint(-40, 40, (20, 24, 3))
                pixels = np.clip(np.array(colour) + noise, 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(folder / f"{number}.JPEG")
    return root


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "bases").symlink_to(ROOT / "scripts/models/bases")
    (folder / "colours.json").write_text(json.dumps(MODEL))
    return folder / "colours.json"


#: Compiler, devices and micro-steps of steps of 8 images.
WAYS = {
    "pytorch": ("none", 1, 2),
    "paddle": ("none", 2, 1),
    "jax": ("jit", 1, 1),
}


@pytest.mark.parametrize("framework", WAYS)
def test_images_in_a_folder_are_learned(
    framework: str, colours: Path, model: Path, tmp_path: Path
) -> None:
    compiler, devices, accumulation = WAYS[framework]
    bench = Bench(tmp_path, build_environment(framework))
    done = bench.run(
        framework=ROOT / "scripts/frameworks" / framework,
        compiler=compiler,
        model=model,
        kind="converge",
        devices_per_node=devices,
        cores_per_device=1,
        accumulation=accumulation,
        batch_per_device=8 // devices // accumulation,
        input="data",
        data=colours,
        parameters={
            "epochs": 3,
            "schedule": "cosine",
            "warmup": 0.1,
            "learning_rate": 0.1,
            "learning_rate_batch": 8,
            "weight_decay": 0.0001,
            "momentum": 0.875,
            "label_smoothing": 0.1,
            "mixup": 0.2,
        },
    )
    record = done.record
    assert_outcome(record, "ok")
    rank, *others = record["ranks"]
    assert len(others) == devices - 1
    assert (rank["task"]["name"], rank["task"]["train"], rank["task"]["held_out"]) == (
        "images", 48, 15,
    )  # fmt: skip
    last = rank["curve"][-1]
    assert last["samples"] == 48, "of all devices and micro-steps"
    for other in others:  # their share of the validation images counts, too
        assert other["curve"][-1]["held_out"] == last["held_out"]
    right = last["held_out"]["accuracy"] * 3 * EACH["val"]
    assert right == pytest.approx(round(right)), "every image counts once"
    assert last["held_out"]["accuracy"] > 0.9, rank["curve"]
    assert last["held_out"]["loss"] < rank["untrained"]["loss"]
    # planted mistake: labels without smoothing would have a loss below 0.3
    assert last["loss"] > 0.3
    assert "top_5_accuracy" not in record["metrics"], "of three classes five guesses tell nothing"
    (run,) = record_sets.load(bench.output.parent).runs
    assert run.conditions.input.startswith("data@")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_share_what_is_held_out(colours: Path, ranks: int) -> None:
    actual = folder.scan(str(colours), folder.VALIDATION)
    parts = [sources.part_of_rank(actual, rank, ranks, 8, 8, 1) for rank in range(ranks)]
    assert len({path for part in parts for path in part.paths}) == len(actual.paths)
    assert sum(len(part.paths) for part in parts) == len(actual.paths) == 15
    with pytest.raises(folder.BadData, match="15 images, fewer than 16 devices"):
        sources.part_of_rank(actual, 15, 16, 8, 8, 1)
