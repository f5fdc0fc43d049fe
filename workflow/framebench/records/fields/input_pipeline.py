"""Input pipeline of steps whose batches come from the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...statistics.descriptive import median


class InputPipeline(NamedTuple):
    """Input pipeline of a run.

    ``compute``: samples/s of all ranks without input; ``loader``: samples/s of the loaders alone,
    None without a loader. ``wait``, ``copy``: seconds of a median step of the slowest rank until
    its batch is there, and until the copying call returns. ``skipped``: bad images that were left
    out, None if no images were read.
    """

    compute: float
    loader: float | None
    wait: float
    copy: float
    skipped: int | None


def input_pipeline_of(
    record: Mapping[str, Any], rank: Mapping[str, Any], samples: int
) -> InputPipeline | None:
    """Return the input pipeline of a run; None if steps got no batches from the host.

    ``rank``: the slowest; ``samples``: of a step of all ranks. Raises ValueError for missing times.
    """
    pipeline = rank.get("input_pipeline")
    if pipeline is None:
        return None
    steps = pipeline["compute_step_seconds"]
    if not steps or not pipeline["wait_seconds"] or not pipeline["copy_seconds"]:
        raise ValueError("holds steps that were given batches, and not how long that took")
    data_set = rank.get("data_set")
    return InputPipeline(
        compute=samples * len(steps) / sum(steps),
        loader=_loader(record["ranks"]),
        wait=median(pipeline["wait_seconds"]),
        copy=median(pipeline["copy_seconds"]),
        skipped=int(data_set["skipped"]) if data_set else None,
    )


def _loader(ranks: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the sum of the loaders' samples/s over all ranks; None if a rank has none."""
    rates = []
    for rank in ranks:
        pipeline = rank.get("input_pipeline", {})
        if not pipeline.get("loader_seconds"):
            return None
        rates.append(pipeline["loader_samples"] / pipeline["loader_seconds"])
    return float(sum(rates))
