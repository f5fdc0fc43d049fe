"""Inputs of a case: sources of the samples of a step."""

from __future__ import annotations

#: Batch made before the model is built, and kept on the device.
SYNTHETIC = "synthetic"
#: Synthetic batch on the host, copied to the device before each step.
SYNTHETIC_HOST = "synthetic_host"
#: New batch before each step, of images that the framework's loader reads from files.
DATA = "data"
#: New batch before each step, of images that NVIDIA's DALI reads from files.
DALI = "dali"
#: As DALI; the GPU decodes the images.
DALI_GPU = "dali_gpu"
#: Input of an imported figure that states none, and of our runs with a synthetic batch.
NATIVE = "native"
NAMES = (SYNTHETIC, SYNTHETIC_HOST, DATA, DALI, DALI_GPU)
#: Inputs that DALI reads.
OF_DALI = (DALI, DALI_GPU)
#: Inputs that read files.
READING = (DATA, *OF_DALI)


def told_apart(name: str, identity: str) -> str:
    """Return an input's name with the identity of its data set, such as ``data@1a2b3c4d``."""
    return f"{name}@{identity[:8]}"


def without_identity(text: str) -> str:
    """Return the input's name in a text of :func:`told_apart`."""
    return text.partition("@")[0]
