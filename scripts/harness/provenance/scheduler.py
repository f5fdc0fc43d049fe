"""Scheduler's job of a run."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Optional

from harness.machine.sources import command_output

#: Facts of the job by their key in the record: variable, and key in ``scontrol show job``.
_FACTS = {
    "partition": ("SLURM_JOB_PARTITION", "Partition"),
    "nodelist": ("SLURM_JOB_NODELIST", "NodeList"),
    "account": ("SLURM_JOB_ACCOUNT", "Account"),
    "qos": ("SLURM_JOB_QOS", "QOS"),
    "reservation": ("SLURM_JOB_RESERVATION", "Reservation"),
    "features": ("", "Features"),
    "licenses": ("", "Licenses"),
    "gres": ("", "TresPerNode"),
}
#: GPUs among resources, in either version: gres:gpu:2, gres/gpu:2.
_PREFIX = re.compile(r"(^|,)gres[:/]")
_ABSENT = frozenset({"", "(null)", "N/A"})
#: Beginnings of lines with free texts of users.
_TEXTS = re.compile(
    r"\s*(JobId|Command|WorkDir|Comment|AdminComment|SystemComment|Extra|StdErr|StdIn|StdOut"
    r"|MailUser|BurstBuffer|SubmitLine)="
)
#: Seconds to wait for SLURM's answer.
SECONDS = 10.0


def scheduler(
    variables: Mapping[str, str],
    answer: Callable[[List[str]], Optional[str]] = partial(command_output, seconds=SECONDS),
) -> Optional[Dict[str, Any]]:
    """Return this process's job and what SLURM reports of it; None without a job.

    ``features``: requested constraint. ``exclusive``: whether no other job may share its nodes.
    SLURM is queried, once and for at most 10 s, because Snakemake removes most of its variables
    from a job of several nodes, and some facts are in none. ``answer``: returns a command's output,
    None where it fails."""
    job = variables.get("SLURM_JOB_ID")
    if not job:
        return None
    description: Dict[str, Any] = {"name": "slurm", "job": job}
    if variables.get("SLURM_CLUSTER_NAME"):
        description["cluster_name"] = variables["SLURM_CLUSTER_NAME"]
    shown = _shown(answer(["scontrol", "show", "job", job]) or "")
    for name, (variable, key) in _FACTS.items():
        value = shown.get(key, variables.get(variable, ""))
        if value not in _ABSENT:
            description[name] = _PREFIX.sub(r"\1", value) if name == "gres" else value
    if "OverSubscribe" in shown:
        description["exclusive"] = shown["OverSubscribe"] == "NO"
    return description


def limit_reached(
    variables: Mapping[str, str],
    answer: Callable[[List[str]], Optional[str]] = partial(command_output, seconds=SECONDS),
) -> str:
    """Return a message that the job's time limit was reached; "" otherwise.

    ``answer``: returns a command's output, None where it fails."""
    job = variables.get("SLURM_JOB_ID")
    shown = _shown(answer(["scontrol", "show", "job", job]) or "") if job else {}
    if shown.get("Reason") != "TimeLimit":
        return ""
    return f"SLURM ended job {job} at its limit of {shown.get('TimeLimit', 'unknown')}"


def _shown(printed: str) -> Dict[str, str]:
    """Parse ``scontrol show job``, without texts of users."""
    lines = [line for line in printed.splitlines() if not _TEXTS.match(line)]
    # the first part of a job of several
    return dict(reversed(re.findall(r"(?:^|\s)([\w/:]+)=(\S*)", "\n".join(lines))))
