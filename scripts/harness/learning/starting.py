"""Weights that a training starts from: a file of Hugging Face's safetensors with the names of their
BERT or ELECTRA."""

from __future__ import annotations

import hashlib
import json
import re
from typing import IO, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from tasks import BadData

#: What stands in front of all names of an encoder that is part of a larger model.
_PREFIXES = ("bert.", "electra.", "discriminator.")
#: Parts of their names and of ours, the first that fits. A layer's own parts come before all.
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
_COMPILED = tuple((re.compile(theirs), ours) for theirs, ours in _NAMES)
#: The last part of a name; older files have TensorFlow's for a normalisation.
_KINDS = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
#: As safetensors names them, and as numpy does; bfloat16 is the upper half of a float32.
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
#: Of every model with an encoder: what a file must have. All else is a head, which may be new.
_BODY = ("embeddings.", "layers.")


class Start(NamedTuple):
    """``weights``: by our names, laid out as frameworks share them; ``notes``: for the record."""

    weights: Dict[str, Any]
    notes: Dict[str, Any]


def our_name(theirs: str) -> Optional[str]:
    """None of what no model here has."""
    prefix = next((one for one in _PREFIXES if theirs.startswith(one)), "")
    name, _, kind = theirs[len(prefix) :].rpartition(".")
    if theirs == "cls.predictions.bias":
        return "decoder_bias"
    for pattern, ours in _COMPILED:
        found = pattern.fullmatch(name)
        if found and kind in _KINDS:
            return f"{found.expand(ours)}.{_KINDS[kind]}"
    return None


def read(path: str, shapes: Mapping[str, Tuple[int, ...]]) -> Start:
    """What the file has of a model with arrays of these ``shapes``, by our names. Raises
    :class:`BadData` where it is no file of safetensors, lacks a part of the encoder, or has one of
    another shape."""
    try:
        with open(path, "rb") as file:
            declared, begin = _header(path, file)
            weights, left = _arrays(path, file, declared, begin, shapes)
            file.seek(0)
            digest = hashlib.sha256()
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from None
    lacking = [name for name in shapes if name not in weights]
    body = [name for name in lacking if name.startswith(_BODY)]
    if body:
        raise BadData(
            f"{path}: lacks {body[0]} and {len(body) - 1} others of the encoder; it must be of "
            "BERT or ELECTRA with Hugging Face's names"
        )
    return Start(
        weights,
        {
            "file": path,
            "sha256": digest.hexdigest(),
            "taken": len(weights),
            "drawn": lacking,
            "left": left,
        },
    )


def _header(path: str, file: IO[bytes]) -> Tuple[Dict[str, Any], int]:
    """What stands in front of the arrays, and where these begin."""
    size = int.from_bytes(file.read(8), "little")
    content = file.read(min(size, 100_000_000))  # their own limit
    try:
        if len(content) < size:
            raise ValueError(f"{size} bytes of header are announced, {len(content)} are there")
        declared = json.loads(content.decode("utf-8"))
        if not isinstance(declared, dict):
            raise ValueError("its header is no object")
    except ValueError as error:
        raise BadData(f"{path}: is no file of safetensors: {error}") from None
    declared.pop("__metadata__", None)
    return declared, 8 + size


def _arrays(
    path: str,
    file: IO[bytes],
    declared: Mapping[str, Any],
    begin: int,
    shapes: Mapping[str, Tuple[int, ...]],
) -> Tuple[Dict[str, Any], List[str]]:
    """Those that the model has, and the names of the others."""
    found: Dict[str, Any] = {}
    left: List[str] = []
    for theirs, entry in sorted(declared.items()):
        ours = our_name(theirs)
        if ours is None or ours not in shapes:
            left.append(theirs)
            continue
        array = _array(path, file, theirs, entry, begin)
        dense = array.ndim == 2 and not ours.startswith("embeddings.")
        array = array.T if dense else array  # theirs is (out, in)
        if array.shape != tuple(shapes[ours]):
            raise BadData(f"{path}: {theirs} is {array.shape}, {ours} is {tuple(shapes[ours])}")
        found[ours] = array
    return found, left


def _array(path: str, file: IO[bytes], name: str, entry: Any, begin: int) -> Any:
    """In float32."""
    import numpy as np

    try:
        dtype, shape = _DTYPES[entry["dtype"]], [int(extent) for extent in entry["shape"]]
        first, behind = entry["data_offsets"]
        file.seek(begin + int(first))
        content = file.read(int(behind) - int(first))
        array = np.frombuffer(content, dtype).reshape(shape)
    except (KeyError, TypeError, ValueError) as error:
        raise BadData(f"{path}: {name} cannot be read: {error!r}") from None
    if entry["dtype"] == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)
