"""Model with sparse gradients, complex weights, matmuls and outputs."""

import torch
from torch import nn

FRAMEWORK = "pytorch"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 16, sparse=True)
        self.mix = nn.Parameter(0.1 * torch.randn(9, 9, dtype=torch.complex64))
        self.head = nn.Linear(16, 4)

    def forward(self, tokens):
        spectrum = torch.fft.rfft(self.table(tokens).mean(1)) @ self.mix
        return self.head(torch.fft.irfft(spectrum)), spectrum


def loss(outputs, targets):
    logits, spectrum = outputs
    return nn.functional.cross_entropy(logits, targets) + spectrum.abs().square().mean()


def make(batch_size):
    batch = torch.randint(50, (batch_size, 6)), torch.randint(4, (batch_size,))
    return Net(), batch, loss
