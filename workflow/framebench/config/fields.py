"""Types of the configuration's keys: what may be written, and what it is turned into.

The words for what is allowed stand once, beside the type: messages and the schemas for editors take
them from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar, get_args

from annotated_types import Ge, GroupedMetadata, Le
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic import GetCoreSchemaHandler as Handler
from pydantic import GetJsonSchemaHandler as JsonHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, core_schema

from . import values
from .catalog import Catalog
from .validation import ConfigError, NotAllowed, NotAmong, UnknownKey, explain, reach

T = TypeVar("T")
M = TypeVar("M", bound="Keys")
MILLION = 1_000_000


@dataclass(frozen=True)
class ValidationContext:
    """What a configuration is checked against. ``deployment``: what ``--sdm`` asks for, ""
    where it is not given; ``kinds``: a folder of further kinds of measurement; ``storage``: the
    folder whose storage is measured; ``data``: that of data which are read; ``results``: that of
    the results."""

    catalog: Catalog
    deployment: str = ""
    kinds: Path | None = None
    storage: Path | None = None
    data: Path | None = None
    results: Path | None = None


class Keys(BaseModel):
    """A mapping with these keys and no others. Values are taken as they are: 2.0 and true are no
    whole numbers. What is left out is what its default says, as if that had been written."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )

    @classmethod
    def key_names(cls) -> list[str]:
        """As they are written: one that Python has as a word of its own has another name here."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @classmethod
    def allowed_keys(cls) -> list[str] | None:
        """Return all keys that may be written; None for any."""
        return None if cls.model_config["extra"] == "allow" else cls.key_names()

    @model_validator(mode="wrap")
    @classmethod
    def _known(cls, data: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        """Says of an unknown key which there are, beside what is wrong with the others."""
        keys = cls.allowed_keys()
        if keys is None:
            return check(data)
        unknown = [key for key in data if key not in keys] if isinstance(data, Mapping) else []
        if not unknown:
            return check(data)
        faults = [UnknownKey(key, keys) for key in unknown]
        errors = [_details("value_error", (), data, {"error": fault}) for fault in faults]
        try:
            check({key: value for key, value in data.items() if key in keys})
        except ValidationError as error:
            for one in error.errors(include_url=False):
                errors.append(_details(one["type"], one["loc"], one["input"], one.get("ctx", {})))
        raise ValidationError.from_exception_data(cls.__name__, errors)


def _details(
    kind: str, location: tuple[int | str, ...], value: Any, context: dict[str, Any]
) -> InitErrorDetails:
    return InitErrorDetails(type=kind, loc=location, input=value, ctx=context)


def default(written: Any) -> Any:
    """What a key that may be left out is then, as it would be written."""
    return Field(default=written)


def validated(
    model: type[M],
    data: Any,
    context: ValidationContext,
    source: str,
    sources: Mapping[str, str] = {},
) -> M:
    """The data as a model. Raises :class:`ConfigError` with a line for each fault; ``source`` names
    the file, ``sources`` those of keys that come from another."""
    try:
        return model.model_validate(data, context=context)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise ConfigError(explain(errors, data, source, sources)) from None


@dataclass(frozen=True)
class AllowedValues:
    """What a value may be, in words. They are said of whatever is wrong with the value itself; what
    is wrong within it has words of its own."""

    words: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Handler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: JsonHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "title": self.words}

    def _checked(self, value: Any, check: Callable[[Any], Any]) -> Any:
        try:
            return check(value)
        except ValidationError as error:
            if any(reach(one, value) for one in error.errors(include_url=False)):
                raise
            raise NotAllowed(self.words) from None


@dataclass(frozen=True)
class ReadAs:
    """Written as ``form``, another type than the field's, and converted to it."""

    form: Any
    convert: Callable[..., Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Handler) -> CoreSchema:
        return handler.generate_schema(Annotated[self.form, AfterValidator(self.convert)])


def text(words: str, pattern: str | None = None) -> Any:
    """The form of what is written as a text that is not empty."""
    return Annotated[str, StringConstraints(min_length=1, pattern=pattern), AllowedValues(words)]


@dataclass(frozen=True)
class Whole(GroupedMetadata):
    """A whole number within bounds."""

    low: int
    high: int

    def __iter__(self) -> Iterator[Any]:
        yield Ge(self.low)
        yield Le(self.high)
        yield AllowedValues(f"a whole number of at least {self.low} and at most {self.high}")


def _from_text(value: Any) -> Any:
    """What a text says: on the command line all that is within lists and mappings, and true and
    false, arrive as texts."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[value.lower()]
    if re.fullmatch(r"[-+]?[0-9]{1,18}", value):
        return int(value)
    if re.fullmatch(r"[-+]?[0-9]{1,18}([.][0-9]{1,18})?([eE][-+]?[0-9]{1,4})?", value):
        return float(value)
    return value


def _null(value: Any) -> Any:
    return None if value == "null" else value


def _split(value: Any) -> Any:
    """From the command line ``a,b`` is the list [a, b]."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def each_once(items: list[T]) -> list[T]:
    """Raises ValueError for a list that holds a value twice."""
    if len(set(items)) < len(items):
        raise ValueError("a value is given twice")
    return items


