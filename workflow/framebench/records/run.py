"""Data types between records and tables: runs, metrics and flags; and pairs of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from core.case import Case

from ..cases.conditions import THROUGHPUT, Conditions, Key, Parameters
from ..machine.identities import UNKNOWN, Identity
from .fields import GradientAllReduce, InputPipeline, LearningCurve, SampleWork

NO_REASON = "no reason given"
#: Orders in which the repeats of two sides were measured.
INTERLEAVED, ONE_AFTER_THE_OTHER = "interleaved", "one after the other"


class RecordsError(ValueError):
    """Error for a path that cannot be read as a record set; the message has the reason."""


class MetricValue(NamedTuple):
    """A figure of a run. ``value`` is None unless the run is ok; ``better``: higher or lower;
    ``point``: parameters of the figure, for a quantity that has several points in a run."""

    name: str
    value: float | None
    unit: str
    better: str = "higher"
    point: Parameters = ()


#: Regions in which completed steps were timed: a separate one, or the throughput's, if the
#: framework's steps return when they are complete.
WAITED_APART, WAITED_IN_WINDOW = "window of their own", "window of the throughput"
#: Steps ran ahead, and no single step was waited for.
WAITED_NOWHERE = "nowhere"


class Flag(NamedTuple):
    """A reason not to trust the figure of a run. ``name``: the flag; ``why``: the observation."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Run:
    """One repeat of one case, measured by us or imported.

    Attributes
    ----------
    attempt : 0 for the first attempt.
    metrics : at least one; the principal metric of the kind comes first. For steps it is the
        throughput in global samples/s.
    step_seconds : seconds of each step in the timed region, on the slowest rank; () if imported.
    waited_apart : seconds of steps that each completed before the next began, on that rank, if they
        were timed in a separate window; () if ``step_seconds`` are such steps.
    waited_in : where ``waited_seconds`` were timed.
    origin : path of the record below the root of its set, or "runs.csv:LINE".
    hardware : label of the machine; "" if unknown.
    environment : digest of Python, packages and NCCL settings; "" if unknown.
    machine : identity of the machine; with several nodes, of the first.
    flags : reasons not to trust the figure; () for imported runs.
    peak_device_memory, peak_host_memory : bytes, on the rank with the most.
    joules, joules_per_sample : energy of the timed region, and per sample.
    energy_sources : what that energy includes.
    gradient_all_reduce : timing of all-reduces of the gradients; None if not timed.
    input_pipeline : input pipeline of steps whose batches came from the host; None for other runs.
    matmul_dtypes : dtypes of the observed matmuls, most frequent first.
    variables : environment variables of an A/B test, and those that change arithmetic, by name.
    computation : digest of the code that computed the figure; "" if unknown.
    commit : commit of the user's own model, else of the code that measured; "" if unknown.
    curve : learning curve of a training, also without convergence.
    started : seconds since the epoch; None if unknown.
    crowded_out : whether the run lacked memory because other processes held it.
    sample_work : work of a sample of a user's own model; None for other models.
    command : command line of the run, quoted for a shell; "" if imported.
    """

    case: Case
    conditions: Conditions
    repeat: int
    attempt: int
    status: str
    reason: str
    metrics: tuple[MetricValue, ...]
    step_seconds: tuple[float, ...]
    wall_seconds: float | None
    origin: str
    hardware: str
    environment: str
    record: Path | None = None
    flags: tuple[Flag, ...] = ()
    peak_device_memory: int | None = None
    peak_host_memory: int | None = None
    joules: float | None = None
    joules_per_sample: float | None = None
    energy_sources: str = ""
    gradient_all_reduce: GradientAllReduce | None = None
    started: float | None = None
    machine: Identity = UNKNOWN
    matmul_dtypes: tuple[str, ...] = ()
    waited_apart: tuple[float, ...] = ()
    waited_in: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    computation: str = ""
    commit: str = ""
    input_pipeline: InputPipeline | None = None
    curve: LearningCurve | None = None
    crowded_out: bool = False
    sample_work: SampleWork | None = None
    command: str = ""

    @property
    def waited_seconds(self) -> tuple[float, ...]:
        """Seconds of steps that each completed before the next began, on the slowest rank."""
        elsewhere = self.waited_in in (WAITED_APART, WAITED_NOWHERE)
        return self.waited_apart if self.waited_apart or elsewhere else self.step_seconds

    @property
    def keys(self) -> tuple[Key, ...]:
        """Keys of all metrics, shared by the repeats of the case."""
        case, conditions = self.case, self.conditions
        return tuple(
            Key(case, conditions, metric.unit, metric.name, metric.point) for metric in self.metrics
        )

    @property
    def key(self) -> Key:
        """Key of the principal metric."""
        first = self.metrics[0]
        return Key(self.case, self.conditions, first.unit, first.name, first.point)

    @property
    def figure(self) -> float | None:
        """Value of the principal metric."""
        return self.metrics[0].value

    @property
    def unit(self) -> str:
        """Unit of the principal metric."""
        return self.metrics[0].unit

    def value(self, metric: str, point: Parameters = ()) -> float | None:
        """Return the value of a metric by name and point; None without one."""
        named = (one for one in self.metrics if one.name == metric and one.point == point)
        return next((metric.value for metric in named), None)

    @property
    def throughput(self) -> float | None:
        """Throughput in ``unit``; None unless the run is ok and times steps."""
        return self.value(THROUGHPUT)


def order(run: Run) -> tuple[Any, ...]:
    """Return a sort key: by case, with scaling series in ascending order, then repeat and
    attempt."""
    return (run.key.order, run.repeat, run.attempt, run.origin)


def paired_ratios(
    below: Sequence[Run], above: Sequence[Run], metric: str, point: Parameters = ()
) -> list[float]:
    """Return the ratio above / below of the metric for every pair, in the order of the repeats.

    A pair is two runs of the same repeat, if the sides were interleaved, as a suite with variants
    measures them: both have seen the same state of the machine. Runs without a value are in no
    pair, and neither are repeats that one side has twice."""
    if measuring_order(below, above) != INTERLEAVED:
        return []
    one, other = _by_repeat(below, metric, point), _by_repeat(above, metric, point)
    return [other[repeat] / one[repeat] for repeat in sorted(one.keys() & other.keys())]


def measuring_order(base: Sequence[Run], candidate: Sequence[Run]) -> str:
    """Return ONE_AFTER_THE_OTHER if all runs of one side started before the other's, else
    INTERLEAVED. Return "" if a start time is unknown."""
    one, other = (
        [run.started for run in side if run.started is not None] for side in (base, candidate)
    )
    if not one or not other or len(one) + len(other) < len(base) + len(candidate):
        return ""
    return ONE_AFTER_THE_OTHER if max(one) < min(other) or max(other) < min(one) else INTERLEAVED


def _by_repeat(runs: Sequence[Run], metric: str, point: Parameters) -> dict[int, float]:
    counted = Counter(run.repeat for run in runs)
    return {
        run.repeat: value
        for run in runs
        if (value := run.value(metric, point)) is not None and counted[run.repeat] == 1
    }
