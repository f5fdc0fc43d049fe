"""Files of a training: checkpoints, from which a killed training continues after its last complete
epoch, and initial and final weights, in safetensors files.

Hugging Face's BERT and ELECTRA are read by their names. Files of a training here have the names and
layout that all frameworks share. Next to them, each rank leaves its training as its framework saves
it, with the optimizer's moments."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from typing import Any, Dict, List, Mapping, Optional, Tuple

from core import bounded
from tasks import TaskError

from harness.capabilities import Checkpointing

SUFFIX = ".safetensors"
#: Dtypes by safetensors' names and numpy's; bfloat16 is the upper half of a float32.
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_METADATA, _OWN = "__metadata__", {"format": "framebench"}
#: Largest header in bytes, as in Hugging Face's reader.
_LARGEST_HEADER = 100_000_000
#: Prefixes of names of an encoder that is part of a larger model.
_PREFIXES = ("bert.", "electra.", "discriminator.")
#: Parts of Hugging Face's names and of ours; the first match counts. Parts of layers come first.
_NAMES = (
    (r"encoder\.layer\.(\d+)\.attention\.self\.(query|key|value)", r"layers.\1.attention.\2"),
    (r"encoder\.layer\.(\d+)\.attention\.output\.dense", r"layers.\1.attention.output"),
    (r"encoder\.layer\.(\d+)\.attention\.output\.LayerNorm", r"layers.\1.attention_norm"),
    (r"encoder\.layer\.(\d+)\.intermediate\.dense", r"layers.\1.intermediate"),
    (r"encoder\.layer\.(\d+)\.output\.dense", r"layers.\1.output"),
    (r"encoder\.layer\.(\d+)\.output\.LayerNorm", r"layers.\1.output_norm"),
    (r"embeddings\.word_embeddings", "embeddings.token"),
    (r"embeddings\.position_embeddings", "embeddings.position"),
    (r"embeddings\.token_type_embeddings", "embeddings.segment"),
    (r"embeddings\.LayerNorm", "embeddings.norm"),
    (r"pooler\.dense", "pooler"),
    (r"cls\.predictions\.transform\.dense", "transform"),
    (r"cls\.predictions\.transform\.LayerNorm", "transform_norm"),
    (r"cls\.seq_relationship", "next_sentence"),
    (r"qa_outputs", "span"),
)
#: Last parts of names; older files use TensorFlow's gamma and beta for normalizations.
_KINDS = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
#: The encoder that is fine-tuned: a pre-trained ELECTRA has two.
_DISCRIMINATOR = "discriminator."
#: Arrays of a head. Only these may be missing in a file: they are drawn at random.
_HEADS = ("classifier.", "decoder_bias", "next_sentence.", "pooler.", "span.", "transform")

Shapes = Mapping[str, Tuple[int, ...]]
Curve = List[Dict[str, Any]]


class Checkpoint:
    """Checkpoint of one rank of a training, in a folder that it may share with others.

    It consists of the framework's file or folder for the last epoch, and our file with the curve so
    far. Both are written under other names and then moved, ours last, so that one of two epochs is
    complete whenever the process is killed. The previous epoch is kept until all ranks have saved
    the next, so that killed ranks have an epoch in common."""

    def __init__(self, folder: str, identity: Any, rank: int = 0, ranks: int = 1) -> None:
        """Create the folder. ``identity``: JSON values that identify this training."""
        text = json.dumps(identity, sort_keys=True).encode()
        part = f"-rank{rank}" if ranks > 1 else ""
        self._stem = os.path.join(folder, hashlib.sha256(text).hexdigest()[:32] + part)
        self._ranks = ranks
        #: Path of the learning curve so far.
        self.curve_file = self._stem + ".json"
        os.makedirs(folder, exist_ok=True)

    def load(self, adapter: Checkpointing) -> Curve:
        """Restore the training and return its curve so far; empty where there is no checkpoint.
        Raises the framework's error for a damaged file."""
        known = self._read()
        # Killed ranks are at most one epoch apart; load the latest epoch that all ranks have saved.
        epoch = int(adapter.all_reduce(float(len(known)))) // self._ranks
        # otherwise a second kill could leave states and curves of different epochs
        if len(known) > epoch:
            known = known[:epoch]
            self._write(known)
        if known:
            adapter.load_training(self.state_file(epoch))
        return known

    def save(self, adapter: Checkpointing, curve: Curve) -> None:
        """Save the state after an epoch, the last of ``curve``. Returns when all ranks have saved
        theirs."""
        save_state(adapter, self.state_file(len(curve)))
        self._write(curve)
        adapter.all_reduce(1.0)
        _drop(self.state_file(len(curve) - 1))

    def remove(self) -> None:
        epochs = len(self._read())
        for path in (self.curve_file, self.state_file(epochs), self.state_file(epochs - 1)):
            _drop(path)

    def state_file(self, epoch: int) -> str:
        """Return the path of the state after ``epoch``."""
        return f"{self._stem}-{epoch}"

    def _write(self, curve: Curve) -> None:
        with open(self.curve_file + ".part", "w", encoding="utf-8") as file:
            json.dump(curve, file)
        os.replace(self.curve_file + ".part", self.curve_file)

    def _read(self) -> Curve:
        """Return the curve so far; empty where its file is missing or damaged."""
        try:
            curve: Curve = bounded.read_json(self.curve_file)
        except (OSError, ValueError):
            return []
        return curve


