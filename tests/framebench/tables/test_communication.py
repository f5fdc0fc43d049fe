"""Expected time of a gradient all-reduce, by hand-computed numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from framebench.records.fields.steps import GradientAllReduce
from framebench.records.run import MetricValue, Run
from framebench.tables.expectation import collectives

from ..made_up_runs import measured as of_kind
from ..made_up_runs import repeats, run, table_of
from ..table_rows import only

PLACE: dict[str, Any] = {"hardware": "Example CPU", "cores_per_device": 1, "devices_per_node": 2}
#: Microseconds of an all-reduce: 100, plus 1 per 1000 bytes.
TIMES = {8: 100.008, 1000: 101.0, 3000: 103.0}
#: 2000 bytes between two sizes, 8 the smallest, and less than that.
SIZES = (2000, 8, 4)
EXPECTED = 0.102 + 0.100008 + 0.100008


def all_reduces(scale: float = 1.0, repeat: int = 1, **changes: Any) -> Run:
    parameters = {"operation": "all_reduce", "dtype": "float32"}
    parameters |= {name: changes.pop(name) for name in [*parameters] if name in changes}
    metrics = [
        MetricValue("average_bus_bandwidth", 1 / scale, "GB/s"),
        *(
            MetricValue("time", scale * time, "us", "lower", (("bytes", size),))
            for size, time in TIMES.items()
        ),
    ]
    made = of_kind("collective", metrics, **parameters)
    case = {"framework": "pytorch", "framework_version": "2.8.0", "devices_per_node": 2}
    case |= {name: changes.pop(name) for name in [*case, "nodes"] if name in changes}
    where = replace(made.conditions, cores_per_device=changes.pop("cores_per_device", 1))
    return replace(
        made,
        case=made.case._replace(**case),
        conditions=where,
        hardware=changes.pop("hardware", "Example CPU"),
        repeat=repeat,
    )


def trained(
    throughputs: Sequence[float],
    seconds: float = 0.001,
    sizes: Sequence[int] = SIZES,
    **changes: Any,
) -> list[Run]:
    """Return a training whose gradients take ``seconds`` alone, and more with each repeat."""
    return [
        replace(
            repeat,
            gradient_all_reduce=GradientAllReduce(
                (seconds * (1 + 0.001 * repeat.repeat), 9.0, 0.0), len(sizes), tuple(sizes)
            ),
        )
        for repeat in repeats(*throughputs, **{**PLACE, **changes})
    ]


def table(*runs: Run) -> pd.DataFrame:
    return table_of("communication", runs)


# ---- interpolation ------------------------------------------------------------------------------


def test_messages_follow_each_other_and_none_may_be_larger_than_was_measured() -> None:
    times = collectives.times_of(all_reduces())
    assert collectives.expected(times, SIZES) == pytest.approx(EXPECTED * 1e-3)
    assert collectives.expected(times, [1000] * 50) == pytest.approx(50 * 101e-6)
    assert collectives.expected(times, [8, 3001]) is None
    assert collectives.expected(times, []) is None
    assert collectives.expected([], [8]) is None


# ---- the table ----------------------------------------------------------------------------------


def test_expected_and_measured_time_stand_next_to_each_other() -> None:
    """64 samples per step take 640 ms at 100 samples/s."""
    actual = only(table(*trained([100.0], 0.0005), all_reduces()))
    assert actual["step_time_ms"] == pytest.approx(640)
    assert (actual["gradient_messages"], actual["gradient_bytes"]) == (3, 2012)
    assert actual["expected_all_reduce_ms"] == pytest.approx(EXPECTED)
    assert actual["all_reduce_alone_ms"] == pytest.approx(0.5005)
    assert actual["reason"] == ""
    for name in ("expected_all_reduce_ms", "all_reduce_alone_ms"):
        assert pd.isna(actual[f"{name}_ci_low"]), "one repeat has no interval"


def test_intervals_enclose_the_figures_where_repeats_give_them() -> None:
    speeds = [100.0 + 0.1 * number for number in range(8)]
    measured = [all_reduces(1 + 0.02 * number, repeat=number) for number in range(1, 9)]
    actual = only(table(*trained(speeds), *measured))
    for name in ("expected_all_reduce_ms", "all_reduce_alone_ms"):
        low, high = actual[f"{name}_ci_low"], actual[f"{name}_ci_high"]
        assert low < actual[name] < high, name
    assert actual["flags"] == "noisy", "of the collective, whose interval is more than 5 % wide"


@pytest.mark.parametrize(
    "other",
    [
        {"framework": "jax"},
        {"framework_version": "2.7.0"},
        {"devices_per_node": 4},
        {"nodes": 2},
        {"cores_per_device": 2},
        {"hardware": "Another CPU"},
        {"operation": "all_gather"},
        {"dtype": "bfloat16"},
    ],
)
def test_a_collective_of_other_ranks_says_nothing(other: dict[str, Any]) -> None:
    elsewhere = all_reduces(**other)
    made = table(*trained([100.0]), elsewhere)
    if other.get("operation"):
        assert not len(made), "no all-reduce at all"
        return
    actual = only(made)
    assert pd.isna(actual["expected_all_reduce_ms"])
    assert actual["all_reduce_alone_ms"] > 0, "what was measured is no secret"
    assert actual["reason"] == (
        "no all-reduce of pytorch measured there: kind collective, nodes 1, devices_per_node 2, "
        "dtype float32, largest_bytes 2000 or more"
    )


def test_gradients_in_another_dtype_have_its_all_reduces() -> None:
    made = table(
        *trained([100.0], precision="bf16"), all_reduces(2.0, dtype="bfloat16"), all_reduces()
    )
    assert only(made)["expected_all_reduce_ms"] == pytest.approx(2 * EXPECTED)
    mixed = table(
        *trained([100.0], precision="amp"), all_reduces(2.0, dtype="bfloat16"), all_reduces()
    )
    assert only(mixed)["expected_all_reduce_ms"] == pytest.approx(EXPECTED), (
        "its parameters are float32"
    )


def test_a_message_beyond_the_largest_size_says_up_to_where_to_measure() -> None:
    actual = only(table(*trained([100.0], sizes=(8, 4000)), all_reduces()))
    assert pd.isna(actual["expected_all_reduce_ms"])
    assert actual["reason"] == (
        "all-reduces were measured up to 3000 bytes: dtype float32, largest_bytes 4000 or more"
    )


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        (repeats(100.0, **PLACE), "do not say in which messages"),
        (repeats(None, status="oom", reason="too big", **PLACE), "oom: too big"),
    ],
)
def test_without_messages_there_is_no_expectation(runs: list[Run], reason: str) -> None:
    assert reason in only(table(*runs, all_reduces()))["reason"]


@pytest.mark.parametrize(
    "changes", [{"devices_per_node": 1}, {"mode": "inference"}, {"parallelism": "fsdp"}]
)
def test_what_exchanges_no_gradients_has_no_row(changes: dict[str, Any]) -> None:
    assert not len(table(*trained([100.0], **changes), all_reduces()))


def test_without_all_reduces_there_is_no_table() -> None:
    assert not len(table(*trained([100.0]), run(**PLACE)))
