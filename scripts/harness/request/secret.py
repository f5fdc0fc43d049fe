"""Variables that are nobody else's business."""

from __future__ import annotations

import re

# TF_VAR_ and TF_CLI_ are Terraform's, not TensorFlow's.
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|_KEY|^TF_(VAR|CLI)_", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a variable of this name may hold a secret."""
    return bool(_SECRET.search(name))
