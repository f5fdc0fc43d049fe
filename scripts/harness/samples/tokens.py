"""Tokens from a folder as sequences in an order, and the check that all came.

``train`` and ``val`` have one of these forms:

- ``train.bin`` with ``train.json``: little-endian unsigned numbers of 16 or 32 bits, and
  ``{"dtype": "uint16" or "uint32", "vocabulary": N}``, where every token is below N;
- ``train.bin`` with ``train.idx``, Megatron's (:mod:`harness.samples.indexed`);
- records of sequences for BERT and ELECTRA (:mod:`harness.samples.recorded_tokens`);
- a folder ``train`` of texts (:mod:`harness.samples.texts`).

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from core import bounded

from harness.adapter import Mismatch
from harness.loader import LoadedTokens, Loading, TokenLoads, features
from harness.messages.report import error_text
from harness.samples import indexed, order, recorded_tokens, supply, texts
from harness.samples.folder import VOCABULARY, BadData, Skipped
from harness.samples.recorded_tokens import Recorded
from harness.samples.texts import Vocabulary

DTYPES = ("uint16", "uint32")
#: Formats of token files, Megatron's and texts; records have the names of :mod:`harness.loader`.
TOKENS, MEGATRON, TEXT = "tokens", "megatron", "text"
#: Upper limit of tokens without a known vocabulary.
NO_LIMIT = 1 << 62
#: Suffix of the files of Megatron's tool.
_DOCUMENTS = ("", "_text_document")
#: Tokens to check at a time.
_PIECE = 1 << 22


class Tokens(NamedTuple):
    """Tokens of a split.

    ``path``: file as in :class:`harness.loader.TokenLoads`, or the folder of records. ``length``:
    tokens in all. ``vocabulary``: upper limit of tokens, 0 for records without one. ``tokenizer``:
    "" where unknown. ``skipped``: what was left out. ``vocab``: the folder's ``vocab.txt``."""

    path: str
    dtype: str
    length: int
    vocabulary: int
    tokenizer: str
    skipped: List[Skipped]
    format: str = TOKENS
    vocab: Optional[Vocabulary] = None
    records: Optional[Recorded] = None


def scan(root: str, split: str, bad: str, own: str, most: int = NO_LIMIT) -> Tokens:
    """Return the tokens of a split. Raises :class:`BadData`.

    ``bad``: treatment of bad records and of texts that are not UTF-8, REFUSE or SKIP. ``own``:
    folder for the tokens of texts. ``most``: upper limit of the model's tokens, which tells bad
    records from good."""
    vocab = texts.read_vocabulary(root)
    for name in (f"{split}{behind}" for behind in _DOCUMENTS):
        index = os.path.join(root, f"{name}.idx")
        if os.path.isfile(index) and not os.path.isfile(os.path.join(root, f"{name}.rec")):
            return _of_megatron(index, os.path.join(root, f"{name}.bin"), vocab)
    path = os.path.join(root, f"{split}.bin")
    if os.path.isfile(path):
        return _of_file(path, vocab)
    form, files = recorded_tokens.files_of(root, split)
    if files:
        limit = min(most, vocab.size if vocab else most)
        recorded = recorded_tokens.scan(root, form, files, bad, limit)
        count = recorded.length * len(recorded.paths)
        vocabulary = vocab.size if vocab else 0
        shown = vocab.tokenizer if vocab else ""
        return Tokens(root, "", count, vocabulary, shown, recorded.skipped, form, vocab, recorded)
    if os.path.isdir(os.path.join(root, split)):
        path = os.path.join(own, f"tokens-{split}.bin")
        written = texts.write(root, split, bad, vocab, path)
        dtype = texts.dtype_of(vocab).__name__
        vocabulary, shown = (vocab.size, vocab.tokenizer) if vocab else (texts.BYTES, "bytes")
        return Tokens(path, dtype, written.length, vocabulary, shown, written.skipped, TEXT, vocab)
    raise BadData(_nothing(root, split))


def _nothing(root: str, split: str) -> str:
    try:
        names = os.listdir(root)
    except OSError as error:
        return f"{root}: {error.strerror}"
    hdf5 = sorted(name for name in names if name.endswith((".hdf5", ".h5")))
    if hdf5:
        return (
            f"{root}: {hdf5[0]} is HDF5, which is not read: make a TFRecord of it, with the "
            f"features {', '.join(recorded_tokens.PLAIN)} and, for BERT, "
            f"{', '.join(recorded_tokens.MASKED)}"
        )
    return (
        f"{root} has neither {split}.bin with {split}.json or {split}.idx, nor records "
        f"{split}-00000-of-00001.tfrecord, nor a folder {split} of texts or records: tokens lie in "
        "one of these"
    )


