"""Axes of a suite: of its matrix, of blocks that are added or excluded, and of its measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from core import axes, parallelism, precisions
from core.axes import COUNT, Axis
from core.case import PER_CORE
from pydantic import (
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    create_model,
    model_validator,
)

from . import kinds, values
from .fields import (
    AllowedValues,
    CompilerName,
    Count,
    FrameworkName,
    Keys,
    ModelName,
    OrAll,
    Text,
    ValidationContext,
    Values,
    default,
    each_once,
)
from .kinds import MODES, Measurement
from .validation import MissingKey, NotAllowed, show

#: Axes of the batch: samples of one device, or of all devices together. A block has one of them.
BATCHES = ("batch_per_device", "batch_total")
#: Word for all GPUs of a node.
ALL = "all"
#: Values of each axis of a block.
Axes = dict[str, Any]

_Batch = Annotated[
    Count
    | Literal["max"]
    | Annotated[str, StringConstraints(pattern=rf"^[1-9][0-9]{{0,3}}{PER_CORE}$")],
    AllowedValues(
        "a whole number of at least 1 and at most 1000000, such a number of at most 9999 with "
        f"{PER_CORE.strip()!r}, or max"
    ),
]
_Devices = Annotated[
    Count | Literal["all"],
    AllowedValues("a whole number of at least 1 and at most 1000000, or all"),
]
_BATCHES = AllowedValues(
    "a list of at least 1 value, each value once, or a mapping from model to these"
)
_Batches = Annotated[
    Values[_Batch] | Annotated[dict[ModelName, Values[_Batch]], Field(min_length=1)], _BATCHES
]
_Totals = Annotated[
    Values[Count] | Annotated[dict[ModelName, Values[Count]], Field(min_length=1)], _BATCHES
]
if TYPE_CHECKING:
    _Mode = str
    _Precision = str
else:
    _Mode = Literal[MODES]
    _Precision = Literal[tuple(precisions.known())]


def _values(axis: Axis) -> Any:
    """Return the type of the values of an axis with a default."""
    if axis.form == COUNT:
        return Values[Count]
    if axis.allowed:
        literal: Any = Literal
        return Values[literal[axis.allowed]]
    words = AllowedValues(parallelism.ALLOWED)
    return Values[Annotated[str, StringConstraints(pattern=axis.pattern), words]]


def _read(axis: Axis, written: Any) -> list[Any]:
    """Return the values of a user's axis. Raises NotAllowed."""
    values = written if isinstance(written, list) else [written]
    try:
        return each_once([axis.type(text) for text in _texts(axis.name, values)])
    except ValueError as error:
        raise NotAllowed(str(error), show(written), axis.name) from None


