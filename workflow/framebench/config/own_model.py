"""A user's own model that replaces all models of a suite: a Python file or a name in a model
library.

The harness describes it in another process. The file is parsed, not run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..files import children
from .catalog import Catalog
from .kinds import INDEPENDENT
from .validation import ConfigError, NotAllowed

if TYPE_CHECKING:
    from .suite import Axes, Suite

#: Scale of its verification, which compares it with its own float64 run only.
SCALE = "own float64 run"


@dataclass(frozen=True)
class OwnModel:
    """A user's own model. ``source``: as given; ``facts``: model config as in ``scripts/models``,
    with framework and content in ``own``."""

    source: str
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.facts["name"])

    @property
    def framework(self) -> str:
        return str(self.facts["own"]["framework"])

    @property
    def library(self) -> str:
        """Model library that the model is from; "" for a file."""
        return "" if self.facts["own"]["sha256"] else self.source.partition(":")[0]

    def among(self, catalog: Catalog) -> Catalog:
        """Return the catalog with the model added."""
        return replace(catalog, models={**catalog.models, self.name: dict(self.facts)})

    def alone(self, suite: Suite) -> Suite:
        """Return the suite with this model instead of all models and frameworks.

        The suite keeps its axes and, of other benchmarks, the control of scaling. Raises
        ConfigError for a suite without axes, or with a variant for another source of the project's
        models.
        """
        if suite.axes is None:
            raise ConfigError(
                f"{suite.path}: axes: found none; allowed with model={self.source}: a suite with "
                "axes"
            )
        for name, variant in suite.variants.items():
            if variant.source:
                raise ConfigError(
                    f"{suite.path}: variants.{name}.source: found {variant.source!r}; allowed with "
                    f"model={self.source}: none, which only the project's own models have"
                )
        control = suite.measurements.get(INDEPENDENT)
        measurements = {}
        if control:
            axes = {**control.axes, **self._names}
            measurements = {INDEPENDENT: replace(control, axes=axes)}
        return suite.model_copy(
            update={
                "axes": {**self._in(suite.axes), **self._names},
                "include": [self._in(block) for block in suite.include if self._is_in(block)],
                "then": [self._in(block) for block in suite.then if self._is_in(block)],
                "exclude": [one for one in suite.exclude if "model" not in one],
                "measurements": measurements,
                "own_model": self.name,
            }
        )

    def _is_in(self, block: Axes) -> bool:
        return self.framework in block.get("framework", [self.framework])

    @property
    def _names(self) -> Axes:
        return {"framework": [self.framework], "model": [self.name]}

    def _in(self, block: Axes) -> Axes:
        """Return a block of axes with this model. Batches by model become the batches of all."""
        return {axis: self._names.get(axis, _of_any_model(one)) for axis, one in block.items()}


def _of_any_model(values: Any) -> Any:
    if not isinstance(values, dict):
        return values
    return list(dict.fromkeys(value for some in values.values() for value in some))


def own_model(source: str, catalog: Catalog) -> OwnModel:
    """Return the user's own model as the harness describes it.

    Raises :class:`NotAllowed` for an invalid model, or the name of a project's model.
    """
    if source in catalog.models:
        raise NotAllowed(
            f"a model of your own; for one of the project's: models={source}", repr(source)
        )
    command = [sys.executable, str(catalog.root / "scripts" / "harness" / "describe_model.py")]
    try:
        about: dict[str, Any] = json.loads(children.ask([*command, source]))
    except (children.NoAnswer, ValueError) as error:
        allowed = "a Python file that can be parsed, torchvision:NAME or timm:NAME"
        raise NotAllowed(allowed, f"{source!r}: {error}") from None
    if "found" in about:
        raise NotAllowed(about["allowed"], about["found"])
    return OwnModel(source, about)
