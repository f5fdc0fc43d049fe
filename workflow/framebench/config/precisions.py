"""The precisions that can be measured: a file each in ``scripts/precisions``, which the harness
reads too."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..files import json_files

FOLDER = Path(__file__).parents[3] / "scripts" / "precisions"
#: Begins the reason of a record whose precision was not measured because the CPU emulates it.
EMULATED = "emulated: "
#: Bytes of a value, by dtype; TF32 is how float32 operands are rounded.
BYTES = {"float32": 4, "tf32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}


@dataclass(frozen=True)
class Precision:
    """``dtypes``: of at least the ``share`` of a step's products. ``baseline``: the precision that
    its speed-up is against, None for one that is itself a baseline. ``bounds``: the largest
    relative error that counts as the same computation, by quantity of the comparison.
    ``variables``: of the environment, which make libraries compute in another precision, each with
    the values at which they do not. ``storage``: the dtype that parameters are kept in, "" where
    the file does not say. ``cpu_dtype``: the dtype that frameworks take on a CPU, "" for a
    precision that no CPU emulates; ``instructions``: of which any computes in it."""

    name: str
    title: str
    baseline: str | None
    dtypes: frozenset[str]
    share: float
    bounds: Mapping[str, float]
    variables: Mapping[str, list[str]]
    storage: str = ""
    cpu_dtype: str = ""
    instructions: frozenset[str] = frozenset()

    def is_emulated(self, instruction_sets: Collection[str]) -> bool:
        """Return whether a CPU with these instruction sets has to emulate it."""
        return bool(self.cpu_dtype) and self.instructions.isdisjoint(instruction_sets)


@cache
def known() -> Mapping[str, Precision]:
    """All of them by name, baselines first."""
    declared = [_precision(json_files.read(path)) for path in FOLDER.glob("*.json")]
    ordered = sorted(declared, key=lambda one: (one.baseline is not None, one.name))
    return {one.name: one for one in ordered}


def default() -> str:
    """The one that a suite need not name: it needs no other to be compared with."""
    return next(name for name, precision in known().items() if precision.baseline is None)


def baseline(name: object) -> str | None:
    """What the speed-up of a precision is against; None for a baseline and an unknown one."""
    precision = known().get(str(name))
    return precision.baseline if precision else None


def _precision(declared: Mapping[str, Any]) -> Precision:
    products = declared["products"]
    return Precision(
        name=declared["name"],
        title=declared["title"],
        baseline=declared["baseline"],
        dtypes=frozenset(products["dtypes"]),
        share=products["share"],
        bounds=declared["parity"]["bounds"],
        variables=declared["variables"],
        storage=declared.get("storage", ""),
        cpu_dtype=declared.get("cpu", {}).get("dtype", ""),
        instructions=frozenset(declared.get("cpu", {}).get("instructions", ())),
    )
