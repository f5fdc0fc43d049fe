"""One step of the optimizers by the rules of ``torch.optim`` (SGD with momentum and coupled weight
decay; AdamW of Loshchilov and Hutter 2017, arXiv:1711.05101), in place."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def clip_by_global_norm(gradients: Arrays, largest: float) -> Arrays:
    """All gradients scaled by one factor, so that the norm of all is at most ``largest``."""
    norm = np.sqrt(sum(float(np.vdot(g, g)) for g in gradients.values()))
    factor = min(1.0, largest / norm)
    return {name: gradient * factor for name, gradient in gradients.items()}


class SGD:
    def __init__(self, hyper: dict[str, Any]) -> None:
        self.rate, self.momentum = hyper["learning_rate"], hyper["momentum"]
        self.decay = hyper["weight_decay"]
        self.velocity: Arrays = {}

    def step(self, weights: Arrays, gradients: Arrays) -> None:
        for name, gradient in gradients.items():
            force = gradient + self.decay * weights[name]
            velocity = self.momentum * self.velocity.get(name, 0.0) + force
            self.velocity[name] = velocity
            weights[name] = weights[name] - self.rate * velocity


class AdamW:
    def __init__(self, hyper: dict[str, Any]) -> None:
        self.rate, self.decay = hyper["learning_rate"], hyper["weight_decay"]
        self.layer_decay, self.layers = hyper.get("layer_decay", 1.0), hyper.get("layers", 0)
        self.betas, self.epsilon = (hyper["beta1"], hyper["beta2"]), hyper["epsilon"]
        self.moments: dict[str, tuple[Any, Any]] = {}
        self.steps = 0

    def step(self, weights: Arrays, gradients: Arrays) -> None:
        self.steps += 1
        beta1, beta2 = self.betas
        for name, gradient in gradients.items():
            first, second = self.moments.get(name, (0.0, 0.0))
            first = beta1 * first + (1 - beta1) * gradient
            second = beta2 * second + (1 - beta2) * gradient**2
            self.moments[name] = first, second
            denominator = np.sqrt(second / (1 - beta2**self.steps)) + self.epsilon
            change = first / (1 - beta1**self.steps) / denominator
            rate = self.rate * self._part(name)
            weights[name] = weights[name] - rate * (change + self.decay * weights[name])

    def _part(self, name: str) -> float:
        """Of the learning rate, by ELECTRA's layer-wise decay (Clark et al. 2020,
        arXiv:2003.10555): squared for the last layer, once more for each part before it."""
        first, *others = name.split(".")
        if first not in ("embeddings", "layers"):
            return 1.0
        above = self.layers - (1 + int(others[0]) if first == "layers" else 0)
        return self.layer_decay ** (2 + above)


OPTIMIZERS: dict[str, Any] = {"sgd": SGD, "adamw": AdamW}
