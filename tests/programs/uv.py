"""Double of uv: installs a ``snakemake``, and fails while another one works."""

from __future__ import annotations

import os
import sys
from pathlib import Path

python = Path(sys.argv[sys.argv.index("--python") + 1])
root = python.parents[2]
os.close(os.open(root / "busy", os.O_CREAT | os.O_EXCL))
with open(root / "calls", "a") as calls:
    variables = [f"{name}={os.environ[name]}" for name in sorted(os.environ)]
    steering = [pair for pair in variables if pair.startswith(("UV_", "PYTHON", "LD_"))]
    print(*sys.argv[1:], *steering, file=calls)
(python.parent / "snakemake").write_text(f"#!/bin/sh\nexec '{python}'\n")
os.remove(root / "busy")
