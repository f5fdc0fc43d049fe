"""Checks of ranks, precisions and losses that a run makes."""

from __future__ import annotations

import pytest
from core import precisions
from core.case import Case
from framebench.records import flags
from harness.adapter import Mismatch
from harness.hardware import processor
from harness.measuring import checks

from ..bench import Bench
from .validity import assert_valid


def test_ranks_that_share_a_replica_have_one_batch() -> None:
    case = Case("toy", "toy", "train", 1, 4, 4, "fp32", "none", parallelism="data2xtensor2")

    def check(*checksums: int) -> None:
        ranks = [{"rank": n, "batch_checksum": checksum} for n, checksum in enumerate(checksums)]
        checks.check_batches(case, ranks)

    check(5, 5, 7, 7)
    with pytest.raises(Mismatch, match="that share replica 1 had different batches"):
        check(5, 5, 7, 8)
    with pytest.raises(Mismatch, match="replicas 0 and 1 had the same batch"):
        check(5, 5, 5, 5)
    case = case._replace(devices_per_node=6, parallelism="data3xtensor2")
    check(5, 5, 7, 7, 9, 9)
    for first, last in ((5, 0), (7, 1)):
        with pytest.raises(Mismatch, match=f"replicas {last} and 2 had the same batch"):
            check(5, 5, 7, 7, first, first)


@pytest.mark.parametrize("off", [1e-3, 1e-6, 1e-9])
def test_ranks_that_trained_together_agree_up_to_rounding(off: float) -> None:
    def check(*checksums: float) -> None:
        checks.check_same_weights(
            [{"rank": rank, "weights_checksum": each} for rank, each in enumerate(checksums)]
        )

    check(3.0, 3.0 + 1e-15, 3.0)
    with pytest.raises(Mismatch, match=r"rank 0 has checksum 3\.0, rank 2 has"):
        check(3.0, 3.0, 3.0 * (1 + off))


def test_an_emulated_precision_is_skipped_before_it_starts_where_asked(toy: Bench) -> None:
    emulated = precisions.emulated("amp", processor()["instruction_sets"])
    record = toy.run("", precision="amp", emulated="skip").record
    assert_valid(record)
    assert record["status"] == ("unsupported" if emulated else "ok"), record["reason"]
    assert record["reason"] == emulated
    assert bool(record["ranks"]) != bool(emulated)


def test_a_run_that_memorises_its_batch_is_flagged(toy: Bench) -> None:
    record = toy.run("zero_at=4", warmup_steps=1, timed_steps=4).record
    assert_valid(record)
    (flag,) = [entry for entry in flags.flags_of(record) if entry.name == flags.VANISHED]
    assert flag.why.startswith("the loss fell from ")
    record["ranks"][0]["first_value"] = 0.0
    assert flags.Flag(flags.VANISHED, "the loss was 0 from the first step") in flags.flags_of(
        record
    )
