"""Questions whose answers are spans of a text: the best span, and how SQuAD scores it; questions of
SQuAD 1.1 and 2.0 in the official files, and windows of their contexts as arrays.

Exact match and F1 are those of the official scripts: ``evaluate-v1.1.py`` (Rajpurkar et al. 2016,
arXiv:1606.05250) and ``evaluate-v2.0.py`` (Rajpurkar et al. 2018, arXiv:1806.03822). They are
tested against Hugging Face's transformers 4, which environments of frameworks lack. A long context
has several windows, which overlap, as BERT's authors cut them (``run_squad.py`` of
google-research/bert). Standard library and numpy; Python 3.7 to 3.13."""

from __future__ import annotations

import collections
import re
import string
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from core import bounded

from tasks import Arrays, TaskError
from tasks.reading.wordpiece import BEGIN, PADDING, SEPARATOR, Piece, WordPiece

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)  # ASCII punctuation only
#: Largest number of question tokens, and tokens between the beginnings of two windows.
QUESTION, STRIDE = 64, 128


class Best(NamedTuple):
    """Best span of each sample, (samples,): first token, last token and the sum of their scores.

    The sum is minus infinity where no token is allowed."""

    first: Any
    last: Any
    value: Any


def best(scores: Any, allowed: Any, longest: int) -> Best:
    """Return the span with the largest sum of both scores, of up to ``longest`` tokens.

    It begins and ends with an allowed token; of spans with equal sums, the shortest is returned.
    ``scores``: (samples, tokens, 2); ``allowed``: bool (samples, tokens)."""
    import numpy as np

    begin, end = (np.where(allowed, scores[:, :, side], -np.inf) for side in range(2))
    samples, tokens = allowed.shape
    rows = np.arange(samples)
    best_so_far = Best(np.zeros(samples, int), np.zeros(samples, int), np.full(samples, -np.inf))
    for more in range(min(longest, tokens)):
        sums = begin[:, : tokens - more] + end[:, more:]
        first = sums.argmax(axis=1)
        value = sums[rows, first]
        better = value > best_so_far.value
        chosen = Best(first, first + more, value)
        best_so_far = Best(*(np.where(better, new, old) for new, old in zip(chosen, best_so_far)))
    return best_so_far


def loss(scores: Any, spans: Any) -> Any:
    """Return the loss of each sample, (samples,): the mean of the cross-entropies of first and last
    token. ``scores``: (samples, tokens, 2); ``spans``: the correct positions, (samples, 2)."""
    import numpy as np

    shifted = scores - scores.max(axis=1, keepdims=True)
    right = np.take_along_axis(shifted, spans[:, None, :], axis=1)[:, 0]
    return (np.log(np.exp(shifted).sum(axis=1)) - right).mean(axis=1)


