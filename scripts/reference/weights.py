"""Weights from which all frameworks start the verification, drawn from a seed, and optimizers that
change them. SGD with momentum and coupled weight decay and AdamW (Loshchilov and Hutter 2017,
arXiv:1711.05101) follow ``torch.optim``, LAMB (You et al. 2019, arXiv:1904.00962, algorithm 2)
TensorFlow Addons, as NVIDIA's ELECTRA does."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Dict

import numpy as np
from harness.optimizers import update_rules

Arrays = Dict[str, Any]
Hyper = Dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """An array of normally distributed float32 values. ``negated``: the fraction of values whose
    sign is changed. ``centred``: the mean over all axes but the last is made zero. ``trained``: a
    parameter, not a running statistic."""

    shape: tuple[int, ...]
    spread: float
    mean: float = 0.0
    negated: float = 0.0
    centred: bool = False
    trained: bool = True


def draw(parameters: dict[str, Drawn], seed: int) -> Arrays:
    """Return the float32 arrays by name. Each depends on the seed and its own name alone."""
    weights = {}
    for name, drawn in parameters.items():
        # RandomState, not Generator: its stream is the same in every numpy since 1.0.
        random = np.random.RandomState((zlib.crc32(name.encode()) + seed) % 2**32)
        values = drawn.mean + drawn.spread * random.standard_normal(drawn.shape)
        values[random.random_sample(drawn.shape) < drawn.negated] *= -1
        if drawn.centred:
            values -= values.mean(axis=tuple(range(values.ndim - 1)))
        weights[name] = values.astype(np.float32)
    return weights


def global_norm(gradients: Arrays) -> float:
    """Return the common norm of all gradients."""
    return float(np.sqrt(sum(float(np.vdot(g, g)) for g in gradients.values())))


def clip_by_global_norm(gradients: Arrays, largest: float) -> Arrays:
    """Return all gradients scaled by one factor, so that their common norm is at most
    ``largest``."""
    factor = min(1.0, largest / global_norm(gradients))
    return {name: gradient * factor for name, gradient in gradients.items()}


def update(weights: Arrays, gradients: Arrays, optimizer: Any, hyper: Hyper) -> None:
    """Change ``weights`` by a step of the optimizer, with clipped gradients."""
    largest = hyper.get("clip_global_norm")
    optimizer.step(
        weights, gradients if largest is None else clip_by_global_norm(gradients, largest)
    )


class SGD:
    def __init__(self, hyper: Hyper) -> None:
        self.rate, self.momentum = hyper["learning_rate"], hyper["momentum"]
        self.hyper = hyper
        self.velocity: Arrays = {}

    def step(self, weights: Arrays, gradients: Arrays) -> None:
        rules = update_rules(gradients, self.hyper)
        for name, gradient in gradients.items():
            force = gradient + rules[name].weight_decay * weights[name]
            velocity = self.momentum * self.velocity.get(name, 0.0) + force
            self.velocity[name] = velocity
            weights[name] = weights[name] - self.rate * velocity


class AdamW:
    def __init__(self, hyper: Hyper) -> None:
        self.hyper, self.rate = hyper, hyper["learning_rate"]
        self.layer_decay, self.layers = hyper.get("layer_decay", 1.0), hyper.get("layers", 0)
        self.betas, self.epsilon = (hyper["beta1"], hyper["beta2"]), hyper["epsilon"]
        self.moments: dict[str, tuple[Any, Any]] = {}
        self.steps = 0

    def step(self, weights: Arrays, gradients: Arrays) -> None:
        self.steps += 1
        rules = update_rules(gradients, self.hyper)
        for name, gradient in gradients.items():
            change = self.change(name, gradient) + rules[name].weight_decay * weights[name]
            factor = self.factor(name, weights[name], change, rules[name].trust_ratio)
            weights[name] = weights[name] - self.rate * factor * change

    def change(self, name: str, gradient: Any) -> Any:
        """Return the change of a parameter at learning rate 1, before weight decay."""
        beta1, beta2 = self.betas
        first, second = self.moments.get(name, (0.0, 0.0))
        first = beta1 * first + (1 - beta1) * gradient
        second = beta2 * second + (1 - beta2) * gradient**2
        self.moments[name] = first, second
        denominator = np.sqrt(second / (1 - beta2**self.steps)) + self.epsilon
        return first / (1 - beta1**self.steps) / denominator

    def factor(self, name: str, weight: Any, change: Any, has_ratio: bool) -> float:
        """Return the factor of the learning rate by ELECTRA's layer-wise decay (Clark et al. 2020,
        arXiv:2003.10555).

        The decay is squared for the last layer, and applied once more for each part before it."""
        first, *others = name.split(".")
        if first not in ("embeddings", "layers"):
            return 1.0
        above = self.layers - (1 + int(others[0]) if first == "layers" else 0)
        return self.layer_decay ** (2 + above)


class LAMB(AdamW):
    """LAMB (You et al. 2019, arXiv:1904.00962), whose trust ratio scales weight decay, too."""

    def factor(self, name: str, weight: Any, change: Any, has_ratio: bool) -> float:
        """Return the ratio of the norms; 1 where either is zero."""
        norms = [float(np.linalg.norm(array.ravel())) for array in (weight, change)]
        return norms[0] / norms[1] if has_ratio and all(norms) else 1.0


OPTIMIZERS: Dict[str, Any] = {"sgd": SGD, "adamw": AdamW, "lamb": LAMB}
