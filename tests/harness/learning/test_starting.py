"""Initial weights: those that a training leaves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness.learning import weights
from tasks import TaskError

from .small_squad import write_small_squad


def test_what_a_training_leaves_is_read_again(tmp_path: Path) -> None:
    """Fail if a training's weights are not read back; dense layers are not transposed.
    Hugging Face's are."""
    _, shapes = write_small_squad(tmp_path)
    random = np.random.RandomState(3)
    arrays = {name: random.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
    arrays["scalar"] = np.float32(3)
    file = tmp_path / "left.safetensors"
    weights.write(str(file), arrays)
    start = weights.read(str(file), {name: array.shape for name, array in arrays.items()})
    assert all((start.weights[name] == array).all() for name, array in arrays.items())
    assert [path.name for path in tmp_path.glob("left*")] == [file.name]
    with pytest.raises(TaskError, match="lacks more and 0 others; allowed: weights of the same"):
        weights.read(str(file), {**shapes, "more": (1,)})
