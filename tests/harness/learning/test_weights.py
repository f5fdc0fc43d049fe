"""Weights that a training begins with, leaves, and keeps after each epoch."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from harness.learning import saved
from harness.learning.saved import Checkpoint
from tasks import TaskError

# ---- weights to start from -----------------------------------------------------------------------


def safetensors(arrays: dict[str, Any], dtype: str = "F32") -> bytes:
    """Return a safetensors file: 8 bytes of length, a JSON header, the arrays."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array, np.float32)
        if dtype == "BF16":
            raw = (raw.view(np.uint32) >> 16).astype(np.uint16)
        elif dtype == "F16":
            raw = raw.astype(np.float16)
        offsets = [len(body), len(body) + raw.nbytes]
        header[name] = {"dtype": dtype, "shape": [*array.shape], "data_offsets": offsets}
        body += raw.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


SHAPES = {
    "embeddings.token.weight": (5, 4),
    "embeddings.norm.weight": (4,),
    "embeddings.norm.bias": (4,),
    "layers.0.attention.query.weight": (4, 4),
    "layers.0.intermediate.weight": (4, 6),
    "layers.0.output_norm.bias": (4,),
    "span.weight": (4, 2),
    "span.bias": (2,),
}
THEIRS = {
    "embeddings.word_embeddings.weight": (5, 4),
    "embeddings.LayerNorm.gamma": (4,),
    "embeddings.LayerNorm.beta": (4,),
    "encoder.layer.0.attention.self.query.weight": (4, 4),
    "encoder.layer.0.intermediate.dense.weight": (6, 4),
    "encoder.layer.0.output.LayerNorm.bias": (4,),
}


