"""Copies from the host to the device, back, and within the device, from pinned or pageable memory.

Sizes start at 64 KiB and grow by factors of four. A GB is 10^9 bytes that arrived; the read of
a copy within the device does not count. Received data are compared with sent data."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from operator import itemgetter
from typing import Any, Dict, Iterator, List, Mapping, Optional

from harness import nvml
from harness.capabilities import Transfers
from harness.kind import Context, Metric, Parameter, Workload, at_least, one_of, point
from harness.measuring import blocks
from harness.measuring.operands import check_result
from harness.measuring.sweep import Block, GridPoint, Sweep, per_second
from harness.operations import DIRECTIONS, HOST_TO_DEVICE

SMALLEST, TIMES = 2**16, 4
_ITEM = 4  # bytes of a float32


class Transfer(Sweep):
    """Copies of host and device: GB/s each way, at the largest size and at each; link to the host.

    Several devices copy at the same time: the slowest counts, and each has a figure of its own."""

    needs = Transfers
    unsupported_on_host = "the device is the host"
    axes = ("framework", "nodes", "devices_per_node")
    parameters = (
        Parameter("pinned", one_of("yes", "no"), "", "whether the host's memory is locked", "yes"),
        Parameter("largest_bytes", at_least(SMALLEST), "bytes", "the largest size", 2**28),
        *blocks.parameters("a size", 0.02),
    )  # fmt: skip
    summaries = tuple(
        (direction, f"{direction}_bandwidth", itemgetter(-1)) for direction in DIRECTIONS
    )

    def grid(self, workload: Workload) -> List[GridPoint]:
        largest, sizes = workload.parameters["largest_bytes"], [SMALLEST]
        while TIMES * sizes[-1] <= largest:
            sizes.append(TIMES * sizes[-1])
        sizes = sorted({*sizes, largest // _ITEM * _ITEM})  # only whole float32 elements
        return [GridPoint({"bytes": size}, size) for size in sizes]

    def figures(self, workload: Workload, subject: int) -> Dict[str, Metric]:
        rate = per_second(1e-9 * subject)
        return {
            f"{way}_bandwidth": Metric("GB/s", "higher", "min", rate, at={"direction": way})
            for way in DIRECTIONS
        }

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        metrics = super().metrics(workload)
        for way in DIRECTIONS:
            for number in range(workload.case.devices):
                of_device = metrics[way]._replace(combine=itemgetter(number))
                metrics.update([point(way, {"device": f"gpu-{number}"}, of_device)])
        for name, unit in nvml.LINK_UNITS.items():
            metrics[name] = Metric(unit, "higher", "min", partial(_link_value, name))
        return metrics

    def measure(self, context: Context) -> None:
        self._gpus: Optional[nvml.Gpus] = None
        with contextlib.suppress(nvml.Unwatchable):
            self._gpus = nvml.find(os.environ, context.rank_context.local_rank + 1)
        super().measure(context)

    def run(self, context: Context, subject: int) -> Iterator[Block]:
        import numpy as np

        adapter, fields = context.adapter, context.fields
        array = blocks.random_of(context).standard_normal(subject // _ITEM).astype(np.float32)
        is_pinned = context.workload.parameters["pinned"] == "yes"
        for direction in DIRECTIONS:
            context.report.enter(f"{direction} of {subject} bytes")
            copied = adapter.transfer(direction, array, is_pinned)
            taken = blocks.measure(context, copied)
            # an idle link may be slower, so its state is read after copies
            if direction == HOST_TO_DEVICE:
                gpus = self._gpus
                fields["link"] = gpus.read_link() if gpus else dict.fromkeys(nvml.LINK_UNITS)
            check_result(copied.result(), array, f"{direction} of {subject} bytes")
            yield {"part": {"direction": direction}, **taken}


def _link_value(name: str, rank: Mapping[str, Any]) -> Any:
    return rank["link"][name]
