"""The model of the reference, which is written for Autograd anyway."""

from reference.resnet50_v1_5 import forward, loss, parameters  # noqa: F401
