"""Generated questions to learn from: a text has one to three words of each of six kinds, the
question names a kind, and the text's words of this kind are the answer. Drawn with a fixed seed."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from tasks import Arrays, Data, Scoring, TaskError, reading

BEGIN, SEPARATOR, FIRST_KIND = 1, 2, 3  # 0 is padding
# number of kinds, words of each kind, and most words of a kind in a text
KINDS, WORDS, MOST = 6, 14, 3
FIRST_WORD = FIRST_KIND + KINDS
#: Tokens: [begin] kind [separator] text [separator], and padding.
TOKENS = 24
TRAIN, HELD_OUT = 4096, 512


def data(length: Optional[int] = None, folder: Optional[str] = None) -> Data:
    """Return sentences with questions: ``token_ids``, ``segment_ids`` (1: the text and its
    separator) and ``attention_mask``, (samples, 24), ``spans`` (samples, 2): the first and the last
    token of the answer; all int64. 4,096 samples for training, 512 held out. Raises
    :class:`TaskError` for another length."""
    import numpy as np

    if length not in (None, TOKENS):
        raise TaskError(f"questions of the task have {TOKENS} tokens, not {length}")
    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    random = np.random.RandomState(0)
    names = ("token_ids", "segment_ids", "attention_mask", "spans")

    def arrays(samples: int) -> Arrays:
        columns = zip(*(_question(random) for _ in range(samples)))
        return {name: np.array(rows, np.int64) for name, rows in zip(names, columns)}

    return Data(arrays(TRAIN), arrays(HELD_OUT))


def _question(random: Any) -> Tuple[List[int], List[int], List[int], Tuple[int, int]]:
    """Return a row of each array, and the span of the answer."""
    asked, span = random.randint(KINDS), (0, 0)
    tokens = [BEGIN, FIRST_KIND + asked, SEPARATOR]
    before = len(tokens)
    for kind in random.permutation(KINDS):
        answer = random.randint(WORDS, size=random.randint(1, MOST + 1))
        if kind == asked:
            span = (len(tokens), len(tokens) + len(answer) - 1)
        tokens += (FIRST_WORD + WORDS * kind + answer).tolist()
    tokens.append(SEPARATOR)
    padding = [0] * (TOKENS - len(tokens))
    segments = [0] * before + [1] * (len(tokens) - before) + padding
    return tokens + padding, segments, [1] * len(tokens) + padding, span


def score(outputs: Sequence[Any], batch: Arrays) -> Dict[str, Any]:
    """Return ``exact_match`` and ``f1`` of the words in the best span, as SQuAD scores them, and
    the ``loss``: mean of the cross-entropies of the first and the last token, from scores (batch,
    tokens, 2)."""
    import numpy as np

    scores, tokens = np.asarray(outputs[0], np.float64), batch["token_ids"]
    best = reading.best(scores, tokens >= FIRST_WORD, TOKENS)
    pairs = [
        reading.score_answer(_text(row, first, last), [_text(row, *right)], impossible=False)
        for row, first, last, right in zip(tokens, best.first, best.last, batch["spans"])
    ]
    exact, common = np.array(pairs, np.float64).reshape(-1, 2).T
    return {"exact_match": exact, "f1": common, "loss": reading.loss(scores, batch["spans"])}


SCORING = Scoring(("exact_match", "f1"), score)


def _text(tokens: Any, first: int, last: int) -> str:
    return " ".join(f"word{token}" for token in tokens[first : last + 1])
