"""Measured roofs of a device: peak FLOPS and memory bandwidth.

Devices share memory, power and clock. A case is therefore compared with what as many devices
reached together, with as many cores each, on the same machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...cases.conditions import OURS
from ...machine.identities import same
from ...records.device_peaks import KIND as PEAK
from ...records.device_peaks import PeakFlopsLookup
from ...records.run import Run
from ..results import CaseResult, CaseResults


class RoofMetric(NamedTuple):
    """Benchmark and metric of a roof.

    ``parameter``: parameter that must be at least ``least``; "" for none."""

    kind: str
    metric: str
    parameter: str = ""
    least: int = 0


#: Peak FLOPS, each of the slowest device.
COMPUTE = (RoofMetric(PEAK, "peak"), RoofMetric("matmul", "highest_rate"))
#: Bandwidth of all devices together, by accelerator: STREAM's triad on a CPU; on a GPU the sum of
#: two arrays of at least 2^26 elements, which no cache holds.
MEMORY = {
    "cpu": RoofMetric("memory", "triad"),
    "cuda": RoofMetric("elementwise", "add", "elements", 2**26),
}


@dataclass(frozen=True)
class Roof:
    """A roof of one device.

    ``value``: TFLOP/s or GB/s. ``by``: origin of the figure. ``last_cache``: bytes of the machine's
    last-level cache, if recorded."""

    value: float
    by: str
    result: CaseResult | None = None
    last_cache: int | None = None


class RoofLookup:
    """Lookup of roofs by the device of a run."""

    def __init__(self, peaks: PeakFlopsLookup, others: CaseResults) -> None:
        """Index peaks, and cases of benchmarks other than steps."""
        self._peaks = peaks
        self._compute: dict[tuple[Any, ...], list[CaseResult]] = defaultdict(list)
        self._memory: dict[tuple[Any, ...], list[CaseResult]] = defaultdict(list)
        for result in others.values():
            if result.throughput is None or result.case.nodes != 1:
                continue
            run = result.ok[0]
            if any(_is_of(result, source) for source in COMPUTE):
                self._compute[(*_place(run), run.case.precision)].append(result)
            memory = MEMORY.get(run.conditions.accelerator)
            if memory and _is_of(result, memory):
                self._memory[_place(run)].append(result)

    @property
    def has_memory(self) -> bool:
        """Return whether any memory bandwidth was measured."""
        return bool(self._memory)

    def compute(self, run: Run) -> Roof | None:
        """Return the highest TFLOP/s in the run's precision, of any framework."""
        return max(self._reached(run), key=lambda roof: roof.value, default=None)

    def memory(self, run: Run) -> Roof | None:
        """Return the highest GB/s of one device."""
        here = _on_the_same_machine(run, self._memory.get(_place(run), ()))
        roofs = (
            Roof(
                (result.throughput or 0.0) / result.case.devices,
                _origin(result),
                result,
                max((r.last_cache for r in result.ok if r.last_cache), default=None),
            )
            for result in here
        )
        return max(roofs, key=lambda roof: roof.value, default=None)

    def _reached(self, run: Run) -> Iterator[Roof]:
        measured = self._peaks.for_run(run)
        if measured and measured.tflops and measured.devices == run.case.devices_per_node:
            yield Roof(measured.tflops, measured.by)
        key = (*_place(run), run.case.precision)
        for result in _on_the_same_machine(run, self._compute.get(key, ())):
            yield Roof(result.throughput or 0.0, _origin(result), result)


def _place(run: Run) -> tuple[Any, ...]:
    where = run.conditions
    return run.hardware, where.accelerator, where.cores_per_device, run.case.devices_per_node


def _is_of(result: CaseResult, source: RoofMetric) -> bool:
    value = dict(result.case.parameters).get(source.parameter, 0)
    is_large = not source.parameter or (isinstance(value, int) and value >= source.least)
    return (result.case.mode, result.key.metric) == source[:2] and is_large


def _on_the_same_machine(run: Run, results: Iterable[CaseResult]) -> Iterator[CaseResult]:
    if run.case.source == OURS and run.hardware:
        yield from (
            case_result for case_result in results if same(case_result.ok[0].machine, run.machine)
        )


def _origin(result: CaseResult) -> str:
    """Return a roof's origin: framework and version, benchmark, metric and number of devices."""
    case = result.case
    whose = f"{case.framework} {case.framework_version} " if case.framework else ""
    together = f" on {case.devices} devices at once" if case.devices > 1 else ""
    return f"{whose}{case.mode} {result.key.metric}{together}"
