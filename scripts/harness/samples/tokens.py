"""Tokens from a folder: which there are, as sequences in an order, and whether all came.

``train.bin`` and ``val.bin`` hold unsigned numbers of 16 or 32 bits, little-endian, and nothing
else; ``train.json`` and ``val.json`` say of them ``{"dtype": "uint16" or "uint32", "vocabulary":
N}``: every token is below N. Or ``train`` and ``val`` hold text in UTF-8, ``NAME.txt``: a token is
a byte, 0 to 255, and 256 ends each text.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from harness.adapter import Mismatch
from harness.loader import LoadedTokens, Loading, TokenLoads
from harness.messages.report import first_line
from harness.samples import order
from harness.samples.folder import SKIP, BadData, Skipped

DTYPES = ("uint16", "uint32")
#: Behind each text, where tokens are bytes; how many there are with it.
END, BYTES = 256, 257
_HOW = "bad_images: skip leaves it out and counts it"
#: Tokens that are looked at together.
_PIECE = 1 << 22


class Tokens(NamedTuple):
    """Of a split. ``path``: of a file as :class:`harness.loader.TokenLoads` has it; ``length``:
    tokens in it; ``vocabulary``: behind the largest that may be; ``tokenizer``: "bytes", or "" of
    a token file; ``skipped``: texts that were left out."""

    path: str
    dtype: str
    length: int
    vocabulary: int
    tokenizer: str
    skipped: List[Skipped]


def scan(root: str, split: str, bad: str, own: str) -> Tokens:
    """The tokens of a split. ``bad``: what becomes of a text that is no UTF-8, REFUSE or SKIP;
    ``own``: a folder where tokens of texts can be written. Raises :class:`BadData`."""
    path = os.path.join(root, f"{split}.bin")
    if os.path.isfile(path):
        return _of_file(path)
    if os.path.isdir(os.path.join(root, split)):
        return _of_texts(root, split, bad, own)
    raise BadData(
        f"{root} has neither {split}.bin with {split}.json nor a folder {split} of texts: tokens "
        "lie in either"
    )


def _of_file(path: str) -> Tokens:
    import numpy as np

    beside = os.path.splitext(path)[0] + ".json"
    try:
        with open(beside, encoding="utf-8") as file:
            said = json.load(file)
        dtype, vocabulary = said["dtype"], said["vocabulary"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadData(f"{beside}: {first_line(error)}; it has dtype and vocabulary") from None
    if dtype not in DTYPES or not isinstance(vocabulary, int) or vocabulary < 1:
        raise BadData(
            f"{beside}: found dtype {dtype!r}, vocabulary {vocabulary!r}; allowed: "
            f"{' or '.join(DTYPES)}, and a whole number of tokens"
        )
    size, each = os.path.getsize(path), np.dtype(dtype).itemsize
    if size % each or not size:
        raise BadData(f"{path}: is truncated: {size} bytes are no whole number of {dtype}")
    found = np.memmap(path, np.dtype(dtype).newbyteorder("<"), "r")
    for first in range(0, len(found), _PIECE):
        piece = found[first : first + _PIECE]
        most = int(piece.max())
        if most >= vocabulary:
            place = first + int(piece.argmax())
            raise BadData(
                f"{path}: token {place} is {most}, where {beside} has a vocabulary of {vocabulary}"
            )
    return Tokens(path, dtype, len(found), vocabulary, "", [])


def _of_texts(root: str, split: str, bad: str, own: str) -> Tokens:
    import numpy as np

    skipped: List[Skipped] = []
    count, path = 0, os.path.join(own, f"tokens-{split}.bin")
    with open(path, "wb") as tokens:
        for name in sorted(os.listdir(os.path.join(root, split))):
            inner = f"{split}/{name}"
            reason = "" if name.endswith(".txt") else "its suffix is not .txt"
            try:
                content = b"" if reason else _text(os.path.join(root, inner))
            except (OSError, UnicodeDecodeError) as error:
                reason = _why(error)
            if reason and bad != SKIP:
                raise BadData(f"{inner}: {reason}; {_HOW}")
            if reason:
                skipped.append(Skipped(inner, reason))
                continue
            numbers = np.append(np.frombuffer(content, np.uint8).astype("<u2"), np.uint16(END))
            tokens.write(numbers.astype("<u2").tobytes())
            count += len(numbers)
    if not count:
        raise BadData(f"{os.path.join(root, split)} holds no text, NAME.txt")
    return Tokens(path, "uint16", count, BYTES, "bytes", skipped)


def _text(path: str) -> bytes:
    with open(path, "rb") as file:
        content = file.read()
    content.decode("utf-8")
    return content


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"is no UTF-8 at byte {error.start}: {error.reason}"
    return first_line(error)


def report(tokens: Tokens) -> Dict[str, Any]:
    """For the record: how many there are, and what was left out, the first hundred by name."""
    return {
        "tokens": tokens.length,
        "vocabulary": tokens.vocabulary,
        "tokenizer": tokens.tokenizer or None,
        "skipped": len(tokens.skipped),
        "skipped_first": [{"path": one.path, "reason": one.reason} for one in tokens.skipped[:100]],
    }


def loads(
    tokens: Tokens, split: str, number: int, seed: int, rank: int, ranks: int, length: int,
    batch: int, workers: int,
) -> TokenLoads:  # fmt: skip
    """What a loader is asked for: a rank's sequences of an epoch, of so many tokens and one, which
    the next begins with. Raises :class:`BadData` where they are too few for a batch."""
    places = order.places_of((tokens.length - 1) // length, split, number, seed, rank, ranks)
    if len(places) < batch:
        raise BadData(
            f"{tokens.path} has {tokens.length} tokens, {len(places)} sequences of {length} for "
            f"this rank, too few for a batch of {batch}"
        )
    return TokenLoads(tokens.path, tokens.dtype, places * length, length + 1, batch, workers)


def batches(adapter: Loading, asked: TokenLoads) -> Iterator[LoadedTokens]:
    """All batches of the framework's loader. Raises :class:`Mismatch` where it breaks, and where
    not every sequence came."""
    done = 0
    given = adapter.load_tokens(asked)
    while True:
        try:
            batch = next(given, None)
        except Exception as error:
            what = f"the loader broke behind {done} sequences: {first_line(error)}"
            if not os.path.isfile(asked.path):
                raise BadData(f"{asked.path} is not there any more; {what}") from error
            raise Mismatch(what) from error
        if batch is None:
            break
        done += len(batch.numbers)
        yield batch
    if done != len(asked.starts):
        raise Mismatch(f"the loader gave {done} sequences of {len(asked.starts)}")


def checked(adapter: Loading, asked: TokenLoads) -> Dict[str, Any]:
    """Load all that is asked for once and compare it with the file. Returns how many sequences, and
    checksums (CRC-32) of their order and of the tokens, for the record. Raises what :func:`batches`
    raises, and :class:`Mismatch` for another sequence than was asked for."""
    import numpy as np

    known = np.memmap(asked.path, np.dtype(asked.dtype).newbyteorder("<"), "r")
    count, crc = 0, {"order": 0, "tokens": 0}
    for batch in batches(adapter, asked):
        tokens, numbers = np.asarray(batch.tokens), np.asarray(batch.numbers)
        expected = np.arange(count, count + len(numbers))
        if not np.array_equal(numbers, expected):
            raise Mismatch(f"the loader gave samples {numbers.tolist()}, not {expected.tolist()}")
        if tokens.shape != (len(numbers), asked.length) or tokens.dtype != np.int64:
            raise Mismatch(f"the loader gave {tokens.dtype} {tokens.shape}")
        starts = asked.starts[expected]
        if any(
            not np.array_equal(row, known[start : start + asked.length])
            for row, start in zip(tokens, starts)
        ):
            raise Mismatch(f"the loader gave other tokens than those of {numbers.tolist()}")
        crc["order"] = order.checksum(starts.astype(np.int64), crc["order"])
        crc["tokens"] = order.checksum(tokens, crc["tokens"])
        count += len(numbers)
    return {"sequences": count, **{f"{name}_crc32": crc[name] for name in crc}}


def forever(adapter: Loading, epochs: Iterator[TokenLoads]) -> Iterator[LoadedTokens]:
    """Full batches of one epoch after the other; what is left of an epoch is not fed."""
    for asked in epochs:
        for batch in batches(adapter, asked):
            if len(batch.numbers) == asked.batch:
                yield batch


def feed(inputs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a model with these declared inputs is given tokens and those that come next, and
    nothing else."""
    return {str(one["name"]) for one in inputs} == {"token_ids", "labels"}
