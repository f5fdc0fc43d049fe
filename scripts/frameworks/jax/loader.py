"""Images from files: Grain, which JAX's documentation recommends, with worker processes, Pillow's
decoder and Pillow's transforms: JAX has no loader of its own."""

from __future__ import annotations

from typing import Any, Iterator, Sequence

import grain
import numpy as np
from absl import flags
from harness.loader import one_by_one

if not flags.FLAGS.is_parsed():
    # Grain requires parsed flags, but this command line has none of Grain's
    flags.FLAGS.mark_as_parsed()


def batches(samples: Any, batch: int, workers: int, accelerator: str) -> Iterator[Sequence[Any]]:
    """Yield the batches of ``samples``, in order; see :data:`harness.loader.one_by_one.Batches`.
    Samples are grouped into batches before workers get them, so that each batch has the requested
    samples. A worker reads without threads of its own."""
    data = grain.MapDataset.source(samples).batch(batch, batch_fn=one_by_one.stacked)
    reads = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    dealt = data.to_iter_dataset(reads)
    if workers:
        dealt = dealt.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
    for arrays in dealt:
        yield [np.asarray(values) for values in arrays]


load, settings = one_by_one.loader_of(
    one_by_one.ImageSamples,
    batches,
    loader=f"grain.MapDataset, Grain {grain.__version__}",
    transforms="Pillow",
)
