"""Axes of a suite: of its matrix, of blocks that are added or excluded, and of its measurements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from core import axes, precisions
from core.axes import Axis
from core.case import MAX, PER_CORE, PER_GIB
from pydantic import ConfigDict, Field, model_validator

from .keys import (
    MILLION,
    CompilerName,
    Count,
    Frameworks,
    Keys,
    ModelName,
    Models,
    Values,
    as_list,
    default,
    each_once,
    read_as,
)
from .validation import NotAllowed, UnknownKey, show

#: Axes of the batch: samples of one device, or of all devices together. A block has one of them.
BATCHES = ("batch_per_device", "batch_total")
#: Word for all GPUs of a node.
ALL = "all"
#: Values of each axis of a block.
Axes = dict[str, Any]

if TYPE_CHECKING:
    _Precision = str
else:
    _Precision = Literal[tuple(precisions.known())]


def _batch(written: Any) -> Any:
    number = isinstance(written, int) and not isinstance(written, bool) and 1 <= written <= MILLION
    if number or re.fullmatch(f"{MAX}|[1-9][0-9]{{0,3}}({PER_CORE}|{PER_GIB})", str(written)):
        return written
    raise NotAllowed(
        "a whole number of at least 1 and at most 1000000, such a number of at most 9999 with "
        f"{PER_CORE.strip()!r} or {PER_GIB.strip()!r}, or {MAX}"
    )


_Batch = Annotated[int | str, read_as(_batch, int | str)]


def _not_given() -> Any:
    """Return a field that a block need not have; null is no value of it."""
    return Field(default=None, validate_default=False)


def _with_optional_axes(schema: dict[str, Any]) -> None:
    """Add the axes with a default, which the register declares, to the schema of an editor."""
    schema["properties"] |= {axis.name: {} for axis in axes.optional()}
    schema["additionalProperties"] = False


class AxesKeys(Keys):
    """Axes of the matrix, of a block that is added to it, or of a pattern that is excluded.

    Axes with a default are read as the register declares them.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_with_optional_axes)

    framework: Frameworks = _not_given()
    model: Models = _not_given()
    mode: Values[str] = _not_given()
    nodes: Values[Count] = _not_given()
    devices_per_node: Values[Count | Literal["all"]] = _not_given()
    batch_per_device: Values[_Batch] | dict[ModelName, Values[_Batch]] = _not_given()
    batch_total: Values[Count] | dict[ModelName, Values[Count]] = _not_given()
    precision: Values[_Precision] = _not_given()
    compiler: Values[CompilerName] = _not_given()
    sequence_length: Values[Count] = _not_given()

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all axes, in documented order."""
        return [*AxesKeys.model_fields, *(axis.name for axis in axes.optional())]

    @model_validator(mode="after")
    def _registered(self) -> Self:
        extra = self.model_extra or {}
        for axis in axes.optional():
            if axis.name in extra:
                extra[axis.name] = values = _read(axis, extra[axis.name])
                modes = self.mode if "mode" in self.model_fields_set else axis.applies_to
                others = {*axes.MODES} - {*axis.applies_to}
                if values != [axis.default] and {*modes} <= others:
                    allowed = f"{show([axis.default])}, or mode: {', '.join(axis.applies_to)}"
                    raise NotAllowed(allowed, show(values), axis.name)
        return self

    @model_validator(mode="after")
    def _no_other_key(self) -> Self:
        for name in {*(self.model_extra or {})} - {*self.names()}:
            raise UnknownKey(name, self.names())
        return self

    @model_validator(mode="after")
    def _one_batch(self) -> Self:
        if {*BATCHES} <= self.model_fields_set:
            allowed = "one of them (the other in an include block of its own)"
            raise NotAllowed(allowed, " and ".join(BATCHES))
        return self

    @property
    def given(self) -> Axes:
        """Values of the axes that the block names."""
        return {name: values for name, values in self if name in self.model_fields_set}


class MatrixKeys(AxesKeys):
    """Axes of the matrix. Those that it does not name have their defaults."""

    framework: Frameworks = default("all")
    model: Models = default("all")
    mode: Values[str] = default([axes.TRAIN])
    nodes: Values[Count] = default([1])
    devices_per_node: Values[Count | Literal["all"]] = default([1])
    precision: Values[_Precision] = default([precisions.default()])
    compiler: Values[CompilerName] = default(["default"])
    sequence_length: Values[Count] = default([128])

    @property
    def every(self) -> Axes:
        """Values of all axes, but the batch that the block does not name."""
        known = {axis.name: [axis.default] for axis in axes.optional()}
        return {**known, **{name: values for name, values in self if values is not None}}


class MeasurementKeys(AxesKeys):
    """Axes of a benchmark, and the parameters that it declares, each a value or a list."""

    model_config = ConfigDict(extra="allow", json_schema_extra={})

    @model_validator(mode="after")
    def _no_other_key(self) -> Self:
        return self


def _read(axis: Axis, written: Any) -> list[Any]:
    """Return the values of an axis that the register declares. Raises NotAllowed."""
    values = as_list(written)
    if not values or not isinstance(values, list):
        raise NotAllowed("a list of at least 1 value", show(written), axis.name)
    read = []
    for number, value in enumerate(values):
        try:
            read.append(axis.type(str(value)))
        except ValueError as error:
            allowed = str(error).removeprefix("must be ").rpartition(", not ")[0] or str(error)
            raise NotAllowed(allowed, show(value), f"{axis.name}[{number}]") from None
    try:
        return each_once(read)
    except NotAllowed as error:
        raise NotAllowed(error.allowed, show(written), axis.name) from None
