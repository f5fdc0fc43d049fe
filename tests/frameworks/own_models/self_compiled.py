"""Model that compiles itself."""

import torch
from torch import nn

FRAMEWORK = "pytorch"


def make(batch_size):
    model = torch.compile(nn.Linear(8, 8), backend="eager")
    return model, (torch.randn(batch_size, 8), torch.randn(batch_size, 8)), nn.MSELoss()
