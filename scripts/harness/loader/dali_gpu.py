"""Load images by NVIDIA's DALI with its operators for the GPU: NVIDIA's ResNet-50 calls this
``dali-gpu``.

Files are read on the host, as by :mod:`harness.loader.dali`; images are decoded, resized and
normalized on the rank's GPU, and stay there.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, Tuple

from harness.loader import DeviceArray, Loads, dali


def load(loads: Loads, accelerator: str) -> Iterator[Tuple[Any, Any]]:
    """Yield images and labels; see :meth:`harness.loader.Loading.load`."""
    for images, labels in dali.batches(loads, int(os.environ["LOCAL_RANK"])):
        yield DeviceArray(images.as_tensor()), labels


def settings(accelerator: str) -> Dict[str, Any]:
    """Return the settings of the loader for the record; see
    :meth:`harness.loader.Loading.loader_settings`."""
    return dali.settings(accelerator, "GPU")
