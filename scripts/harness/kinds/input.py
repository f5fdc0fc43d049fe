"""The data loader alone: images or token sequences per second, without computation.

1. All images of an epoch are loaded once and checked: each came once, in the requested order, with
   its label, as a whole batch. A checksum is kept.
2. Epochs are timed in which files are read and decoded, and nothing else.
3. Epochs are timed in which images are also cropped, resized, flipped, normalized and batched.

Files lie in the page cache by then, so this is the cost of the processor, not of a disk
(:mod:`harness.kinds.storage`). Tokens: :mod:`harness.measuring.token_loader`.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Optional

from core.inputs import READING, SYNTHETIC_HOST

from harness.adapter import Unsupported
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least, one_of
from harness.loader import Loading, Loads
from harness.measuring import libraries, token_loader
from harness.measuring.checks import check_cores
from harness.measuring.steps import peak_host_memory
from harness.samples import folder, masking, order, supply

#: Images whose decoded values are kept, to compare decoders.
_COMPARED = 2


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
        if workload.case.sequence_length is not None:
            return token_loader.metrics(workload.case.sequence_length)
        return {
            # read, decoded, cropped, resized, flipped, normalised, in batches
            "throughput": Metric("images/s", "higher", "sum", _rate("loaded")),
            # read and decoded only
            "decode_throughput": Metric("images/s", "higher", "sum", _rate("decoded_alone")),
        }

    def measure(self, context: Context) -> None:
        workload, fields = context.workload, context.fields
        size = folder.size_of(workload.model_config["inputs"])
        if size is None and not masking.form_of(workload.model_config["inputs"]):
            raise Unsupported(
                f"{workload.case.model} has neither images nor tokens that are read from files"
            )
        if workload.case.input == SYNTHETIC_HOST:
            raise Unsupported(f"a loader reads files: {', '.join(READING)}")
        fields["cores"] = check_cores(context.cores)
        if size is None:
            token_loader.measure(context)
        else:
            self._measure_images(context, size)
        context.report.enter("end")
        fields["libraries"] = libraries.in_use()

    def _measure_images(self, context: Context, size: int) -> None:
        adapter, workload, fields = context.adapter, context.workload, context.fields
        parameters, rank_context = workload.parameters, context.rank_context
        root, split, bad = workload.data, parameters["split"], workload.bad_images
        assert root is not None, "the declaration has seen to it"
        workers = parameters["workers"]
        images = context.phase("scan", lambda: folder.scan(root, split, bad))
        devices, most = workload.case.devices, parameters["images"]

        def places_of(number: int) -> Any:
            return order.epoch(
                images, split, number, rank_context.seed, rank_context.rank, devices, most
            )

        def loads_of(number: int) -> Loads:
            case = workload.case
            size_and_workers = (case.batch_per_device, size, workers)
            return order.loads(
                images, places_of(number), split, number, rank_context.seed, *size_and_workers
            )

        if bad == folder.SKIP:
            images = context.phase(
                "trial",
                lambda: supply.without_broken(adapter, images, range(len(images.paths)), workers),
            )
        fields["data_set"] = {**folder.report(images), "identity": folder.identity(root)}
        fields["loader"] = {"workers": workers, **adapter.loader_settings()}
        epochs = [loads_of(number) for number in range(parameters["epochs"])]
        fields["loader_output"] = context.phase(
            "check", lambda: supply.checked(adapter, epochs[0], root)
        )
        fields["decoded"] = supply.decoded(adapter, root, sorted(images.paths)[:_COMPARED])
        context.report.enter("decoding window")
        context.barrier()
        alone = [epoch._replace(decodes_only=True) for epoch in epochs]
        fields["decoded_alone"] = _timed(adapter, alone, root)
        context.report.enter("timed window")
        context.barrier()
        start = time.perf_counter()
        fields["loaded"] = _timed(adapter, epochs, root)
        fields["window_start"], fields["window_seconds"] = start, fields["loaded"]["seconds"]
        fields["peak_host_memory_bytes"] = peak_host_memory()


def _timed(adapter: Loading, epochs: List[Loads], root: str) -> Dict[str, Any]:
    """Return ``{"images": loaded in all, "seconds": in all, "epoch_seconds": of each}``, including
    the start of the workers."""
    count, each = 0, []
    for loads in epochs:
        start = time.perf_counter()
        for batch in supply.batches(adapter, loads, root):
            count += len(batch.numbers)
        each.append(time.perf_counter() - start)
    return {"images": count, "seconds": sum(each), "epoch_seconds": each}


def _rate(name: str) -> Any:
    def of_rank(rank: Mapping[str, Any]) -> Optional[float]:
        return float(rank[name]["images"] / rank[name]["seconds"])

    return of_rank
