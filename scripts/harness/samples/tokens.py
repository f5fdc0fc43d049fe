"""Tokens from a folder as sequences in a given order; batches of BERT and ELECTRA from them, masked
words and their labels; the check that all sequences were loaded.

``train`` and ``val`` each are ``train.bin``, little-endian unsigned numbers of 16 or 32 bits, with
``train.json``: ``{"dtype": "uint16" or "uint32", "vocabulary": N}``, where every token is below N.
``vocab.txt`` next to them has a token per line. Masked batches are made in steps:

1. Running tokens become ``[CLS] A [SEP] B [SEP]``, where B continues A. For BERT, B comes from
   another sequence of the batch in every second sequence, drawn by the seed, and the label is 1.
2. As many words are masked as the model has predictions, drawn among real words without special
   tokens, each once if they suffice.
3. BERT: 80 % of the masked words become [MASK], 10 % another word, 10 % stay (Devlin et al. 2018,
   section 3.1).
4. ELECTRA masks words on the device, by two numbers that are drawn here for each word of each
   batch: one below 100, which decides whether the word becomes [MASK] or stays, and one of 31 bits,
   by which its replacement is sampled from the generator. In a sequence with padding, the same
   share of words is masked as in one without. The first masked positions are then repeated, with
   the same numbers."""

from __future__ import annotations

import os
import zlib
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence

import tasks
from core import bounded
from tasks.reading import wordpiece
from tasks.reading.wordpiece import BEGIN, MASK, SEPARATOR, WordPiece

from harness.adapter import Mismatch
from harness.loader import Batch, Loading, TokenLoads
from harness.report import error_text
from harness.samples import folder
from harness.samples.folder import VOCABULARY, BadData

DTYPES = ("uint16", "uint32")
#: Forms of input: text whose labels are the next tokens, or sequences with masked words.
RUNNING, BERT, ELECTRA = "running", "bert", "electra"
#: Number of marks in a sequence: [CLS] and two [SEP].
MARKS = 3
#: Percent of BERT's masked words that become [MASK], and percent that become [MASK] or another
#: word.
_MASKED, _CHANGED = 80, 90
#: Upper bounds of ELECTRA's drawn inputs, by name; None for positions of words.
DRAWN = {"masked_positions": None, "mask_draws": 100, "sampling_draws": 1 << 31}


class Tokens(NamedTuple):
    """Tokens of a split.

    ``path``, ``dtype``: as in :class:`harness.loader.TokenLoads`. ``length``: tokens in all.
    ``vocabulary``: upper limit of tokens. ``vocab``: the folder's ``vocab.txt``."""

    path: str
    dtype: str
    length: int
    vocabulary: int
    vocab: Optional[wordpiece.WordPiece]


def scan(root: str, split: str) -> Tokens:
    """Return the tokens of a split. Raises :class:`BadData` where they are missing, truncated or
    inconsistent."""
    found = find(root, split)
    path = os.path.join(root, VOCABULARY)
    if not os.path.isfile(path):
        return found
    try:
        vocab = wordpiece.read(path)
    except tasks.TaskError as error:
        raise BadData(str(error)) from None
    if found.vocabulary > vocab.size:
        raise BadData(
            f"{found.path}: the vocabulary has {found.vocabulary} tokens, the {VOCABULARY} next "
            f"to it {vocab.size}"
        )
    return found._replace(vocab=vocab)