def _among(value: Any, names: Sequence[str]) -> Any:
    if value not in names:
        raise NotAmong(value, names)
    return value


@dataclass(frozen=True)
class OneOf:
    """One of the words of a Literal."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Handler) -> CoreSchema:
        check = partial(_among, names=get_args(source))
        return core_schema.no_info_before_validator_function(check, handler(source))


def in_catalog(kind: str) -> BeforeValidator:
    """A check that a value is one of the catalog's names of a kind: ``frameworks``, ``models``,
    ``compilers`` or ``sources``."""

    def check(value: Any, info: ValidationInfo[ValidationContext]) -> Any:
        catalog = info.context.catalog
        if kind == "frameworks" and isinstance(value, str) and value in catalog.unfinished:
            missing = f"scripts/frameworks/{value}/{catalog.unfinished[value]}"
            allowed = ", ".join(catalog.frameworks)
            raise NotAllowed(allowed, f"{value!r}, which has no {missing} yet")
        return _among(value, list(getattr(catalog, kind)))

    return BeforeValidator(check)


@dataclass(frozen=True)
class OrAll:
    """The word ``all`` stands for every name of a kind in the catalog."""

    kind: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Handler) -> CoreSchema:
        return core_schema.with_info_before_validator_function(self._expanded, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: JsonHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"const": "all"}, handler(schema)], "title": "all, or a list of names"}

    def _expanded(self, value: Any, info: ValidationInfo[ValidationContext]) -> Any:
        return list(getattr(info.context.catalog, self.kind)) if value == "all" else value


@dataclass(frozen=True)
class ScalarAsList:
    """A single value stands for the list with it (``mode: train``)."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Handler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda value: [value] if isinstance(value, (str, int, float)) else value,
            handler(source),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: JsonHandler
    ) -> JsonSchemaValue:
        several = handler(schema)
        return {"anyOf": [several, several["items"]], "title": several["title"]}


#: What arrives as text on the command line.
FromText = BeforeValidator(_from_text)
FromList = BeforeValidator(_split)

Text = Annotated[str, StringConstraints(min_length=1), AllowedValues("a text that is not empty")]
#: A value that may be null, which arrives as text on the command line.
OrNull = BeforeValidator(_null)
OptionalText = Annotated[Text | None, OrNull]
Switch = Annotated[bool, FromText, AllowedValues("true or false")]
Count = Annotated[int, Whole(1, MILLION)]

#: Each value once, at least one.
Distinct = Annotated[
    list[T],
    Field(min_length=1),
    AfterValidator(each_once),
    AllowedValues("a list of at least 1 value, each value once"),
]
#: The same, where one value may stand for the list.
Values = Annotated[Distinct[T], ScalarAsList()]

FrameworkName = Annotated[str, in_catalog("frameworks")]
ModelName = Annotated[str, in_catalog("models")]
CompilerName = Annotated[str, in_catalog("compilers")]
SourceName = Annotated[str, in_catalog("sources")]

_PATH = text("a path that is not empty, without { and }", r"^[^{}]*$")
_RECORDS = text("the path of a folder or a CSV")
_MEMORY = text(values.MEMORY, r"^(auto|[0-9]+([.][0-9]+)?(%|KiB|MiB|GiB|TiB))$")
Folder = Annotated[Path, ReadAs(_PATH, values.folder)]
EnvironmentPath = Annotated[Path, ReadAs(Text, values.environment_file)]
Records = Annotated[Path, ReadAs(_RECORDS, values.record_set)]
Sets = Annotated[
    list[Annotated[Path, ReadAs(_RECORDS, values.existing)]],
    Field(min_length=1),
    AfterValidator(each_once),
    FromList,
    AllowedValues("a list of folders of results, CSVs of runs or archives, or a folder of these"),
]
ImportPath = Annotated[Path, ReadAs(Text, values.existing)]
ExportPath = Annotated[Path, ReadAs(_PATH, values.path)]
#: What of a case the user says of imported files that do not say it.
FACTS = (
    "framework", "framework_version", "model", "precision", "compiler", "nodes",
    "devices_per_node", "batch_per_device",
)  # fmt: skip
#: Those that are numbers.
COUNTS = ("nodes", "devices_per_node", "batch_per_device")
FactName = Annotated[str, BeforeValidator(partial(_among, names=FACTS))]
FactValue = Annotated[str | int | float, AllowedValues("a text or a number")]
Side = Annotated[values.RecordSource, ReadAs(_RECORDS, values.side)]
Share = Annotated[
    float,
    ReadAs(
        Annotated[float, Field(gt=0, lt=1)]
        | Annotated[str, StringConstraints(pattern=r"^[0-9]+([.][0-9]+)?%$")],
        values.share,
    ),
    AllowedValues(values.SHARE),
]
MemoryLimit = Annotated[str | None, ReadAs(_MEMORY, values.memory_limit)]
