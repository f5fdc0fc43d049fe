"""Tokens from a folder as sequences in a given order, and the check that all were loaded.

``train`` and ``val`` each are ``train.bin``, little-endian unsigned numbers of 16 or 32 bits, with
``train.json``: ``{"dtype": "uint16" or "uint32", "vocabulary": N}``, where every token is below N.
``vocab.txt`` next to them has a token per line.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import os
import zlib
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

import tasks
from core import bounded
from tasks.reading import wordpiece

from harness.adapter import Mismatch
from harness.loader import Loading, TokenLoads
from harness.report import error_text
from harness.samples import order
from harness.samples.folder import VOCABULARY, BadData

DTYPES = ("uint16", "uint32")


class Tokens(NamedTuple):
    """Tokens of a split.

    ``path``, ``dtype``: as in :class:`harness.loader.TokenLoads`. ``length``: tokens in all.
    ``vocabulary``: upper limit of tokens. ``vocab``: the folder's ``vocab.txt``."""

    path: str
    dtype: str
    length: int
    vocabulary: int
    vocab: Optional[wordpiece.WordPiece]


def scan(root: str, split: str) -> Tokens:
    """Return the tokens of a split. Raises :class:`BadData` where they are missing, truncated or
    inconsistent."""
    found = find(root, split)
    path = os.path.join(root, VOCABULARY)
    if not os.path.isfile(path):
        return found
    try:
        vocab = wordpiece.read(path)
    except tasks.TaskError as error:
        raise BadData(str(error)) from None
    if found.vocabulary > vocab.size:
        raise BadData(
            f"{found.path}: the vocabulary has {found.vocabulary} tokens, the {VOCABULARY} next "
            f"to it {vocab.size}"
        )
    return found._replace(vocab=vocab)


def find(root: str, split: str) -> Tokens:
    """Return the tokens of a split without reading them or their vocabulary. Raises as
    :func:`scan`."""
    import numpy as np

    path = os.path.join(root, f"{split}.bin")
    beside = os.path.join(root, f"{split}.json")
    if not os.path.isfile(path) or not os.path.isfile(beside):
        raise BadData(
            f"input: found {root}; allowed: a folder with {split}.bin, and {split}.json with "
            '{"dtype": "uint16", "vocabulary": N}; convert texts to it'
        )
    try:
        said = bounded.read_json(beside)
        dtype, vocabulary = said["dtype"], said["vocabulary"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadData(f"{beside}: {error_text(error)}; it has dtype and vocabulary") from None
    if dtype not in DTYPES or not isinstance(vocabulary, int) or vocabulary < 1:
        raise BadData(
            f"{beside}: found dtype {dtype!r}, vocabulary {vocabulary!r}; allowed: "
            f"{' or '.join(DTYPES)}, and a whole number of tokens"
        )
    size, each = os.path.getsize(path), np.dtype(dtype).itemsize
    if size % each or not size:
        raise BadData(f"{path}: is truncated: {size} bytes are not a whole number of {dtype}")
    return Tokens(path, dtype, size // each, vocabulary, None)


def loads(
    tokens: Tokens, split: str, number: int, seed: int, rank: int, ranks: int, length: int,
    batch: int, workers: int, beyond: int = 1, most: int = 0,
) -> TokenLoads:  # fmt: skip
    """Return the request to a loader for a rank's sequences of an epoch. Raises :class:`BadData`
    where they are too few for a batch.

    Sequences have ``length`` tokens and ``beyond`` more, with which the next sequence begins.
    ``most``: sequences of an epoch, 0 for all."""
    count = (tokens.length - beyond) // length
    places = order.places_of(count, split, number, seed, rank, ranks, most)
    if len(places) < batch:
        raise BadData(
            f"{tokens.path} has {tokens.length} tokens, {len(places)} sequences of {length} for "
            f"this rank, too few for a batch of {batch}"
        )
    starts = places * length
    return TokenLoads(tokens.path, tokens.dtype, starts, length + beyond, batch, workers)


def batches(adapter: Loading, loads: TokenLoads) -> Iterator[Tuple[int, Any]]:
    """Yield all batches of the framework's loader, int64 (batch, length), each with the number of
    sequences before it. Raises :class:`Mismatch` where it breaks, and where sequences are
    missing."""
    for before, batch in order.each_once(adapter.load(loads), len(loads.starts), "sequences"):
        yield before, batch["tokens"]


def checked(adapter: Loading, loads: TokenLoads) -> Dict[str, Any]:
    """Load all requested sequences once and compare them with the file.

    Returns the number of sequences, and the CRC-32 of their positions, for the record. Raises what
    :func:`batches` raises, and :class:`Mismatch` for wrong sequences."""
    import numpy as np

    whole = np.memmap(loads.path, np.dtype(loads.dtype).newbyteorder("<"), "r")
    for before, batch in batches(adapter, loads):
        tokens, starts = np.asarray(batch), loads.starts[before : before + len(batch)]
        if tokens.shape != (len(starts), loads.length) or tokens.dtype != np.int64:
            raise Mismatch(f"the loader returned {tokens.dtype} {tokens.shape}")
        expected = [whole[start : start + loads.length] for start in starts]
        if not np.array_equal(tokens, expected):
            raise Mismatch(f"the loader returned other tokens after {before} sequences")
    return {"sequences": len(loads.starts), "order_crc32": zlib.crc32(loads.starts.tobytes())}
