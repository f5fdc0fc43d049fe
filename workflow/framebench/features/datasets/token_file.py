"""Files of random tokens for language models, with the vocabulary that BERT's marks need.

Tokens follow Zipf's law: the second is drawn half as often as the first, the third a third as
often. Nothing else can be learned.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from ...files.whole_files import write_whole, write_whole_bytes
from .folders import claim, sizes, write_manifest

#: First tokens, at the positions that they have in BERT's vocabularies.
_MARKS = ("[PAD]", *(f"[unused{n}]" for n in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_VOCABULARY = (*_MARKS, *(f"word{n}" for n in range(5000)))
#: Tokens drawn at a time.
_PIECE = 1 << 20


def make(folder: Path, count: int, seed: int) -> dict[str, Any]:
    """Make ``count`` tokens in ``folder`` and return a summary.
    Raises ConfigError for a folder with content, and OSError."""
    claim(folder)
    digest = hashlib.sha256()
    for number, (split, size) in enumerate(sizes(count).items()):
        content = _draw(np.random.RandomState([seed, number]), size)
        digest.update(content)
        write_whole_bytes(folder / f"{split}.bin", content)
        declared = {"dtype": "uint16", "vocabulary": len(_VOCABULARY)}
        write_whole(folder / f"{split}.json", json.dumps(declared) + "\n")
    write_whole(folder / "vocab.txt", "".join(f"{token}\n" for token in _VOCABULARY))
    made = {**sizes(count), "vocabulary": len(_VOCABULARY), "digest": digest.hexdigest()}
    write_manifest(folder, made)
    return made


def _draw(random: np.random.RandomState, count: int) -> bytes:
    """Return ``count`` tokens as little-endian uint16."""
    weights = 1 / np.arange(1, len(_VOCABULARY) - len(_MARKS) + 1)
    chances = weights / weights.sum()
    pieces = (
        random.choice(len(weights), min(_PIECE, count - first), p=chances) + len(_MARKS)
        for first in range(0, count, _PIECE)
    )
    return b"".join(piece.astype("<u2").tobytes() for piece in pieces)
