"""Records of which a verification failed."""

from __future__ import annotations

import json
import random
from pathlib import Path

from .made_up_records import record_of
from .made_up_verifications import CASE, changed, verification_in

PACKAGES = {name: {"numpy": "2.3.4", name: "1"} for name in ("jax", "pytorch", "tensorflow")}
DIFFERS = "outputs differ from the reference by 0.9 (allowed 0.0001)"


def make_set(folder: Path, fast: float = 1.0, wrong: bool = True) -> Path:
    """Write records of three frameworks in fp32 and amp, of one and two devices, with 8 repeats.
    JAX leads. Its verification in fp32 passes, or fails if ``wrong``. ``fast``: JAX's factor."""
    rng = random.Random(1)
    for framework, packages in PACKAGES.items():
        for precision, devices in (("fp32", 1), ("amp", 1), ("fp32", 2)):
            case = {**CASE, "framework": framework, "precision": precision}
            case |= {"devices_per_node": devices}
            for repeat in range(1, 9):
                record = changed(record_of(rng, case, repeat), packages=packages)
                if framework == "jax":
                    record["window_seconds"] /= fast
                    record["metrics"]["throughput"]["value"] *= fast
                path = folder / "runs" / framework / f"{precision}{devices}" / f"r{repeat}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(record))
            error = 0.9 if wrong and (framework, precision) == ("jax", "fp32") else 1e-6
            verification_in(folder, {**case, "devices_per_node": 1}, error, packages=packages)
    return folder / "runs"
