"""Tokens from files: listing, refusals, completeness, and possible mistakes of a loader."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from harness.adapter import Mismatch
from harness.loader import Batch, TokenLoads
from harness.samples import folder, tokens
from harness.samples.folder import TRAIN, BadData

from . import token_folder
from .token_folder import NumpyTokenLoader


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
            lambda fed: ({"tokens": one["tokens"][::-1]} for one in fed),
            "returned other tokens after 0 sequences",
        ),
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
        (lambda root: (root / "train.json").write_text("[]"), "train.json: TypeError"),
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


def test_another_token_file_has_another_identity(tmp_path: Path) -> None:
    roots = [token_folder.tokens(tmp_path / str(count), train=count) for count in (500, 501)]
    assert len({folder.identity(str(root)) for root in roots}) == 2
