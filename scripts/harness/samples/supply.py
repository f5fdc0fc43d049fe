"""Load samples through a framework's loader and check that every one comes once and whole; errors
name the sample.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import os
import zlib
from typing import Any, Dict, Iterator

from harness.adapter import Mismatch, Unsupported
from harness.loader import Loaded, Loading, Loads
from harness.messages.report import error_text
from harness.samples import order
from harness.samples.folder import BadData

#: Batches per worker, and as many more, after the last good one, among which the image that broke
#: a loader is looked for. Loaders prepare two batches per worker.
LOOKED_AT = 4


def broken(adapter: Loading, path: str) -> str:
    """Return why the framework cannot decode a file; "" where it can."""
    try:
        pixels = adapter.decode_file(path)
    except Unsupported:
        raise
    except Exception as error:
        return error_text(error)
    if len(pixels.shape) != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
        return f"decodes to an array of shape {tuple(pixels.shape)}"
    return ""


def batches(adapter: Loading, loads: Loads, root: str) -> Iterator[Loaded]:
    """Yield all batches of the framework's loader.

    Raises :class:`BadData` for an image that broke the loader, and :class:`Mismatch` where it broke
    otherwise, and where samples are missing, in another order, or have another label."""
    import numpy as np

    done = 0
    try:
        for batch in order.in_order(adapter.load(loads), len(loads.paths), "images"):
            numbers = np.asarray(batch.numbers)
            if not np.array_equal(np.asarray(batch.labels), loads.labels[numbers]):
                found = numbers.tolist()
                raise Mismatch(f"the loader gave other labels than those of samples {found}")
            done += len(numbers)
            yield batch
    except Mismatch as error:
        for path in loads.paths[done : done + loads.batch * LOOKED_AT * (loads.workers + 1)]:
            reason = broken(adapter, path)
            if reason:
                name = os.path.relpath(path, root)
                raise BadData(f"{name}: {reason}; remove it from the data") from error
        raise


def checked(adapter: Loading, loads: Loads, root: str) -> Dict[str, Any]:
    """Load all requested samples once and check them.

    Returns the number of images, and a CRC-32 of the sums of their pixels, for the record. Raises
    what :func:`batches` raises, and :class:`Mismatch` for another shape."""
    import numpy as np

    count, crc = 0, {"order": 0, "labels": 0, "images": 0}
    total = 0.0
    for batch in batches(adapter, loads, root):
        images, labels, numbers = (np.asarray(array) for array in batch)
        shape = (len(numbers), loads.size, loads.size, 3)
        if images.shape != shape or images.dtype != np.float32:
            raise Mismatch(f"the loader gave {images.dtype} {images.shape}, not float32 {shape}")
        if not np.isfinite(images).all():
            raise Mismatch(f"the loader gave values that are not finite in {numbers.tolist()}")
        paths = [os.path.relpath(loads.paths[number], root) for number in numbers]
        names = "\0".join([*paths, ""]).encode("utf-8", "surrogateescape")
        crc["order"] = zlib.crc32(names, crc["order"])
        crc["labels"] = order.checksum(labels.astype(np.int64), crc["labels"])
        crc["images"] = order.checksum(images, crc["images"])
        total += float(images.sum(dtype=np.float64))
        count += len(numbers)
    mean = total / (count * loads.size * loads.size * 3)
    return {"images": count, "mean": mean, **{f"{name}_crc32": crc[name] for name in crc}}
