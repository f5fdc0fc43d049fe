"""Tokens from files: listing, refusals, completeness, and possible mistakes of a loader; and inputs
of BERT and ELECTRA, made of tokens."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.adapter import Mismatch
from harness.loader import Batch, TokenLoads
from harness.samples import folder, tokens
from harness.samples.folder import TRAIN, VALIDATION, BadData
from harness.samples.tokens import BERT, ELECTRA, RUNNING, MaskingPlan
from tasks.reading import wordpiece

from ...frameworks.models import model_config_of
from . import token_folder
from .token_folder import NumpyTokenLoader

LENGTH = 128
#: Vocabulary with special tokens at the end, so that tokens below 257 are words.
VOCABULARY = [*(f"word{n}" for n in range(257)), "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BEGIN, END, MASK = (VOCABULARY.index(mark) for mark in ("[CLS]", "[SEP]", "[MASK]"))


def asked_of(root: Path, batch: int = 4, length: int = 16, rank: int = 0) -> TokenLoads:
    actual = tokens.scan(str(root), TRAIN)
    return tokens.loads(actual, TRAIN, 0, 3, rank, 2, length, batch, 0)


def test_each_sequence_goes_to_one_rank_once_an_epoch(tmp_path: Path) -> None:
    root = token_folder.tokens(tmp_path)
    loads = [asked_of(root, rank=rank) for rank in range(2)]
    starts = np.concatenate([entry.starts for entry in loads])
    assert sorted(starts.tolist()) == list(range(0, 992, 16))
    assert loads[0].length == 17, "with the token that comes next"
    whole = np.fromfile(root / "train.bin", "<u2")
    first = next(NumpyTokenLoader().load(loads[0]))["tokens"][0]
    assert first.tolist() == whole[loads[0].starts[0] :][:17].tolist()
    fed = [tokens.checked(NumpyTokenLoader(), entry) for entry in loads]
    assert fed[0]["sequences"] == fed[1]["sequences"] == 31
    assert fed[0]["order_crc32"] != fed[1]["order_crc32"]


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (
            lambda fed: ({"tokens": one["tokens"] + 1} for one in fed),
            "returned other tokens after 0 sequences",
        ),
        (lambda fed: itertools.islice(fed, 1), "returned 4 sequences of 31"),
        (
            lambda fed: ({"tokens": one["tokens"].astype(np.int32)} for one in fed),
            "returned int32",
        ),
    ],
)
def test_a_mistake_of_a_loader_is_found(
    tmp_path: Path, mistake: Callable[[Iterator[Batch]], Iterator[Batch]], expected: str
) -> None:
    loads = asked_of(token_folder.tokens(tmp_path))
    with pytest.raises(Mismatch, match=expected):
        tokens.checked(NumpyTokenLoader(mistake), loads)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda root: (root / "train.bin").write_bytes(b"abc"), "train.bin: is truncated"),
        (lambda root: (root / "train.json").unlink(), "a folder with train.bin, and train.json"),
        (lambda root: (root / "train.json").write_text(
            json.dumps({"dtype": "int64", "vocabulary": 5})), "allowed: uint16 or uint32"),
        (lambda root: (root / "vocab.txt").write_text("[UNK]\n[CLS]\n"), r"has no \[SEP\]"),
        (lambda root: (root / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\n[PAD]\n"),
         "has 257 tokens, the vocab.txt next to it 4"),
    ],
)  # fmt: skip
def test_a_bad_token_file_is_refused(
    tmp_path: Path, spoil: Callable[[Path], object], expected: str
) -> None:
    spoil(token_folder.tokens(tmp_path))
    with pytest.raises(BadData, match=expected):
        asked_of(tmp_path)


def test_too_few_tokens_for_a_batch_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"1000 tokens, 4 sequences of 100 .* too few .* batch of 5"):
        asked_of(token_folder.tokens(tmp_path), batch=5, length=100)


def test_other_tokens_or_another_vocabulary_are_another_data_set(tmp_path: Path) -> None:
    roots = [token_folder.tokens(tmp_path / str(count), train=count) for count in (500, 501)]
    known = [folder.identity(str(root)) for root in roots]
    (roots[1] / "vocab.txt").write_text("\n".join(VOCABULARY))
    assert len({*known, folder.identity(str(roots[1]))}) == 3


# ---- masked words --------------------------------------------------------------------------------


@pytest.fixture
def found(tmp_path: Path) -> tokens.Tokens:
    root = token_folder.tokens(tmp_path, val=8000)
    (root / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    return tokens.scan(str(root), VALIDATION)


def rows_of(found: tokens.Tokens) -> Any:
    """Return all sequences of an epoch, without marks."""
    loads = tokens.loads(found, VALIDATION, 0, 5, 0, 1, LENGTH - tokens.MARKS, 4, 0, beyond=0)
    tokens.checked(NumpyTokenLoader(), loads)  # type: ignore[arg-type]
    return np.concatenate([batch["tokens"] for batch in NumpyTokenLoader().load(loads)])


def batch_of(found: tokens.Tokens, form: str, seed: int = 1) -> dict[str, Any]:
    plan = MaskingPlan(form, LENGTH, 20)
    tokens.check(found, plan, {"mask_token": MASK})
    return tokens.batch_of(rows_of(found), found, plan, np.random.RandomState(seed))


def test_hidden_words_are_asked_for(found: tokens.Tokens) -> None:
    batch = batch_of(found, BERT)
    ids, positions = batch["token_ids"], batch["masked_positions"]
    rows = np.arange(len(ids))[:, None]
    shown, labels = ids[rows, positions], batch["masked_labels"]
    assert {str(array.dtype) for array in batch.values()} == {"int64"}
    assert positions.shape == labels.shape == (len(ids), 20)
    assert not np.isin(labels, [BEGIN, END]).any()
    counts = [(shown == MASK).mean(), (shown == labels).mean()]
    assert counts == pytest.approx([0.8, 0.1], abs=0.05)
    assert 0.2 < batch["next_sentence_labels"].mean() < 0.8
    assert (batch["segment_ids"][:, 0] == 0).all()
    assert (batch["segment_ids"].max(axis=1) == 1).all()
    # equal seeds repeat a batch, other seeds do not
    again, other = batch_of(found, BERT), batch_of(found, BERT, seed=2)
    assert all(np.array_equal(batch[name], again[name]) for name in batch)
    assert not np.array_equal(batch["masked_positions"], other["masked_positions"])


def test_the_second_part_goes_on_or_is_that_of_another(found: tokens.Tokens) -> None:
    rows = rows_of(found)
    batch = tokens.batch_of(rows, found, MaskingPlan(BERT, LENGTH, 1), np.random.RandomState(1))
    ids = batch["token_ids"].copy()
    np.put_along_axis(ids, batch["masked_positions"], batch["masked_labels"], axis=1)
    for number, label in enumerate(batch["next_sentence_labels"]):
        follows = rows[(number + label) % len(rows)]
        expected = [BEGIN, *rows[number][:63], END, *follows[63:], END]
        assert ids[number].tolist() == expected, f"sequence {number}, label {label}"
    plan = MaskingPlan(BERT, LENGTH, 1)
    single = tokens.batch_of(rows[:1], found, plan, np.random.RandomState(1))
    assert single["next_sentence_labels"].tolist() == [0], "there is no other"


@pytest.mark.parametrize(
    ("model", "form"),
    [
        *(("gpt2_small", RUNNING), ("llama_1b", RUNNING), ("bert_base", BERT)),
        *(("electra_base", ELECTRA), ("superbench_gpt2_small", ""), ("superbench_bert_base", "")),
        *(("resnet18", ""), ("span_encoder", "")),
    ],
)
def test_a_model_says_what_it_is_given(model: str, form: str) -> None:
    assert tokens.form_of(model_config_of(model)["inputs"]) == form


def test_what_does_not_fit_the_model_is_refused(found: tokens.Tokens) -> None:
    known = {token: number for number, token in enumerate(VOCABULARY[:-1])}
    no_mask = found._replace(vocab=wordpiece.WordPiece(known))
    for actual, plan, message in (
        (found._replace(vocab=None), MaskingPlan(BERT, 128, 20), "found no vocab.txt"),
        (no_mask, MaskingPlan(BERT, 128, 20), r"with \[CLS\], \[SEP\] and \[MASK\]"),
        (found, MaskingPlan(BERT, 4, 1), "4 tokens have no room"),
        (
            found,
            MaskingPlan(ELECTRA, 128, 20),
            r"\[MASK\] is number 261 in the vocabulary, 7 in the",
        ),
    ):
        with pytest.raises(Mismatch, match=message):
            tokens.check(actual, plan, {"mask_token": 7})
