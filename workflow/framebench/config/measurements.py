"""Measurements of a suite: axes of its matrix and of further blocks; and the benchmarks under
``measurements``, with their parameters.

A benchmark is declared by its module in the harness, or in the user's folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import harness.kinds
from core import axes, precisions
from core.axes import Axis
from core.case import MAX, OR_ON_GPUS, PER_CORE, PER_GIB
from harness.kind import Kind, ParameterError
from pydantic import BeforeValidator, ConfigDict, Field, create_model, model_validator

from .keys import (
    CompilerName,
    Count,
    Frameworks,
    KeyContext,
    Keys,
    ModelName,
    Models,
    Values,
    default,
    matching,
)
from .validation import NotAllowed, NotAmong, show

#: Benchmark that trains on several devices without all-reduce: the control of a scaling series.
INDEPENDENT = "independent"
#: Benchmarks of memory bandwidth: of the host, and of a device.
BANDWIDTHS = ("memory", "elementwise")
#: Benchmark of storage in a folder, which the configuration may name.
STORAGE = "storage"
#: Benchmark of convergence; some of its tasks read the configured data folder.
CONVERGE = "converge"
#: Benchmarks that a suite cannot request under ``measurements``.
OTHERWISE = {*axes.MODES, "verification", "largest_batch"}
#: Placeholder of the results folder in a parameter.
RESULTS = "{results}"
#: Axes of the batch: samples of one device, or of all devices together. A block has one of them.
BATCHES = ("batch_per_device", "batch_total")
#: Word for all GPUs of a node.
ALL = "all"
#: Values of each axis of a block.
Axes = dict[str, Any]

if TYPE_CHECKING:
    _Precision = str
    _Mode = str
else:
    _Precision = Literal[tuple(precisions.known())]
    _Mode = Literal[axes.MODES]


#: Batches that are not plain numbers. OR_ON_GPUS joins a batch for CPUs and a batch for GPUs.
_NUMBER = "[1-9][0-9]{0,3}"
_WORDS = f"{MAX}|{_NUMBER}{PER_CORE}|({_NUMBER}({PER_CORE})?{OR_ON_GPUS})?{_NUMBER}{PER_GIB}"
_Batch = (
    Count
    | Annotated[
        str,
        matching(
            _WORDS,
            f"a whole number of at least 1, 1 to 9999{PER_CORE} or{PER_GIB}, "
            f"2{OR_ON_GPUS}8{PER_GIB}, {MAX}",
        ),
    ]
)


def _not_given() -> Any:
    """Return an optional field of a block, for which null is not allowed."""
    return Field(default=None, validate_default=False)


def _read_as(axis: Axis) -> BeforeValidator:
    """Return a validator that parses a value of a registered axis."""

    def read(value: Any) -> Any:
        try:
            return axis.type(str(value))
        except ValueError as error:
            allowed = str(error).removeprefix("must be ").rpartition(", not ")[0] or str(error)
            raise NotAllowed(allowed) from None

    return BeforeValidator(read)


class _Axes(Keys):
    """Axes without a default, and rules for all axes."""

    framework: Frameworks = _not_given()
    model: Models = _not_given()
    mode: Values[_Mode] = _not_given()
    nodes: Values[Count] = _not_given()
    devices_per_node: Values[Count | Literal["all"]] = _not_given()
    batch_per_device: Values[_Batch] | dict[ModelName, Values[_Batch]] = _not_given()
    batch_total: Values[Count] | dict[ModelName, Values[Count]] = _not_given()
    precision: Values[_Precision] = _not_given()
    compiler: Values[CompilerName] = _not_given()
    sequence_length: Values[Count] = _not_given()

    @model_validator(mode="after")
    def _applying(self) -> Self:
        for axis in axes.OPTIONAL:
            values = getattr(self, axis.name)
            modes = self.mode if "mode" in self.model_fields_set else axis.applies_to
            others = {*axes.MODES} - {*axis.applies_to}
            if values not in (None, [axis.default]) and {*modes} <= others:
                allowed = f"{show([axis.default])}, or mode: {', '.join(axis.applies_to)}"
                raise NotAllowed(allowed, show(values), axis.name)
        return self

    @model_validator(mode="after")
    def _one_batch(self) -> Self:
        if {*BATCHES} <= self.model_fields_set:
            allowed = "one of them (the other in an include block of its own)"
            raise NotAllowed(allowed, " and ".join(BATCHES))
        return self

    @property
    def named_axes(self) -> Axes:
        """Values of the axes that the block names."""
        return {name: values for name, values in self if name in self.model_fields_set}


if TYPE_CHECKING:

    class AxesKeys(_Axes):
        """Axes of the matrix, of a block that is added to it, or of a pattern that is excluded."""

else:
    AxesKeys = create_model(
        "AxesKeys",
        __base__=_Axes,
        **{
            axis.name: (Values[Annotated[Any, _read_as(axis)]], _not_given())
            for axis in axes.OPTIONAL
        },
    )


class MatrixKeys(AxesKeys):
    """Axes of the matrix. Axes that it does not name have their defaults."""

    framework: Frameworks = default("all")
    model: Models = default("all")
    mode: Values[_Mode] = default([axes.TRAIN])
    nodes: Values[Count] = default([1])
    devices_per_node: Values[Count | Literal["all"]] = default([1])
    precision: Values[_Precision] = default([precisions.default()])
    compiler: Values[CompilerName] = default(["default"])
    sequence_length: Values[Count] = default([128])

    @property
    def every(self) -> Axes:
        """Values of all axes except the unused batch axis."""
        known = {axis.name: [axis.default] for axis in axes.OPTIONAL}
        return {**known, **{name: values for name, values in self if values is not None}}


class PatternKeys(AxesKeys):
    """Values of axes that select cases. ``mode`` may also be the name of a benchmark."""

    mode: Values[str] = _not_given()


class MeasurementKeys(PatternKeys):
    """Axes of a benchmark, and the parameters that it declares, each a value or a list."""

    model_config = ConfigDict(extra="allow")


# ---- benchmarks ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measurement:
    """A benchmark of a suite: values of its axes, and of its parameters as records have them."""

    kind: str
    axes: Mapping[str, list[Any]]
    counts_steps: bool
    parameters: Mapping[str, tuple[Any, ...]]


def measurement(kind: str, given: Axes, defaults: Axes, context: KeyContext) -> Measurement:
    """Return a benchmark as the harness declares it. ``given``: its axes and parameters as written;
    ``defaults``: values of axes that ``given`` lacks. Raises :class:`NotAllowed` for unknown or
    missing axes and parameters."""
    catalog, folders = context
    results = folders.get("results", Path("results"))
    chosen = {name: values for name, values in given.items() if name in AxesKeys.model_fields}
    texts = {
        name: _texts(name, value, results) for name, value in given.items() if name not in chosen
    }
    if kind == STORAGE and "storage" in folders:
        texts.setdefault("folder", [str(folders["storage"])])
    models = chosen.get("model", ())
    reads_files = any(catalog.models[model].get("reads_files") for model in models)
    if kind == CONVERGE and "data" in folders and reads_files:
        texts.setdefault("data", [str(folders["data"])])
    declared = _declaration(kind, folders.get("kinds"))
    try:
        parameters = declared.read_parameters(texts)
    except ParameterError as error:
        names = [parameter.name for parameter in declared.parameters]
        allowed = error.allowed if error.name in names else _listed(declared, names)
        raise NotAllowed(allowed, error.found, error.name) from None
    for axis in chosen:
        if axis not in declared.axes:
            found = f"an axis that {kind} does not have"
            raise NotAllowed(_listed(declared, parameters), found, axis)
    axes = {axis: {**defaults, **chosen}.get(axis, []) for axis in declared.axes}
    for axis, values in axes.items():
        if not values or not isinstance(values, list) or "max" in values:
            allowed = "a list of values, because the suite's axes do not set this one"
            raise NotAllowed(allowed, "nothing", axis)
    values_of = {name: tuple(dict.fromkeys(some)) for name, some in parameters.items()}
    return Measurement(kind, axes, declared.counts_steps, values_of)


def _listed(declared: Kind, parameters: Iterable[str]) -> str:
    return ", ".join([*declared.axes, *parameters])


def _declaration(kind: str, folder: Path | None) -> Kind:
    """Return the declaration of a benchmark. Raises NotAllowed if it cannot be imported."""
    where = str(folder) if folder else None
    names = [name for name in harness.kinds.names(where) if name not in OTHERWISE]
    if kind not in names:
        raise NotAmong(kind, names)
    try:
        declared = harness.kinds.load(kind, where)
        _listed(declared, [parameter.name for parameter in declared.parameters])
        return declared
    except (Exception, SystemExit) as error:
        found = " ".join(f"{kind} of {folder}: {type(error).__name__}: {error}".split())
        raise NotAllowed("a kind whose module can be imported", found) from None


def _texts(name: str, written: Any, results: Path) -> list[str]:
    """Return the values of a parameter as texts for the harness."""
    values = written if isinstance(written, list) else [written]
    if not values or not all(isinstance(value, str | int | float) for value in values):
        allowed = "a text, a number, true or false, or a list of these"
        raise NotAllowed(allowed, show(written), name)
    texts = (str(value).lower() if isinstance(value, bool) else str(value) for value in values)
    return [text.replace(RESULTS, str(results)) for text in texts]
