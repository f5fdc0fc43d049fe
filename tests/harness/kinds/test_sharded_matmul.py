"""Sharded matmuls: counts, and detection of one rank's wrong part on all ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.matmuls import MatmulShape
from harness.adapter import Unsupported
from harness.kinds import sharded_matmul
from harness.measuring.micro.results import plain_shapes, shapes_of

from ...bench import Bench, Finished
from ..bare import BARE, values
from ..validity import assert_valid


def shared(toy: Bench, behaviour: str, **parameters: object) -> Finished:
    settings = {"shapes": "8x32x16", "blocks": 2, "block_seconds": 0.02, **parameters}
    options: dict[str, Any] = {**BARE, "kind": "sharded_matmul", "devices_per_node": 2}
    return toy.run(behaviour, **options, parameters=settings)


@pytest.mark.parametrize("sharded", ["inner", "columns"])
def test_the_rate_is_of_the_whole_product_and_the_slowest_rank_counts(
    toy: Bench, sharded: str
) -> None:
    record = shared(toy, "exact,operation=0.01", sharded=sharded).record
    assert_valid(record)
    assert record["status"] == "ok", record["reason"]
    at = 8, 32, 16
    seconds = {
        part: max(
            np.median(block["seconds"]) / block["operations"]
            for rank in record["ranks"]
            for block in rank["blocks"]
            if block["at"]["part"] == part
        )
        for part in sharded_matmul.PARTS
    }
    for part, longest in seconds.items():
        assert values(record, f"{part}_time")[at] == pytest.approx(1e3 * longest)
    assert seconds[sharded_matmul.MATMUL] >= 0.01
    assert seconds["both"] >= 0.02, "communication begins behind the matmul"
    operations = 2 * 8 * 32 * 16
    assert values(record, "rate")[at] == pytest.approx(1e-12 * operations / seconds["both"])
    rate = values(record, "matmul_rate")[at]
    assert rate == pytest.approx(1e-12 * operations / seconds[sharded_matmul.MATMUL])
    assert record["metrics"]["highest_rate"]["value"] == values(record, "rate")[at]


@pytest.mark.parametrize(
    ("sharded", "behaviour", "reason"),
    [
        ("inner", "wrong_shard=1", "before it was timed, behind its all_reduce: 256 elements"),
        ("columns", "wrong_shard=1", "before it was timed, behind its all_gather: 256 elements"),
    ],
)
def test_what_is_wrong_is_found(toy: Bench, sharded: str, behaviour: str, reason: str) -> None:
    record = shared(toy, behaviour, sharded=sharded).record
    assert record["status"] == "failed", "it was taken for a good one"
    assert reason in record["reason"]


def test_parts_are_equal_and_shapes_have_no_batch() -> None:
    shape = MatmulShape(1, 8, 6, 9)
    assert sharded_matmul.share_of(shape, "inner", 1, 3) == slice(2, 4)
    with pytest.raises(Unsupported, match="2 ranks cannot have equal parts of n of 8x6x9: 9"):
        sharded_matmul.share_of(shape, "columns", 0, 2)
    assert shapes_of(plain_shapes("8x6x9 1x2x2x2")) == [shape, MatmulShape(1, 2, 2, 2)]
    with pytest.raises(ValueError, match="without a batch"):
        plain_shapes("4x8x6x9")
