"""Generated sentences to pre-train with. Each has a topic, which with the position (modulo four)
leaves two possible words. So a hidden word can be predicted from the topic, which the other words
show, and its position, as far as :func:`least_loss` says. Made from random numbers, the same ones
each time."""

from __future__ import annotations

from typing import Any

from tasks import DEFAULTS, Arrays, Data, DataOptions, TaskError
from tasks.scoring import replaced

SCORES = replaced.SCORES
score = replaced.score

BEGIN, SEPARATOR, MASK, FIRST_WORD = 1, 2, 3, 4  # 0 is padding
WORDS, TOPICS, PLACES = 32, 8, 4
#: Chances of the first and of the second word of a place.
CHANCES = (0.75, 0.25)
TRAIN, HELD_OUT = 4096, 512
#: Tokens of the longest sentence where nobody asks for another number, and the fewest that may be.
TOKENS, FEWEST = 32, 8


def word_ids() -> Any:
    """Return the two words of each topic and place, int64 (TOPICS, PLACES, 2)."""
    import numpy as np

    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    random = np.random.RandomState(0)
    drawn = [random.permutation(WORDS)[:2] for _ in range(TOPICS * PLACES)]
    return FIRST_WORD + np.array(drawn, np.int64).reshape(TOPICS, PLACES, 2)


def data(options: DataOptions = DEFAULTS) -> Data:
    """Return sentences: ``token_ids``, ``segment_ids`` and ``attention_mask``, int64 (samples,
    tokens): [begin] first half [separator] second half [separator], then padding, up to a quarter
    of the tokens. 4,096 sentences for training, 512 held out. Raises :class:`TaskError` for too few
    tokens."""
    import numpy as np

    length = options.sequence_length or TOKENS
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


def least_loss(batch: Arrays, masked_percent: int) -> float:
    """Return the least mean cross-entropy over hidden words, in nats.

    A generator that knows how sentences are made reaches it; less is chance. ``batch``: with the
    hidden words. ``masked_percent``: percent of them behind a mark."""
    import numpy as np

    ids, places = batch["token_ids"], batch["masked_positions"]
    rows = np.arange(len(ids))[:, None]
    masked = batch["mask_draws"] < masked_percent
    chances = np.zeros((TOPICS, PLACES, FIRST_WORD + WORDS))
    np.put_along_axis(chances, word_ids(), np.array(CHANCES), axis=2)
    # what each word says of the topic, (samples, tokens, topics)
    likely = chances[:, np.arange(ids.shape[1]) % PLACES, ids].transpose(1, 2, 0)
    seen = ids >= FIRST_WORD
    seen[np.broadcast_to(rows, places.shape)[masked], places[masked]] = False
    with np.errstate(divide="ignore"):
        said = np.where(seen[..., None], np.log(likely), 0.0).sum(axis=1)
    topic = np.exp(said - said.max(axis=1, keepdims=True))
    topic /= topic.sum(axis=1, keepdims=True)
    right = (likely[rows, places] * topic[:, None, :]).sum(axis=2)
    return float(np.where(masked, -np.log(right), 0.0).mean())
