"""Processors as the kernel describes them: what tells models of the same name apart, and
instruction sets."""

from __future__ import annotations

import glob
import os
import re
from typing import Any, Dict, List

from harness.machine.sources import file_line, file_text

_CPUINFO = "/proc/cpuinfo"
_CPU0 = "/sys/devices/system/cpu/cpu0"
_OF_CACHE = ("level", "type", "size")
#: Keys of /proc/cpuinfo on x86 and on ARM.
_NAMES = {
    "vendor": ("vendor_id", "CPU implementer"),
    "family": ("cpu family", "CPU architecture"),
    "model": ("model", "CPU part"),
    "stepping": ("stepping", "CPU revision"),
    "microcode": ("microcode",),
}
#: Instruction sets that decide which linear algebra code runs.
_INSTRUCTIONS = re.compile(
    r"^(sse4_2|avx|avx2|fma|f16c|avx512\w*|avx_\w+|avx10\w*|amx_\w+"
    r"|asimd\w*|sve\w*|sme|sme2|bf16|i8mm)$"
)


def _blocks(text: str) -> List[Dict[str, str]]:
    """Return the entries of each logical core."""
    blocks = []
    for block in text.split("\n\n"):
        lines = (line.partition(":") for line in block.splitlines())
        entries = {name.strip(): value.strip() for name, _, value in lines}
        if "processor" in entries:
            blocks.append(entries)
    return blocks


def _caches(folder: str) -> Dict[str, str]:
    """Return the size of each cache of the first core, as the kernel writes it: ``{"L1 Data":
    "32K"}``."""
    sizes = {}
    for cache in sorted(glob.glob(os.path.join(folder, "index*"))):
        level, kind, size = (file_line(os.path.join(cache, name)) for name in _OF_CACHE)
        if not (level and kind and size):
            return {}
        sizes[f"L{level} {kind}"] = size
    return sizes


def processor(cpuinfo: str = _CPUINFO, cpu0: str = _CPU0) -> Dict[str, Any]:
    """Return vendor, family, model, stepping and microcode in the kernel's numbers; sockets,
    physical and logical cores of the whole machine; caches; and instruction sets that matter for
    linear algebra.

    Values that the kernel does not report are missing."""
    blocks = _blocks(file_text(cpuinfo) or "")
    if not blocks:
        return {}
    first = blocks[0]
    description: Dict[str, Any] = {}
    for key, names in _NAMES.items():
        value = next((first[name] for name in names if first.get(name)), None)
        if value is not None:
            description[key] = value
    sockets = {block.get("physical id") for block in blocks}
    if None not in sockets:
        description["sockets"] = len(sockets)
        physical = {(block["physical id"], block.get("core id")) for block in blocks}
        description["physical_cores"] = len(physical)
    description["logical_cores"] = len(blocks)
    description["caches"] = _caches(os.path.join(cpu0, "cache"))
    flags = (first.get("flags") or first.get("Features") or "").split()
    description["instruction_sets"] = sorted(flag for flag in flags if _INSTRUCTIONS.match(flag))
    return description
