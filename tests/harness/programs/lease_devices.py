"""Take and release random numbers of devices; end with 1 if a device is held twice."""

from __future__ import annotations

import os
import random
import sys
import time

from harness.devices.devices import Device
from harness.devices.lease import leased

locks, rounds, held = sys.argv[1:]
# Each shares its cores with others.
devices = [Device(str(n), [n], [f"core-{n % 4}", f"core-{(n + 1) % 4}"]) for n in range(6)]
for _ in range(int(rounds)):
    with leased(locks, random.randint(1, 6), devices, 600) as lease:
        assert lease.refused is None, lease.refused
        own = {name for device in lease.devices for name in (device.name, *device.locks)}
        for name in own:
            os.close(os.open(f"{held}/{name}", os.O_CREAT | os.O_EXCL))
        time.sleep(random.uniform(0, 0.005))
        for name in own:
            os.unlink(f"{held}/{name}")
