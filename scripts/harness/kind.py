"""Declaration of a benchmark: a subclass of :class:`Kind`, in a module whose name is the
benchmark's.

A benchmark declares its parameters, the capability that it needs of a framework, its timed work,
its metrics, and the checks that the requested work was done. Starting ranks, devices, telemetry,
limits, errors and the record are the harness's. Modules lie in ``scripts/harness/kinds``, or in the
folder that the command line names (``--kinds``); ``tests/kinds`` has a small one.

Standard library only; Python 3.7 to 3.13. The launcher imports a kind's module, too, in order to
read what it declares: what a rank alone needs is imported inside :meth:`Kind.measure`.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from core import axes

from harness.adapter import Adapter, Case, RankContext
from harness.report import Report

#: Axes of a benchmark of training or inference steps. An axis that a benchmark lacks is null in its
#: records.
AXES = tuple(axis.name for axis in axes.BUILT_IN)
#: Axes of a benchmark that has a framework and a model, but no training settings and no ``input``.
USUAL_AXES = tuple(axis.name for axis in axes.BUILT_IN if axis.default is None)
#: Axes of a benchmark that has training settings, but makes its batches itself.
TRAINING_AXES = tuple(axis for axis in AXES if axis != "input")
#: Axes of every benchmark: how many processes measure, and where.
TOPOLOGY = ("nodes", "devices_per_node")

REQUIRED: Any = object()
#: Type of a parameter whose value is one of a list of words.
one_of = axes.choice


class Parameter(NamedTuple):
    """An input of a kind. ``type`` converts the command line's text to a JSON value, or raises
    ValueError. ``default``: REQUIRED where there is none."""

    name: str
    type: Callable[[str], Any]
    unit: str
    help: str
    default: Any = REQUIRED


class ParameterError(ValueError):
    """Unknown, missing or invalid parameter: its ``name``, and what was ``found`` and is
    ``allowed``."""

    def __init__(self, name: str, found: str, allowed: str) -> None:
        super().__init__(f"--parameter {name}: found {found}; allowed: {allowed}")
        self.name, self.found, self.allowed = name, found, allowed


def at_least(fewest: int) -> Callable[[str], int]:
    """Return the type of a whole number that is not below ``fewest``."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"must be a whole number of {fewest} or more") from None
        if value < fewest:
            raise ValueError(f"must be {fewest} or more")
        return value

    return read