@pytest.mark.parametrize(("prefix", "dtype"), [("bert.", "F32"), ("electra.", "F16"), ("", "BF16")])
def test_weights_of_hugging_face_get_our_names_and_layout(
    tmp_path: Path, prefix: str, dtype: str
) -> None:
    path, random = tmp_path / "model.safetensors", np.random.RandomState(1)
    # multiples of 1/8 are exact in each dtype
    arrays = {prefix + n: random.randint(-9, 9, shape) / 8 for n, shape in THEIRS.items()}
    arrays["cls.predictions.bias"] = np.zeros(5)
    path.write_bytes(safetensors(arrays, dtype))
    start, notes = saved.read_weights(str(path), SHAPES)
    assert notes["drawn"] == ["span.weight", "span.bias"]
    assert notes["left"] == ["cls.predictions.bias"]
    assert notes["taken"] == 6
    wide = arrays[f"{prefix}encoder.layer.0.intermediate.dense.weight"]
    assert (start["layers.0.intermediate.weight"] == wide.T).all()
    tokens = arrays[f"{prefix}embeddings.word_embeddings.weight"]
    assert (start["embeddings.token.weight"] == tokens).all()
    assert {array.dtype for array in start.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda raw: b"{}" + raw, "is not a safetensors file"),
        (lambda raw: raw[:-3], "cannot be read"),
    ],
)
def test_a_damaged_file_of_weights_is_refused(tmp_path: Path, damage: Any, expected: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(damage(safetensors({name: np.zeros(s) for name, s in THEIRS.items()})))
    with pytest.raises(TaskError, match=expected):
        saved.read_weights(str(path), SHAPES)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    created = {name: np.zeros(shape) for name, shape in THEIRS.items()}
    path.write_bytes(
        safetensors({**created, "embeddings.word_embeddings.weight": np.zeros((6, 4))})
    )
    with pytest.raises(TaskError, match=r"is \(6, 4\), embeddings.token.weight is \(5, 4\)"):
        saved.read_weights(str(path), SHAPES)
    del created["embeddings.LayerNorm.beta"]
    path.write_bytes(safetensors(created))
    with pytest.raises(TaskError, match=r"lacks embeddings\.norm\.bias and 0 others; allowed"):
        saved.read_weights(str(path), SHAPES)
    with pytest.raises(TaskError, match="No such file"):
        saved.read_weights(str(tmp_path / "nowhere"), SHAPES)


def test_what_a_training_leaves_is_read_again(tmp_path: Path) -> None:
    """Dense layers are not transposed; Hugging Face's are."""
    random = np.random.RandomState(3)
    arrays = {name: random.standard_normal(shape).astype("f4") for name, shape in SHAPES.items()}
    arrays["scalar"] = np.float32(3)
    file = tmp_path / "left.safetensors"
    saved.write_weights(str(file), arrays)
    start, _ = saved.read_weights(str(file), {name: array.shape for name, array in arrays.items()})
    assert all((start[name] == array).all() for name, array in arrays.items())
    assert [path.name for path in tmp_path.glob("left*")] == [file.name]
    with pytest.raises(TaskError, match="lacks more and 0 others; allowed: weights of the same"):
        saved.read_weights(str(file), {**SHAPES, "more": (1,)})


# ---- successive phases ---------------------------------------------------------------------------

PHASE_SHAPES = {"embeddings.token.weight": (8, 2), "layers.0.attention.query.weight": (2, 2)}


def write(path: Path, *names: str) -> None:
    shapes = {**PHASE_SHAPES, "discriminator.layers.0.attention.query.weight": (2, 2)}
    arrays = {name: np.full(shapes.get(name, (2,)), n + 1.0) for n, name in enumerate(names)}
    saved.write_weights(str(path), arrays)


def test_a_phase_begins_with_the_file_of_its_own_kind_and_seed(tmp_path: Path) -> None:
    for seed in (0, 1, 10):
        (tmp_path / f"electra_base-pytorch-amp-seed{seed}-abc.safetensors").touch()
    alike = "electra_base-pytorch-amp-seed1-"
    assert Path(saved.file_of(str(tmp_path), alike)).name == f"{alike}abc.safetensors"
    assert saved.file_of("model.safetensors", alike) == "model.safetensors"
    with pytest.raises(TaskError, match=r"has no files electra_base-jax.*there are: electra"):
        saved.file_of(str(tmp_path), "electra_base-jax-amp-seed1-")
    (tmp_path / f"{alike}def.safetensors").touch()
    with pytest.raises(TaskError, match="has 2 files electra_base-pytorch-amp-seed1-"):
        saved.file_of(str(tmp_path), alike)


def test_a_phase_on_more_devices_than_the_one_before_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "tiny-jax-fp32-seed0-abc.safetensors", *PHASE_SHAPES)
    (tmp_path / "tiny-jax-fp32-seed0-abc-rank0.training").touch()
    adapter = SimpleNamespace(
        rank_context=SimpleNamespace(rank=1, world_size=2),
        weights=lambda: {name: np.zeros(shape) for name, shape in PHASE_SHAPES.items()},
        statistics=dict,
        load_weights=lambda arrays: None,
    )
    with pytest.raises(TaskError, match=r"rank1.training: not found; allowed: a folder that"):
        saved.start_from(adapter, str(tmp_path), "tiny-jax-fp32-seed0-")


def test_what_is_fine_tuned_begins_with_the_discriminator(tmp_path: Path) -> None:
    path, shapes = tmp_path / "a.safetensors", {**PHASE_SHAPES, "span.weight": (2, 2)}
    own = "discriminator.layers.0.attention.query.weight"
    generator = "generator.layers.0.attention.query.weight"
    write(path, "embeddings.token.weight", own, generator)
    start, notes = saved.read_weights(str(path), shapes)
    assert notes["drawn"] == ["span.weight"]
    assert notes["left"] == [generator]
    assert (start["layers.0.attention.query.weight"] == 2.0).all()
    # weights of a smaller model of the same definition are refused
    with pytest.raises(TaskError, match=r"lacks generator\.project\.weight"):
        saved.read_weights(str(path), {own: (2, 2), "generator.project.weight": (2, 2)})


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
    """Two ranks were killed between writing their files: rank 0 has two epochs, rank 1 has one."""
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
    # planted mistake: a checkpoint in which the other rank has finished both epochs
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
