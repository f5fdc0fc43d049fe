"""Capabilities of frameworks for copies between the host and its device, and within the device.

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
    """The framework copies arrays to the device and back as its users do."""

    LACKING: ClassVar[str] = "offers no plain copies of arrays here"

    @abstractmethod
    def transfer(self, direction: str, array: Any, pinned: bool) -> Operation:
        """Prepare a copy of a one-dimensional float32 numpy ``array`` in one of DIRECTIONS.

        Repeated copies have the same target. ``pinned``: whether the host's memory is locked.
        ``result`` returns what has arrived, for numpy. Not called where the device is the host."""


class PairTransfers(Capability):
    """One process copies arrays between any two devices of its node."""

    LACKING: ClassVar[str] = "offers no copies between two devices here"

    @abstractmethod
    def transfer_between(self, sender: int, receiver: int, array: Any) -> Operation:
        """Prepare a copy of a one-dimensional float32 numpy ``array`` between two devices of this
        node, given by local rank.

        Repeated copies have the same target. ``result`` returns what has arrived, for numpy.
        :meth:`synchronize` waits for it. Not called where the devices are the host."""
