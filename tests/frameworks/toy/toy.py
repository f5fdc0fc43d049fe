"""The toy model: ``slope * x + offset`` fitted to points by gradient descent, in plain Python."""

from __future__ import annotations

import random
from typing import List, Tuple


class Line:
    """Two trainable parameters."""

    def __init__(self, batch: int, seed: int) -> None:
        self.weights = [0.5, 0.5]
        draw = random.Random(seed)
        self.points: List[Tuple[float, float]] = []
        for _ in range(batch):
            x = draw.uniform(-1, 1)
            self.points.append((x, 3 * x - 1 + draw.gauss(0, 0.1)))

    def forward(self) -> List[float]:
        slope, offset = self.weights
        return [slope * x + offset for x, _ in self.points]

    def loss_and_gradients(self) -> Tuple[float, List[float]]:
        errors = [output - y for output, (_, y) in zip(self.forward(), self.points)]
        count = len(errors)
        loss = sum(error * error for error in errors) / count
        slope = sum(2 * error * x for error, (x, _) in zip(errors, self.points)) / count
        return loss, [slope, sum(2 * error for error in errors) / count]
