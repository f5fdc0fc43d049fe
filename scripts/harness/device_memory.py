"""Capability of a framework to tell what its allocator holds of a device's memory."""

from __future__ import annotations

from abc import abstractmethod
from typing import Optional

from harness.adapter import Capability


class DeviceMemory(Capability):
    """The allocator keeps memory that tensors no longer need: the reserved memory tells whether
    another program would fit on the device, and how much larger a model could be."""

    LACKING = "does not tell what its allocator has taken of the device"

    @abstractmethod
    def allocated_memory(self) -> Optional[int]:
        """Return the bytes that tensors hold on the device now; None where the device is the
        host."""

    @abstractmethod
    def peak_reserved_memory(self) -> Optional[int]:
        """Return the peak bytes that the allocator held of the device since
        ``reset_peak_device_memory``, used or not; None where the device is the host."""
