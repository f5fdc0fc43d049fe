"""Identities of the machines of records, and which of them count as the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from core import gpus


class Identity(NamedTuple):
    """Identity of a machine. Unknown fields are "" and match any value.

    ``hardware``: kinds of GPU and CPU, as text. ``processor``: model numbers and cores of the
    CPU, as text. ``memory``: nominal size. ``host``: host name, "" if a scheduler chose the node:
    nodes of a cluster with equal hardware are interchangeable. ``caches``, ``instruction_sets``:
    those of the processor, as text; under a hypervisor, different processors may share name and
    numbers.
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


def identity(environment: Mapping[str, Any]) -> Identity:
    """Return the identity from a record's ``environment``.

    Numbers of devices are left out, because runs on one and on eight GPUs belong to the same
    machine."""
    hardware = environment["hardware"]
    processor = hardware.get("processor") or {}
    # Older records have the names of GPUs alone.
    listed = [
        gpu if isinstance(gpu, str) else gpus.kind(gpu["name"], gpu.get("state", {}))
        for gpu in hardware.get("gpus", ())
    ]
    return Identity(
        ", ".join(dict.fromkeys(filter(None, [*listed, hardware.get("cpu", "")]))),
        _processor(processor),
        memory(hardware.get("memory_bytes")),
        "" if environment.get("scheduler") else environment["system"].get("host", ""),
        ", ".join(f"{name} {size}" for name, size in sorted(processor.get("caches", {}).items())),
        " ".join(sorted(processor.get("instruction_sets", ()))),
    )


def same(one: Identity, other: Identity) -> bool:
    """Return whether two identities agree in every field that both know."""
    return all(a == b for a, b in zip(one, other, strict=True) if a and b)


def is_here(machine: Identity, here: Identity) -> bool:
    """Return whether a record may be of this machine; it may name only some kinds of its GPUs."""
    kinds = set(machine.hardware.split(", "))
    known = bool(machine.hardware and here.hardware)
    fits = not known or kinds <= set(here.hardware.split(", "))
    return fits and same(machine._replace(hardware=""), here)


def _processor(numbers: Mapping[str, Any]) -> str:
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


def memory(size: int | None) -> str:
    """Return the nominal memory size: the kernel's size rounded up to an eighth of a power of two.
    Kernels reserve different amounts on nodes with the same modules."""
    if not size:
        return ""
    gib = size / 2**30
    step = 2.0 ** (math.floor(math.log2(gib)) - 3)
    return f"{math.ceil(gib / step) * step:g} GiB"