def number(text: str, fits: Callable[[float], bool], allowed: str) -> float:
    """Convert to a number for which ``fits`` is true. Raises ValueError that names what is
    ``allowed``."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not fits(value):
        raise ValueError(f"must be {allowed}")
    return value


def above_zero(text: str) -> float:
    """Convert to a number above zero. Raises ValueError."""
    return number(text, lambda value: 0 < value < math.inf, "a number above 0")


class Metric(NamedTuple):
    """A figure of a run. ``rank_value`` computes a rank's contribution from its raw values, or None
    where it has none; ``combine`` makes the run's figure from the contributions of all ranks: one
    of sum, max, min, mean, first, or a function of their list. For a search, attempts take the role
    of ranks.

    A run that measures one ``quantity`` at several points, sizes of an array for example, has a
    metric for each: ``at`` says where. :func:`point` makes one. An ``optional`` metric may be
    missing from a good run, where the machine does not report it."""

    unit: str
    better: str  # higher, lower
    combine: Union[str, Callable[[Sequence[Any]], float]]
    rank_value: Callable[[Mapping[str, Any]], Any]
    quantity: str = ""
    at: Mapping[str, Any] = {}
    optional: bool = False


def point(quantity: str, at: Mapping[str, Any], metric: Metric) -> Tuple[str, Metric]:
    """Return name and metric of a ``quantity`` at a point of a run. ``at``: coordinates by name."""
    where = ", ".join(f"{name} {value}" for name, value in at.items())
    return f"{quantity} at {where}", metric._replace(quantity=quantity, at=dict(at))


_COMBINATIONS: Dict[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "mean": lambda values: sum(values) / len(values),
    "first": lambda values: values[0],
}


def combined(metric: Metric, ranks: Sequence[Mapping[str, Any]]) -> Optional[float]:
    """Return the metric of a run, from the raw values of its ranks; None where a rank has no value.
    ``first`` reads the first rank alone. Raises what ``rank_value`` raises."""
    asked = ranks[:1] if metric.combine == "first" else ranks
    values = [value for value in map(metric.rank_value, asked) if value is not None]
    if len(values) < len(asked) or not values:
        return None
    combine = metric.combine
    return float((_COMBINATIONS[combine] if isinstance(combine, str) else combine)(values))


@dataclass(frozen=True)
class Workload:
    """A run, from the command line to its record: the case to measure, and how.

    ``model_config``: config of the model, {} without one; ``parameters``: values of the kind's
    parameters; ``warmup_limit``: None where the warm-up does not wait until the step time has
    settled; ``timed_seconds``: length of the timed region, None for ``timed_steps`` steps and
    no more; ``data``: the folder of images, for a case that reads them. ``package``: the
    framework's package, "" without one; ``unsupported``: why declarations exclude the case, None if
    they do not; ``options``: all options of the command line by name."""

    case: Case
    model_config: Dict[str, Any]
    parameters: Dict[str, Any]
    warmup_steps: int
    warmup_limit: Optional[int]
    timed_steps: int
    timed_seconds: Optional[int] = None
    data: Optional[str] = None
    package: str = ""
    unsupported: Optional[str] = None
    options: Namespace = field(default_factory=Namespace)

    def to_json(self) -> Dict[str, Any]:
        return {**vars(self), "case": self.case._asdict(), "options": vars(self.options)}

    @classmethod
    def from_json(cls, values: Dict[str, Any]) -> Workload:
        case, options = Case.from_json(values["case"]), Namespace(**values["options"])
        return cls(**{**values, "case": case, "options": options})


class TargetMissed(Exception):
    """Training that ended without reaching its target: the run is ``not_converged``. The message
    says how far it came."""


@dataclass(frozen=True)
class Context:
    """Context of a benchmark in one rank.

    ``adapter``: the started framework with the capabilities that the kind needs; None for a kind
    that needs none. Where ranks are independent, its own ``rank_context`` has this rank alone.
    ``cores``: cores that the rank is pinned to, or empty. ``barrier``: returns when all ranks of
    this node have called it; it does nothing where ranks communicate, because an all-reduce aligns
    them."""

    workload: Workload
    rank_context: RankContext
    adapter: Any
    cores: List[int]
    report: Report
    barrier: Callable[[], None] = lambda: None

    @property
    def fields(self) -> Dict[str, Any]:
        """The rank's entry in the record. Raw values are put here as soon as they are measured, so
        that an error loses none."""
        return self.report.fields

    def phase(self, name: str, work: Callable[[], Any], key: str = "") -> Any:
        """Enter a phase of the run: store its duration as ``KEY_seconds``, and report its ``name``
        in case it never ends."""
        self.report.enter(name)
        start = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - start
        self.fields.setdefault("phases", {})[f"{key or name}_seconds"] = seconds
        return result


def _values(parameter: Parameter, texts: Optional[Sequence[str]]) -> List[Any]:
    if texts is None and parameter.default is REQUIRED:
        raise ParameterError(parameter.name, "nothing", parameter.help)
    values = [parameter.default] if texts is None else []
    for text in texts or ():
        try:
            values.append(parameter.type(text))
        except ValueError as error:
            raise ParameterError(parameter.name, repr(text), str(error)) from None
    return values


class Kind(ABC):
    """A benchmark, named like its module."""

    #: Parameters of the benchmark besides the case.
    parameters: Sequence[Parameter] = ()
    #: The capability, a class of :mod:`harness.adapter`, that a framework must have; None: the kind
    #: runs without any framework and without a model.
    needs: Optional[type] = Adapter
    #: Reason why nothing can be measured where devices are cores of the host; "" where it can.
    unsupported_on_host = ""
    #: True if the benchmark warms up and times the numbers of steps on the command line.
    counts_steps = False
    #: True if the benchmark always reads a folder of data, :attr:`Workload.data`.
    reads_images = False
    #: True if each rank runs on its own: its framework joins no process group, and
    #: :attr:`Context.barrier` lets the ranks of a node begin together.
    independent_ranks = False
    #: True if the framework builds its model for training.
    trains = False
    #: True if each repeat has its own seed, the command line's plus one per earlier repeat, because
    #: repeats must show the spread over seeds.
    seed_of_each_repeat = False

    @property
    def name(self) -> str:
        """Name of the kind, which is its module's name."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def axes(self) -> Sequence[str]:
        """Names of the axes that a case of this kind has."""
        return TOPOLOGY if self.needs is None else USUAL_AXES

    def read_parameters(self, texts: Mapping[str, Sequence[str]]) -> Dict[str, List[Any]]:
        """Return the value of each parameter from its text, or its default.
        Raises :class:`ParameterError`."""
        declared = {parameter.name: parameter for parameter in self.parameters}
        for name in texts:
            if name not in declared:
                raise ParameterError(name, "an unknown key", ", ".join(declared) or "none")
        return {name: _values(parameter, texts.get(name)) for name, parameter in declared.items()}

    def mode(self, parameters: Mapping[str, Any]) -> str:
        """Mode in which a framework builds its model: train or inference."""
        return "train" if self.trains else "inference"

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        """Metrics of the kind by name."""
        return {}

    @abstractmethod
    def measure(self, context: Context) -> None:
        """Prepare and measure, in every rank, and leave the raw values in ``context.fields``.

        ``window_start`` (``time.perf_counter()``) and ``window_seconds`` of the timed region are
        the bounds for telemetry. Raises :class:`harness.adapter.Mismatch` where something else ran
        than requested, :class:`harness.adapter.Unsupported` where it is impossible."""

    def afterwards(self, context: Context, seconds: float) -> None:  # noqa: B027
        """Measure extras once the rank's figures are complete. ``seconds``: duration of the run so
        far."""

    def check(self, workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:  # noqa: B027
        """Compare the results that the ranks of a successful run left. Raises
        :class:`harness.adapter.Mismatch`, or :class:`TargetMissed`."""
