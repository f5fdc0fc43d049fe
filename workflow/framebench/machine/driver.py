"""Check once whether CUDA starts, before anything is built for its GPUs.

``nvidia-smi`` may list GPUs that no program can use, for example without NVIDIA's fabric manager.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from core import gpus, programs

_SECONDS = 120.0
#: Program that prints the error of CUDA's start. Frameworks may find a missing library elsewhere.
_START = f"""
import sys
sys.path.insert(0, {str(Path(gpus.__file__).parents[1])!r})
from core import gpus
try:
    number, words = gpus.start_cuda()
except OSError:
    sys.exit()
if number:
    print(number, words)
"""
#: Remedies by CUDA's error number.
REMEDIES = {
    802: "start NVIDIA's fabric manager, of the driver's version "
    "(systemctl start nvidia-fabricmanager), or look why it fails (journalctl -u "
    "nvidia-fabricmanager)",
    803: "one version of driver and libcuda.so.1: reboot after an update, and remove other copies "
    "of libcuda.so.1 from LD_LIBRARY_PATH",
    804: "no libcuda.so.1 of the package cuda-compat, which is for other GPUs, in LD_LIBRARY_PATH",
    999: "load the module nvidia_uvm anew (modprobe -r nvidia_uvm && modprobe nvidia_uvm), or "
    "reboot",
}


def fault() -> str:
    """Return why CUDA does not start and what helps; "" if it does, or has no library here."""
    try:
        ended = programs.run([sys.executable, "-I", "-c", _START], timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return f"CUDA does not start within {_SECONDS:g} s; allowed: a driver that answers"
    number, _, words = ended.stdout.strip().partition(" ")
    if ended.returncode:
        return f"CUDA ends the process that starts it ({ended.returncode}); allowed: another driver"
    if not number:
        return ""
    remedy = REMEDIES.get(int(number), "a driver that starts")
    return f"CUDA does not start: error {number}, {words}; allowed: {remedy}"
