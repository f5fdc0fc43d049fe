"""The toy model: ``slope * x + offset`` fitted to points by gradient descent, in plain Python."""

from __future__ import annotations

import random


class Line:
    """Two trainable parameters."""

    def __init__(self, batch: int, seed: int) -> None:
        self.weights = [0.5, 0.5]
        draw = random.Random(seed)
        self.points: list[tuple[float, float]] = []
        for _ in range(batch):
            x = draw.uniform(-1, 1)
            self.points.append((x, 3 * x - 1 + draw.gauss(0, 0.1)))

    def forward(self) -> list[float]:
        slope, offset = self.weights
        return [slope * x + offset for x, _ in self.points]

    def loss_and_gradients(
        self, first: int = 0, last: int | None = None
    ) -> tuple[float, list[float]]:
        """Return loss and gradients of the points from ``first`` to before ``last``."""
        slope, offset = self.weights
        errors = [(slope * x + offset - y, x) for x, y in self.points[first:last]]
        loss = sum(error * error for error, _ in errors)
        gradients = [sum(2 * error * x for error, x in errors), sum(2 * e for e, _ in errors)]
        return loss / len(errors), [gradient / len(errors) for gradient in gradients]
