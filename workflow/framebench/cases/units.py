"""Units of figures: which name the same quantity, and the factor between them."""

from __future__ import annotations

import re

_PREFIXES = {
    "": 1.0, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6,
    "G": 1e9, "T": 1e12, "P": 1e15, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip
#: Units that take a prefix.
_SCALED = re.compile(r"(?P<prefix>[KMGT]i|[nuµμmkKMGTP]|)(?P<base>s|B|b|FLOP|OP|IOP|J|W|Wh|Hz)")
#: Other spellings of a unit.
_SPELLINGS = {
    "img": "images", "imgs": "images", "image": "images", "sample": "samples", "token": "tokens",
    "seq": "sequences", "seqs": "sequences", "sequence": "sequences", "sec": "s", "secs": "s",
    "second": "s", "seconds": "s", "usec": "us", "msec": "ms", "bytes": "B", "byte": "B",
}  # fmt: skip
_TIMES = {"min": 60.0, "h": 3600.0}


def base_of(unit: str) -> tuple[float, str]:
    """Return the factor from ``unit`` to the unit of its quantity without prefix, and that unit."""
    text = re.sub(r"FLOPS$", "FLOP/s", unit.strip()).replace(" per ", "/")
    factor, bases = 1.0, []
    for power, part in zip((1, *[-1] * text.count("/")), text.split("/"), strict=True):
        name = _SPELLINGS.get(part.strip(), part.strip())
        if name in _TIMES:
            scale, name = _TIMES[name], "s"
        elif scaled := _SCALED.fullmatch(name):
            scale, name = _PREFIXES[scaled["prefix"]], scaled["base"]
        else:
            scale = 1.0
        factor *= scale**power
        bases.append(name)
    return factor, "/".join(bases)


def factor(unit: str, other: str) -> float | None:
    """Return the factor from ``unit`` to ``other``; None if they name other quantities."""
    (own, base), (others, other_base) = base_of(unit), base_of(other)
    return own / others if base == other_base else None
