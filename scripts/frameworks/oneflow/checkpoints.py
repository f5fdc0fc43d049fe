"""A training on disk: the ``state_dict`` of model and optimizer. OneFlow 0.9 has functions for the
state of random numbers, which do not bring it back."""

from __future__ import annotations

import oneflow
from oneflow import nn, optim


def save(path: str, model: nn.Module, optimizer: optim.Optimizer) -> None:
    """Save a checkpoint in eager mode; ``path`` is a folder."""
    oneflow.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


def load(path: str, model: nn.Module, optimizer: optim.Optimizer) -> None:
    kept = oneflow.load(path)
    # not load_state_dict, which does not find layers with dots in their names
    with oneflow.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(kept["model"][name])
    optimizer.load_state_dict(kept["optimizer"])
