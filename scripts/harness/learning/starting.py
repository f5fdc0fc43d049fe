"""Initial weights of a training: a safetensors file with Hugging Face's names, or the weights of
another training."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from tasks import TaskError

from harness.learning import safetensors
from harness.learning.safetensors import Stored

#: Prefixes of names of an encoder that is part of a larger model.
_PREFIXES = ("bert.", "electra.", "discriminator.")
#: Parts of their names and of ours; the first match counts. Parts of layers come first.
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
#: Last parts of names; older files have TensorFlow's for a normalization.
_KINDS = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
#: Suffix of the index of a TensorFlow checkpoint.
_INDEX = ".index"
#: The encoder that is fine-tuned, of the two of a pre-trained model.
_DISCRIMINATOR = "discriminator."
#: Arrays that a file must have for a model with an encoder. All others belong to a head.
_BODY = ("embeddings.", "layers.")


class Start(NamedTuple):
    """Initial weights.

    ``weights``: by our names, in the layout that frameworks share. ``notes``: for the record."""

    weights: Dict[str, Any]
    notes: Dict[str, Any]


def our_name(theirs: str) -> Optional[str]:
    """Return our name of Hugging Face's; None for arrays that no model here has."""
    prefix = next((prefix for prefix in _PREFIXES if theirs.startswith(prefix)), "")
    name, _, kind = theirs[len(prefix) :].rpartition(".")
    if theirs == "cls.predictions.bias":
        return "decoder_bias"
    for pattern, ours in _COMPILED:
        match = pattern.fullmatch(name)
        if match and kind in _KINDS:
            return f"{match.expand(ours)}.{_KINDS[kind]}"
    return None


def file_of(path: str, alike: str) -> str:
    """Return ``path``, or the one file of a training in that folder whose name begins with
    ``alike``. Raises :class:`TaskError` where there is not exactly one."""
    if not os.path.isdir(path):
        return path
    known = sorted(name for name in os.listdir(path) if name.endswith(safetensors.SUFFIX))
    files = [name for name in known if name.startswith(alike)]
    if len(files) == 1:
        return os.path.join(path, files[0])
    raise TaskError(
        f"{path}: has {len(files) or 'no'} files {alike}*{safetensors.SUFFIX}; allowed: one, which "
        "a training with `weights` in this folder leaves when it has ended (there are: "
        f"{', '.join(known) or 'none'})"
    )


def read(path: str, shapes: Mapping[str, Tuple[int, ...]]) -> Start:
    """Return what the file has of a model with arrays of these ``shapes``, by our names.

    Raises :class:`TaskError` where it is not safetensors, lacks part of the encoder, or has another
    shape."""
    if path.endswith(_INDEX) or os.path.isfile(path + _INDEX):
        raise TaskError(
            f"start: found {path}, a TensorFlow checkpoint; allowed: {safetensors.SUFFIX}; convert "
            "it, for instance with transformers (from_pretrained, save_pretrained)"
        )
    try:
        stored = safetensors.open_safetensors(path)
        weights, left = _arrays(path, stored, shapes)
        digest = stored.sha256()
    except OSError as error:
        raise TaskError(f"{error.filename or path}: {error.strerror}") from None
    lacking = [name for name in shapes if name not in weights]
    if stored.is_own and lacking and not _is_pretrained(stored, shapes):
        raise TaskError(
            f"{path}: lacks {lacking[0]}, {len(lacking)} arrays in all: of another model"
        )
    body = [name for name in lacking if name.startswith(_BODY)]
    if body:
        raise TaskError(
            f"{path}: lacks {body[0]} and {len(body) - 1} others of the encoder; it must be of "
            "BERT or ELECTRA with Hugging Face's names"
        )
    return Start(
        weights,
        {
            "file": path,
            "sha256": digest,
            "taken": len(weights),
            "drawn": lacking,
            "left": left,
        },
    )


def _is_pretrained(stored: Stored, shapes: Mapping[str, Tuple[int, ...]]) -> bool:
    """Return whether a file of ours has pre-trained ELECTRA, and the model is an encoder alone."""
    names = (stored.names, shapes)
    theirs, own = (any(name.startswith(_DISCRIMINATOR) for name in some) for some in names)
    return theirs and not own


def _arrays(
    path: str, stored: Stored, shapes: Mapping[str, Tuple[int, ...]]
) -> Tuple[Dict[str, Any], List[str]]:
    """Return the arrays that the model has, and the names of the others."""
    arrays: Dict[str, Any] = {}
    left: List[str] = []
    for theirs in stored.names:
        ours = theirs if stored.is_own else our_name(theirs)
        if ours and ours.startswith(_DISCRIMINATOR) and ours not in shapes:
            ours = ours[len(_DISCRIMINATOR) :]
        if ours is None or ours not in shapes:
            left.append(theirs)
            continue
        array = stored.array(theirs)
        dense = array.ndim == 2 and not ours.startswith("embeddings.")
        array = array.T if dense and not stored.is_own else array  # theirs is (out, in)
        if array.shape != tuple(shapes[ours]):
            raise TaskError(f"{path}: {theirs} is {array.shape}, {ours} is {tuple(shapes[ours])}")
        arrays[ours] = array
    return arrays, left
