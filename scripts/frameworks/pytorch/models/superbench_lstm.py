"""SuperBench's LSTM: ``nn.LSTM``, with a linear layer on its last step."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from harness.adapter import Unsupported
from torch import Tensor, nn

from .layers import ModelDefinition

#: oneDNN's message for a layer that it lacks in a dtype on this processor.
_LACKING = "could not create a primitive"


class Classifier(nn.Module):
    """Features (batch, sequence, features) -> logits (batch, classes)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        features, hidden = hyper["features"], hyper["hidden"]
        self.lstm = nn.LSTM(features, hidden, hyper["layers"], batch_first=True)
        self.classifier = nn.Linear(hidden, hyper["classes"])

    def forward(self, features: Tensor) -> Tuple[Tensor]:
        """Map (batch, sequence, features) to logits (batch, classes), by the last step.

        Raises Unsupported where PyTorch has no LSTM in this dtype on this processor."""
        try:
            outputs, _ = self.lstm(features)
        except RuntimeError as error:
            if _LACKING not in str(error):
                raise
            raise Unsupported(f"PyTorch's LSTM: {str(error).splitlines()[0]}") from error
        return (self.classifier(outputs[:, -1]),)


class Definition(ModelDefinition):
    def build(self) -> nn.Module:
        return Classifier(self.hyper)
