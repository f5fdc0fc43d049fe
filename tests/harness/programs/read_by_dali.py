"""Read images with DALI, on the CPU and as on a GPU; print what was found as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from core.inputs import DALI, DALI_GPU
from harness.loader import Loading, TokenLoads
from harness.samples import folder, order
from nvidia.dali import Pipeline, fn

ROOTS, SIZE, BATCH, SEED, ODD = json.loads(sys.argv[1])


class Adapter(Loading):
    MODULE = "json"


Adapter.__abstractmethods__ = frozenset()  # what computes is not asked for
adapter: Any = object.__new__(cast(Any, Adapter))
adapter.case = SimpleNamespace(input=DALI, framework="any")
adapter.rank_context = SimpleNamespace(accelerator="cpu")


def loaded(root: str, split: str, workers: int) -> tuple[Any, Any]:
    images = folder.scan(root, split)
    loads = order.loads(
        images,
        order.places_of(len(images.paths), split, 0, SEED, 0, 1),
        split,
        0,
        SEED,
        BATCH,
        SIZE,
        workers,
    )
    return loads, order.checked(adapter, loads, root)


def reason(call: Callable[..., Any], *arguments: Any) -> str | None:
    try:
        call(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def take_first(asked: Any) -> None:
    next(adapter.load(asked))


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

adapter.case.input = DALI_GPU
found["refused"] = [reason(lambda: adapter.load(asked))]
adapter.rank_context.accelerator = "cuda"
found["refused"].append(reason(lambda: adapter.load(asked)))
Adapter.MODULE = "numpy"
os.environ["LOCAL_RANK"] = "1"

# DALI checks operators and their arguments before it asks for a GPU.
made: list[Any] = []
set_outputs = Pipeline.set_outputs


def note(pipeline: Any, *outputs: Any) -> None:
    made.append([pipeline.device_id, *(output.device for output in outputs)])
    raise RuntimeError("defined")


Pipeline.set_outputs = note
found["defined"] = [reason(take_first, entry) for entry in here]
found["made"], Pipeline.set_outputs = made, set_outputs


def on_cpu(operator: Any) -> Any:
    def decode(*arguments: Any, device: str, **options: Any) -> Any:
        assert device == "mixed"
        return operator(*arguments, device="cpu", **options)

    return decode


fn.decoders.image, fn.decoders.image_slice = map(
    on_cpu, (fn.decoders.image, fn.decoders.image_slice)
)
start = Pipeline.__init__


def without_gpu(pipeline: Any, batch: int, threads: int, gpu: int, **options: Any) -> None:
    assert gpu == 1
    start(pipeline, batch, threads, None, **options)


Pipeline.__init__ = without_gpu
on_gpu = []
for entry, images in zip(here, cpu, strict=True):
    arrays, shared, agree = [], [], []
    for batch in adapter.load(entry):
        array = np.asarray(batch["images"])
        arrays.append(array)
        shared.append(adapter.device_tensor(batch["images"]))
        agree.append(
            (batch["images"].shape, batch["images"].dtype) == (array.shape, str(array.dtype))
        )
    # Looked at when all are there.
    kept = [bool(np.array_equal(*pair)) for pair in zip(arrays, shared, strict=True)]
    on_gpu.append([bool(np.array_equal(np.concatenate(arrays), images)), *kept, *agree])
Pipeline.exec_dynamic = False
found["overwritten"] = reason(take_first, here[0])
found["on_gpu"] = on_gpu
found["gpu_settings"] = adapter.loader_settings()
print("ANSWER " + json.dumps(found))
