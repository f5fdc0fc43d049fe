"""Axes of a suite: of its matrix, of blocks that are added or excluded, and of its measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from core import axes, precisions
from core.axes import Axis
from core.case import MAX, OR_ON_GPUS, PER_CORE, PER_GIB
from pydantic import BeforeValidator, ConfigDict, Field, create_model, model_validator

from .keys import (
    CompilerName,
    Count,
    Frameworks,
    Keys,
    ModelName,
    Models,
    Values,
    default,
    matching,
)
from .validation import NotAllowed, show

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


#: A batch that is not a number; one for CPUs and one for GPUs are joined by OR_ON_GPUS.
_NUMBER = "[1-9][0-9]{0,3}"
_WORDS = f"{MAX}|{_NUMBER}{PER_CORE}|({_NUMBER}({PER_CORE})?{OR_ON_GPUS})?{_NUMBER}{PER_GIB}"
_Batch = (
    Count
    | Annotated[
        str,
        matching(
            _WORDS,
            f"a whole number of at least 1, one of at most 9999 with{PER_CORE} or{PER_GIB}, "
            f"2{OR_ON_GPUS}8{PER_GIB}, {MAX}",
        ),
    ]
)


def _not_given() -> Any:
    """Return an optional field of a block, for which null is not allowed."""
    return Field(default=None, validate_default=False)


def _read_as(axis: Axis) -> BeforeValidator:
    """Return the reader of a value of an axis that the register declares."""

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
    """Values of axes of cases, including axes of benchmarks."""

    mode: Values[str] = _not_given()


class MeasurementKeys(PatternKeys):
    """Axes of a benchmark, and the parameters that it declares, each a value or a list."""

    model_config = ConfigDict(extra="allow")
