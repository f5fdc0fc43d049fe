"""WordPiece as BERT's authors define it (``tokenization.py`` of google-research/bert; Devlin et al.
2018, arXiv:1810.04805): words of letters, single marks of punctuation and single Chinese
characters, each cut into the longest pieces that the vocabulary has. Each piece has its position in
the text."""

from __future__ import annotations

import unicodedata
from typing import Dict, Iterator, List, NamedTuple, Tuple

from core import bounded

from tasks import TaskError

UNKNOWN, BEGIN, SEPARATOR, PADDING = "[UNK]", "[CLS]", "[SEP]", "[PAD]"
MASK = "[MASK]"  # some vocabularies lack it
#: A word with more letters is unknown.
_LONGEST = 200
#: Code points of Chinese characters, each of which is a word: the blocks that BERT's authors list.
_CHINESE = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
#: Number of words whose pieces are cached, because texts repeat words.
_REMEMBERED = 100_000
#: Letters as they are looked up, each with its position in the text.
_Word = List[Tuple[str, int]]


class Piece(NamedTuple):
    """Piece of a word. ``number``: index in the vocabulary; the text is ``text[begin:end]``."""

    number: int
    begin: int
    end: int


class WordPiece:
    """Tokenizer of BERT. ``cased``: whether letters keep their case and accents, which is so if the
    vocabulary has capital letters."""

    def __init__(self, numbers: Dict[str, int], path: str = "vocab.txt") -> None:
        """Create the tokenizer. ``numbers``: index of each token; ``path``: file of the vocabulary.
        Raises :class:`TaskError` where a token that every text needs is missing."""
        for token in (UNKNOWN, BEGIN, SEPARATOR, PADDING):
            if token not in numbers:
                raise TaskError(f"{path}: has no {token}, which BERT's WordPiece vocabularies have")
        self.numbers, self.size = numbers, max(numbers.values()) + 1
        self._known: Dict[str, List[Piece]] = {}
        self.cased = any(token != token.lower() for token in numbers if not token.startswith("["))

    def pieces(self, text: str) -> List[Piece]:
        return [piece for word in _split_words(text, self.cased) for piece in self._cut(word)]

    def _cut(self, word: _Word) -> List[Piece]:
        letters = "".join(letter for letter, _ in word)
        if letters not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[letters] = self._parts(letters)
        return [
            Piece(number, word[begin][1], word[end - 1][1] + 1)
            for number, begin, end in self._known[letters]
        ]

    def _parts(self, letters: str) -> List[Piece]:
        """Return the word pieces of a single word, with positions as in its ``letters``."""
        pieces: List[Piece] = []
        begin = 0
        while begin < len(letters) <= _LONGEST:
            for end in range(len(letters), begin, -1):
                part = letters[begin:end]
                number = self.numbers.get(part if begin == 0 else "##" + part)
                if number is not None:
                    break
            else:
                break
            pieces.append(Piece(number, begin, end))
            begin = end
        if begin < len(letters):
            return [Piece(self.numbers[UNKNOWN], 0, len(letters))]
        return pieces


def read(path: str) -> WordPiece:
    """Read a vocabulary from a file with one token per line, whose index is the line, from 0.
    Raises :class:`TaskError`."""
    try:
        lines = bounded.read_text(path).split("\n")
    except (OSError, ValueError) as error:
        raise TaskError(f"{path}: {error}") from None
    tokens = lines[:-1] if lines[-1] == "" else lines
    return WordPiece({token: number for number, token in enumerate(tokens)}, path)


def _split_words(text: str, cased: bool) -> Iterator[_Word]:
    word: _Word = []
    for place, letter in enumerate(text):
        category = unicodedata.category(letter)
        is_blank = letter in " \t\n\r" or category == "Zs"
        if not is_blank and (letter in "\0\ufffd" or category.startswith("C")):
            continue  # a control character, or the replacement of an invalid one
        for character in letter if cased or is_blank else _folded(letter):
            if not (is_blank or _is_alone(character)):
                word.append((character, place))
                continue
            if word:
                yield word
                word = []
            if not is_blank:
                yield [(character, place)]
    if word:
        yield word


def _folded(letter: str) -> str:
    """Return a character in lower case and without accents; "" for an accent."""
    parts = unicodedata.normalize("NFD", letter.lower())
    return "".join(part for part in parts if unicodedata.category(part) != "Mn")


def _is_alone(letter: str) -> bool:
    """Return whether a character is punctuation (any ASCII character but letters and digits) or
    Chinese."""
    point = ord(letter)
    if point < 128:
        return not letter.isalnum()
    return unicodedata.category(letter).startswith("P") or any(
        first <= point <= last for first, last in _CHINESE
    )
