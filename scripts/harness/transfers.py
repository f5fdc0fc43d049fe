"""What a framework brings for copies between the host and its device, and within the device.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from harness.adapter import Capability
from harness.operations import Operation

HOST_TO_DEVICE = "host_to_device"
DEVICE_TO_HOST = "device_to_host"
DEVICE_TO_DEVICE = "device_to_device"
DIRECTIONS = (HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE)


class Transfers(Capability):
    """Arrays are copied to the device and back as users of the framework copy them."""

    LACKING: ClassVar[str] = "copies no arrays alone here"

    @abstractmethod
    def transfer(self, direction: str, array: Any, pinned: bool) -> Operation:
        """A copy of a one-dimensional float32 numpy ``array`` in one of DIRECTIONS, each into the
        same place; ``pinned``: whether the host's memory is locked. ``result``: what has arrived,
        for numpy. Not called where the device is the host."""


class PairTransfers(Capability):
    """One process copies arrays between any two devices of its node."""

    LACKING: ClassVar[str] = "copies no arrays between two devices here"

    @abstractmethod
    def transfer_between(self, sender: int, receiver: int, array: Any) -> Operation:
        """A copy of a one-dimensional float32 numpy ``array`` from one device of this node to
        another, by their local ranks, each into the same place. ``result``: what has arrived, for
        numpy. :meth:`synchronize` waits for it. Not called where the devices are the host."""
