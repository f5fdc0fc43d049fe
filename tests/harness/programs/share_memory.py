"""End a process that has created shared memory as Python, Paddle and MXNet do, and one that it has
orphaned; print the id of the first."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from multiprocessing import shared_memory

from harness.processes import descendants
from harness.processes.descendants import adopt_orphans, state_of

name = sys.argv[1]
if sys.argv[2:] == ["child"]:
    shared_memory.SharedMemory(create=True, size=64, name=name)
    for file in (f"paddle_{os.getpid()}_0_1", f"mx_{os.getpid():x}_1"):
        open("/dev/shm/" + file, "w").close()
    orphan = "sleep 600 >/dev/null 2>&1 & echo $!"
    print(os.getpid(), subprocess.check_output(orphan, shell=True, text=True), flush=True)
    time.sleep(600)
adopt_orphans()
child = subprocess.Popen(
    [sys.executable, __file__, name, "child"],
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
    start_new_session=True,
)
assert child.stdout is not None
there = child.stdout.readline().split()
assert os.path.exists(f"/dev/shm/paddle_{child.pid}_0_1")
descendants.end()
states = [state_of(int(process)) for process in there]
assert not any(state and state.is_running for state in states), states
print(there[0])
