"""Linear layers whose matmuls take float8, by torchao; the rest of a model runs as under ``amp``.

Operands are scaled to float8's range and rounded each time; products are of float8
(``torch._scaled_mm``), sums are not. Weights, gradients and optimizer stay as they are.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import torch
from harness.adapter import Unsupported
from torch import nn

#: torchao's recipe of each precision. ``tensorwise``: a scale for each tensor, E4M3 in the forward
#: pass and E5M2 for gradients, also called hybrid. ``rowwise``: a scale for each row, E4M3 in both.
RECIPES = {"fp8": "tensorwise", "fp8_e4m3": "rowwise"}
#: Sides of matrices must be multiples of this number for the kernels.
MULTIPLE = 16
#: The first compute capability whose matrix units take float8.
CAPABILITY = (8, 9)


def require(precision: str, device: torch.device) -> None:
    """Raise :class:`Unsupported` where the ``device`` has no matmuls of float8."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < CAPABILITY:
        needed = ".".join(map(str, CAPABILITY))
        raise Unsupported(
            f"{precision} needs NVIDIA's GPUs of compute capability {needed} and later; the device "
            f"is {torch.cuda.get_device_name(device)}"
        )


def convert(model: nn.Module, precision: str, dtype: torch.dtype) -> None:
    """Make the linear layers of ``model`` multiply in float8 where both extents of their weights
    are multiples of 16. ``dtype``: dtype of their inputs. Raises :class:`Unsupported` where no
    layer can, or where most of the model cannot."""
    if any(isinstance(module, nn.modules.conv._ConvNd) for module in model.modules()):
        raise Unsupported("PyTorch has no convolutions in float8")
    # hides warnings about CUDA extensions that a build for CPUs cannot load
    logging.disable(logging.WARNING)
    try:
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training
        from torchao.float8.float8_linear import Float8Linear
    finally:
        logging.disable(logging.NOTSET)
    recipe = Float8LinearConfig.from_recipe_name(RECIPES[precision])
    # gradients are matmuls along the rows of a batch, whose number may be any
    config = replace(recipe, pad_inner_dim=True)
    convert_to_float8_training(model, config=config, module_filter_fn=_fits)
    converted = [module for module in model.modules() if isinstance(module, Float8Linear)]
    if not converted:
        raise Unsupported(
            f"the model has no linear layer whose sides are multiples of {MULTIPLE}, which float8 "
            "takes"
        )
    for layer in converted:  # torchao reads the dtype of autocast on GPUs only
        layer.register_forward_pre_hook(
            lambda _, inputs: tuple(tensor.to(dtype) for tensor in inputs)
        )


def _fits(module: nn.Module, name: str) -> bool:
    linear = isinstance(module, nn.Linear)
    return linear and all(side % MULTIPLE == 0 for side in module.weight.shape)
