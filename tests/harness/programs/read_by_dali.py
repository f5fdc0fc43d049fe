"""Read images with DALI; print what was found as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from core.axes import DALI
from harness.loader import Loading, TokenLoads
from harness.samples import folder

ROOTS, SIZE, BATCH, SEED, ODD = json.loads(sys.argv[1])


class Adapter(Loading):
    MODULE = "json"


# the program calls only methods that load, none that compute
Adapter.__abstractmethods__ = frozenset()
adapter: Any = object.__new__(cast(Any, Adapter))
adapter.case = SimpleNamespace(input=DALI, framework="any")
adapter.rank_context = SimpleNamespace(accelerator="cpu")


def loaded(root: str, split: str, workers: int) -> tuple[Any, Any]:
    images = folder.scan(root, split)
    loads = folder.loads(
        images,
        folder.places_of(len(images.paths), split, 0, SEED, 0, 1),
        split,
        0,
        SEED,
        BATCH,
        SIZE,
        workers,
    )
    return loads, folder.checked(adapter, loads, root)


def reason(call: Callable[..., Any], *arguments: Any) -> str | None:
    try:
        call(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


found: dict[str, Any] = {}
here, cpu = [], []
for split in ("train", "val"):
    asked, found[split] = loaded(ROOTS["good"], split, 0)
    kept = list(adapter.load(asked))  # looked at when all are there
    here.append(asked)
    cpu.append(np.concatenate([entry["images"] for entry in kept]))
    np.save(split, cpu[-1])
found["again"] = loaded(ROOTS["good"], "train", 2)[1]
found["bad"] = {
    name: reason(loaded, root, "train", 0) for name, root in ROOTS.items() if name != "good"
}
found["settings"] = adapter.loader_settings()
found["tokens"] = reason(lambda: adapter.load(TokenLoads("", "uint16", None, 1, 1, 0)))
print("ANSWER " + json.dumps(found))
