"""Fields of a record that are more than one value: learning curve, work of a sample, input
pipeline, all-reduces, and what its nodes measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from ..config.measurements import CONVERGE
from ..statistics.descriptive import median

#: Value of the parameter ``target`` if a run has none.
NO_TARGET = "none"
#: Name of the loss, which every task has besides its scores.
LOSS = "loss"
#: If other processes hold at least the first fraction of the memory that a run may hold, and the
#: run at most the second fraction, the others caused the lack of memory.
_OTHERS, _OWN = 0.25, 0.75


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Learning curve of a training, converged or not; None stands for values that are not numbers.

    ``score``: name of the task's principal score; ``scores``: its values by epoch; ``losses``:
    losses of training; ``seconds``: seconds of all steps including input, until the end of each
    epoch; ``target``: None without one; ``samples``: samples of the held-out set; ``seed``: seed of
    weights and order; ``others``: other scores after the last epoch, by name; ``resumed_after``:
    epochs trained by an earlier, killed process; ``before``: score before training.
    """

    task: str
    score: str
    target: float | None
    scores: tuple[float | None, ...]
    losses: tuple[float | None, ...]
    seconds: tuple[float, ...]
    samples: int
    seed: int
    others: tuple[tuple[str, float | None], ...] = ()
    resumed_after: int = 0
    before: float | None = None

    @property
    def last(self) -> float | None:
        """Score after the last epoch."""
        return self.scores[-1] if self.scores else None


def curve_of(record: Mapping[str, Any]) -> LearningCurve | None:
    """Return the learning curve of a record's first rank, whose running statistics are scored; None
    without one. Raises ValueError for a curve without a score."""
    ranks = record["ranks"]
    if record["kind"] != CONVERGE or not ranks or not ranks[0].get("curve"):
        return None
    epochs, task = ranks[0]["curve"], ranks[0].get("task", {})
    target = record["parameters"].get("target", NO_TARGET)
    score = next((name for name in epochs[0]["held_out"] if name != LOSS), "")
    if not score or not (target == NO_TARGET or isinstance(target, (int, float))):
        raise ValueError("has a curve without a score, or a target that is not a number")
    return LearningCurve(
        task=str(task.get("name", "")),
        score=score,
        target=None if target == NO_TARGET else float(target),
        scores=tuple(epoch["held_out"].get(score) for epoch in epochs),
        losses=tuple(epoch["loss"] for epoch in epochs),
        seconds=tuple(accumulate(float(epoch["train_seconds"]) for epoch in epochs)),
        samples=int(task.get("held_out", 0)),
        seed=int(record["settings"]["seed"]),
        others=tuple((n, v) for n, v in epochs[-1]["held_out"].items() if n not in (LOSS, score)),
        resumed_after=int(ranks[0].get("resumed_after") or 0),
        before=ranks[0].get("untrained", {}).get(score),
    )


class SampleWork(NamedTuple):
    """Work of one sample.

    ``multiply_adds``: multiply-adds of the forward pass; ``tokens``: tokens of its sequence; None
    if unknown. ``parameters``: number of trainable parameters of the model;
    ``read_parameters``: number of parameters that a forward pass reads at least."""

    multiply_adds: float | None
    tokens: int | None
    parameters: int
    read_parameters: int


def sample_work_of(ranks: Sequence[Mapping[str, Any]]) -> SampleWork | None:
    """Return the work of a sample; None for models of the project and in older records."""
    work = ranks[0].get("sample_work") if ranks else None
    if not work:
        return None
    parameters, read = int(ranks[0]["trainable_parameters"]), int(work["read_parameters"])
    return SampleWork(work["multiply_adds"], work["tokens"], parameters, read)


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
    pipelines = [rank.get("input_pipeline", {}) for rank in ranks]
    if not all(pipeline.get("loader_seconds") for pipeline in pipelines):
        return None
    return float(sum(each["loader_samples"] / each["loader_seconds"] for each in pipelines))


class GradientAllReduce(NamedTuple):
    """Timed all-reduces of the gradients, after a run, in messages of the sizes that it sent.

    Their time is no bound: in a step they overlap with other work and compete with it.
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


def parts(record: Mapping[str, Any], part: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and ``part`` (``watch`` or ``memory``) of each node that has it.
    The name is "" for a run on a single node."""
    for node in record.get("nodes") or [{**record, "node": ""}]:
        if node.get(part) is not None:
            yield node["node"], node[part]


def joules(record: Mapping[str, Any]) -> float | None:
    """Return the energy of the timed region: processors, memory and GPUs, as far as read.
    None unless every node has a reading."""
    known = [sum(read.values()) for read in _read(record) if read]
    return sum(known) if known and len(known) == record["case"]["nodes"] else None


def energy_sources(record: Mapping[str, Any]) -> str:
    """Return the kinds of energy sources on all nodes; "" without any."""
    sources = (name.partition("-")[0] for joules in _read(record) for name in joules)
    return ", ".join(dict.fromkeys(sources))


def _read(record: Mapping[str, Any]) -> Iterator[dict[str, float]]:
    """Yield each node's joules by source, as far as read."""
    for _, watch in parts(record, "watch"):
        joules = watch["energy_joules"].items()
        yield {name: float(value) for name, value in joules if value is not None}


def crowded_out(record: Mapping[str, Any]) -> bool:
    """Return whether others held much of a node's memory while the run held clearly less than its
    limit (without one, than the whole memory); False for older records, which lack this
    information."""
    for _, memory in parts(record, "memory"):
        most = memory["limit_bytes"] if "limit_bytes" in memory else memory["total_bytes"]
        if memory.get("others_bytes", 0) > _OTHERS * most and memory["peak_bytes"] < _OWN * most:
            return True
    return False
