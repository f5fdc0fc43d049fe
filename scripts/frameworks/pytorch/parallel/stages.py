"""Layers and parameters of the stages of a pipeline, and the schedules that exist."""

from __future__ import annotations

import copy
from typing import Any, List, Set

from harness.adapter import Unsupported
from torch import nn


def part_of(model: nn.Module, kept: Set[str], layers: range) -> nn.Module:
    """Return ``model`` with some of its layers, by their numbers, and of its other parameters those
    ``kept``, by name. What it has it shares with the model."""
    part = _pruned(model, {name for name in kept if not name.startswith("layers.")})
    chain: Any = model.layers
    part.layers = nn.ModuleDict({str(number): chain[number] for number in layers})
    return part


def _pruned(module: nn.Module, kept: Set[str], prefix: str = "") -> nn.Module:
    names = {f"{prefix}{name}" for name, _ in module.named_parameters()}
    if names <= kept:
        return module
    part = copy.copy(module)
    part._parameters = {
        name: parameter
        for name, parameter in module._parameters.items()
        if parameter is None or f"{prefix}{name}" in kept
    }
    part._modules = {
        name: None if child is None else _pruned(child, kept, f"{prefix}{name}.")
        for name, child in module._modules.items()
    }
    return part


def register(model: nn.Module, name: str, parameter: nn.Parameter) -> None:
    """Replace the parameter of this ``name`` in the model by ``parameter``."""
    module, _, leaf = name.rpartition(".")
    model.get_submodule(module).register_parameter(leaf, parameter)


def require_schedule(ranks: int, interleaved: bool, micro_steps: int) -> None:
    """Raise :class:`Unsupported` where PyTorch has no schedule of so many micro-steps."""
    if interleaved:
        rounds = max(1, micro_steps // ranks)
        if micro_steps % rounds:
            raise Unsupported(
                f"interleaved 1F1B of {ranks} ranks takes a multiple of {rounds} micro-steps here, "
                f"not {micro_steps}"
            )
    elif 1 < micro_steps < ranks:
        raise Unsupported(
            f"1F1B takes at least as many micro-steps as there are stages, {ranks}, or a single "
            f"one, not {micro_steps}"
        )


def spans_of(layers: int, stages: int, ranks: int) -> List[range]:
    """Return the layers of each stage, as even as can be. What is left over goes to the stages
    between the first and the last, which have embeddings and head, then to the first. Raises
    :class:`Unsupported` where one between them would have none, or a rank."""
    each, over = divmod(layers, stages)
    if layers < max(ranks, stages - 2):
        raise Unsupported(f"{layers} layers cannot be divided into {stages} stages")
    sizes = [each] * stages
    for number in [*range(1, stages - 1), 0, stages - 1][:over]:
        sizes[number] += 1
    ends = [sum(sizes[: number + 1]) for number in range(stages)]
    return [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]
