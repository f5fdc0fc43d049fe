"""Where the samples of a step come from; ``input`` of a case."""

from __future__ import annotations

#: A batch that is made before the model is built, and lies on the device.
SYNTHETIC = "synthetic"
#: The same batch lies on the host, and is copied to the device before each step.
SYNTHETIC_HOST = "synthetic_host"
#: Another batch before each step, of images that the framework's loader reads from files.
DATA = "data"
#: The same, read by NVIDIA's DALI in the place of the framework's loader.
DALI = "dali"
NAMES = (SYNTHETIC, SYNTHETIC_HOST, DATA, DALI)
#: Inputs that read files.
READING = (DATA, DALI)


def told_apart(name: str, identity: str) -> str:
    """Return the name of an input whose data set has this identity: ``data@1a2b3c4d``."""
    return f"{name}@{identity[:8]}"


def without_identity(text: str) -> str:
    """Return the name alone of a text that :func:`told_apart` made."""
    return text.partition("@")[0]
