"""Own model of a repository with CI."""

from __future__ import annotations

from typing import Any

import torch

FRAMEWORK = "pytorch"


def make(batch_size: int) -> Any:
    model = torch.nn.Linear(4, 2)
    batch = torch.randn(batch_size, 4), torch.randint(2, (batch_size,))
    return model, batch, torch.nn.CrossEntropyLoss()
