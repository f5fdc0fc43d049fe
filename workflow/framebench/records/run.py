"""What travels from the records to the tables: runs, and what could not be read as one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..cases.conditions import THROUGHPUT, Case, Conditions, Key, Parameters
from ..config.statuses import STATUSES as STATUSES
from ..files.problem import Problem as Problem
from ..files.problem import cause as cause
from ..machine.identities import UNKNOWN, Identity
from .fields.communication import AllReduce, GradientExchange
from .fields.curves import LearningCurve
from .fields.fed import Fed
from .fields.phases import RunPhases
from .fields.step_parts import Split

NO_REASON = "no reason given"


class RecordsError(ValueError):
    """The given path cannot be read as a set of records at all; the message says why."""


class MetricValue(NamedTuple):
    """A figure of a run. ``value`` is None unless the run is ok; ``better``: higher or lower;
    ``point``: where it was measured, of a quantity that has several points in one run."""

    name: str
    value: float | None
    unit: str
    better: str = "higher"
    point: Parameters = ()


#: Where the steps were timed that were complete before the next began: in a window of their own, or
#: in that of the throughput, because the framework's steps return when they are complete.
WAITED_APART, WAITED_IN_WINDOW = "window of their own", "window of the throughput"
#: Steps ran ahead, and the run ended before any was waited for.
WAITED_NOWHERE = "nowhere"


class Flag(NamedTuple):
    """Why the figure of a run should not be believed: the mark for it, and what was found."""

    mark: str
    why: str


@dataclass(frozen=True, slots=True)
class Run:
    """One repeat of one case, measured by us or imported.

    `metrics` has at least one, the kind's principal one first: of steps throughput (global
    samples/s). `step_seconds` are the steps of the window of the slowest rank, whose number is
    `slowest_rank`, () and None for imported runs; `waited_seconds` are its steps each of which was
    complete before the next began, `waited_in` says where; `attempt` is 0 for the first.
    `origin` is the record's path below the set's root, or "runs.csv:LINE". `hardware` (a label)
    and `environment` (a digest of Python, packages and what is set for NCCL) are "" where they are
    not known. `doubts` are of an ok run; () for imported ones, which do not tell. Peaks of memory
    are in bytes, of the rank that took most; `joules` is the energy of the window and
    `joules_per_sample` that over
    all its samples, and `energy_sources` says of what; `split` is that of the slowest rank, None
    where none was asked for; `all_reduce` and `exchange`, that of the gradients alone, are
    None where none was timed.
    `phases`: where its wall time went, None where its record does not tell. `last_cache`: bytes of
    all caches of the last level, where the run asked for it. `fed`: of steps that
    the host gave their batches, None of others.
    `machine`: what tells the machine from others, of several nodes the first.
    `product_dtypes`: of the matrix products that were observed, the commonest first.
    `variables` are those that an A/B test gives the ranks and those that change a framework's
    arithmetic, by name; `computation` is a digest of the code that computed it, "" where that is
    not known; `commit` that of the code that measured, likewise.
    `curve`: what a training learned by epoch, also of one that did not converge.
    `largest`: its batch is the largest that fits, found by a search. `started`: when, in seconds of
    the epoch, None where that is not known. `time_limit`: the seconds after which it was to end.
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
    record: Path | None
    doubts: tuple[Flag, ...] = ()
    peak_device_memory: int | None = None
    peak_reserved_memory: int | None = None
    allocated_memory: int | None = None
    peak_host_memory: int | None = None
    joules: float | None = None
    joules_per_sample: float | None = None
    energy_sources: str = ""
    split: Split | None = None
    all_reduce: AllReduce | None = None
    exchange: GradientExchange | None = None
    phases: RunPhases | None = None
    largest: bool = False
    started: float | None = None
    machine: Identity = UNKNOWN
    slowest_rank: int | None = None
    product_dtypes: tuple[str, ...] = ()
    waited_seconds: tuple[float, ...] = ()
    waited_in: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    computation: str = ""
    commit: str = ""
    last_cache: int | None = None
    fed: Fed | None = None
    curve: LearningCurve | None = None
    time_limit: float | None = None

    @property
    def keys(self) -> tuple[Key, ...]:
        """Of each metric, what the repeats of its case have in common."""
        case, conditions = self.case, self.conditions
        return tuple(Key(case, conditions, one.unit, one.name, one.point) for one in self.metrics)

    @property
    def key(self) -> Key:
        """That of the principal metric."""
        first = self.metrics[0]
        return Key(self.case, self.conditions, first.unit, first.name, first.point)

    @property
    def figure(self) -> float | None:
        """The value of the principal metric."""
        return self.metrics[0].value

    @property
    def unit(self) -> str:
        """Of the principal metric."""
        return self.metrics[0].unit

    def value(self, metric: str, point: Parameters = ()) -> float | None:
        """That of a metric of this name and point; None where there is none."""
        named = (one for one in self.metrics if one.name == metric and one.point == point)
        return next((one.value for one in named), None)

    @property
    def throughput(self) -> float | None:
        """In ``unit``; None unless the run is ok, and of other kinds than steps."""
        return self.value(THROUGHPUT)


def order(run: Run) -> tuple[Any, ...]:
    """Sorts the runs of a case together, and cases so that a scaling series reads upwards."""
    return (run.key.order, run.repeat, run.attempt, run.origin)
