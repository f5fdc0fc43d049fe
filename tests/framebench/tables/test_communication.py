"""Expected time of a gradient all-reduce, by hand-computed numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from framebench.records.fields import GradientAllReduce
from framebench.records.run import MetricValue, Run

from ..made_up_runs import measured as of_kind
from ..made_up_runs import repeats, table_of
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
    return table_of("weak_scaling", runs)


def test_expected_and_measured_time_stand_next_to_each_other() -> None:
    """64 samples per step take 640 ms at 100 samples/s."""
    actual = only(table(*trained([100.0], 0.0005), all_reduces()))
    assert actual["gradient_messages"] == 3
    assert actual["expected_communication"] == pytest.approx(EXPECTED / 640)
    assert actual["communication_alone"] == pytest.approx(0.5005 / 640)


def test_the_expected_time_is_the_median_over_repeats_with_their_flags() -> None:
    speeds = [100.0 + 0.1 * number for number in range(9)]
    measured = [all_reduces(1 + 0.02 * number, repeat=number + 5) for number in range(-4, 5)]
    actual = only(table(*trained(speeds), *measured))
    assert actual["expected_communication"] == pytest.approx(EXPECTED / (64 / 0.1004))
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
    actual = only(table(*trained([100.0]), all_reduces(**other)))
    assert pd.isna(actual["expected_communication"])
    assert actual["communication_alone"] > 0, "what was measured is no secret"


def test_gradients_in_another_dtype_have_its_all_reduces() -> None:
    both = (all_reduces(2.0, dtype="bfloat16"), all_reduces())
    halves = only(table(*trained([100.0], precision="bf16"), *both))
    assert halves["expected_communication"] == pytest.approx(2 * EXPECTED / 640)
    mixed = only(table(*trained([100.0], precision="amp"), *both))
    assert mixed["expected_communication"] == pytest.approx(EXPECTED / 640), (
        "its parameters are float32"
    )


@pytest.mark.parametrize(
    "runs",
    [
        trained([100.0], sizes=(8, 4000)),  # larger than was measured
        repeats(100.0, **PLACE),
        repeats(None, status="oom", reason="too big", **PLACE),
        trained([100.0], mode="inference"),
    ],
)
def test_what_no_collective_measured_has_no_expectation(runs: list[Run]) -> None:
    assert pd.isna(only(table(*runs, all_reduces()))["expected_communication"])
