"""A case: one point of the matrix. Harness and driver share the class."""

from __future__ import annotations

import hashlib
import json
from typing import (
    Any,
    Collection,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
)

from core import axes
from core.axes import MODES, Axis, Parameters
from core.parallelism import DATA, Layout, layout_of

#: Folder name of an absent framework or model.
NONE = "none"
#: Batch of a case whose largest batch is still to be found.
MAX = "max"
#: Ends of a batch that grows with the physical cores of a device, such as ``2 per core``, or with
#: the memory of a GPU, such as ``8 per GiB``.
PER_CORE, PER_GIB = " per core", " per GiB"
#: Joins a batch for CPUs and one for GPUs: ``2 or 8 per GiB``.
OR_ON_GPUS = " or "
#: Benchmark that reads images by itself.
INPUT = "input"


class _Values(NamedTuple):
    framework: str
    model: str
    mode: str
    nodes: int
    devices_per_node: int
    batch_per_device: Any
    precision: str
    compiler: str
    sequence_length: Optional[int] = None
    variant: str = ""
    parameters: Parameters = ()
    accumulation: int = 1
    parallelism: str = DATA
    node: str = ""
    input: str = axes.SYNTHETIC
    framework_version: str = ""
    source: str = ""


class Case(_Values):
    """Values of all axes of a case, as attributes.

    ``mode``: the benchmark; an axis that the benchmark lacks is "" or 0. ``batch_per_device``:
    samples that a device computes in a micro-step, MAX, N PER_CORE or PER_GIB, or TOTAL/PARTS for a
    total batch without a whole number for each part; ``sequence_length``: tokens, None for a model
    without sequences; ``variant``: variant of an A/B test, "" for none; ``parameters``: parameters
    of the benchmark, sorted by name, () for steps; ``accumulation``: micro-steps of a step;
    ``node``: node to measure, "" for any; ``framework_version`` and ``source`` (who measured) are
    "" in a plan."""

    __slots__ = ()

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Case:
        """Return the case with these values by name, as in JSON."""
        fields = {name: values[name] for name in cls._fields}
        return cls(**{**fields, "parameters": tuple(map(tuple, fields["parameters"]))})

    @classmethod
    def from_record(cls, values: Mapping[str, Any], mode: str, **others: Any) -> Case:
        """Return ``case`` of a record, where an absent value is the default of its axis.

        ``others``: fields that are not axes. Raises ValueError for an unregistered axis.
        """
        allowed = ", ".join(axis.name for axis in axes.BUILT_IN)
        for name in (name for name in values if name not in cls._fields):
            raise ValueError(f"case: found the axis {name!r}; allowed: {allowed}")
        given = {axis: values.get(axis.name) for axis in axes.BUILT_IN}
        known = {a.name: _absent(a) if value is None else value for a, value in given.items()}
        return cls(mode=mode, **known, **others)

    @property
    def is_step(self) -> bool:
        """Return whether steps of a model are timed."""
        return self.mode in MODES

    @property
    def reads_images(self) -> bool:
        """Return whether the case reads a data folder."""
        return self.input in axes.READING or self.mode == INPUT

    @property
    def input_source(self) -> str:
        """Input of the case, as in a record."""
        reads_by_itself = self.mode == INPUT and self.input == axes.SYNTHETIC
        return axes.DATA if reads_by_itself else self.input

    @property
    def topology(self) -> str:
        """Return nodes x devices per node, such as 2n8g; "" if unknown."""
        return f"{self.nodes}n{self.devices_per_node}g" if self.devices else ""

    @property
    def devices(self) -> int:
        """Devices of all nodes together."""
        return self.nodes * self.devices_per_node

    @property
    def layout(self) -> Layout:
        """Groups of devices that share a step."""
        return layout_of(self.parallelism, self.devices)

    @property
    def replicas(self) -> int:
        """Number of devices, or of device groups, with their own samples."""
        return self.layout.replicas

    @property
    def parts(self) -> int:
        """Micro-steps of all replicas together in a step."""
        return self.replicas * self.accumulation

    @property
    def parts_text(self) -> str:
        """Parts as text, such as ``2 devices x 4 micro-steps``."""
        steps = f" x {self.accumulation} micro-steps" if self.accumulation > 1 else ""
        return f"{self.replicas} devices{steps}"

    def parts_of(self, replica: int) -> range:
        """Return the indices of a replica's micro-steps among the micro-steps of all replicas."""
        return range(replica * self.accumulation, (replica + 1) * self.accumulation)

    @property
    def inference(self) -> Case:
        """Return the case with inference of the same model, without axes of training."""
        trained = [axis for axis in self.differing() if axes.INFERENCE not in axis.applies_to]
        usual = {axis.name: axis.default for axis in trained}
        return self._replace(mode=axes.INFERENCE, **usual)

    @property
    def setting(self) -> Case:
        """Return the case without the fields in which competing frameworks differ."""
        return self._replace(framework="", compiler="", framework_version="", source="", variant="")

    @property
    def divides(self) -> bool:
        """Return whether every device has a whole number of samples."""
        return "/" not in str(self.batch_per_device)

    @property
    def batch_total(self) -> Optional[int]:
        """Samples of a step on all devices together; None while the batch is still to be found."""
        if self.batch_per_device == MAX:
            return None
        total, _, parts = str(self.batch_per_device).partition("/")
        return int(total) if parts else int(total) * self.parts

    @property
    def samples_of_replica(self) -> int:
        """Samples that a replica computes between one update and the next."""
        return int(self.batch_per_device) * self.accumulation

    @property
    def samples_per_step(self) -> int:
        """Samples that all devices together compute between one update and the next."""
        return self.samples_of_replica * self.replicas

    def differing(self) -> Iterator[Axis]:
        """Yield the optional axes whose value is not the default."""
        for axis in axes.OPTIONAL:
            if getattr(self, axis.name) != axis.default:
                yield axis

    def verified_apart(self) -> Dict[str, Any]:
        """Return axes that need verifications of their own, with the values verified there."""
        found = ((axis.name, axis.verified_at) for axis in self.differing())
        return {name: value for name, value in found if value is not None}

    def labels(self) -> Dict[str, str]:
        """Return the short labels that are not empty, by axis or parameter."""
        found = {"compiler": self.compiler, "batch": ""}
        if self.batch_per_device:
            found["batch"] = axes.BY_NAME["batch_per_device"].label(self.batch_per_device)
        found.update((axis.name, axis.label(getattr(self, axis.name))) for axis in self.differing())
        if self.sequence_length:
            found["sequence_length"] = axes.BY_NAME["sequence_length"].label(self.sequence_length)
        found.update((name, f"{name}={value}") for name, value in self.parameters)
        found.update(node=self.node, variant=self.variant)
        return {name: label for name, label in found.items() if label}

    def value_texts(self) -> Dict[str, str]:
        """Return texts of all values but framework and model, by axis or parameter.

        The text is "" for a value that is absent or the default.
        """
        total = self.batch_total if self.parts > 1 else None
        shown = {axis.name for axis in self.differing()}
        optional = {
            axis.name: axis.text(getattr(self, axis.name)) if axis.name in shown else ""
            for axis in axes.OPTIONAL
        }
        length, batch = axes.BY_NAME["sequence_length"], axes.BY_NAME["batch_per_device"]
        return {
            "mode": self.mode,
            "precision": self.precision,
            "compiler": self.compiler,
            "topology": self.topology,
            "batch": batch.text(self.batch_per_device) if self.batch_per_device else "",
            **{name: f"{name} {value}" for name, value in self.parameters},
            **optional,
            "total": f"total {total}" if total else "",
            "sequence_length": length.text(self.sequence_length) if self.sequence_length else "",
            "variant": f"variant {self.variant}" if self.variant else "",
            "node": f"node {self.node}" if self.node else "",
        }

    def __str__(self) -> str:
        words = self.value_texts()
        if words["total"]:
            words["total"] = f"({words['total']})"
        return " ".join(filter(None, [self.framework, self.model, *words.values()]))

    def folder(self, request: Mapping[str, Any]) -> str:
        """Return the folder of the case's records, relative to ``results/runs``.

        The name ends in a digest of everything that decides the measurement: steps, accelerator,
        cores, seed, environment. A changed setting thus has another folder and never reuses a
        result.
        """
        # Default values are not part of the digest.
        deciding: List[Any] = list(self[: self._fields.index("variant")])
        deciding += [self.variant] if self.variant or self.parameters else []
        deciding += [self.parameters] if self.parameters else []
        values = {axis.name: getattr(self, axis.name) for axis in self.differing()}
        selected = {name: values.pop(name) for name in ("input",) if name in values}
        deciding += [{name: value} for name, value in values.items() if name in self._fields]
        deciding += [{"node": self.node}] if self.node else []
        deciding += [{name: value} for name, value in selected.items()]
        text = json.dumps([deciding, request], sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        labels = self.labels()
        if not self.is_step:
            parts = [self.mode, self.precision, self.compiler, self.topology, self.variant]
            folders = f"{self.framework or NONE}/{self.model or NONE}"
            return f"{folders}/{'-'.join(filter(None, parts))}-{digest}"
        parts = [self.mode, self.precision, self.compiler, self.topology]
        parts += [labels.pop("parallelism", ""), labels["batch"]]
        optional = [axis.name for axis in axes.OPTIONAL if axis.name != "accumulation"]
        parts += [labels.get(name, "") for name in ("accumulation", "sequence_length", *optional)]
        name = "-".join(filter(None, [*parts, self.variant, digest]))
        return f"{self.framework}/{self.model}/{name}"

    def arguments(self) -> Dict[str, Any]:
        """Return the values that differ from their default, by axis."""
        values = ((axis, getattr(self, axis.name)) for axis in axes.BUILT_IN)
        return {axis.name: v for axis, v in values if v not in (None, "", _absent(axis))}

    def to_record(self, known: Collection[str]) -> Dict[str, Any]:
        """Return ``case`` of a record; null for axes that are not in ``known``."""
        names = (axis.name for axis in axes.BUILT_IN)
        return {name: getattr(self, name) if name in known else None for name in names}


def _absent(axis: Axis) -> Any:
    """Return the value of ``axis`` in a case that lacks the axis."""
    if axis.default is not None or axis.name == "sequence_length":
        return axis.default
    return "" if axis.form == axes.TEXT else 0
