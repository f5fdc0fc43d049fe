"""The data loader alone: images or token sequences per second, without computation.

1. All samples of an epoch are loaded once and checked: each must come once, in the requested order,
with its label or tokens, in whole batches. 2. Epochs are timed in which images are read, decoded,
cropped, resized, flipped, normalized and batched, or in which sequences are read, cut or masked,
and batched.

Files lie in the page cache by then, so this measures the processor, not the disk (see
:mod:`harness.kinds.storage`).
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Mapping

from core.axes import READING, SYNTHETIC_HOST

from harness.adapter import Unsupported
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least, one_of
from harness.loader import Loading
from harness.measuring.checks import check_cores
from harness.measuring.input_pipeline import file_source
from harness.measuring.steps import peak_host_memory
from harness.samples import folder


class Input(Kind):
    """Data loader alone: images or sequences per second of the framework's own loader."""

    needs = Loading
    independent_ranks = True
    reads_images = True
    axes = (
        "framework", "model", "nodes", "devices_per_node", "batch_per_device", "sequence_length",
        "input",
    )  # fmt: skip
    parameters = (
        Parameter(
            "split", one_of(folder.TRAIN, folder.VALIDATION), "",
            "train: random crops; val: the centre", folder.TRAIN,
        ),
        Parameter(
            "workers", at_least(0), "",
            "processes or threads that load; 0: the measuring process itself", 1,
        ),
        Parameter(
            "images", at_least(0), "", "most images or sequences of an epoch; 0: all", 5000
        ),
        Parameter("epochs", at_least(1), "epochs", "that are timed", 1),
    )  # fmt: skip

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        length = workload.case.sequence_length
        if length is None:
            return {"throughput": Metric("images/s", "higher", "sum", _rate("images"))}
        return {
            "throughput": Metric("sequences/s", "higher", "sum", _rate("sequences")),
            "token_throughput": Metric("tokens/s", "higher", "sum", _rate("sequences", length)),
        }

    def measure(self, context: Context) -> None:
        workload, fields, parameters = context.workload, context.fields, context.workload.parameters
        if workload.case.input == SYNTHETIC_HOST:
            raise Unsupported(f"a loader reads files: {', '.join(READING)}")
        fields["cores"] = check_cores(context.cores)
        source = file_source(
            context, parameters["split"], parameters["workers"], parameters["images"]
        )
        epochs = [source.epoch(number) for number in range(parameters["epochs"])]
        fields["loader_output"] = context.phase("check", lambda: source.output(epochs[0]))
        context.report.enter("timed window")
        context.barrier()
        fields["window_start"], count, each = time.perf_counter(), 0, []
        for number, request in enumerate(epochs):  # includes the start of the workers
            start = time.perf_counter()
            for batch in source.batches(request, number):
                count += len(batch[source.noted])
            each.append(time.perf_counter() - start)
        seconds = fields["window_seconds"] = sum(each)
        fields["loaded"] = {source.unit: count, "seconds": seconds, "epoch_seconds": each}
        fields["peak_host_memory_bytes"] = peak_host_memory()
        context.report.enter("end")


def _rate(unit: str, times: int = 1) -> Callable[[Mapping[str, Any]], float]:
    return lambda rank: float(times * rank["loaded"][unit] / rank["loaded"]["seconds"])
