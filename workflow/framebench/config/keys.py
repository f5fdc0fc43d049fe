"""YAML files of users: parsing, and types of their keys as pydantic models and annotations."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import yaml
from core import bounded
from core.text import shorten
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from .. import PROJECT
from ..files.json_files import cause
from . import validation
from .catalog import Catalog, OwnModel, own_model
from .validation import ConfigError, NotAllowed, NotAmong, explain

T = TypeVar("T")
M = TypeVar("M", bound="Keys")
MILLION = 1_000_000
#: Most bytes of a YAML file; the longest suite has 8,000.
LARGEST_FILE = 2**19


def configuration_file() -> Path:
    """Return the configuration file of the working directory, or else the project's."""
    own = Path("config", "config.yaml")
    return own if own.exists() else PROJECT / own


def read_yaml(path: Path) -> Any:
    """Parse a YAML file. Raises :class:`ConfigError` if it cannot be read or parsed."""
    try:
        return yaml.load(bounded.read_text(path, LARGEST_FILE), _Loader)
    except yaml.YAMLError as error:
        problem = shorten(" ".join(str(error).split()))
        raise ConfigError(f"{path}: is not valid YAML: {problem}") from None
    except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read: {cause(error)}") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """Parse a YAML file with keys and values. Raises :class:`ConfigError` for another file."""
    data = read_yaml(path)
    if not isinstance(data, dict):
        kind = "nothing" if data is None else type(data).__name__
        raise ConfigError(f"{path}: the file: found {kind}; allowed: a mapping (key: value)")
    return data


class _Loader(yaml.SafeLoader):
    """Safe loader that refuses duplicate keys, of which YAML silently takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(self.construct_object(key_node, deep=True))
            if key in seen:
                line = key_node.start_mark.line + 1
                raise yaml.MarkedYAMLError(problem=f"line {line}: key {key!r} is given twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


# ---- types of keys -------------------------------------------------------------------------------


class KeyContext(NamedTuple):
    """Catalog and the user's folders, for the check of values. ``folders``: by key of the
    configuration: ``kinds`` with the user's benchmarks; ``storage`` and ``data``, the defaults of
    parameters; ``results``."""

    catalog: Catalog
    folders: Mapping[str, Path] = {}


class Keys(BaseModel):
    """Mapping with these keys and no others. Types are strict: 2.0 and true are not whole numbers.
    Defaults are validated like written values."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        if isinstance(data, dict) and cls.model_config["extra"] == "forbid":
            for name in data:
                if name not in cls.model_fields:
                    raise NotAmong(name, [*cls.model_fields], "unknown key ")
        return data


class KeysFromTexts(Keys):
    """Mapping whose numbers, truth values and null may be texts, as on the command line."""

    model_config = ConfigDict(strict=False)

    @field_validator("*", mode="before")
    @classmethod
    def _null(cls, value: Any) -> Any:
        return None if value == "null" else value


def default(written: Any) -> Any:
    """Return a field whose default is given as a user would write it."""
    return Field(default=written)


def validated(
    model: type[M],
    data: Any,
    source: str,
    catalog: Catalog | None = None,
    folders: Mapping[str, Path] = {},
) -> M:
    """Return the data as a model. Raises :class:`ConfigError`, with a line for each fault."""
    try:
        return model.model_validate(data, context=catalog and KeyContext(catalog, folders))
    except ValidationError as error:
        raise ConfigError(explain(error, data, source)) from None


def matching(pattern: str, allowed: str) -> AfterValidator:
    """Return a check that a text matches a regular expression; ``allowed``: the same in words."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise NotAllowed(allowed)
        return text

    return AfterValidator(check)


def in_catalog(kind: str) -> AfterValidator:
    """Return a check for the catalog's ``frameworks``, ``models`` or ``compilers``."""

    def check(name: str, info: ValidationInfo[KeyContext]) -> str:
        if name not in (names := list(getattr(info.context.catalog, kind))):
            raise NotAmong(name, names)
        return name

    return AfterValidator(check)


def or_all(kind: str) -> BeforeValidator:
    """Return a reader of ``all``, which stands for every name of a kind in the catalog."""

    def expand(value: Any, info: ValidationInfo[KeyContext]) -> Any:
        return list(getattr(info.context.catalog, kind)) if value == "all" else value

    return BeforeValidator(expand)


def as_list(value: Any) -> Any:
    """Return the list [a, b] for the text ``a,b``, and [n] for a number n; others unchanged."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return [value] if isinstance(value, (int, float)) else value


def each_once(items: list[T]) -> list[T]:
    """Return the values without duplicates."""
    return list(dict.fromkeys(items))


Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=MILLION)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]  # at most a year
Share = Annotated[float, BeforeValidator(validation.share)]
FrameworkName = Annotated[str, in_catalog("frameworks")]
ModelName = Annotated[str, in_catalog("models")]
CompilerName = Annotated[str, in_catalog("compilers")]
#: Non-empty list of values, or a single value.
Values = Annotated[
    list[T], Field(min_length=1), AfterValidator(each_once), BeforeValidator(as_list)
]
Frameworks = Annotated[Values[FrameworkName], or_all("frameworks")]
Models = Annotated[Values[ModelName], or_all("models")]
#: Nodes that are measured one by one: ``all``, or their names.
NodesNamed = Values[str]
Folder = Annotated[Path, BeforeValidator(validation.folder)]
#: Key that names a user's own model.
OwnModelKey = Annotated[OwnModel, BeforeValidator(own_model)]
Variables = dict[
    Annotated[
        str, matching("[A-Za-z_][A-Za-z0-9_]*", "a name of letters, digits and _, no digit first")
    ],
    Annotated[str, Field(strict=False, coerce_numbers_to_str=True)],
]
#: Pattern of a pinned package, as pip writes it.
PIN = r"[A-Za-z0-9._-]+(\[[^]\s]+\])?==[^=\s]+"


def _image(written: str) -> str:
    if "://" in written:
        return written
    path = validation.path(written)
    if not os.path.exists(path):
        raise NotAllowed("the path of an image that exists, or a URI such as docker://python")
    return str(path.resolve())


class Image(Keys):
    """A container image. ``image``: URI, or absolute path without links; ``python``: command of
    Python inside."""

    image: Annotated[str, AfterValidator(_image)]
    python: Text = "python3"


def _interpreter(written: Any) -> str:
    path = validation.path(written)
    if not os.path.isfile(path):
        raise NotAllowed("the path of a Python that exists")
    return str(path.absolute())  # not resolved: the python of a venv must stay a link


Interpreter = Annotated[str, BeforeValidator(_interpreter)]
ImageEntry = Annotated[
    Image, BeforeValidator(lambda some: {"image": some} if isinstance(some, str) else some)
]
Pin = Annotated[str, matching(PIN, "NAME==VERSION")]
