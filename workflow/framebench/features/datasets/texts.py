"""Text of random words for language models, as files or as tokens.

Words are made of syllables, some with letters beyond ASCII, and follow Zipf's law: the second is
drawn half as often as the first, the third a third as often. Nothing else can be learned.
"""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...files.whole_files import write_whole, write_whole_bytes
from .folders import SPLITS, claimed, split_texts, write_manifest

TEXT, TOKENS = "text", "tokens"
FORMATS = (TEXT, TOKENS)
#: Default number of tokens, and tokens of a text including its end.
COUNT, _EACH = 1_000_000, 65536
#: Token that ends a text, and number of tokens: a token is a byte or this end.
_END, _VOCABULARY = 256, 257
_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "ß", "č")
_VOWELS = ("a", "e", "i", "o", "u", "ä", "é", "ai", "ou")
_WORDS = 5000
#: Words per sentence.
SENTENCE = 14


def make(folder: Path, count: int, seed: int, form: str) -> dict[str, Any]:
    """Make ``count`` tokens, up to whole texts, in ``folder``: texts, or a token file per split.
    Returns the manifest. Raises :class:`DataSetError` for a folder with other content, and OSError.
    """
    numbers = split_texts(count, _EACH)
    options = {"tokens": count, "seed": seed, "numpy": version("numpy"), "format": form}
    paths = {
        split: [f"{split}/{number:06d}.txt" for number in own] for split, own in numbers.items()
    }
    wanted = {path for split in SPLITS for path in paths[split]}
    if form == TOKENS:
        wanted = {f"{split}{suffix}" for split in SPLITS for suffix in (".bin", ".json")}
    digest, made = hashlib.sha256(), {}
    with claimed(folder, options, wanted):
        for split in SPLITS:
            whole = [text(seed, number) for number in numbers[split]]
            for path, content in zip(paths[split], whole, strict=True):
                digest.update(content)
                if form == TEXT:
                    write_whole_bytes(folder / path, content)
            made[split] = sum(len(content) + 1 for content in whole)
            if form == TOKENS:
                write_whole_bytes(folder / f"{split}.bin", b"".join(map(_tokens, whole)))
                said = {"dtype": "uint16", "vocabulary": _VOCABULARY, "tokenizer": "bytes"}
                write_whole(folder / f"{split}.json", json.dumps(said) + "\n")
        found = {**made, "texts": sum(map(len, numbers.values())), "vocabulary": _VOCABULARY}
        return write_manifest(folder, options, {**found, "digest": digest.hexdigest()})


def text(seed: int, number: int) -> bytes:
    """Return text ``number`` of ``seed`` in UTF-8, of slightly fewer than _EACH bytes.
    The same version of numpy gives the same text."""
    known = words(seed)
    random = np.random.RandomState([seed, 1, number])
    chance = chances(len(known))
    drawn = random.choice(len(known), size=_EACH // 3, p=chance)
    lines, used = [], 0
    for first in range(0, len(drawn), SENTENCE):
        sentence = " ".join(known[entry] for entry in drawn[first : first + SENTENCE])
        line = (sentence.capitalize() + ".\n").encode()
        if used + len(line) >= _EACH:
            break
        lines.append(line)
        used += len(line)
    return b"".join(lines)


def chances(count: int) -> Any:
    """Return the probabilities of ``count`` words, by Zipf's law."""
    weights = 1 / np.arange(1, count + 1)
    return weights / weights.sum()


def words(seed: int) -> list[str]:
    """Return the words of texts with this seed; some occur twice."""
    random = np.random.RandomState([seed, 0])
    return [
        "".join(
            _ONSETS[random.randint(len(_ONSETS))] + _VOWELS[random.randint(len(_VOWELS))]
            for _ in range(random.randint(1, 4))
        )
        for _ in range(_WORDS)
    ]


def _tokens(content: bytes) -> bytes:
    return np.append(np.frombuffer(content, np.uint8), [_END]).astype("<u2").tobytes()
