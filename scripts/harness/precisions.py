"""The precisions that can be asked for: one file each in ``scripts/precisions``.

A file says, beside its name and title, in which ``dtypes`` at least which ``share`` of a step's
products and convolutions must run, which other precision is the ``baseline`` of its speed-up (null:
none, it is one itself), and how near to the reference its results must be, with the ``reason``:
also whether its weights are kept finely enough for ``updates`` to be compared.
``cpu``, where a CPU may have to emulate it: the ``dtype`` that frameworks take on one, and the
``instructions`` of which any computes in it, as the kernel names them.
Its ``variables`` are those of the environment that make libraries compute in another precision, in
whichever framework, without its products looking any different: each with the values at which they
do not.
"""

from __future__ import annotations

import os
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Sequence

from harness import bounded

#: Begins the reason of what was not measured because this CPU would emulate it.
EMULATED = "emulated: "

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "precisions")


class Precision(NamedTuple):
    """What a rank needs to know of one. ``gradient_floor``: a parameter's gradient is measured
    against at least this part of its share of the norm of all, see
    :mod:`harness.kinds.parity`.
    ``updates``: are compared, and the losses behind them."""

    name: str
    dtypes: Sequence[str]
    share: float
    gradient_floor: float
    updates: bool


def names() -> List[str]:
    """Of all precisions, sorted."""
    return sorted(name[: -len(".json")] for name in os.listdir(FOLDER) if name.endswith(".json"))


def default() -> str:
    """The one that needs no other to be compared with."""
    return next(name for name in names() if _read(name)["baseline"] is None)


def load(name: str) -> Precision:
    """Raises OSError where there is none of this name."""
    declared = _read(name)
    products = declared["products"]
    compared = declared["parity"]
    return Precision(
        name,
        tuple(products["dtypes"]),
        products["share"],
        compared["gradient_floor"],
        compared["updates"],
    )


def variables() -> List[str]:
    """Return the variables of the environment that make something else of any precision, sorted."""
    return sorted({variable for name in names() for variable in _read(name)["variables"]})


def contradicted(name: str, environment: Mapping[str, str]) -> str:
    """Which variable of the ``environment`` makes something else of the precision, and what it may
    be; "" where none does."""
    for variable, values in sorted(_read(name)["variables"].items()):
        found = environment.get(variable, "")
        if found and found not in values:
            allowed = " or ".join(["unset", *values])
            return f"{variable}={found} changes what {name} computes; allowed: {allowed}"
    return ""


def emulated(name: str, instruction_sets: Collection[str]) -> str:
    """Why a CPU with these instruction sets emulates the precision; "" where it does not, or where
    nothing is known of its instruction sets and some CPUs have the right ones."""
    cpu = _read(name).get("cpu")
    if cpu is None:
        return ""
    wanted, dtype = cpu["instructions"], cpu["dtype"]
    if not wanted:
        return f"{EMULATED}no CPU computes in {dtype}"
    if not instruction_sets or set(wanted) & set(instruction_sets):
        return ""
    return f"{EMULATED}this CPU has no instructions for {dtype} ({', '.join(wanted)})"


def _read(name: str) -> Dict[str, Any]:
    declared: Dict[str, Any] = bounded.read_json(os.path.join(FOLDER, f"{name}.json"))
    return declared
