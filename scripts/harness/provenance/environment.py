"""Environment of a run: interpreter, packages, hardware, system, job, variables, code."""

from __future__ import annotations

import os
import platform
import re
import socket
import sys
from typing import Any, Dict, Mapping, Optional, Sequence

from core.limits import cpu_limit, memory_limit

from harness.machine.hardware import hardware
from harness.machine.sources import command_output, file_line, file_text
from harness.provenance.code import code
from harness.variables import is_recorded

#: Seconds to wait for SLURM's answer.
SECONDS = 10.0


def system() -> Dict[str, Any]:
    """Return host, operating system, kernel, frequency governor, and control group limits (cores,
    bytes)."""
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)', file_text("/etc/os-release") or "", re.MULTILINE)
    return {
        "host": socket.gethostname(),
        "os": name.group(1) if name else platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "governor": file_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "cgroup_cpu_limit": cpu_limit(),
        "cgroup_memory_limit_bytes": memory_limit(),
    }


def variables(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables of a rank that change how a framework runs; never a credential."""
    return {name: value for name, value in sorted(environment.items()) if is_recorded(name)}


def scheduler(variables: Mapping[str, str]) -> Optional[Dict[str, str]]:
    """Return the job of this process; None without one. ``sacct`` reports the rest."""
    job = variables.get("SLURM_JOB_ID")
    return {"name": "slurm", "job": job} if job else None


def limit_reached(variables: Mapping[str, str]) -> str:
    """Return a message that the job's time limit was reached; "" otherwise, or without an
    answer."""
    job = variables.get("SLURM_JOB_ID")
    shown = job and command_output(["scontrol", "show", "job", job], seconds=SECONDS)
    # Users choose the texts of the first line (job name) and of lines after these fields: skip
    # both.
    texts = re.findall(r"\s(Reason|TimeLimit)=(\S*)", (shown or "").partition("\n")[2])
    fields = dict(reversed(texts))
    if fields.get("Reason") != "TimeLimit":
        return ""
    return f"SLURM ended job {job} at its limit of {fields.get('TimeLimit', 'unknown')}"


def capture(
    install_method: str,
    cores: Sequence[int],
    packages: Mapping[str, str],
    rank_environment: Mapping[str, str],
) -> Dict[str, Any]:
    """Return the record's ``environment``. ``cores``: logical cores this process may use."""
    return {
        "install_method": install_method,
        "python": platform.python_version(),
        "prefix": sys.prefix,
        "packages": dict(packages),
        "hardware": hardware(cores),
        "system": system(),
        "scheduler": scheduler(os.environ),
        "variables": variables(rank_environment),
        "code": code(),
    }
