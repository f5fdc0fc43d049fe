"""The official files of SQuAD 1.1 and 2.0: titles, paragraphs, and questions to each of them."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from tasks import TaskError
from tasks.reading.text_files import read_json

_HOW = "bad_answers: skip leaves the question out and counts it"


class Question(NamedTuple):
    """Question about a context. ``answers``: text and position of the first character of each;
    empty if the question has no answer."""

    text: str
    context: str
    answers: List[Tuple[str, int]]


class Questions(NamedTuple):
    """Questions of a file. ``skipped``: why each was left out, with its place."""

    path: str
    questions: List[Question]
    skipped: List[str]


def read(path: str, skips: bool) -> Questions:
    """Return all questions of a file. ``skips``: leave questions out whose answer is not where it
    should be. Raises :class:`TaskError` for these without ``skips``, and for all other faults."""
    questions: List[Question] = []
    skipped: List[str] = []
    for location, context, entry in _entries(path):
        question = _question(path, location, context, entry)
        wrong = _wrong(question)
        if not wrong:
            questions.append(question)
        elif skips:
            skipped.append(f"{location}{wrong}")
        else:
            raise TaskError(f"{path}: {location}{wrong}; {_HOW}")
    if not questions:
        raise TaskError(f"{path}: has no question")
    return Questions(path, questions, skipped)


def count(path: str) -> int:
    """Return the number of questions of a file, good or not. Raises :class:`TaskError`."""
    return sum(1 for _ in _entries(path))


def _entries(path: str) -> Iterator[Tuple[str, str, Any]]:
    """Yield place, context and content of each question."""
    titles = _item(path, "", read_json(path), "data", list)
    for number, title in enumerate(titles):
        of_title = f"data[{number}]"
        for count, paragraph in enumerate(_item(path, of_title, title, "paragraphs", list)):
            of_paragraph = f"{of_title}.paragraphs[{count}]"
            context = _item(path, of_paragraph, paragraph, "context", str)
            for last, entry in enumerate(_item(path, of_paragraph, paragraph, "qas", list)):
                yield f"{of_paragraph}.qas[{last}]", context, entry


def _question(path: str, location: str, context: str, entry: Any) -> Question:
    text = _item(path, location, entry, "question", str)
    if entry.get("is_impossible", False):
        return Question(text, context, [])
    answers = _item(path, location, entry, "answers", list)
    if not answers:
        raise TaskError(f"{path}: {location}.answers: is empty, and is_impossible is not true")
    return Question(
        text,
        context,
        [
            (
                _item(path, f"{location}.answers[{number}]", answer, "text", str),
                _item(path, f"{location}.answers[{number}]", answer, "answer_start", int),
            )
            for number, answer in enumerate(answers)
        ],
    )


def _wrong(question: Question) -> str:
    """Return the end of a message that says what is wrong with a question's answers; "" where
    nothing is."""
    for number, (text, start) in enumerate(question.answers):
        there = question.context[start : start + len(text)] if start >= 0 else ""
        if not text.strip() or there != text:
            return (
                f".answers[{number}]: {_short(text)} is not at answer_start {start}, where "
                f"{_short(there)} is"
            )
    return ""


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:38] + "..")


def _item(path: str, location: str, holder: Any, key: str, kind: type) -> Any:
    """Return the value of ``key`` in ``holder``, of type ``kind``. Raises :class:`TaskError`."""
    names: Dict[type, str] = {list: "a list", str: "a text", int: "a whole number"}
    if not isinstance(holder, dict) or key not in holder:
        raise TaskError(f"{path}: {location or 'the file'} lacks {key}")
    value = holder[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TaskError(f"{path}: {'.'.join(filter(None, (location, key)))} is not {names[kind]}")
    return value