def _of_file(path: str, vocab: Optional[Vocabulary]) -> Tokens:
    import numpy as np

    beside = os.path.splitext(path)[0] + ".json"
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
    _behind_largest(path, dtype, vocabulary, beside)
    _check_vocabulary(path, vocabulary, vocab)
    return Tokens(path, dtype, size // each, vocabulary, "", [], TOKENS, vocab)


def _of_megatron(index: str, path: str, vocab: Optional[Vocabulary]) -> Tokens:
    """Return the tokens of Megatron's files. Without a vocabulary next to them it is the one of
    their tokens."""
    documents = indexed.read(index, path)
    if not documents.length:
        raise BadData(f"{path}: holds no token")
    beside = os.path.join(os.path.dirname(path), VOCABULARY)
    most = _behind_largest(path, documents.dtype, vocab.size if vocab else NO_LIMIT, beside)
    vocabulary, shown = (vocab.size, vocab.tokenizer) if vocab else (most, "")
    return Tokens(path, documents.dtype, documents.length, vocabulary, shown, [], MEGATRON, vocab)


def _behind_largest(path: str, dtype: str, vocabulary: int, beside: str) -> int:
    """Return the upper limit of the tokens. Raises :class:`BadData` for a token beyond the
    ``vocabulary`` that ``beside`` states."""
    import numpy as np

    ids = np.memmap(path, np.dtype(dtype).newbyteorder("<"), "r")
    behind = 0
    for first in range(0, len(ids), _PIECE):
        piece = ids[first : first + _PIECE]
        least, most = int(piece.min()), int(piece.max())
        if most >= vocabulary:
            position = first + int(piece.argmax())
            raise BadData(
                f"{path}: token {position} is {most}, "
                f"where {beside} has a vocabulary of {vocabulary}"
            )
        if least < 0:
            raise BadData(f"{path}: token {first + int(piece.argmin())} is {least}, below 0")
        behind = max(behind, most + 1)
    return behind


def _check_vocabulary(path: str, vocabulary: int, vocab: Optional[Vocabulary]) -> None:
    if vocab is not None and vocabulary > vocab.size:
        raise BadData(f"{path}: has {vocabulary} tokens, the {VOCABULARY} beside it {vocab.size}")


def report(tokens: Tokens) -> Dict[str, Any]:
    """Return the number of tokens, and the first hundred names of what was left out, for the
    record."""
    return {
        "format": tokens.format,
        "tokens": tokens.length,
        "vocabulary": tokens.vocabulary or None,
        "tokenizer": tokens.tokenizer or None,
        "skipped": len(tokens.skipped),
        "skipped_first": [
            {"path": skipped.path, "reason": skipped.reason} for skipped in tokens.skipped[:100]
        ],
    }


def loads(
    tokens: Tokens, split: str, number: int, seed: int, rank: int, ranks: int, length: int,
    batch: int, workers: int, beyond: int = 1, most: int = 0,
) -> TokenLoads:  # fmt: skip
    """Return the request to a loader for a rank's sequences of an epoch. Raises :class:`BadData`
    where they are too few for a batch.

    Sequences have ``length`` tokens and ``beyond`` more, which the next begins with; those of
    records keep their length. ``most``: sequences of an epoch, 0 for all."""
    import numpy as np

    where, recorded = (split, number, seed, rank, ranks, most), tokens.records
    if recorded is None:
        places = order.places_of((tokens.length - beyond) // length, *where)
    else:
        places = order.records_of(recorded.paths, *where)
    if len(places) < batch:
        raise BadData(
            f"{tokens.path} has {tokens.length} tokens, {len(places)} sequences of {length} for "
            f"this rank, too few for a batch of {batch}"
        )
    if recorded is None:
        path, dtype = tokens.path, tokens.dtype
        return TokenLoads(path, dtype, places * length, length + beyond, batch, workers)
    return TokenLoads(
        path=recorded.root,
        dtype="int64",
        starts=np.arange(len(places)),
        length=sum(count for _, count in recorded.features),
        batch=batch,
        workers=workers,
        records=[os.path.join(recorded.root, recorded.paths[index]) for index in places],
        features=recorded.features,
        format=recorded.format,
    )


def beginning(loads: TokenLoads, count: int) -> TokenLoads:
    """Return the request for the first ``count`` sequences only."""
    return loads._replace(starts=loads.starts[:count], records=loads.records[:count])


def batches(
    adapter: Loading, loads: TokenLoads, vocabulary: int = NO_LIMIT
) -> Iterator[LoadedTokens]:
    """Yield all batches of the framework's loader.

    ``vocabulary``: upper limit of tokens in records. Raises :class:`BadData` for bad records and
    missing data, :class:`Mismatch` where the loader breaks otherwise or sequences are missing."""
    done = 0
    loaded = adapter.load_tokens(loads)
    while True:
        try:
            batch = next(loaded, None)
        except Exception as error:
            problem = f"the loader broke behind {done} sequences: {error_text(error)}"
            _blame(loads, done, problem)
            raise Mismatch(problem) from error
        if batch is None:
            break
        if loads.records:
            reason = recorded_tokens.wrong(batch.tokens, loads.features, vocabulary)
            if reason:
                raise BadData(f"{_name(loads, int(batch.numbers[reason[0]]))}: {reason[1]}")
        done += len(batch.numbers)
        yield batch
    if done != len(loads.starts):
        raise Mismatch(f"the loader gave {done} sequences of {len(loads.starts)}")


def _name(loads: TokenLoads, number: int) -> str:
    return os.path.relpath(loads.records[number], loads.path)


def _blame(loads: TokenLoads, done: int, problem: str) -> None:
    """Raise :class:`BadData` for the data at which the loader broke."""
    if not loads.records and not os.path.isfile(loads.path):
        raise BadData(f"{loads.path} is not there any more; {problem}")
    for number in range(done, min(done + supply.LOOKED_AT * loads.batch, len(loads.records))):
        path = loads.records[number]
        if not os.path.isfile(os.path.dirname(path)):
            raise BadData(f"{os.path.dirname(path)} is not there any more; {problem}")
        try:
            features.in_a_row(features.numbers(path, loads.format), loads.features)
        except ValueError as error:
            raise BadData(f"{_name(loads, number)}: {error}") from None
        except OSError as error:
            raise BadData(f"{_name(loads, number)}: {error_text(error)}") from None


def checked(adapter: Loading, loads: TokenLoads, vocabulary: int = NO_LIMIT) -> Dict[str, Any]:
    """Load all requested sequences once and compare them with the file.

    Returns the number of sequences, and CRC-32 checksums of their order and tokens, for the record.
    Raises what :func:`batches` raises, and :class:`Mismatch` for wrong sequences."""
    import numpy as np

    known = _known(loads)
    count, crc = 0, {"order": 0, "tokens": 0}
    for batch in batches(adapter, loads, vocabulary):
        tokens, numbers = np.asarray(batch.tokens), np.asarray(batch.numbers)
        expected = np.arange(count, count + len(numbers))
        if not np.array_equal(numbers, expected):
            raise Mismatch(f"the loader gave samples {numbers.tolist()}, not {expected.tolist()}")
        if tokens.shape != (len(numbers), loads.length) or tokens.dtype != np.int64:
            raise Mismatch(f"the loader gave {tokens.dtype} {tokens.shape}")
        if any(not np.array_equal(row, known(number)) for row, number in zip(tokens, expected)):
            raise Mismatch(f"the loader gave other tokens than those of {numbers.tolist()}")
        crc["order"] = order.checksum(_places(loads, expected), crc["order"])
        crc["tokens"] = order.checksum(tokens, crc["tokens"])
        count += len(numbers)
    return {"sequences": count, **{f"{name}_crc32": crc[name] for name in crc}}


def _known(loads: TokenLoads) -> Any:
    """Return a function that reads a sequence from the file by number, without the framework."""
    import numpy as np

    if loads.records:
        return lambda number: features.in_a_row(
            features.numbers(loads.records[number], loads.format), loads.features
        )
    whole = np.memmap(loads.path, np.dtype(loads.dtype).newbyteorder("<"), "r")
    return lambda number: whole[loads.starts[number] : loads.starts[number] + loads.length]


def _places(loads: TokenLoads, numbers: Any) -> Any:
    """Return what identifies the order of sequences: their starts, or the names of records."""
    import numpy as np

    if not loads.records:
        return loads.starts[numbers].astype(np.int64)
    names = "\0".join([*(_name(loads, number) for number in numbers), ""])
    return np.frombuffer(names.encode("utf-8", "surrogateescape"), np.uint8)
