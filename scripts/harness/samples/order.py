"""Order and crops of samples, the same in every framework by the seed.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import os
import zlib
from typing import Any, Iterator

from harness.adapter import Mismatch
from harness.loader import DRAWS, Loads
from harness.messages.report import error_text
from harness.samples.folder import TRAIN, BadData, Images


def places_of(
    count: int, split: str, number: int, seed: int, rank: int, ranks: int, most: int = 0
) -> Any:
    """Return the indices of a rank's samples, of ``count``, in epoch ``number``, int64.

    They are shuffled in training, in order in validation; each sample goes to one rank, and all
    ranks get equally many. ``most``: samples of an epoch, 0 for all; the same in each epoch."""
    import numpy as np

    # RandomState, not Generator: its stream is the same in every numpy since 1.0.
    chosen = np.random.RandomState([seed, 0]).permutation(count)[: most or count]
    chosen.sort()
    if split == TRAIN:
        np.random.RandomState([seed, 1 + number]).shuffle(chosen)
    each = len(chosen) // ranks
    return chosen[rank * each : (rank + 1) * each].astype(np.int64)


def loads(
    images: Images,
    places: Any,
    split: str,
    number: int,
    seed: int,
    batch: int,
    size: int,
    workers: int,
) -> Loads:
    """Return the request to a loader for the images at these ``places``, with the crops of this
    epoch. Raises :class:`BadData` where they are too few for a batch."""
    import numpy as np

    if len(places) < batch:
        raise BadData(
            f"{os.path.join(images.root, split)} has {len(places)} images for this rank, too few "
            f"for a batch of {batch}"
        )
    draws = None
    if split == TRAIN:
        first = int(places[0])
        draws = np.random.RandomState([seed, number, first]).uniform(size=(len(places), DRAWS))
    return Loads(
        paths=[os.path.join(images.root, images.paths[index]) for index in places],
        labels=np.array([images.labels[index] for index in places], np.int64),
        draws=draws,
        batch=batch,
        size=size,
        workers=workers,
    )


def beginning(loads: Loads, count: int) -> Loads:
    """Return the request for the first ``count`` samples only."""
    return loads._replace(
        paths=loads.paths[:count],
        labels=loads.labels[:count],
        draws=None if loads.draws is None else loads.draws[:count],
    )


def in_order(loaded: Iterator[Any], count: int, unit: str) -> Iterator[Any]:
    """Yield the batches of a loader of ``count`` samples. ``unit``: name of the samples.

    Raises :class:`Mismatch` where the loader breaks, and where samples are missing or in another
    order."""
    import numpy as np

    done = 0
    while True:
        try:
            batch = next(loaded, None)
        except Exception as error:
            raise Mismatch(f"the loader broke behind {done} {unit}: {error_text(error)}") from error
        if batch is None:
            break
        numbers = np.asarray(batch.numbers)
        expected = np.arange(done, done + len(numbers))
        if not np.array_equal(numbers, expected):
            raise Mismatch(f"the loader gave samples {numbers.tolist()}, not {expected.tolist()}")
        done += len(numbers)
        yield batch
    if done != count:
        raise Mismatch(f"the loader gave {done} {unit} of {count}")


def checksum(array: Any, before: int = 0) -> int:
    """Return the CRC-32 of an array's bytes, continuing from ``before``."""
    import numpy as np

    return zlib.crc32(np.ascontiguousarray(array).tobytes(), before)