def save_state(adapter: Checkpointing, path: str) -> None:
    """Save a training to ``path``, which appears when it is complete."""
    for before in (path + ".part", path):  # left by a process that was killed here
        _drop(before)
    adapter.save_training(path + ".part")
    os.replace(path + ".part", path)


def _drop(path: str) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def start_from(adapter: Any, path: str, alike: str) -> Dict[str, Any]:
    """Overwrite the built model's weights with those in a file; return notes for the record.

    ``path``: the file, or a folder with one file whose name begins with ``alike``; from a folder,
    the optimizer continues, too. Weights that the file lacks stay. Raises :class:`TaskError`."""
    drawn = {**adapter.weights(), **adapter.statistics()}
    shapes = {name: array.shape for name, array in drawn.items()}
    file = file_of(path, alike)
    weights, notes = read_weights(file, shapes)
    adapter.load_weights({**drawn, **weights})
    if file != path:
        state = _state_file(adapter, file)
        if not os.path.exists(state):
            raise TaskError(
                f"{state}: not found; allowed: a folder that a training on as many devices has "
                f"left, or for its weights alone the file {file}"
            )
        adapter.load_training(state)
        notes["optimizer"] = "continued"
    return notes


def save_training(adapter: Any, folder: str, name: str) -> Dict[str, Any]:
    """Save the training of this rank, and return notes for the record. The first rank also saves
    weights and running statistics in a form that any framework can start from. Raises
    :class:`TaskError` where they cannot be written."""
    path = os.path.join(folder, name + SUFFIX)
    try:
        os.makedirs(folder, exist_ok=True)
        save_state(adapter, _state_file(adapter, path))
        if adapter.rank_context.rank > 0:
            return {}
        write_weights(path, {**adapter.weights(), **adapter.statistics()})
        return {"file": path, "sha256": _sha256(path)}
    except OSError as error:
        raise TaskError(f"{error.filename or path}: {error.strerror}") from None


def _state_file(adapter: Any, file: str) -> str:
    """Return the path of this rank's training next to the file of its weights."""
    rank_context = adapter.rank_context
    part = f"-rank{rank_context.rank}" if rank_context.world_size > 1 else ""
    return f"{file[: -len(SUFFIX)]}{part}.training"


def file_of(path: str, alike: str) -> str:
    """Return ``path``, or the one file of a training in that folder whose name begins with
    ``alike``. Raises :class:`TaskError` where there is not exactly one."""
    if not os.path.isdir(path):
        return path
    known = sorted(name for name in os.listdir(path) if name.endswith(SUFFIX))
    files = [name for name in known if name.startswith(alike)]
    if len(files) == 1:
        return os.path.join(path, files[0])
    raise TaskError(
        f"{path}: has {len(files) or 'no'} files {alike}*{SUFFIX}; allowed: one, which a training "
        f"with `weights` in this folder leaves (there are: {', '.join(known) or 'none'})"
    )


