"""A user's own model that replaces all models of a suite: a Python file, or a name in a model
library.

The harness describes it. The file is parsed, not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from harness import own_model as own_model_declaration
from pydantic import BeforeValidator

from .catalog import Catalog
from .validation import NotAllowed

#: Scale of a user's model's verification, which only compares with its own float64 run.
SCALE = "own float64 run"


@dataclass(frozen=True)
class OwnModel:
    """A user's own model. ``source``: as given; ``model_config``: as in ``scripts/models``, with
    framework and content in ``own``."""

    source: str
    model_config: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.model_config["name"])

    @property
    def framework(self) -> str:
        return str(self.model_config["own"]["framework"])

    @property
    def library(self) -> str:
        """Model library that the model is from; "" for a file."""
        return str(self.model_config["own"]["library"])

    def among(self, catalog: Catalog) -> Catalog:
        """Return the catalog with the model added."""
        return replace(catalog, models={**catalog.models, self.name: dict(self.model_config)})


def own_model(source: Any) -> OwnModel:
    """Return the user's own model as described by the harness.

    Raises :class:`NotAllowed` for an invalid model.
    """
    if not isinstance(source, str) or {*source} & {*"{}"}:
        raise NotAllowed(f"{own_model_declaration.ALLOWED}, without {{ and }}")
    try:
        return OwnModel(source, own_model_declaration.model_config(source))
    except own_model_declaration.NotAModel as error:
        raise NotAllowed(error.allowed, error.found) from None


#: Key that names a user's own model.
OwnModelKey = Annotated[OwnModel, BeforeValidator(own_model)]
