"""Convert UTF-8 texts, ``NAME.txt`` in a folder, to a file of tokens: bytes or, with a
``vocab.txt`` next to the folder, word pieces of BERT's tokenizer.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import os
from typing import Any, Callable, List, NamedTuple, Optional

import tasks
from core import bounded
from tasks.reading import wordpiece
from tasks.reading.wordpiece import WordPiece

from harness.messages.report import error_text
from harness.samples.folder import SKIP, VOCABULARY, BadData, Skipped

#: End token of texts whose tokens are bytes, and their number of tokens.
END, BYTES = 256, 257
_MASK = "[MASK]"
_HOW = "bad_images: skip leaves it out and counts it"


class Vocabulary(NamedTuple):
    """Vocabulary of a tokenizer.

    ``size``: number of tokens. ``begin``, ``end``, ``mask``: numbers of [CLS], [SEP] and [MASK];
    ``mask`` is None where it is missing."""

    tokens: WordPiece
    size: int
    begin: int
    end: int
    mask: Optional[int]

    @property
    def tokenizer(self) -> str:
        """Name of the tokenizer, for the record."""
        return f"WordPiece, {'cased' if self.tokens.cased else 'uncased'}"


class Written(NamedTuple):
    """Tokens written. ``length``: tokens in the file. ``skipped``: texts left out."""

    length: int
    skipped: List[Skipped]


def read_vocabulary(root: str) -> Optional[Vocabulary]:
    """Return the vocabulary in a data folder; None without one. Raises :class:`BadData`."""
    path = os.path.join(root, VOCABULARY)
    if not os.path.isfile(path):
        return None
    try:
        pieces = wordpiece.read(path)
    except tasks.TaskError as error:
        raise BadData(str(error)) from None
    numbers = pieces.numbers
    marks = (numbers[wordpiece.BEGIN], numbers[wordpiece.SEPARATOR], numbers.get(_MASK))
    return Vocabulary(pieces, max(numbers.values()) + 1, *marks)


def write(root: str, split: str, bad: str, vocab: Optional[Vocabulary], path: str) -> Written:
    """Write the tokens of all texts to ``path``, each followed by an end token. Raises
    :class:`BadData`.

    ``bad``: treatment of a text that is not UTF-8, REFUSE or SKIP."""
    skipped: List[Skipped] = []
    encode = _bytes if vocab is None else _pieces(vocab)
    count = 0
    with open(path, "wb") as tokens:
        for name in sorted(os.listdir(os.path.join(root, split))):
            inner = f"{split}/{name}"
            reason = "" if name.endswith(".txt") else "its suffix is not .txt"
            content = b""
            try:
                if not reason:
                    content = encode(bounded.read_bytes(os.path.join(root, inner)).decode("utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                reason = _why(error)
            if reason and bad != SKIP:
                raise BadData(f"{inner}: {reason}; {_HOW}")
            if reason:
                skipped.append(Skipped(inner, reason))
                continue
            tokens.write(content)
            count += len(content)
    if not count:
        raise BadData(f"{os.path.join(root, split)} holds no text, NAME.txt")
    return Written(count // dtype_of(vocab)().itemsize, skipped)


def dtype_of(vocab: Optional[Vocabulary]) -> Any:
    """Return the dtype of the tokens in the file that :func:`write` writes."""
    import numpy as np

    return np.uint16 if vocab is None or vocab.size <= 1 << 16 else np.uint32


def _bytes(text: str) -> bytes:
    import numpy as np

    numbers = np.append(np.frombuffer(text.encode("utf-8"), np.uint8).astype("<u2"), np.uint16(END))
    return bytes(numbers.astype("<u2").tobytes())


def _pieces(vocab: Vocabulary) -> Callable[[str], bytes]:
    import numpy as np

    kind = np.dtype(dtype_of(vocab)).newbyteorder("<")

    def encode(text: str) -> bytes:
        numbers = [piece.number for piece in vocab.tokens.pieces(text)]
        return bytes(np.array([*numbers, vocab.end], kind).tobytes())

    return encode


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"is no UTF-8 at byte {error.start}: {error.reason}"
    return error_text(error)
