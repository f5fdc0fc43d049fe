"""Fake ``nvidia-smi``: nvidia_smi.py LISTED WORD; the JSON file LISTED has the GPUs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

gpus = json.loads(Path(sys.argv[1]).read_text())
word = sys.argv[2]
if word == "-L":
    for number, gpu in enumerate(gpus):
        print(f"GPU {number}: {gpu['name']} (UUID: {gpu['uuid']})")
        for place, (profile, uuid) in enumerate(gpu["instances"]):
            print(f"  MIG {profile}     Device  {place}: (UUID: {uuid})")
    sys.exit()
fields = word.partition("=")[2].split(",")
for gpu in gpus:
    print(", ".join(gpu.get(field, "[N/A]") for field in fields))
