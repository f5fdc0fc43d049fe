"""SuperBench's LSTM: ``nn.LSTM``, with a linear layer on its last step."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from mindspore import Tensor, nn
from mindspore.common.initializer import Uniform

from .cnn import ClassifierDefinition


class Classifier(nn.Cell):
    """Features (batch, sequence, features) -> logits (batch, classes)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        features, hidden = hyper["features"], hyper["hidden"]
        drawn = Uniform(hidden**-0.5)
        self.lstm = nn.LSTM(features, hidden, num_layers=hyper["layers"], batch_first=True)
        self.classifier = nn.Dense(hidden, hyper["classes"], weight_init=drawn, bias_init=drawn)

    def construct(self, features: Tensor) -> Tuple[Tensor]:
        outputs, _ = self.lstm(features)
        return (self.classifier(outputs[:, -1]),)


class Definition(ClassifierDefinition):
    def build(self, training: bool) -> nn.Cell:
        return Classifier(self.hyper)
