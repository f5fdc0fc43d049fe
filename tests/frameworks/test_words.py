"""Tokens in a folder, mostly one word, are learned by ELECTRA, through the command line."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..bench import ROOT, Bench
from ..conftest import build_environment
from ..harness.validity import assert_outcome

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", *(f"w{number}" for number in range(34))]
#: Tokens of a text; one in OTHER words is random, all others are the first word.
TEXT, OTHER = 400, 6
LENGTH, BATCH, UPDATES = 32, 16, 25
Learned = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, drawn = tmp_path_factory.mktemp("texts"), random.Random(0)
    (root / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    for split, count in (("train", 24 * TEXT), ("val", 5 * TEXT)):
        ids = [
            5 if drawn.randrange(OTHER) else drawn.randrange(5, len(WORDS)) for _ in range(count)
        ]
        (root / f"{split}.bin").write_bytes(np.array(ids, "<u2").tobytes())
        said = {"dtype": "uint16", "vocabulary": len(WORDS)}
        (root / f"{split}.json").write_text(json.dumps(said))
    return root


@pytest.fixture(scope="module")
def learned(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Learned:
    """Return the record of a training of PyTorch, made once per number of devices."""
    actual: dict[int, dict[str, Any]] = {}

    def record(devices: int) -> dict[str, Any]:
        if devices not in actual:
            folder = tmp_path_factory.mktemp("learned")
            done = Bench(folder, build_environment("pytorch")).run(
                framework=ROOT / "scripts/frameworks/pytorch",
                model=ROOT / "scripts/models/topics_electra.json",
                kind="converge",
                devices_per_node=devices,
                cores_per_device=1,
                batch_per_device=BATCH // devices,
                sequence_length=LENGTH,
                input="data",
                data=texts,
                parameters={"epochs": 2, "epoch_steps": UPDATES, "schedule": "constant"},
            )
            actual[devices] = done.record
        return actual[devices]

    return record


@pytest.mark.parametrize("devices", [1, 2])
def test_tokens_in_a_folder_are_learned(learned: Learned, devices: int) -> None:
    record = learned(devices)
    assert_outcome(record, "ok")
    ranks = record["ranks"]
    assert len(ranks) == devices
    last = ranks[0]["curve"][-1]["held_out"]
    assert last["masked_accuracy"] > 0.7, "the word that stands everywhere is not known"
    for rank in ranks:
        assert rank["curve"][-1]["samples"] == UPDATES * BATCH, "of all devices"
        assert rank["curve"][-1]["held_out"] == last, "each knows what all have scored"


def test_devices_share_the_tokens(learned: Learned) -> None:
    alone, shared = (learned(devices)["ranks"] for devices in (1, 2))
    assert len({rank["loader_output"]["order_crc32"] for rank in shared}) == 2, (
        "both are fed the same"
    )
    for name in ("train", "held_out"):
        counts = [ranks[0]["task"][name] for ranks in (alone, shared)]
        assert 0 <= counts[0] - counts[1] < 2, f"{name}: a sequence that belongs to nobody"
