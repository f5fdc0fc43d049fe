"""A GPU double that reports its power, and the variables that make it found."""

from __future__ import annotations

GPU = {
    "uuid": "GPU-a",
    "sm": 1410,
    "temperature": 71,
    "reasons": 0x4,
    "ecc": 1,
    "millijoules": 5_250,
    "processes": [],
}
VARIABLES = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
