"""Where the samples of a case's steps come from, as ``scripts/harness/inputs.py`` says."""

from __future__ import annotations

#: A batch that lies on the device; what a suite need not name.
SYNTHETIC = "synthetic"
SYNTHETIC_HOST = "synthetic_host"
#: Images in a folder.
DATA = "data"
#: The same, read by DALI.
DALI = "dali"
NAMES = (SYNTHETIC, SYNTHETIC_HOST, DATA, DALI)
#: Those that read files.
READING = (DATA, DALI)


def told_apart(name: str, identity: str) -> str:
    """The name of an input whose data set has this identity: ``data@1a2b3c4d``."""
    return f"{name}@{identity[:8]}"


def without_identity(text: str) -> str:
    """The name alone of what :func:`told_apart` made."""
    return text.partition("@")[0]
