"""The precisions that can be asked for: one file each in ``scripts/precisions``.

A file says, beside its name and title, in which ``dtypes`` at least which ``share`` of a step's
matmuls and convolutions must run, which other precision is the ``baseline`` of its speed-up (null:
none, it is one itself), and how near to the reference its results must be, with the ``reason``:
also whether its weights are kept finely enough for ``updates`` to be compared.
``cpu``, where a CPU may have to emulate it: the ``dtype`` that frameworks take on one, and the
``instructions`` of which any computes in it, as the kernel names them.
Its ``variables`` are those of the environment that make libraries compute in another precision, in
whichever framework, without its matmuls looking any different: each with the values at which they
do not.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import Collection, List, Mapping, NamedTuple, Optional, Tuple

#: Begins the reason of a run whose precision was not measured because this CPU would emulate it.
EMULATED = "emulated: "
#: Bytes of a value, by dtype; TF32 is how float32 operands are rounded.
BYTES = {"float32": 4, "tf32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "precisions")


class Precision(NamedTuple):
    """One file of ``scripts/precisions``.

    ``share``: part of a step's matmuls that must run in ``dtypes``. ``baseline``: the precision
    that its speed-up is against, None for one that is itself a baseline. ``bounds``: the largest
    relative error that counts as the same computation, by quantity of the verification.
    ``gradient_floor``: a parameter's gradient is measured against at least this part of its share
    of the norm of all gradients, see :mod:`harness.kinds.parity`. ``updates``: whether updates, and
    the losses after them, are compared. ``variables``: allowed values by environment variable.
    ``storage``: dtype of the parameters, "" if not stated. ``cpu_dtype``: dtype that frameworks
    take on a CPU, "" for a precision that no CPU emulates; ``instructions``: instruction sets of
    which any computes in it."""

    name: str
    title: str
    baseline: Optional[str]
    dtypes: Tuple[str, ...]
    share: float
    bounds: Mapping[str, float]
    gradient_floor: float
    updates: bool
    variables: Mapping[str, List[str]]
    storage: str
    cpu_dtype: str
    instructions: Tuple[str, ...]


@lru_cache(maxsize=None)
def known() -> Mapping[str, Precision]:
    """Return all precisions by name, baselines first."""
    files = (name for name in os.listdir(FOLDER) if name.endswith(".json"))
    declared = [_precision(os.path.join(FOLDER, name)) for name in files]
    ordered = sorted(declared, key=lambda one: (one.baseline is not None, one.name))
    return {precision.name: precision for precision in ordered}


def default() -> str:
    """Return the precision that needs no other to be compared with."""
    return next(name for name, precision in known().items() if precision.baseline is None)


def baseline(name: object) -> Optional[str]:
    """Return the precision that the speed-up of ``name`` is against; None for a baseline and an
    unknown precision."""
    precision = known().get(str(name))
    return precision.baseline if precision else None


def variables() -> List[str]:
    """Return the environment variables that change what any precision computes, sorted."""
    return sorted({variable for one in known().values() for variable in one.variables})


def contradicted(name: str, environment: Mapping[str, str]) -> str:
    """Return which variable of the ``environment`` changes what the precision computes, and its
    allowed values; "" if none does."""
    for variable, values in sorted(known()[name].variables.items()):
        value = environment.get(variable, "")
        if value and value not in values:
            allowed = " or ".join(["unset", *values])
            return f"{variable}={value} changes what {name} computes; allowed: {allowed}"
    return ""


def emulated(name: str, instruction_sets: Collection[str]) -> str:
    """Return why a CPU with these instruction sets emulates the precision; "" if it does not, or if
    its instruction sets are unknown and some CPUs have the right ones."""
    precision = known()[name]
    if not precision.cpu_dtype:
        return ""
    needed, dtype = precision.instructions, precision.cpu_dtype
    if not needed:
        return f"{EMULATED}no CPU computes in {dtype}"
    if not instruction_sets or set(needed) & set(instruction_sets):
        return ""
    return f"{EMULATED}this CPU has no instructions for {dtype} ({', '.join(needed)})"


def _precision(path: str) -> Precision:
    with open(path, encoding="utf-8") as file:
        declared = json.load(file)
    matmuls, compared, cpu = declared["products"], declared["parity"], declared.get("cpu", {})
    return Precision(
        name=declared["name"],
        title=declared["title"],
        baseline=declared["baseline"],
        dtypes=tuple(matmuls["dtypes"]),
        share=matmuls["share"],
        bounds=compared["bounds"],
        gradient_floor=compared["gradient_floor"],
        updates=compared["updates"],
        variables=declared["variables"],
        storage=declared.get("storage", ""),
        cpu_dtype=cpu.get("dtype", ""),
        instructions=tuple(cpu.get("instructions", ())),
    )
