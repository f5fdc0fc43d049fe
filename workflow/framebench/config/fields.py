"""Types of configuration keys: allowed values, and their conversion.

The text of allowed values is next to the type; messages and editor schemas take it from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

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
    """Context of a validation.

    ``deployment``: method of ``--sdm``, "" without one; ``kinds``: folder of the user's benchmarks;
    ``storage``: folder whose storage is measured; ``data``: data folder; ``results``: results
    folder.
    """

    catalog: Catalog
    deployment: str = ""
    kinds: Path | None = None
    storage: Path | None = None
    data: Path | None = None
    results: Path | None = None


class Keys(BaseModel):
    """Mapping with these keys and no others.

    Types are strict: 2.0 and true are no whole numbers. Defaults are validated like written values.
    """

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )

    #: Where what a user may try as a key belongs, by that key.
    elsewhere: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def key_names(cls) -> list[str]:
        """Return the names of keys as written, which are aliases for Python keywords."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @classmethod
    def allowed_keys(cls) -> list[str] | None:
        """Return all allowed keys; None for any."""
        return None if cls.model_config["extra"] == "allow" else cls.key_names()

    @model_validator(mode="wrap")
    @classmethod
    def _known(cls, data: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        """Report unknown keys, with the allowed ones, together with the other faults."""
        keys = cls.allowed_keys()
        if keys is None:
            return check(data)
        unknown = [key for key in data if key not in keys] if isinstance(data, Mapping) else []
        if not unknown:
            return check(data)
        faults = [UnknownKey(key, keys, cls.elsewhere.get(key, "")) for key in unknown]
        errors = [_details("value_error", (), data, {"error": fault}) for fault in faults]
        try:
            check({key: value for key, value in data.items() if key in keys})
        except ValidationError as error:
            for entry in error.errors(include_url=False):
                errors.append(
                    _details(entry["type"], entry["loc"], entry["input"], entry.get("ctx", {}))
                )
        raise ValidationError.from_exception_data(cls.__name__, errors)


def _details(
    kind: str, location: tuple[int | str, ...], value: Any, context: dict[str, Any]
) -> InitErrorDetails:
    return InitErrorDetails(type=kind, loc=location, input=value, ctx=context)


def default(written: Any) -> Any:
    """Return a field with a default, given in its written form."""
    return Field(default=written)


def validated(
    model: type[M],
    data: Any,
    context: ValidationContext,
    source: str,
    sources: Mapping[str, str] = {},
) -> M:
    """Return the data as a model. Raises :class:`ConfigError` with a line for each fault.

    ``source`` names the file, ``sources`` the files of keys from elsewhere.
    """
    try:
        return model.model_validate(data, context=context)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise ConfigError(explain(errors, data, source, sources)) from None


@dataclass(frozen=True)
class AllowedValues:
    """Text of allowed values, for faults of the value itself. Faults within it have their own
    text."""

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
            if any(reach(entry, value) for entry in error.errors(include_url=False)):
                raise
            raise NotAllowed(self.words) from None


@dataclass(frozen=True)
class ReadAs:
    """Value written as ``form``, another type than the field's, and converted to it."""

    form: Any
    convert: Callable[..., Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Handler) -> CoreSchema:
        return handler.generate_schema(Annotated[self.form, AfterValidator(self.convert)])


def text(description: str, pattern: str | None = None) -> Any:
    """Return the type of a non-empty text."""
    return Annotated[
        str, StringConstraints(min_length=1, pattern=pattern), AllowedValues(description)
    ]


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
    """Return the value that a text means.

    On the command line all scalars in lists and mappings, and true and false, are texts.
    """
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[value.lower()]
    if re.fullmatch(r"[-+]?[0-9]{1,18}", value):
        return int(value)
    if re.fullmatch(r"[-+]?[0-9]{1,18}([.][0-9]{1,18})?([eE][-+]?[0-9]{1,4})?", value):
        return float(value)
    return value


def split(value: Any) -> Any:
    """Return the list [a, b] for the command-line text ``a,b``."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def each_once(items: list[T]) -> list[T]:
    """Return the list. Raises ValueError if a value occurs twice."""
    if len(set(items)) < len(items):
        raise ValueError("a value is given twice")
    return items


def in_catalog(kind: str) -> BeforeValidator:
    """Return a check for the catalog's names of a kind.

    ``kind``: ``frameworks``, ``models``, ``compilers`` or ``sources``.
    """

    def check(value: Any, info: ValidationInfo[ValidationContext]) -> Any:
        catalog = info.context.catalog
        if kind == "frameworks" and isinstance(value, str) and value in catalog.unfinished:
            missing = f"scripts/frameworks/{value}/{catalog.unfinished[value]}"
            allowed = ", ".join(catalog.frameworks)
            raise NotAllowed(allowed, f"{value!r}, which has no {missing} yet")
        if value not in (names := list(getattr(catalog, kind))):
            raise NotAmong(value, names)
        return value

    return BeforeValidator(check)


@dataclass(frozen=True)
class OrAll:
    """List of names, or ``all`` for every name of a kind in the catalog."""

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
    """List, or a single value that stands for a list of one (``mode: train``)."""

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


#: Value that is text on the command line.
FromText = BeforeValidator(_from_text)
FromList = BeforeValidator(split)

Text = Annotated[str, StringConstraints(min_length=1), AllowedValues("a text that is not empty")]
#: Value or null, which is text on the command line.
OrNull = BeforeValidator(lambda value: None if value == "null" else value)
OptionalText = Annotated[Text | None, OrNull]
Switch = Annotated[bool, FromText, AllowedValues("true or false")]
Count = Annotated[int, Whole(1, MILLION)]

Seconds = Annotated[
    float,
    Field(gt=0, le=31536000),
    FromText,
    AllowedValues("a number of seconds above 0 and up to a year (31536000)"),
]

#: Non-empty list of distinct values.
Distinct = Annotated[
    list[T],
    Field(min_length=1),
    AfterValidator(each_once),
    AllowedValues("a list of at least 1 value, each value once"),
]
#: Non-empty list of distinct values, or a single value.
Values = Annotated[Distinct[T], ScalarAsList()]

#: Nodes that are measured one by one.
NodesNamed = Annotated[
    Literal["all"]
    | Annotated[
        list[
            Annotated[
                str,
                StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$"),
                AllowedValues("the name of a node: letters, digits, '_', '.' and '-', at most 253"),
            ]
        ],
        Field(min_length=1),
        AfterValidator(each_once),
    ],
    BeforeValidator(lambda value: value if value == "all" else split(value)),
    AllowedValues("all, or a list of at least 1 name of a node, each name once"),
]

FrameworkName = Annotated[str, in_catalog("frameworks")]
ModelName = Annotated[str, in_catalog("models")]
CompilerName = Annotated[str, in_catalog("compilers")]
SourceName = Annotated[str, in_catalog("sources")]

_PATH = text("a path that is not empty, without { } < >", r"^[^{}<>]*$")
_RECORDS = text("the path of a folder or a CSV")
_MEMORY = text(values.MEMORY, r"^(auto|[0-9]+([.][0-9]+)?(%|KiB|MiB|GiB|TiB))$")
Folder = Annotated[Path, ReadAs(_PATH, values.folder)]
EnvironmentPath = Annotated[Path, ReadAs(Text, values.environment_file)]
Records = Annotated[Path, ReadAs(_RECORDS, values.record_set)]
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
