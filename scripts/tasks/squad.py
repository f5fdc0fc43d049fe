"""SQuAD 1.1 or 2.0, of the official files in a folder: ``train-v1.1.json`` and ``dev-v1.1.json``,
or those of ``v2.0``, and the ``vocab.txt`` of the model."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tasks import Arrays, Data, Scored, Scoring, TaskError, reading
from tasks.reading import Question, TokenWindow, wordpiece

VERSIONS = ("1.1", "2.0")
VOCABULARY = "vocab.txt"
#: Largest number of tokens of an answer.
ANSWER = 30


def data(length: Optional[int] = None, folder: Optional[str] = None) -> Data:
    """Return questions as :func:`tasks.reading.cut` makes them: those of ``train`` for
    training, those of ``dev`` held out. Raises :class:`TaskError`."""
    if folder is None or length is None:
        raise TaskError("SQuAD needs a folder with its files, and a sequence length")
    version = _version(folder)
    tokens = wordpiece.read(os.path.join(folder, VOCABULARY))
    train, held_out = (
        reading.read_questions(os.path.join(folder, _name(split, version)))
        for split in ("train", "dev")
    )
    arrays, _ = reading.cut(train, tokens, length)
    scored, parts = reading.cut(held_out, tokens, length)
    notes = {
        "version": version,
        "cased": tokens.cased,
        "questions": {"train": len(train), "held_out": len(held_out)},
    }
    windows = QuestionWindows(version == "2.0", held_out, parts)
    return Data(arrays, scored, windows.score, notes)


def amounts(folder: str) -> Tuple[int, int]:
    """Return the numbers of training and held-out questions; a question on a long paragraph becomes
    several samples. Raises :class:`TaskError` where a file is missing."""
    version = _version(folder)
    wordpiece.read(os.path.join(folder, VOCABULARY))
    train, held_out = (
        reading.count_questions(os.path.join(folder, _name(split, version)))
        for split in ("train", "dev")
    )
    return train, held_out


def _name(split: str, version: str) -> str:
    return f"{split}-v{version}.json"


def _files(folder: str, version: str) -> List[str]:
    return [os.path.join(folder, _name(split, version)) for split in ("train", "dev")]


def _version(folder: str) -> str:
    """Return the version of SQuAD of which the folder has a file. Raises :class:`TaskError`."""
    try:
        files = os.listdir(folder)
    except OSError as error:
        raise TaskError(f"{folder}: {error.strerror}") from None
    versions = [v for v in VERSIONS if {_name("train", v), _name("dev", v)} & {*files}]
    if len(versions) == 1:
        return versions[0]
    allowed = " or ".join(f"{_name('train', v)} and {_name('dev', v)}" for v in VERSIONS)
    raise TaskError(
        f"{folder}: has files of {' and of '.join(versions) or 'no SQuAD'}; needs {allowed}"
    )


def score(outputs: Sequence[Any], batch: Arrays) -> Scored:
    """Return the scores of each window from (batch, tokens, 2).

    ``first`` and ``last``: tokens of the best span in the context; ``value``: its score;
    ``none``: the score of no answer; ``loss``: mean cross-entropy of the first and the last
    token."""
    import numpy as np

    scores = np.asarray(outputs[0], np.float64)
    context = batch["segment_ids"] == 1
    ends = batch["attention_mask"].sum(axis=1) - 1  # position of the last separator
    context[np.arange(len(ends)), ends] = False
    best = reading.best(scores, context, ANSWER)
    return {
        **best._asdict(),
        "none": scores[:, 0].sum(axis=1),
        "loss": reading.loss(scores, batch["spans"]),
    }


SCORING = Scoring(("f1", "exact_match"), score)


class QuestionWindows(NamedTuple):
    """Questions that are scored by the scores of their windows.

    ``impossible``: whether a question may have no answer."""

    impossible: bool
    questions: Sequence[Question]
    windows: Sequence[TokenWindow]

    def score(self, scored: Scored) -> Dict[str, float]:
        """Return ``f1`` and ``exact_match`` over questions, and the ``loss`` over windows."""
        pairs = [
            reading.score_answer(text, [answer for answer, _ in question.answers], self.impossible)
            for text, question in zip(self.predictions(scored), self.questions)
        ]
        exact, common = (sum(values) / len(pairs) for values in zip(*pairs))
        return {"f1": common, "exact_match": exact, "loss": float(scored["loss"].mean())}

    def predictions(self, scored: Scored) -> List[str]:
        """Return the text of each question's best span in all of its windows.

        If questions may have no answer, the text is empty where the smallest no-answer score is
        above the span's score."""
        import numpy as np

        texts = [""] * len(self.questions)
        best = np.full(len(texts), -np.inf)
        none = np.full(len(texts), np.inf)
        for number, window in enumerate(self.windows):
            at = window.question
            none[at] = min(none[at], scored["none"][number])
            if scored["value"][number] > best[at]:
                best[at] = scored["value"][number]
                ends = int(scored["first"][number]), int(scored["last"][number])
                texts[at] = window.text(self.questions[at].context, *ends)
        if not self.impossible:
            return texts
        return ["" if none[at] > best[at] else text for at, text in enumerate(texts)]
