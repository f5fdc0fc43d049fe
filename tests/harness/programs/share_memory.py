"""Create shared memory as Python, Paddle and MXNet do; print the process id and hang."""

from __future__ import annotations

import os
import sys
import time
from multiprocessing import shared_memory

shared_memory.SharedMemory(create=True, size=64, name=sys.argv[1])
for name in (f"paddle_{os.getpid()}_0_1", f"mx_{os.getpid():x}_1"):
    open("/dev/shm/" + name, "w").close()
print(os.getpid(), flush=True)
time.sleep(600)
