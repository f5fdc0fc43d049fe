"""Model some of whose layers have no gradient in some steps, with shapes from its first pass.
With a compiler, each step has a graph break and a recompilation."""

import torch
from torch import nn

FRAMEWORK = "pytorch"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.steps = nn.LazyLinear(8), 0
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        self.steps += 1
        x = self.first(x)
        torch._dynamo.graph_break()
        for number, layer in enumerate(self.layers):
            x = x if number == self.steps % 3 else layer(x)
        return x


def make(batch_size):
    batch = torch.randn(batch_size, 8), torch.randint(8, (batch_size,))
    return Net(), batch, nn.CrossEntropyLoss()
