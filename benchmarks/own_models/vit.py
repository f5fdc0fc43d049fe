"""A small vision transformer of timm."""

import timm
import torch
from torch import nn

FRAMEWORK = "pytorch"
CLASSES, SIZE = 100, 64


def make(batch_size):
    model = timm.create_model("vit_tiny_patch16_224", img_size=SIZE, depth=4, num_classes=CLASSES)
    images = torch.randn(batch_size, 3, SIZE, SIZE)
    labels = torch.randint(CLASSES, (batch_size,))
    return model, (images, labels), nn.CrossEntropyLoss()


def optimizer(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)
