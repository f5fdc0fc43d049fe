"""The data loader alone: images or token sequences per second, without computation.

1. All samples of an epoch are loaded once and checked: each came once, in the requested order, with
   its label or tokens, as a whole batch. A checksum is kept.
2. Epochs are timed in which images are read and decoded, and nothing else.
3. Epochs are timed in which images are also cropped, resized, flipped, normalized and batched, or
   sequences read, cut or masked, and batched.

Files lie in the page cache by then, so this is the cost of the processor, not of a disk
(:mod:`harness.kinds.storage`).
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping

from core.inputs import READING, SYNTHETIC_HOST

from harness.adapter import Unsupported
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least, one_of
from harness.loader import Loading
from harness.measuring.checks import check_cores
from harness.measuring.file_sources import FileSource, ImageSource, file_source
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
            "workers", at_least(0), "", "processes or threads that load; 0: the one that asks", 1
        ),
        Parameter(
            "images", at_least(0), "", "or sequences that an epoch has at most; 0: all", 5000
        ),
        Parameter("epochs", at_least(1), "epochs", "that are timed", 1),
    )  # fmt: skip

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        length = workload.case.sequence_length
        if length is not None:
            return {
                "throughput": Metric("sequences/s", "higher", "sum", _rate("loaded", "sequences")),
                "token_throughput": Metric(
                    "tokens/s", "higher", "sum", _rate("loaded", "sequences", length)
                ),
            }
        return {
            # read, decoded, cropped, resized, flipped, normalised, in batches
            "throughput": Metric("images/s", "higher", "sum", _rate("loaded", "images")),
            # read and decoded only
            "decode_throughput": Metric(
                "images/s", "higher", "sum", _rate("decoded_alone", "images")
            ),
        }

    def measure(self, context: Context) -> None:
        workload, fields, parameters = context.workload, context.fields, context.workload.parameters
        if workload.case.input == SYNTHETIC_HOST:
            raise Unsupported(f"a loader reads files: {', '.join(READING)}")
        fields["cores"] = check_cores(context.cores)
        source = file_source(
            context, parameters["split"], parameters["workers"], parameters["images"]
        )
        fields["data_set"]["identity"] = folder.identity(source.root)
        epochs = [source.epoch(number) for number in range(parameters["epochs"])]
        fields["loader_output"] = context.phase("check", lambda: source.output(epochs[0]))
        if isinstance(source, ImageSource):
            context.report.enter("decoding window")
            context.barrier()
            alone = [epoch._replace(decodes_only=True) for epoch in epochs]
            fields["decoded_alone"] = _timed(source, alone)
        context.report.enter("timed window")
        context.barrier()
        start = time.perf_counter()
        fields["loaded"] = _timed(source, epochs)
        fields["window_start"], fields["window_seconds"] = start, fields["loaded"]["seconds"]
        fields["peak_host_memory_bytes"] = peak_host_memory()
        context.report.enter("end")


def _timed(source: FileSource, epochs: List[Any]) -> Dict[str, Any]:
    """Return ``{"images" or "sequences": loaded in all, "seconds": in all, "epoch_seconds": of
    each}``, including the start of the workers."""
    count, each = 0, []
    for number, request in enumerate(epochs):
        start = time.perf_counter()
        for batch in source.batches(request, number):
            count += len(batch[source.noted])
        each.append(time.perf_counter() - start)
    return {source.unit: count, "seconds": sum(each), "epoch_seconds": each}


def _rate(name: str, unit: str, times: int = 1) -> Callable[[Mapping[str, Any]], float]:
    return lambda rank: float(times * rank[name][unit] / rank[name]["seconds"])
