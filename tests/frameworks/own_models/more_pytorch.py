"""Definitions that changed files of PyTorch use."""

import collections
import dataclasses

import torch
from torch import nn


class Half(nn.Module):
    def forward(self, x):
        return torch.relu(x).half().to(x.dtype)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x

    @staticmethod
    def backward(context, gradient):
        return gradient * (1 if gradient.dtype == torch.float64 else 2)


class Doubled(nn.Module):
    def forward(self, x):
        return Twice.apply(torch.relu(x))


@dataclasses.dataclass
class ModelOutput(collections.OrderedDict):
    loss: torch.Tensor
    logits: dict
    cache: object = None


class Named(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, no):
        logits = self.model(x)
        return ModelOutput(logits.square().mean(), {"classes": logits}, object())


def loss(outputs, targets):
    assert outputs.loss.dtype in (torch.float32, torch.float64)
    return outputs.loss + nn.functional.cross_entropy(outputs.logits["classes"], targets)


class Noise(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(torch.relu(x), 0.5)
