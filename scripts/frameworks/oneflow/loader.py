"""Images from files: oneflow.utils.data.DataLoader with worker processes, Pillow's decoder and
Pillow's transforms, which flowvision's stand on."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Sequence

from harness.loader import TIMEOUT, one_by_one, pillow
from oneflow.utils.data import DataLoader

pixels = pillow.pixels


def batches(samples: Any, batch: int, workers: int, accelerator: str) -> Iterator[Sequence[Any]]:
    """Yield the batches of ``samples``, in order; see :data:`harness.loader.one_by_one.Batches`.
    Workers return numpy arrays, because OneFlow's virtual machine does not survive a fork and could
    make no tensor."""
    yield from DataLoader(
        samples,
        batch_size=batch,
        num_workers=workers,
        collate_fn=one_by_one.stacked,
        timeout=TIMEOUT if workers else 0,
    )


load, load_tokens = one_by_one.loading(pillow.PillowImages, batches)


def settings(accelerator: str) -> Dict[str, Any]:
    """Return the settings of the loader for the record; see
    :meth:`harness.loader.Loading.loader_settings`."""
    return {
        "loader": "oneflow.utils.data.DataLoader",
        "workers_are": "processes",
        "transforms": "Pillow",
        **pillow.settings(),
    }
