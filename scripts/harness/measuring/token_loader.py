"""Time the token loader alone: sequences per second, without training steps.

1. All sequences of an epoch are loaded once and compared with the files: each came once, in the
   requested order, with its tokens. A checksum is kept.
2. Epochs are timed in which sequences are read, cut or masked, and batched.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Optional

from harness.kind import Context, Metric
from harness.loader import TokenLoads
from harness.measuring.steps import peak_host_memory
from harness.measuring.token_pipeline import TokenSource
from harness.samples import folder


def metrics(length: int) -> Dict[str, Metric]:
    """Return the metrics of sequences of ``length`` tokens."""

    def tokens(rank: Mapping[str, Any]) -> Optional[float]:
        return length * _rate(rank)

    return {
        "throughput": Metric("sequences/s", "higher", "sum", _rate),
        "token_throughput": Metric("tokens/s", "higher", "sum", tokens),
    }


def _rate(rank: Mapping[str, Any]) -> float:
    return float(rank["loaded"]["sequences"] / rank["loaded"]["seconds"])


def measure(context: Context) -> None:
    """Time the loader. Stores ``data_set``, ``loader``, ``loader_output`` and ``loaded``."""
    workload, fields, parameters = context.workload, context.fields, context.workload.parameters
    root = workload.data
    assert root is not None, "the declaration guarantees it"
    split, workers, most = parameters["split"], parameters["workers"], parameters["images"]
    source = TokenSource(context, split, workers, most)
    fields["data_set"]["identity"] = folder.identity(root)
    epochs = [source.epoch(number) for number in range(parameters["epochs"])]
    fields["loader_output"] = context.phase("check", lambda: source.output(epochs[0]))
    context.report.enter("timed window")
    context.barrier()
    start = time.perf_counter()
    fields["loaded"] = _timed(source, epochs)
    fields["window_start"], fields["window_seconds"] = start, fields["loaded"]["seconds"]
    fields["peak_host_memory_bytes"] = peak_host_memory()


def _timed(source: TokenSource, epochs: List[TokenLoads]) -> Dict[str, Any]:
    """Return ``{"sequences": loaded in all, "seconds": in all, "epoch_seconds": of each}``,
    including the start of the workers."""
    count, each = 0, []
    for number, loads in enumerate(epochs):
        start = time.perf_counter()
        for batch in source.batches(loads, number):
            count += len(batch["token_ids"])
        each.append(time.perf_counter() - start)
    return {"sequences": count, "seconds": sum(each), "epoch_seconds": each}
