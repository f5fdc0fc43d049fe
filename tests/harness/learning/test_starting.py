"""Initial weights: checkpoints written by TensorFlow, read without it, and those of a training."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.learning import bundle, safetensors, starting
from tasks import TaskError

from ...conftest import ROOT, build_environment
from .small_squad import write_small_squad

LAYER = {
    **{f"attention.{part}": f"attention/self/{part}" for part in ("query", "key", "value")},
    "attention.output": "attention/output/dense",
    "attention_norm": "attention/output/LayerNorm",
    "intermediate": "intermediate/dense",
    "output": "output/dense",
    "output_norm": "output/LayerNorm",
}
EMBEDDINGS = {"token": "word", "position": "position", "segment": "token_type"}
#: Weights besides the encoder: Adam's, other heads', and so many more that the index has many
#: blocks.
OTHERS = ("bert/encoder/layer_0/output/dense/kernel/adam_m", "bert/pooler/dense/kernel")
MANY = 1_000


def google_name(ours: str, body: str) -> str:
    """Return the name in Google's code (modeling.py, run_squad.py), worked out by hand.
    ``body``: bert or electra."""
    name, kind = ours.rsplit(".", 1)
    if name == "span":
        return f"cls/squad/output_{kind}s" if kind == "weight" else "cls/squad/output_bias"
    if name.startswith("embeddings.") and name != "embeddings.norm":
        return f"{body}/embeddings/{EMBEDDINGS[name.split('.')[1]]}_embeddings"
    if name == "embeddings.norm":
        theirs = f"{body}/embeddings/LayerNorm"
    else:
        _, number, part = name.split(".", 2)
        theirs = f"{body}/encoder/layer_{number}/{LAYER[part]}"
    norm = {"weight": "gamma", "bias": "beta"}
    dense = {"weight": "kernel", "bias": "bias"}
    return f"{theirs}/{(norm if theirs.endswith('LayerNorm') else dense)[kind]}"


class Written:
    """Written checkpoints. ``weights``: by our names; ``folder``: of the checkpoints."""

    def __init__(self, folder: Path, body: str) -> None:
        _, self.shapes = write_small_squad(folder)
        self.folder, random = folder, np.random.RandomState(2)
        self.weights = {n: random.randint(-9, 9, s) / 8 for n, s in self.shapes.items()}
        arrays = {
            google_name(name, body): (array.T if name == "span.weight" else array)
            for name, array in self.weights.items()
        }
        arrays |= dict.fromkeys(OTHERS, np.ones((2, 3)))
        arrays |= {f"many/{number}/{'long' * 90}": np.ones(1) for number in range(MANY)}
        variables = folder / "arrays.npz"
        np.savez(variables, **{name: array.astype(np.float32) for name, array in arrays.items()})
        program = ROOT / "tests/harness/programs/write_checkpoints.py"
        arguments = [build_environment("tensorflow"), program, variables, folder]
        subprocess.run(arguments, check=True, capture_output=True)

    def read(self, name: str) -> starting.Start:
        return starting.read(str(self.folder / name), self.shapes)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("written"), "bert")


@pytest.mark.parametrize(
    "name", ["model.ckpt", "model.ckpt.index", "half.ckpt", "brain.ckpt", "double.ckpt"]
)
def test_a_checkpoint_of_tensorflow_gives_its_arrays(written: Written, name: str) -> None:
    start = written.read(name)
    assert {*start.weights} == {*written.shapes}
    for ours, array in written.weights.items():
        assert (start.weights[ours] == array).all(), ours
    assert start.notes["drawn"] == []
    assert {*OTHERS} <= {*start.notes["left"]}
    assert {array.dtype for array in start.weights.values()} == {np.dtype(np.float32)}


def test_a_checkpoint_has_more_than_a_block_and_a_data_file(written: Written) -> None:
    """Fail if the checkpoint is too small for the preceding test to be meaningful."""
    stored = bundle.open_checkpoint(str(written.folder / "model.ckpt"))
    assert len(stored.files) == 3
    assert sum(name.startswith("many/") for name in stored.names) == MANY
    assert (written.folder / "model.ckpt.index").stat().st_size > 2**18, "of a block"


def test_names_of_electra_are_known_too(written: Written) -> None:
    for ours in written.shapes:
        theirs = bundle.hugging_face(google_name(ours, "electra"))
        assert starting.our_name(theirs) == ours
    assert starting.our_name(bundle.hugging_face("cls/predictions/output_bias")) == "decoder_bias"
    relation = bundle.hugging_face("cls/seq_relationship/output_weights")
    assert starting.our_name(relation) == "next_sentence.weight"
    for theirs in ("generator/encoder/layer_0/output/dense/kernel", "global_step"):
        assert starting.our_name(bundle.hugging_face(theirs)) is None


def flipped(offset: int) -> Callable[[bytes], bytes]:
    return lambda raw: raw[:offset] + bytes([raw[offset] ^ 1]) + raw[offset + 1 :]


@pytest.mark.parametrize(
    ("suffix", "damage", "expected"),
    [
        (".index", lambda raw: raw[:-9], "is no index of a TensorFlow checkpoint: its last bytes"),
        (".index", lambda raw: raw[-60:], "is no index of a TensorFlow checkpoint"),
        (".index", lambda raw: b"", "is no index of a TensorFlow checkpoint: its last bytes"),
        (".index", flipped(40), "a block has a wrong checksum"),
        (".data-00000-of-00001", lambda raw: raw[:-9], "data-00000-of-00001: .* cannot be read"),
        (".data-00000-of-00001", flipped(40), "its content has a wrong checksum"),
        (".data-00000-of-00001", None, "data-00000-of-00001: No such file"),
    ],
)
def test_a_damaged_checkpoint_is_refused(
    written: Written, tmp_path: Path, suffix: str, damage: Any, expected: str
) -> None:
    for path in written.folder.glob("double.ckpt.*"):
        raw = path.read_bytes()
        if path.name.endswith(suffix):
            if damage is None:
                continue
            raw = damage(raw)
        (tmp_path / path.name).write_bytes(raw)
    with pytest.raises(TaskError, match=expected):
        starting.read(str(tmp_path / "double.ckpt"), written.shapes)


def test_a_checkpoint_of_another_model_is_refused(written: Written) -> None:
    shapes = {**written.shapes, "layers.7.output.bias": (4,)}
    with pytest.raises(TaskError, match=r"lacks layers\.7\.output\.bias .*with Google's"):
        starting.read(str(written.folder / "half.ckpt"), shapes)


def test_what_a_training_leaves_is_read_again(tmp_path: Path) -> None:
    """Fail if a training's weights are not read back; dense layers are not transposed.
    Hugging Face's are."""
    _, shapes = write_small_squad(tmp_path)
    random = np.random.RandomState(3)
    arrays = {name: random.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
    arrays["scalar"] = np.float32(3)
    file = tmp_path / "left.safetensors"
    safetensors.write(str(file), arrays)
    start = starting.read(str(file), {name: array.shape for name, array in arrays.items()})
    assert all((start.weights[name] == array).all() for name, array in arrays.items())
    assert [path.name for path in tmp_path.glob("left*")] == [file.name]
    with pytest.raises(TaskError, match="lacks more, 1 arrays in all: of another model"):
        starting.read(str(file), {**shapes, "more": (1,)})
