"""Precisions: one file each in ``scripts/precisions``."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import Any, Collection, Iterable, List, Mapping, NamedTuple, Optional, Tuple

#: Start of the reason of a run that was skipped because this CPU emulates its precision.
EMULATED = "emulated: "
#: Bytes of a value, by dtype; TF32 is how float32 operands are rounded.
BYTES = {"float32": 4, "tf32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
#: One unit in the last place, relative to the number, by the dtype of matmuls.
UNITS = {"float32": 2.0**-23, "tf32": 2.0**-10, "bfloat16": 2.0**-7, "float16": 2.0**-10}

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "precisions")


class Precision(NamedTuple):
    """A file of ``scripts/precisions``.

    ``share``: least fraction of a step's matmuls and convolutions in ``dtypes``. ``baseline``:
    precision that its speed-up is relative to, None for a baseline itself. ``bounds``: largest
    relative error that counts as the same computation, by quantity of the verification.
    ``gradient_floor``: a gradient's error is relative to at least this fraction of its share of the
    norm of all gradients, see :mod:`harness.measuring.errors`. ``updates``: whether weights are
    stored precisely enough to compare updates, and the losses after them. ``variables``:
    environment variables that change the precision of libraries but not the dtypes of matmuls, with
    their harmless values. ``storage``: dtype of the parameters, "" if not stated. ``cpu_dtype``:
    dtype that frameworks use on a CPU, "" for a precision that no CPU emulates; ``instructions``:
    instruction sets, each of which suffices for it. ``capability``: least compute capability of a
    GPU that has it, "" for any."""

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
    capability: str


@lru_cache(maxsize=None)
def known() -> Mapping[str, Precision]:
    """Return all precisions by name, baselines first."""
    files = (name for name in os.listdir(FOLDER) if name.endswith(".json"))
    declared = [_precision(os.path.join(FOLDER, name)) for name in files]
    ordered = sorted(
        declared, key=lambda precision: (precision.baseline is not None, precision.name)
    )
    return {precision.name: precision for precision in ordered}


def default() -> str:
    """Return the first baseline precision."""
    return next(name for name, precision in known().items() if precision.baseline is None)


def baseline(name: object) -> Optional[str]:
    """Return the precision that the speed-up of ``name`` is relative to.

    Returns None for a baseline and for an unknown precision.
    """
    precision = known().get(str(name))
    return precision.baseline if precision else None


def variables() -> List[str]:
    """Return the environment variables that change what any precision computes, sorted."""
    return sorted({variable for precision in known().values() for variable in precision.variables})


def known_to_ranks() -> List[List[Any]]:
    """Return the fields of each precision that ranks get, sorted by name, as in JSON."""
    return [
        [name, precision.dtypes, precision.share, precision.gradient_floor, precision.updates]
        for name, precision in sorted(known().items())
    ]


def contradicted(name: str, environment: Mapping[str, str]) -> str:
    """Return a message on a variable that changes the precision's arithmetic; "" if none does."""
    for variable, values in sorted(known()[name].variables.items()):
        value = environment.get(variable, "")
        if value and value not in values:
            allowed = " or ".join(["unset", *values])
            return f"{variable}={value} changes what {name} computes; allowed: {allowed}"
    return ""


def accepted(name: str, variables: Iterable[Tuple[str, str]]) -> Tuple[Tuple[str, str], ...]:
    """Return the variables, as name and value, that do not change the precision's arithmetic."""
    return tuple(pair for pair in variables if not contradicted(name, dict([pair])))


def emulated(name: str, instruction_sets: Collection[str]) -> str:
    """Return why a CPU with these instruction sets emulates the precision; "" if it does not.

    Returns "" also for unknown instruction sets, if some CPUs have the right ones.
    """
    precision = known()[name]
    if not precision.cpu_dtype:
        return ""
    needed, dtype = precision.instructions, precision.cpu_dtype
    if not needed:
        return f"{EMULATED}no CPU computes in {dtype}"
    if not instruction_sets or set(needed) & set(instruction_sets):
        return ""
    return f"{EMULATED}this CPU has no instructions for {dtype} ({', '.join(needed)})"


def unsupported(name: str, capability: str, own: str = "") -> str:
    """Return why no GPU of this compute capability has the precision; "" if it has, or may have.

    ``own``: the least capability with which a framework has it, "" for any.
    """
    precision = known().get(name)
    least = own or (precision.capability if precision else "")
    if not least or not capability or version(capability) >= version(least):
        return ""
    return f"has compute capability {capability}, but {name} needs {least}"


def version(text: str) -> Tuple[int, ...]:
    """Return the numbers of a version, so that ``10.0`` is greater than ``9.0``."""
    return tuple(int(number) for number in text.split("."))


def _precision(path: str) -> Precision:
    with open(path, encoding="utf-8") as file:
        declared = json.load(file)
    matmuls, compared, cpu = declared["matmuls"], declared["verification"], declared.get("cpu", {})
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
        capability=declared.get("capability", ""),
    )
