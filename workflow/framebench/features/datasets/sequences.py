"""Made-up sequences for language models, in the formats of Megatron, NVIDIA and DLPerf.

The vocabulary comes with them. Each word of :mod:`.texts`, in lower case and capitalised, is one
token, so that a WordPiece tokenizer gives the same tokens for a document's text. A document has the
same tokens in every format; [SEP] ends it.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...files.whole_files import write_whole, write_whole_bytes
from . import record_files, texts
from .folders import SPLITS, claimed, split_texts, write_manifest

WORDPIECE, MEGATRON, BERT, ELECTRA, OFRECORD = FORMATS = (
    "wordpiece", "megatron", "bert", "electra", "ofrecord",
)  # fmt: skip
VOCABULARY = "vocab.txt"
#: First tokens, as in BERT's vocabularies.
_BEGINNING = (
    "[PAD]",
    *(f"[unused{n}]" for n in range(99)),
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    ".",
)
_PADDING, _BEGIN, _END, _MASK = 0, 101, 102, 103
#: Sentences and tokens of a document, including its end.
_SENTENCES = 273
_EACH = _SENTENCES * (texts.SENTENCE + 1) + 1
#: Tokens of a recorded sequence, and its most masked words, as in NVIDIA's phase 1.
LENGTH, HIDDEN = 128, 20
#: Records per file.
_RECORDS = 1024
_Numbers = dict[str, list[int]]
#: Head of Megatron's index: version 1, and unsigned tokens of two bytes.
_INDEX = b"MMIDIDX\0\0" + struct.pack("<QB", 1, 8)


def make(folder: Path, count: int, seed: int, form: str) -> dict[str, Any]:
    """Make ``count`` tokens, up to whole documents, in ``folder``, in one of FORMATS.
    Returns the manifest. Raises :class:`DataSetError` for a folder with other content, and OSError.
    """
    numbers = split_texts(count, _EACH)
    options = {"tokens": count, "seed": seed, "numpy": version("numpy"), "format": form}
    names = {split: _names(form, split, numbers[split]) for split in SPLITS}
    known = vocabulary(seed)
    digest, made = hashlib.sha256(), {}
    with claimed(folder, options, {VOCABULARY, *names["train"], *names["val"]}):
        write_whole(folder / VOCABULARY, "".join(f"{token}\n" for token in known))
        for split in SPLITS:
            whole = [document(seed, number, known) for number in numbers[split]]
            digest.update(b"".join(entry.astype("<u2").tobytes() for entry in whole))
            contents = _contents(form, split, whole, known, seed)
            for name, content in zip(names[split], contents, strict=True):
                write_whole_bytes(folder / name, content)
            made[split] = _EACH * len(whole)
        found = {**made, "texts": sum(map(len, numbers.values())), "vocabulary": len(known)}
        return write_manifest(folder, options, {**found, "digest": digest.hexdigest()})


def vocabulary(seed: int) -> list[str]:
    """Return all tokens, in the order of their numbers."""
    own = dict.fromkeys(texts.words(seed))
    return [*_BEGINNING, *own, *dict.fromkeys(word.capitalize() for word in own)]


def document(seed: int, number: int, known: Sequence[str]) -> Any:
    """Return the tokens of document ``number`` of ``seed``, int64 (_EACH,)."""
    places = {token: index for index, token in enumerate(known)}
    words = [token for token in known[len(_BEGINNING) :] if token.islower()]
    small = np.array([places[word] for word in words])
    large = np.array([places[word.capitalize()] for word in words])
    random = np.random.RandomState([seed, 2, number])
    shape = (_SENTENCES, texts.SENTENCE)
    drawn = random.choice(len(words), size=shape, p=texts.chances(len(words)))
    full_stop = np.full((_SENTENCES, 1), places["."])
    whole = np.concatenate([large[drawn[:, :1]], small[drawn[:, 1:]], full_stop], axis=1)
    return np.append(whole.reshape(-1), _END)


def _names(form: str, split: str, numbers: range) -> list[str]:
    """Return the file names of a split."""
    if form == WORDPIECE:
        return [f"{split}/{number:06d}.txt" for number in numbers]
    if form == MEGATRON:
        return [f"{split}.bin", f"{split}.idx"]
    count = -(-len(numbers) * len(_begins(_EACH)) // _RECORDS)
    if form == OFRECORD:
        return [f"{split}/part-{number:05d}" for number in range(count)]
    return [f"{split}-{number:05d}-of-{count:05d}.tfrecord" for number in range(count)]


def _contents(
    form: str, split: str, whole: list[Any], known: Sequence[str], seed: int
) -> Iterable[bytes]:
    """Return the contents of the files that :func:`_names` lists."""
    if form == WORDPIECE:
        return (_text(tokens, known) for tokens in whole)
    if form == MEGATRON:
        return [b"".join(tokens.astype("<u2").tobytes() for tokens in whole), _index(whole)]
    cut = [tokens[n : n + LENGTH - 3] for tokens in whole for n in _begins(len(tokens))]
    random = np.random.RandomState([seed, 3, SPLITS.index(split)])
    made = _plain(cut) if form == ELECTRA else _hidden(cut, len(known), random)
    return _in_files([*made], form == OFRECORD)


def _text(tokens: Any, known: Sequence[str]) -> bytes:
    sentences = tokens[:-1].reshape(_SENTENCES, -1)
    lines = (" ".join(known[token] for token in sentence[:-1]) for sentence in sentences)
    return "".join(f"{line}.\n" for line in lines).encode()


def _index(whole: list[Any]) -> bytes:
    lengths = np.array([len(tokens) for tokens in whole])
    begins = 2 * (np.cumsum(lengths) - lengths)
    found = _INDEX + struct.pack("<QQ", len(whole), len(whole) + 1)
    found += lengths.astype("<i4").tobytes() + begins.astype("<i8").tobytes()
    return bytes(found + np.arange(len(whole) + 1).astype("<i8").tobytes())


def _begins(tokens: int) -> range:
    """Return the starts of the sequences in a document; the last sequence is shorter."""
    return range(0, tokens - 1, LENGTH - 3)


def _in_files(made: list[_Numbers], is_oneflow: bool) -> Iterator[bytes]:
    for first in range(0, len(made), _RECORDS):
        file = io.BytesIO()
        for numbers in made[first : first + _RECORDS]:
            if is_oneflow:
                record_files.write_plain(file, record_files.of_oneflow(numbers))
            else:
                record_files.write_framed(file, record_files.of_numbers(numbers))
        yield file.getvalue()


def _pair(first: Any, second: Any) -> dict[str, Any]:
    """Return the arrays of ``[CLS] A [SEP] B [SEP]``, with padding at the end."""
    ids = np.concatenate([[_BEGIN], first, [_END], second, [_END]])
    places, padding = np.arange(LENGTH), np.full(LENGTH - len(ids), _PADDING)
    real = places < len(ids)
    return {
        "input_ids": np.append(ids, padding),
        "input_mask": real,
        "segment_ids": real & (places > len(first) + 1),
    }


def _listed(arrays: dict[str, Any]) -> _Numbers:
    return {name: [int(value) for value in values] for name, values in arrays.items()}


def _plain(cut: Sequence[Any]) -> Iterator[_Numbers]:
    """Yield sequences in the format of ELECTRA."""
    for piece in cut:
        half = (len(piece) + 1) // 2
        yield _listed(_pair(piece[:half], piece[half:]))


def _hidden(cut: Sequence[Any], known: int, random: np.random.RandomState) -> Iterator[_Numbers]:
    """Yield sequences in the format of BERT.
    Every second pair gets another second half. 15 % of the words are masked: 80 % of these with
    [MASK], 10 % with another word."""
    for number, piece in enumerate(cut):
        half = (len(piece) + 1) // 2
        other = int(random.uniform() < 0.5)
        second = cut[(number + 1) % len(cut)] if other else piece
        pair = _pair(piece[:half], second[half : len(piece)])
        ids = pair["input_ids"]
        words = np.flatnonzero((ids != _PADDING) & (ids != _BEGIN) & (ids != _END))
        count = min(HIDDEN, max(1, round(0.15 * len(words))))
        places = np.sort(random.permutation(words)[:count])
        labels, drawn = ids[places], random.uniform(size=count)
        others = random.randint(len(_BEGINNING), known, size=count)
        ids[places] = np.where(drawn < 0.8, _MASK, np.where(drawn < 0.9, others, labels))
        behind = np.zeros(HIDDEN - count, int)
        pair["masked_lm_positions"] = np.append(places, behind)
        pair["masked_lm_ids"] = np.append(labels, behind)
        pair["next_sentence_labels"] = np.array([other])
        yield _listed(pair)
