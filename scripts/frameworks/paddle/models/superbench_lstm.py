"""SuperBench's LSTM: ``nn.LSTM``, with a linear layer on its last step."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from paddle import Tensor, nn

from .layers import ModelDefinition


class Classifier(nn.Layer):
    """Features (batch, sequence, features) -> logits (batch, classes)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.lstm = nn.LSTM(hyper["features"], hidden, num_layers=hyper["layers"])
        bound = hidden**-0.5  # PyTorch's bound, which is also this layer's default
        uniform = nn.initializer.Uniform(-bound, bound)
        self.classifier = nn.Linear(
            hidden, hyper["classes"], weight_attr=uniform, bias_attr=uniform
        )

    def forward(self, features: Tensor) -> Tuple[Tensor]:
        outputs, _ = self.lstm(features)
        return (self.classifier(outputs[:, -1]),)


class Definition(ModelDefinition):
    def build(self) -> nn.Layer:
        return Classifier(self.hyper)
