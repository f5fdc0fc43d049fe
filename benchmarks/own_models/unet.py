"""A small U-Net whose inputs, outputs and targets are dictionaries."""

import torch
from torch import nn

FRAMEWORK = "pytorch"
CLASSES, SIZE = 4, 64


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.bottom, self.up = block(3, 16), block(16, 32), block(48, 16)
        self.pool, self.grow = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
        self.mask, self.edge = nn.Conv2d(16, CLASSES, 1), nn.Conv2d(16, 1, 1)

    def forward(self, image):
        down = self.down(image)
        deep = self.grow(self.bottom(self.pool(down)))
        up = self.up(torch.cat([down, deep], 1))
        return {"mask": self.mask(up), "edge": self.edge(up)}


def make(batch_size):
    image = torch.randn(batch_size, 3, SIZE, SIZE)
    mask = torch.randint(CLASSES, (batch_size, SIZE, SIZE))
    edge = torch.rand(batch_size, 1, SIZE, SIZE)
    return UNet(), ({"image": image}, {"mask": mask, "edge": edge}), loss


def loss(outputs, targets):
    mask = nn.functional.cross_entropy(outputs["mask"], targets["mask"])
    return mask + nn.functional.mse_loss(outputs["edge"], targets["edge"])


def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
