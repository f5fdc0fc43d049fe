"""Fields of a record about steps: their operations, the source of their batches, and the
stand-alone time of all-reduces.

All-reduces of the gradients are timed after a run in messages of the sizes that the run sent,
others before it in two sizes. Neither is a bound: in a step the all-reduce overlaps with other work
and competes with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...statistics.descriptive import median


class SampleWork(NamedTuple):
    """Work of one sample.

    ``multiply_adds``: multiply-adds of the forward pass; ``tokens``: tokens of its sequence; None
    if unknown. ``parameters``: trainable ones of the model; ``read_parameters``: those that a
    forward pass reads at least."""

    multiply_adds: float | None
    tokens: int | None
    parameters: int
    read_parameters: int


def sample_work_of(ranks: Sequence[Mapping[str, Any]]) -> SampleWork | None:
    """Return the work of a sample; None for models of the project and in older records."""
    for rank in ranks[:1]:
        if work := rank.get("sample_work"):
            parameters = int(rank["trainable_parameters"])
            read = int(work["read_parameters"])
            return SampleWork(work["multiply_adds"], work["tokens"], parameters, read)
    return None


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

    ``rank``: the slowest; ``samples``: samples of a step of all ranks. Raises ValueError for
    missing times.
    """
    pipeline = rank.get("input_pipeline")
    if pipeline is None:
        return None
    steps = pipeline["compute_step_seconds"]
    if not steps or not pipeline["wait_seconds"] or not pipeline["copy_seconds"]:
        raise ValueError("has steps with batches from the host, but lacks their times")
    data_set = rank.get("data_set")
    return InputPipeline(
        compute=samples * len(steps) / sum(steps),
        loader=_loader(record["ranks"]),
        wait=median(pipeline["wait_seconds"]),
        copy=median(pipeline["copy_seconds"]),
        skipped=int(data_set.get("skipped", 0)) if data_set else None,
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


class GradientAllReduce(NamedTuple):
    """Timed all-reduces of the gradients.

    ``seconds``: seconds of each round of all ``messages``, on the slowest rank; ``sizes``: bytes of
    each message, () if unknown.
    """

    seconds: tuple[float, ...]
    messages: int
    sizes: tuple[int, ...] = ()


def gradient_all_reduce_of(ranks: Sequence[Mapping[str, Any]]) -> GradientAllReduce | None:
    """Return the timed gradient all-reduce of a record's ranks; None unless all ranks have one."""
    found = [rank.get("gradient_all_reduce") for rank in ranks]
    if not found or not all(entry and entry["seconds"] for entry in found):
        return None
    rounds = zip(*(entry["seconds"] for entry in found if entry), strict=False)
    sizes = tuple(map(int, ranks[0]["gradient_all_reduce"]["bytes"]))
    return GradientAllReduce(tuple(map(max, rounds)), len(sizes), sizes)
