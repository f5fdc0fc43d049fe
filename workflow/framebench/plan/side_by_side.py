"""Concurrent runs: cores or GPUs of each run, which waiting runs may start, and device leases.

``threads`` of Snakemake's jobs decide how many run at a time: their sum never exceeds ``--cores``.
The harness chooses the devices of a run (--lease), because Snakemake counts devices without naming
them and knows no other workflows.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..machine.local import Machine

if TYPE_CHECKING:
    from ..cases.fitting import Capacity
    from ..config.settings import Settings

Waiting = TypeVar("Waiting")

#: Caveat for readers about figures of concurrent runs.
MEANING = (
    "other runs had the rest of the machine meanwhile; a ratio of many devices to few flatters the "
    "many, which had fewer neighbours"
)


@dataclass(frozen=True)
class Room:
    """Capacity for concurrent runs: ``whole`` logical cores or GPUs, ``per_device`` for each
    device."""

    whole: int
    per_device: int
    in_cores: bool

    @staticmethod
    def of_runs(settings: Settings, capacity: Capacity, machine: Machine) -> Room | None:
        """Return the capacity for concurrent runs; None if runs follow each other."""
        return Room._of_machine(capacity, machine) if settings.side_by_side else None

    @staticmethod
    def of_verifications(settings: Settings, capacity: Capacity, machine: Machine) -> Room | None:
        """Return the capacity for concurrent verifications; None if they follow each other.

        Verifications time nothing. On local CPUs they may run concurrently even if runs do not.
        """
        if settings.cluster or capacity.cores_per_device is None:
            return Room.of_runs(settings, capacity, machine)
        return Room._of_machine(capacity, machine)

    @staticmethod
    def _of_machine(capacity: Capacity, machine: Machine) -> Room:
        if capacity.cores_per_device is None:
            return Room(capacity.devices_per_node, 1, in_cores=False)
        # A core is leased with all threads of its physical core.
        return Room(
            machine.cores, capacity.cores_per_device * machine.threads_per_core, in_cores=True
        )

    def taken(self, devices: int) -> int:
        """Return the cores or GPUs that a run with so many devices takes."""
        return min(self.whole, devices * self.per_device)

    @property
    def at_a_time(self) -> int:
        """Number of concurrent runs with one device."""
        return self.whole // self.taken(1)

    def threads(self, devices: int, cores: int) -> int:
        """Return the ``threads`` of a run's job, given Snakemake's ``--cores``.

        They keep jobs from starting that have no room. With fewer cores than the machine has, fewer
        runs start at a time; a run that needs more takes all cores and runs alone.
        """
        part = self.taken(devices)
        scaled = -(-cores * part // self.whole)
        return min(cores, max(part, scaled)) if self.in_cores else scaled


def of_first_round(
    waiting: Collection[Waiting], round_of: Callable[[Waiting], int | None]
) -> list[Waiting]:
    """Return the waiting runs of the earliest round, and jobs without a round.

    Otherwise later runs with few devices would always overtake one with many. The repeats of its
    case would then all come last and see another drift of the machine.
    """
    rounds = [round_of(job) for job in waiting]
    first = min((number for number in rounds if number is not None), default=None)
    return [
        job
        for job, number in zip(waiting, rounds, strict=True)
        if number is None or number == first
    ]


def after_earlier_rounds(
    startable: Collection[Waiting],
    running: Iterable[Waiting],
    round_of: Callable[[Waiting], int | None],
) -> list[Waiting]:
    """Return the ``startable`` jobs before which no run of an earlier round is still running."""
    rounds = [number for job in running if (number := round_of(job)) is not None]
    first = min(rounds, default=None)
    return [
        job
        for job in startable
        if first is None or (number := round_of(job)) is None or number <= first
    ]


def lease_name(room: Room | None) -> str | None:
    """Return the folder of the device locks; None if runs follow each other.

    All workflows of a user on a machine with one temporary folder share it.
    """
    if room is None:
        return None
    return str(Path(tempfile.gettempdir(), f"framebench-devices-{os.geteuid()}"))