def find(root: str, split: str) -> Tokens:
    """Return the tokens of a split without reading them or their vocabulary. Raises as
    :func:`scan`."""
    import numpy as np

    path = os.path.join(root, f"{split}.bin")
    beside = os.path.join(root, f"{split}.json")
    if not os.path.isfile(path) or not os.path.isfile(beside):
        raise BadData(
            f"input: found {root}; allowed: a folder with {split}.bin, and {split}.json with "
            '{"dtype": "uint16", "vocabulary": N}; convert texts to it'
        )
    try:
        declared = bounded.read_json(beside)
        dtype, vocabulary = declared["dtype"], declared["vocabulary"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadData(f"{beside}: {error_text(error)}; allowed: keys dtype, vocabulary") from None
    if dtype not in DTYPES or not isinstance(vocabulary, int) or vocabulary < 1:
        raise BadData(
            f"{beside}: found dtype {dtype!r}, vocabulary {vocabulary!r}; allowed: "
            f"{' or '.join(DTYPES)}, and a whole number of tokens"
        )
    size, each = os.path.getsize(path), np.dtype(dtype).itemsize
    if size % each or not size:
        raise BadData(f"{path}: is truncated: {size} bytes are not a whole number of {dtype}")
    return Tokens(path, dtype, size // each, vocabulary, None)


def loads(
    tokens: Tokens, split: str, number: int, seed: int, rank: int, ranks: int, length: int,
    batch: int, workers: int, beyond: int = 1, most: int = 0,
) -> TokenLoads:  # fmt: skip
    """Return the request to a loader for a rank's sequences of an epoch. Raises :class:`BadData`
    where they are too few for a batch.

    Sequences have ``length`` tokens, followed by the first ``beyond`` tokens of the next sequence.
    ``most``: sequences of an epoch, 0 for all."""
    count = (tokens.length - beyond) // length
    places = folder.places_of(count, split, number, seed, rank, ranks, most)
    if len(places) < batch:
        raise BadData(
            f"{tokens.path} has {tokens.length} tokens, {len(places)} sequences of {length} for "
            f"this rank, too few for a batch of {batch}"
        )
    starts = places * length
    return TokenLoads(tokens.path, tokens.dtype, starts, length + beyond, batch, workers)


def checked(adapter: Loading, loads: TokenLoads) -> Dict[str, Any]:
    """Load all requested sequences once and compare them with the file.

    Returns the number of sequences, and the CRC-32 of their positions, for the record. Raises
    :class:`Mismatch` for wrong or missing sequences, and where the loader breaks."""
    import numpy as np

    whole = np.memmap(loads.path, np.dtype(loads.dtype).newbyteorder("<"), "r")
    for before, batch in folder.each_once(adapter.load(loads), len(loads.starts), "sequences"):
        tokens = np.asarray(batch["tokens"])
        starts = loads.starts[before : before + len(tokens)]
        if tokens.shape != (len(starts), loads.length) or tokens.dtype != np.int64:
            raise Mismatch(f"the loader returned {tokens.dtype} {tokens.shape}")
        expected = [whole[start : start + loads.length] for start in starts]
        if not np.array_equal(tokens, expected):
            raise Mismatch(f"the loader returned other tokens after {before} sequences")
    return {"sequences": len(loads.starts), "order_crc32": zlib.crc32(loads.starts.tobytes())}


def form_of(inputs: Sequence[Mapping[str, Any]]) -> str:
    """Return the form of a model's declared inputs; "" for a model without tokens."""
    shapes = {str(declaration["name"]): declaration["shape"] for declaration in inputs}
    names = {*shapes}
    if names == {"token_ids", "labels"} and shapes["labels"] == shapes["token_ids"]:
        return RUNNING
    common = {"token_ids", "segment_ids", "attention_mask", "masked_positions"}
    if names == common | {"masked_labels", "next_sentence_labels"}:
        return BERT
    return ELECTRA if names == common | {"mask_draws", "sampling_draws"} else ""


class MaskingPlan(NamedTuple):
    """Form of the requested batches.

    ``form``: BERT or ELECTRA. ``length``: tokens of a sequence. ``predictions``: masked words of
    each."""

    form: str
    length: int
    predictions: int


def check(tokens: Tokens, plan: MaskingPlan, hyper: Mapping[str, Any]) -> None:
    """Raise :class:`BadData` where the tokens do not suffice for a model's form, :class:`Mismatch`
    where the model cannot take them."""
    vocab = tokens.vocab
    if vocab is None or MASK not in vocab.numbers:
        raise BadData(
            f"{tokens.path}: found no vocab.txt with [CLS], [SEP] and [MASK] next to it; BERT and "
            "ELECTRA need one"
        )
    if plan.length < MARKS + 2:
        raise Mismatch(f"{plan.length} tokens have no room for two parts and {MARKS} marks")
    mask, own = vocab.numbers[MASK], hyper.get("mask_token")
    if plan.form == ELECTRA and mask != own:
        raise Mismatch(f"[MASK] is number {mask} in the vocabulary, {own} in the model")


def batch_of(loaded: Any, tokens: Tokens, plan: MaskingPlan, random: Any) -> Batch:
    """Return a batch by name, int64. Raises :class:`BadData` for a sequence without a word to mask.

    ``loaded``: batch of a loader (samples, tokens). ``random``: a ``RandomState``."""
    import numpy as np

    vocab = tokens.vocab
    assert vocab is not None, "check has ensured it"
    batch = _pairs(loaded, vocab, plan, random)
    if plan.form == ELECTRA:
        return hidden_by_electra(batch, plan.predictions, random)
    ids = batch["token_ids"]
    positions = _drawn(_ordinary(ids, batch["attention_mask"] == 1), plan.predictions, random)
    labels = np.take_along_axis(ids, positions, axis=1)
    drawn = random.randint(0, 100, size=positions.shape)
    others = random.randint(0, vocab.size, size=positions.shape)
    changed = np.where(drawn < _CHANGED, others, labels)
    shown = np.where(drawn < _MASKED, vocab.numbers[MASK], changed)
    ids[np.arange(len(ids))[:, None], positions] = shown
    return {**batch, "masked_positions": positions, "masked_labels": labels}


def hidden_by_electra(batch: Batch, predictions: int, random: Any) -> Batch:
    """Return sequences ``[CLS] A [SEP] B [SEP]`` by the names of ELECTRA's inputs, with the random
    numbers of DRAWN.

    ``predictions``: number of masked words in a sequence without padding. Raises :class:`BadData`
    for a sequence without a word to mask."""
    import numpy as np

    ordinary = _ordinary(batch["token_ids"], batch["attention_mask"] == 1)
    share = batch["attention_mask"].mean(axis=1)
    most = np.maximum(1, np.round(predictions * share)).astype(np.int64)[:, None]
    places = _drawn(ordinary, predictions, random, most)
    hidden = {**batch, "masked_positions": places}
    for name, below in DRAWN.items():
        # one random number per position, so that a position that was drawn twice has one number
        if below is not None:
            draws = random.randint(0, below, size=ordinary.shape, dtype=np.int64)
            hidden[name] = np.take_along_axis(draws, places, axis=1)
    return hidden


def _pairs(loaded: Any, vocab: WordPiece, plan: MaskingPlan, random: Any) -> Batch:
    import numpy as np

    count, half = len(loaded), (plan.length - MARKS + 1) // 2
    first, second = loaded[:, :half], loaded[:, half:]
    following = np.zeros(count, np.int64)
    if plan.form == BERT and count > 1:
        following = (random.random_sample(count) < 0.5).astype(np.int64)
        second = np.where(following[:, None] == 1, np.roll(second, -1, axis=0), second)
    begin, end = (np.full((count, 1), vocab.numbers[mark]) for mark in (BEGIN, SEPARATOR))
    ids = np.concatenate([begin, first, end, second, end], axis=1).astype(np.int64)
    segments = np.zeros_like(ids)
    segments[:, half + 2 :] = 1
    batch = {"token_ids": ids, "segment_ids": segments, "attention_mask": np.ones_like(ids)}
    return {**batch, "next_sentence_labels": following} if plan.form == BERT else batch


def _ordinary(ids: Any, real: Any) -> Any:
    """Return a mask of the words that are ``real``, not padding, and no special tokens."""
    import numpy as np

    last = real.shape[1] - 1 - real[:, ::-1].argmax(axis=1)
    ends = ids[np.arange(len(ids)), last][:, None]
    return real & (ids != ids[:, :1]) & (ids != ends)


def _drawn(ordinary: Any, count: int, random: Any, most: Any = None) -> Any:
    """Return ``count`` ordinary positions of each row in ascending order, each once if they
    suffice.

    ``most``: most distinct positions of each row (rows, 1), None for any number."""
    import numpy as np

    counts = ordinary.sum(axis=1)[:, None]
    if not counts.all():
        raise BadData(f"sequence {int(counts.argmin())} of a batch has no word that can be hidden")
    keys = np.where(ordinary, random.random_sample(ordinary.shape), 2.0)
    places = np.argsort(keys, axis=1, kind="stable")
    some = counts if most is None else np.minimum(counts, most)
    chosen = np.take_along_axis(places, np.arange(count) % some, axis=1)
    return np.sort(chosen, axis=1).astype(np.int64)
