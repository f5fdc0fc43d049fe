"""What a framework brings whose allocator takes more of a device's memory than tensors need."""

from __future__ import annotations

from abc import abstractmethod
from typing import Optional

from harness.adapter import Capability


class Reserving(Capability):
    """The allocator keeps what tensors no longer need: what it has taken of the device tells
    whether another program would fit beside it, and how much larger a model could be."""

    LACKING = "does not tell what its allocator has taken of the device"

    @abstractmethod
    def peak_reserved_memory(self) -> Optional[int]:
        """Peak bytes that the allocator has taken of the device since
        ``reset_peak_device_memory``, used or not; None where the device is the host."""
