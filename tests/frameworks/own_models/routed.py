"""Mixture of experts with top-1 routing, whose experts have parameters in bfloat16."""

import torch
from torch import nn

FRAMEWORK = "pytorch"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 8)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(8)).to(torch.bfloat16)

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros(x.shape)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero()[:, 0]
            if len(rows):
                results = expert(x[rows].to(torch.bfloat16)).to(out.dtype)
                out = out.index_add(0, rows, weights[rows, None] * results)
        return out


def make(batch_size):
    return Net(), (torch.randn(batch_size, 8), torch.arange(batch_size) % 8), nn.CrossEntropyLoss()
