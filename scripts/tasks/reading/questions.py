"""The official files of SQuAD 1.1 and 2.0: titles, paragraphs, and questions to each of them."""

from __future__ import annotations

from typing import Any, Iterator, List, NamedTuple, Tuple

from core import bounded

from tasks import TaskError


class Question(NamedTuple):
    """Question about a context. ``answers``: text and position of the first character of each;
    empty if the question has no answer."""

    text: str
    context: str
    answers: List[Tuple[str, int]]


def read(path: str) -> List[Question]:
    """Return all questions of a file. Raises :class:`TaskError` for a file of another form, and for
    an answer that is not where it should be."""
    found = []
    for location, context, entry in _entries(path):
        try:
            question = _question(context, entry)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise TaskError(f"{path}: {location}: {error!r}; allowed: as SQuAD has it") from None
        found.append(question)
    if not found:
        raise TaskError(f"{path}: has no question")
    return found


def count(path: str) -> int:
    """Return the number of questions of a file, good or not. Raises :class:`TaskError`."""
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
    except ValueError as error:  # with line and column
        raise TaskError(f"{path}: is no JSON: {error}") from None
    except (KeyError, TypeError) as error:
        raise TaskError(f"{path}: {location}: {error!r}; allowed: as SQuAD has it") from None


def _question(context: str, entry: Any) -> Question:
    """Return a question; another form raises the error of the first difference."""
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