class _WithAxes(Keys):
    """Keys that include the axes of a user."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    @classmethod
    def allowed_keys(cls) -> list[str] | None:
        return [*cls.key_names(), *(axis.name for axis in axes.further())]

    @model_validator(mode="after")
    def _of_user(self) -> Self:
        extra = self.model_extra or {}
        for axis in axes.further():
            if axis.name in extra:
                extra[axis.name] = _read(axis, extra[axis.name])
        return self


class _AxesKeys(_WithAxes):
    framework: Annotated[Values[FrameworkName], OrAll("frameworks")] = default("all")
    model: Annotated[Values[ModelName], OrAll("models")] = default("all")
    mode: Values[_Mode] = default(["train"])
    nodes: Values[Count] = default([1])
    devices_per_node: Values[_Devices] = default([1])
    batch_per_device: _Batches | None = None
    batch_total: _Totals | None = None
    precision: Values[_Precision] = default([precisions.default()])
    compiler: Values[CompilerName] = default(["default"])
    sequence_length: Values[Count] = default([128])

    @model_validator(mode="after")
    def _only_of_its_modes(self) -> Self:
        for axis in axes.optional():
            asked, usual = {"mode", axis.name} <= self.model_fields_set, [axis.default]
            value = getattr(self, axis.name, usual)
            if asked and value != usual and not {*axis.applies_to} & {*self.mode}:
                modes = ", ".join(axis.applies_to)
                allowed = f"{show(usual)}, or mode: {modes}"
                raise NotAllowed(allowed, show(value), axis.name)
        return self

    @model_validator(mode="after")
    def _each_group_once(self) -> Self:
        for number, way in enumerate(getattr(self, "parallelism", ())):
            try:
                parallelism.checked(way)
            except ValueError:
                key = f"parallelism[{number}]"
                raise NotAllowed("a product that has each name once", show(way), key) from None
        return self

    @model_validator(mode="after")
    def _one_batch(self) -> Self:
        if self.batch_per_device is not None and self.batch_total is not None:
            raise NotAllowed(
                "one of them (the other in an include block of its own)", " and ".join(BATCHES)
            )
        return self


_OPTIONAL = [axis for axis in axes.BUILT_IN if axis.default is not None]
_FIELDS: Any = {axis.name: (_values(axis), default([axis.default])) for axis in _OPTIONAL}
AxesKeys = create_model(
    "AxesKeys",
    __base__=_AxesKeys,
    __doc__="Axes of the matrix, or of a block that is added to it.",
    **_FIELDS,
)
#: Keys of a block of axes, in documented order.
AXES = tuple(AxesKeys.model_fields)


class MeasurementKeys(AxesKeys):  # type: ignore[misc, valid-type]
    """Axes, and the parameters that a benchmark declares."""

    model_config = ConfigDict(extra="allow", json_schema_extra={})

    @classmethod
    def allowed_keys(cls) -> list[str] | None:
        return None


#: Placeholder of the results folder in a parameter.
RESULTS = "{results}"
_Scalar = str | int | float | bool
_PARAMETER = "a text, a number, true or false, or a list of these"


def read_measurements(
    written: dict[str, MeasurementKeys], info: ValidationInfo[ValidationContext]
) -> dict[str, Measurement]:
    usual: Axes = {axis.name: [axis.default] for axis in axes.further()}
    block = info.data.get("axes")
    usual |= dict(AxesKeys.model_validate({}, context=info.context)) if block is None else block
    known = {*AXES, *usual}
    result = {}
    for kind, keys in written.items():
        chosen = {axis: value for axis, value in _named(keys).items() if axis in known}
        try:
            results = str(info.context.results or values.path("results"))
            texts = {
                name: [text.replace(RESULTS, results) for text in _texts(name, value)]
                for name, value in (keys.model_extra or {}).items()
                if name not in known
            }
            if kind == kinds.STORAGE and info.context.storage:
                texts.setdefault("folder", [str(info.context.storage)])
            if kind == kinds.CONVERGE and info.context.data and _read_files(chosen, info):
                texts.setdefault("data", [str(info.context.data)])
            result[kind] = kinds.measurement(
                kind, chosen, usual, texts, info.context.catalog, info.context.kinds
            )
        except NotAllowed as error:
            key = ".".join(filter(None, (kind, error.key)))
            raise NotAllowed(error.allowed, error.shown or "nothing", key) from None
    return result


def _read_files(chosen: Axes, info: ValidationInfo[ValidationContext]) -> bool:
    """Return whether one of the chosen models trains on files."""
    models = info.context.catalog.models
    return any(models[name].get("reads_files", False) for name in chosen.get("model", ()))


def _texts(name: str, written: Any) -> list[str]:
    """Return the values of a parameter as texts for the harness."""
    values = written if isinstance(written, list) else [written]
    if not values or not all(isinstance(value, _Scalar) for value in values):
        raise NotAllowed(_PARAMETER, show(written), name)
    return [str(value).lower() if isinstance(value, bool) else str(value) for value in values]


class _PatternKeys(_WithAxes):
    """Values that excluded cases have in common."""

    framework: Values[FrameworkName] | None = None
    model: Values[ModelName] | None = None
    mode: Values[Text] | None = None  # or another benchmark
    nodes: Values[Count] | None = None
    devices_per_node: Values[Count] | None = None
    batch_per_device: Values[_Batch] | None = None
    batch_total: Values[Count] | None = None
    precision: Values[_Precision] | None = None
    compiler: Values[CompilerName] | None = None
    sequence_length: Values[Count] | None = None


_FORMS: Any = {axis.name: (_values(axis) | None, None) for axis in _OPTIONAL}
Pattern = create_model(
    "Pattern",
    __base__=_PatternKeys,
    __doc__="Values that excluded cases have in common.",
    **_FORMS,
)


def all_axes(block: _AxesKeys) -> Axes:
    if block.batch_per_device is None and block.batch_total is None:
        raise MissingKey(*BATCHES)
    return {axis: chosen for axis, chosen in block if chosen is not None}


def _named(block: _WithAxes) -> Axes:
    return {axis: chosen for axis, chosen in block if axis in block.model_fields_set}


def named_axes(block: _WithAxes) -> Axes:
    named = _named(block)
    if not named:
        raise NotAllowed("at least 1 axis")
    for axis, chosen in named.items():
        if chosen is None:
            raise NotAllowed("a list of at least 1 value", show(chosen), axis)
    return named
