"""Time of a step's matmuls and convolutions alone, one after the other.

The times come from benchmarks in the same framework and precision, on as many devices of the same
machine at once:

1. Benchmarks of a model's operations (``convolution``, ``attention``): each point has
   ``forward_time`` (us), ``forward_rate`` (TFLOP/s), the same for the backward pass, and ``times``,
   how often the model has the operation. Time x rate gives its FLOPs.
2. The benchmark ``matmul``: ``rate`` (TFLOP/s) of each shape in :mod:`.matmuls`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.matmuls import MatmulShape

from ...machine.identities import same
from ...records.run import Run
from ..results import CaseResult, CaseResults
from . import matmuls

#: Benchmark that replaces the two matmuls per head of :mod:`.matmuls`.
ATTENTION = "attention"
_RATE, _TIMES = "rate", "times"
_PASSES = ("forward", "backward")


@dataclass
class Alone:
    """Measured operations of one step on a device.

    ``operations``: FLOPs measured; ``seconds``: their time; ``results``: cases behind them;
    ``missing``: unmeasured matmul shapes, those with most work first."""

    operations: float = 0.0
    seconds: float = 0.0
    results: list[CaseResult] = field(default_factory=list)
    missing: list[MatmulShape] = field(default_factory=list)

    def add(self, operations: float, seconds: float, result: CaseResult) -> None:
        self.operations += operations
        self.seconds += seconds
        self.results.append(result)


class Operations:
    """Lookup of benchmarks of operations by the machine and software of a run."""

    def __init__(self, others: CaseResults) -> None:
        """Index cases of benchmarks other than steps."""
        self._shapes: dict[tuple[Any, ...], list[CaseResult]] = defaultdict(list)
        self._models: dict[tuple[Any, ...], dict[str, list[CaseResult]]] = defaultdict(dict)
        for result in others.values():
            if not result.throughput or result.case.nodes != 1:
                continue
            run, mode = result.ok[0], result.case.mode
            if (mode, result.key.metric) == (matmuls.KIND, _RATE):
                self._shapes[_place(run)].append(result)
            elif _TIMES in dict(result.key.point) and result.case.model:
                self._models[_of_model(run)].setdefault(mode, []).append(result)

    def __bool__(self) -> bool:
        return bool(self._shapes or self._models)

    def of_step(self, run: Run, model_config: Mapping[str, Any]) -> Alone:
        """Return the measured operations of a run's step; none if devices share a model."""
        result = Alone()
        if run.case.replicas < run.case.devices or not run.hardware:
            return result
        trains = run.case.mode == "train"
        passes = _PASSES if trains else _PASSES[:1]
        kinds = set()
        for kind, points in self._of_the_model(run):
            kinds.add(kind)
            _add_points(result, points, passes)
        step = matmuls.of_step(
            model_config, run.case.batch_per_device, run.case.sequence_length, trains,
            attention=ATTENTION not in kinds,
        )  # fmt: skip
        rates = self._rates(run)
        for shape, count in step.items():
            if shape in rates:
                work = 2.0 * shape.multiply_adds * count
                result.add(work, work / (1e12 * (rates[shape].throughput or 0.0)), rates[shape])
            else:
                result.missing.append(shape)
        result.missing.sort(key=lambda shape: (-step[shape] * shape.multiply_adds, shape))
        result.operations *= len(run.case.parts_of(0))
        result.seconds *= len(run.case.parts_of(0))
        return result

    def _of_the_model(self, run: Run) -> Iterator[tuple[str, list[CaseResult]]]:
        for kind, points in self._models.get(_of_model(run), {}).items():
            length = points[0].case.sequence_length
            is_same = length in (None, run.case.sequence_length)
            if is_same and same(points[0].ok[0].machine, run.machine):
                yield kind, points

    def _rates(self, run: Run) -> Mapping[MatmulShape, CaseResult]:
        """Return the fastest case of each matmul shape, over all transpositions."""
        fastest: dict[MatmulShape, CaseResult] = {}
        for result in self._shapes.get(_place(run), ()):
            point = dict(result.key.point)
            if {*point} == {*MatmulShape._fields} and same(result.ok[0].machine, run.machine):
                shape = MatmulShape(**point)
                before = fastest.get(shape, result)
                fastest[shape] = max(before, result, key=lambda each: each.throughput or 0.0)
        return fastest


def _add_points(alone: Alone, points: list[CaseResult], passes: tuple[str, ...]) -> None:
    """Add each operation of a model's passes, as often as the model has it."""
    figures = {(point.key.metric, point.key.point): point for point in points}
    for (metric, point), taken in figures.items():
        name, _, what = metric.rpartition("_")
        rate = figures.get((f"{name}_rate", point))
        if what == "time" and name in passes and rate:
            seconds = 1e-6 * (taken.throughput or 0.0) * float(dict(point)[_TIMES])
            alone.add(1e12 * (rate.throughput or 0.0) * seconds, seconds, taken)


def _place(run: Run) -> tuple[Any, ...]:
    case, where = run.case, run.conditions
    return (
        case.framework, case.framework_version, case.precision, case.devices_per_node,
        run.hardware, where.accelerator, where.cores_per_device,
    )  # fmt: skip


def _of_model(run: Run) -> tuple[Any, ...]:
    return (*_place(run), run.case.model, run.case.batch_per_device)
