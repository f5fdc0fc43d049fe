"""Identities of the machines of records, and which of them count as the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Identity(NamedTuple):
    """Identity of a machine. Unknown fields are "" and match any value.

    ``hardware``: kinds of GPU and CPU, as text. ``processor``: its model numbers and cores, as
    text. ``memory``: nominal size. ``host``: its name, "" if a scheduler chose the node: nodes of a
    cluster with equal hardware are interchangeable. ``caches``, ``instruction_sets``: of the
    processor, as text; under a hypervisor, different processors may share name and numbers.
    """

    hardware: str = ""
    processor: str = ""
    memory: str = ""
    host: str = ""
    caches: str = ""
    instruction_sets: str = ""

    @property
    def in_full(self) -> str:
        """Full text of all fields; :func:`str` leaves out the long ones."""
        return "; ".join(filter(None, (str(self), self.caches, self.instruction_sets)))

    @property
    def in_short(self) -> str:
        """Short text for captions."""
        return ", ".join(filter(None, (self.hardware, self.memory, self.host)))

    def __str__(self) -> str:
        host = self.host and f"host {self.host}"
        return ", ".join(filter(None, (self.hardware, self.processor, self.memory, host)))


UNKNOWN = Identity()


def identity(environment: Mapping[str, Any], label: str) -> Identity:
    """Return the identity from a record's ``environment``. ``label``: the kinds of its hardware."""
    hardware, system = environment.get("hardware", {}), environment.get("system", {})
    host = "" if environment.get("scheduler") else system.get("host")
    return Identity(
        label,
        _processor(hardware.get("processor")),
        memory(hardware.get("memory_bytes")),
        host if isinstance(host, str) else "",
        _caches(hardware.get("processor")),
        _instruction_sets(hardware.get("processor")),
    )


def same(one: Identity, other: Identity) -> bool:
    """Return whether two identities agree in every field that both know."""
    return all(a == b for a, b in zip(one, other, strict=True) if a and b)


def is_here(machine: Identity, here: Identity) -> bool:
    """Return whether a record may be of this machine; a run may have used some GPUs only."""
    kinds = set(machine.hardware.split(", "))
    known = bool(machine.hardware and here.hardware)
    fits = not known or kinds <= set(here.hardware.split(", "))
    return fits and same(machine._replace(hardware=""), here)


def completed(found: Iterable[Identity]) -> dict[Identity, Identity]:
    """Return the most complete matching identity of each machine, if it is unique.
    Older records have fewer fields than newer ones of the same machine."""
    distinct = set(found)
    # Complete identities need no search: thousands of containers have as many host names.
    fuller = {identity: identity for identity in distinct if all(identity)}
    for identity in distinct.difference(fuller):
        others = [
            other
            for other in distinct
            if same(identity, other) and _knows(other) > _knows(identity)
        ]
        fullest = [other for other in others if _knows(other) == max(map(_knows, others))]
        alike = all(same(fullest[0], other) for other in others) if fullest else False
        fuller[identity] = fullest[0] if len(fullest) == 1 and alike else identity
    return fuller


def _knows(identity: Identity) -> int:
    return sum(map(bool, identity))


def _processor(numbers: Any) -> str:
    if not isinstance(numbers, Mapping):
        return ""
    kind = [f"{key} {numbers[key]}" for key in ("family", "model", "stepping") if key in numbers]
    cores = [
        f"{numbers[key]} {text}"
        for key, text in (
            ("sockets", "socket(s)"),
            ("physical_cores", "physical cores"),
            ("logical_cores", "logical cores"),
        )
        if key in numbers
    ]
    return ", ".join(filter(None, (" ".join(kind), *cores)))


def _caches(numbers: Any) -> str:
    caches = numbers.get("caches") if isinstance(numbers, Mapping) else None
    if not isinstance(caches, Mapping):
        return ""
    return ", ".join(f"{name} {size}" for name, size in sorted(caches.items()))


def _instruction_sets(numbers: Any) -> str:
    names = numbers.get("instruction_sets") if isinstance(numbers, Mapping) else None
    return " ".join(sorted(map(str, names))) if isinstance(names, list) else ""


def memory(size: Any) -> str:
    """Return the nominal memory size: the kernel's size rounded up to an eighth of a power of two.
    Kernels reserve different amounts on nodes with the same modules."""
    if not isinstance(size, int) or not 1 <= size < 2**60:
        return ""
    gib = size / 2**30
    step = 2.0 ** (math.floor(math.log2(gib)) - 3)
    return f"{math.ceil(gib / step) * step:g} GiB"