def read_weights(path: str, shapes: Shapes) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Return the file's arrays for a model with these ``shapes``, by our names and in the layout
    that frameworks share, and notes for the record.

    Raises :class:`TaskError` where the file is not safetensors, lacks more than a head, or has an
    array of another shape."""
    try:
        arrays, is_own = _read_arrays(path)
        digest = _sha256(path)
    except OSError as error:
        raise TaskError(f"{error.filename or path}: {error.strerror}") from None
    weights: Dict[str, Any] = {}
    left: List[str] = []
    for theirs, array in arrays.items():
        ours = theirs if is_own else our_name(theirs)
        if ours and ours.startswith(_DISCRIMINATOR) and ours not in shapes:
            ours = ours[len(_DISCRIMINATOR) :]
        if ours is None or ours not in shapes:
            left.append(theirs)
            continue
        if not is_own and array.ndim == 2 and not ours.startswith("embeddings."):
            array = array.T  # Hugging Face's layout is (out, in)
        if array.shape != tuple(shapes[ours]):
            raise TaskError(f"{path}: {theirs} is {array.shape}, {ours} is {tuple(shapes[ours])}")
        weights[ours] = array
    lacking = [name for name in shapes if name not in weights]
    body = [name for name in lacking if not name.startswith(_HEADS)]
    if body:
        raise TaskError(
            f"{path}: lacks {body[0]} and {len(body) - 1} others; allowed: weights of the same "
            "model, or of BERT or ELECTRA with Hugging Face's names, where a head may be missing"
        )
    notes = {"file": path, "sha256": digest, "taken": len(weights), "drawn": lacking, "left": left}
    return weights, notes


def our_name(theirs: str) -> Optional[str]:
    """Return our name for Hugging Face's name; None for arrays that no model here has."""
    if theirs == "cls.predictions.bias":
        return "decoder_bias"
    prefix = next((prefix for prefix in _PREFIXES if theirs.startswith(prefix)), "")
    name, _, kind = theirs[len(prefix) :].rpartition(".")
    for pattern, ours in _NAMES:
        match = re.fullmatch(pattern, name)
        if match and kind in _KINDS:
            return f"{match.expand(ours)}.{_KINDS[kind]}"
    return None


def write_weights(path: str, arrays: Mapping[str, Any]) -> None:
    """Write ``arrays`` as float32, with the names and layout that all frameworks share. The file
    appears when it is complete. Raises OSError."""
    import numpy as np

    header: Dict[str, Any] = {_METADATA: _OWN}
    offset = 0
    for name in sorted(arrays):
        shape = [int(extent) for extent in arrays[name].shape]
        size = 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # arrays are aligned
    with open(path + ".part", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in sorted(arrays):
            file.write(np.ascontiguousarray(arrays[name], "<f4").tobytes())
    os.replace(path + ".part", path)


def _read_arrays(path: str) -> Tuple[Dict[str, Any], bool]:
    """Return all arrays of a file as float32, sorted by name, and whether a training here wrote it.
    Raises :class:`TaskError` where it is not safetensors, and OSError."""
    import numpy as np

    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        text = file.read(min(size, _LARGEST_HEADER))
        try:
            declared = json.loads(text.decode("utf-8"))
            is_own = declared.pop(_METADATA, None) == _OWN
        except (ValueError, AttributeError, RecursionError) as error:
            raise TaskError(f"{path}: is not a safetensors file: {error}") from None
        arrays = {}
        for name in sorted(declared):
            try:
                dtype, shape = declared[name]["dtype"], declared[name]["shape"]
                begin, end = declared[name]["data_offsets"]
                file.seek(8 + size + begin)
                array = np.frombuffer(file.read(end - begin), _DTYPES[dtype]).reshape(shape)
            except (KeyError, TypeError, ValueError) as error:
                raise TaskError(f"{path}: {name} cannot be read: {error!r}") from None
            if dtype == "BF16":
                array = (array.astype(np.uint32) << 16).view(np.float32)
            arrays[name] = array.astype(np.float32)
    return arrays, is_own


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
