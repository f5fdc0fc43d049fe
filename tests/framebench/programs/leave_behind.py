"""Answer 1, and leave a process in the background that holds the lock of a file."""

from __future__ import annotations

import fcntl
import os
import sys
import time

with open(sys.argv[1], "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    if os.fork():
        print(1)
    else:
        time.sleep(9999)
