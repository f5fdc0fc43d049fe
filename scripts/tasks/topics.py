"""Generated sentences to pre-train with. Each has a topic. Topic and position (modulo four) leave
two possible words, so a hidden word can be predicted from its position and the topic, which the
other words show. Drawn with a fixed seed."""

from __future__ import annotations

from typing import Any, Optional

from tasks import REPLACED, Arrays, Data, TaskError

SCORING = REPLACED

BEGIN, SEPARATOR, MASK, FIRST_WORD = 1, 2, 3, 4  # 0 is padding
WORDS, TOPICS, PLACES = 32, 8, 4
#: Chances of the first and of the second word of a place.
CHANCES = (0.75, 0.25)
TRAIN, HELD_OUT = 4096, 512
#: Tokens of the longest sentence by default, and the smallest number that may be requested.
TOKENS, FEWEST = 32, 8


def word_ids() -> Any:
    """Return the two words of each topic and place, int64 (TOPICS, PLACES, 2)."""
    import numpy as np

    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    random = np.random.RandomState(0)
    drawn = [random.permutation(WORDS)[:2] for _ in range(TOPICS * PLACES)]
    return FIRST_WORD + np.array(drawn, np.int64).reshape(TOPICS, PLACES, 2)


def data(length: Optional[int] = None, folder: Optional[str] = None) -> Data:
    """Return sentences: ``token_ids``, ``segment_ids`` and ``attention_mask``, int64 (samples,
    tokens): [begin] first half [separator] second half [separator], then padding, up to a quarter
    of the tokens. 4,096 sentences for training, 512 held out. Raises :class:`TaskError` for too few
    tokens."""
    import numpy as np

    length = length or TOKENS
    if length < FEWEST:
        raise TaskError(f"sentences of the task have {FEWEST} tokens or more, not {length}")
    random = np.random.RandomState(1)
    return Data(_sentences(random, TRAIN, length), _sentences(random, HELD_OUT, length))


def _sentences(random: Any, samples: int, length: int) -> Arrays:
    import numpy as np

    topics = random.randint(TOPICS, size=(samples, 1))
    second = (random.random_sample((samples, length)) >= CHANCES[0]).astype(np.int64)
    lengths = random.randint(length - length // 4, length + 1, size=(samples, 1))
    places = np.arange(length)
    middle = (lengths - 1) // 2
    ids = word_ids()[topics, places % PLACES, second]
    ids[:, 0] = BEGIN
    ids[(places == middle) | (places == lengths - 1)] = SEPARATOR
    real = places < lengths
    return {
        "token_ids": np.where(real, ids, 0),
        "segment_ids": (real & (places > middle)).astype(np.int64),
        "attention_mask": real.astype(np.int64),
    }