def normalised(answer: str) -> str:
    """Return text in lower case, without punctuation and articles, with one blank between words.

    Steps are applied in this order."""
    text = "".join(letter for letter in answer.lower() if letter not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(prediction: str, answer: str) -> float:
    return float(normalised(prediction) == normalised(answer))


def f1(prediction: str, answer: str, impossible: bool) -> float:
    """F1: harmonic mean of precision and recall of the words. ``impossible``: as in SQuAD 2.0,
    where a prediction or answer without words scores 1 if both are empty, else 0; 1.1 scores it
    0."""
    predicted, expected = normalised(prediction).split(), normalised(answer).split()
    if impossible and not (predicted and expected):
        return float(predicted == expected)
    common = sum((collections.Counter(predicted) & collections.Counter(expected)).values())
    if not common:
        return 0.0
    precision, recall = common / len(predicted), common / len(expected)
    return 2 * precision * recall / (precision + recall)


def score_answer(prediction: str, answers: Sequence[str], impossible: bool) -> Tuple[float, float]:
    """Return exact match and F1, each for the answer with the highest score. ``impossible``: as in
    SQuAD 2.0, where answers without words are ignored, and a question without any other answer has
    the empty text as its answer."""
    if impossible:
        answers = [answer for answer in answers if normalised(answer)] or [""]
    exact = max((exact_match(prediction, answer) for answer in answers), default=0.0)
    return exact, max((f1(prediction, answer, impossible) for answer in answers), default=0.0)


class Question(NamedTuple):
    """Question about a context. ``answers``: text and position of the first character of each;
    empty if the question has no answer."""

    text: str
    context: str
    answers: List[Tuple[str, int]]


def read_questions(path: str) -> List[Question]:
    """Return all questions of a file. Raises :class:`TaskError` for another file format, and for an
    answer that is not at its stated position."""
    found = []
    for location, context, entry in _entries(path):
        try:
            question = _question(context, entry)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise TaskError(f"{path}: {location}: {error!r}; allowed: SQuAD's format") from None
        found.append(question)
    if not found:
        raise TaskError(f"{path}: has no question")
    return found


def count_questions(path: str) -> int:
    """Return the number of questions of a file, valid or not. Raises :class:`TaskError`."""
    return sum(1 for _ in _entries(path))


def _entries(path: str) -> Iterator[Tuple[str, str, Any]]:
    """Yield place, context and content of each question."""
    location = "data"
    try:
        for number, title in enumerate(bounded.read_json(path)["data"]):
            for paragraph_number, paragraph in enumerate(title["paragraphs"]):
                location = f"data[{number}].paragraphs[{paragraph_number}]"
                for entry_number, entry in enumerate(paragraph["qas"]):
                    yield f"{location}.qas[{entry_number}]", paragraph["context"], entry
    except OSError as error:
        raise TaskError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # its text has line and column
        raise TaskError(f"{path}: is not JSON: {error}") from None
    except (KeyError, TypeError) as error:
        raise TaskError(f"{path}: {location}: {error!r}; allowed: SQuAD's format") from None


def _question(context: str, entry: Any) -> Question:
    """Return a question; raises the error of the first deviation from SQuAD's format."""
    if entry.get("is_impossible", False):
        return Question(entry["question"], context, [])
    answers = [(answer["text"], answer["answer_start"]) for answer in entry["answers"]]
    for text, start in answers:
        there = context[start : start + len(text)] if start >= 0 else ""
        if not text.strip() or there != text:
            raise ValueError(f"answer {text[:40]!r} is not at {start}, where {there[:40]!r} is")
    if not answers:
        raise ValueError("has no answers, and is_impossible is not true")
    return Question(entry["question"], context, answers)


class TokenWindow(NamedTuple):
    """Window of a question and a part of its context. ``question``: position in the list of
    questions; ``characters``: for each token of the context, the positions of its first character
    and after its last; ``first``: position of the context's first token in the window."""

    question: int
    first: int
    characters: Sequence[Tuple[int, int]]

    def text(self, context: str, first: int, last: int) -> str:
        """Return the part of ``context`` from token ``first`` to token ``last``."""
        begin, end = self.characters[first - self.first][0], self.characters[last - self.first][1]
        return context[begin:end]


def cut(
    questions: Sequence[Question], tokens: WordPiece, length: int
) -> Tuple[Arrays, List[TokenWindow]]:
    """Cut questions and contexts to windows; return int64 arrays, and the windows in the same
    order. Arrays: ``token_ids``, ``segment_ids`` (1: the context and its separator) and
    ``attention_mask``, each (windows, length); ``spans`` (windows, 2): first and last token of the
    first answer, (0, 0) if the window lacks it. Raises :class:`TaskError` where ``length`` has no
    room for a context."""
    import numpy as np

    if length < QUESTION + 4:
        raise TaskError(f"sequence_length {length}: questions and contexts need {QUESTION + 4}")
    rows: Dict[str, List[Any]] = {}
    windows: List[TokenWindow] = []
    known: Dict[str, List[Piece]] = {}
    for number, question in enumerate(questions):
        if question.context not in known:
            # questions on the same context follow each other
            known = {question.context: tokens.pieces(question.context)}
        context = known[question.context]
        asked = [piece.number for piece in tokens.pieces(question.text)[:QUESTION]]
        head = [tokens.numbers[BEGIN], *asked, tokens.numbers[SEPARATOR]]
        answer = _answer(question, context)
        for begin, end in cut_windows(len(context), length - len(head) - 1):
            part = context[begin:end]
            ids = [*head, *(piece.number for piece in part), tokens.numbers[SEPARATOR]]
            padding = length - len(ids)
            row = {
                "token_ids": ids + [tokens.numbers[PADDING]] * padding,
                "segment_ids": [0] * len(head) + [1] * (len(part) + 1) + [0] * padding,
                "attention_mask": [1] * len(ids) + [0] * padding,
                "spans": _span(answer, begin, end, len(head)),
            }
            for name, values in row.items():
                rows.setdefault(name, []).append(np.array(values, np.int64))
            windows.append(
                TokenWindow(number, len(head), [(piece.begin, piece.end) for piece in part])
            )
    return {name: np.stack(rows.pop(name)) for name in [*rows]}, windows


def cut_windows(pieces: int, room: int) -> List[Tuple[int, int]]:
    """Return the index of the first piece and the index after the last piece of each window. A
    context without pieces has one window."""
    parts, begin = [], 0
    while True:
        end = min(begin + room, pieces)
        parts.append((begin, end))
        if end == pieces:
            return parts
        begin += min(room, STRIDE)


def _answer(question: Question, context: Sequence[Piece]) -> Tuple[int, int]:
    """Return the first and last piece of the first answer; (-1, -1) without one."""
    if not question.answers:
        return -1, -1
    text, begin = question.answers[0]
    end = begin + len(text)
    inside = [n for n, piece in enumerate(context) if piece.end > begin and piece.begin < end]
    return (inside[0], inside[-1]) if inside else (-1, -1)


def _span(answer: Tuple[int, int], begin: int, end: int, first: int) -> Tuple[int, int]:
    """Return the span of an answer in the tokens of a window whose context starts at ``first``."""
    if not begin <= answer[0] <= answer[1] < end:
        return 0, 0
    return answer[0] - begin + first, answer[1] - begin + first
