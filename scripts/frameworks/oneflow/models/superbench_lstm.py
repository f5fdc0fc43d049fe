"""SuperBench's LSTM: ``nn.LSTM``, with a linear layer on its last step."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from oneflow import Tensor, nn

from .layers import ModelDefinition


class Classifier(nn.Module):
    """Features (batch, sequence, features) -> logits (batch, classes)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        features, hidden = hyper["features"], hyper["hidden"]
        self.lstm = nn.LSTM(features, hidden, num_layers=hyper["layers"], batch_first=True)
        self.classifier = nn.Linear(hidden, hyper["classes"])

    def forward(self, features: Tensor) -> Tuple[Tensor]:
        outputs, _ = self.lstm(features)
        return (self.classifier(outputs[:, -1]),)


class Definition(ModelDefinition):
    def build(self) -> nn.Module:
        return Classifier(self.hyper)
