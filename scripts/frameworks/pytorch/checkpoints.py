"""A training on disk: the states of its parts, and of the random numbers that dropout draws."""

from __future__ import annotations

from typing import Any, Dict

import torch


def save(path: str, parts: Dict[str, Any], device: torch.device) -> None:
    """Save ``parts``, objects with a ``state_dict``, by name."""
    kept = {name: part.state_dict() for name, part in parts.items()}
    kept["random"] = torch.get_rng_state()
    if device.type == "cuda":
        kept["random_cuda"] = torch.cuda.get_rng_state(device)
    torch.save(kept, path)


def load(path: str, parts: Dict[str, Any], device: torch.device) -> None:
    kept = torch.load(path, map_location=device, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(kept[name])
    torch.set_rng_state(kept["random"].cpu())
    if device.type == "cuda":
        torch.cuda.set_rng_state(kept["random_cuda"].cpu(), device)
