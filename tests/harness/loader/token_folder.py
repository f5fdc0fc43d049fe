"""Token files, as make-data writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def tokens(root: Path, train: int = 1000, val: int = 300, dtype: str = "uint16") -> Path:
    """Write tokens below 257."""
    root.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", train), ("val", val)):
        drawn = np.random.RandomState(count).randint(0, 257, count)
        (root / f"{split}.bin").write_bytes(drawn.astype(dtype).tobytes())
        (root / f"{split}.json").write_text(json.dumps({"dtype": dtype, "vocabulary": 257}))
    return root
