"""A fake ``nvidia-smi`` that lists made-up GPUs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SCRIPT = """#!{python}
import sys

GPUS = {gpus}
UNKNOWN = {unknown}
if sys.argv[1] == "-L":
    for number, gpu in enumerate(GPUS):
        print(f"GPU {{number}}: {{gpu['name']}} (UUID: {{gpu['uuid']}})")
        for place, (profile, uuid) in enumerate(gpu["instances"]):
            print(f"  MIG {{profile}}     Device  {{place}}: (UUID: {{uuid}})")
    sys.exit()
fields = sys.argv[1].partition("=")[2].split(",")
for field in fields:
    if field in UNKNOWN:
        print(f'Field "{{field}}" is not a valid field to query.\\n')
        sys.exit(2)
for gpu in GPUS:
    print(", ".join(gpu[field] for field in fields))
"""


def gpus(
    count: int,
    name: str,
    memory: int,
    driver: str,
    capability: str,
    mig: str = "Disabled",
    instances: Sequence[tuple[str, str]] = (),
) -> list[dict[str, Any]]:
    """Return GPUs as ``nvidia-smi`` reports them. ``memory``: in MiB; ``mig``: its mode;
    ``instances``: profile and UUID of each on every GPU."""
    return [
        {
            "name": name,
            "memory.total": str(memory),
            "driver_version": driver,
            "uuid": f"GPU-{number}{number}{number}",
            "pci.bus_id": f"00000000:{number + 16:02X}:00.0",
            "mig.mode.current": mig,
            "compute_cap": capability,
            "instances": [*instances],
        }
        for number in range(count)
    ]


def install(folder: Path, listed: list[dict[str, Any]], unknown: Sequence[str] = ()) -> str:
    """Write a command ``nvidia-smi`` to a folder and return its path.

    ``unknown``: fields that its driver does not know."""
    folder.mkdir(parents=True, exist_ok=True)
    text = _SCRIPT.format(python=sys.executable, gpus=json.dumps(listed), unknown=[*unknown])
    return write(folder, text)


def write(folder: Path, text: str) -> str:
    """Write a command ``nvidia-smi`` of this text to a folder and return its path."""
    script = folder / "nvidia-smi"
    script.write_text(text)
    script.chmod(0o755)
    return str(folder)
