"""Layer-wise decay of the learning rate, with which ELECTRA is fine-tuned (Clark et al. 2020,
arXiv:2003.10555): layers far from the head learn more slowly.

As in their code, the head has the rate of the model config, the last layer that times
``layer_decay`` squared, each layer before it one factor more, and the embeddings one more than the
first layer.

Standard library only; Python 3.7 to 3.13.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

from harness.adapter import Unsupported

#: Hyper-parameter of the decay; without it all layers have one rate.
DECAY = "layer_decay"


def decays(model_config: Mapping[str, Any]) -> bool:
    return DECAY in model_config["hyperparameters"]


def factor(name: str, hyper: Mapping[str, Any]) -> float:
    """Return the factor of a parameter's learning rate, by the name that all frameworks share."""
    top = int(hyper["layers"]) + 2
    part, number = (name.split(".") + [""])[:2]
    depth = top
    if part == "embeddings":
        depth = 0
    elif part == "layers":
        depth = 1 + int(number)
    return float(hyper[DECAY]) ** (top - depth)


def refuse(model_config: Dict[str, Any]) -> None:
    """Raise :class:`Unsupported` for a model config with a learning rate for each layer."""
    if decays(model_config):
        raise Unsupported("its optimizer has one learning rate for all layers here")
