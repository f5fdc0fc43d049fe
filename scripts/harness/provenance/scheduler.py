"""The job of a scheduler that a run is, as that tells it."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Mapping, Optional

from harness.machine.sources import command_output

#: What the record calls a fact of the job: the variable that may say it, and its name in what
#: ``scontrol show job`` prints.
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
#: Of resources, by the version: gres:gpu:2, gres/gpu:2.
_PREFIX = re.compile(r"(^|,)gres[:/]")
_ABSENT = frozenset({"", "(null)", "N/A"})
#: Lines that begin with these hold texts of users, which may look like anything.
_TEXTS = re.compile(
    r"\s*(JobId|Command|WorkDir|Comment|AdminComment|SystemComment|Extra|StdErr|StdIn|StdOut"
    r"|MailUser|BurstBuffer|SubmitLine)="
)
#: How long SLURM may take to answer: the run waits for it.
_SECONDS = 10.0


def _printed(command: List[str]) -> Optional[str]:
    return command_output(command, seconds=_SECONDS)


def scheduler(
    variables: Mapping[str, str],
    answer: Callable[[List[str]], Optional[str]] = _printed,
) -> Optional[Dict[str, Any]]:
    """The job that this process belongs to: ``job`` and what SLURM says of it, as far as it does;
    None without. ``features``: the constraint that was asked for; ``exclusive``: whether no other
    job may share its nodes.

    Snakemake takes most of SLURM's variables away from a job of several nodes, and some facts are
    in none of them, so that SLURM is asked, once and for at most 10 s. ``answer``: what a command
    prints, None where it fails.
    """
    job = variables.get("SLURM_JOB_ID")
    if not job:
        return None
    found: Dict[str, Any] = {"name": "slurm", "job": job}
    if variables.get("SLURM_CLUSTER_NAME"):
        found["cluster_name"] = variables["SLURM_CLUSTER_NAME"]
    shown = _shown(answer(["scontrol", "show", "job", job]) or "")
    for name, (variable, key) in _FACTS.items():
        value = shown.get(key, variables.get(variable, ""))
        if value not in _ABSENT:
            found[name] = _PREFIX.sub(r"\1", value) if name == "gres" else value
    if "OverSubscribe" in shown:
        found["exclusive"] = shown["OverSubscribe"] == "NO"
    return found


def limit_reached(
    variables: Mapping[str, str],
    answer: Callable[[List[str]], Optional[str]] = _printed,
) -> str:
    """Say that the scheduler ends this job because its time is up; "" where that is not why.
    ``answer``: what a command prints, None where it fails."""
    job = variables.get("SLURM_JOB_ID")
    shown = _shown(answer(["scontrol", "show", "job", job]) or "") if job else {}
    if shown.get("Reason") != "TimeLimit":
        return ""
    return f"SLURM ended job {job} at its limit of {shown.get('TimeLimit', 'unknown')}"


def _shown(printed: str) -> Dict[str, str]:
    """Keys and values of ``scontrol show job``, without those that are texts of a user."""
    lines = [line for line in printed.splitlines() if not _TEXTS.match(line)]
    # Of several parts of a job the first.
    return dict(reversed(re.findall(r"(?:^|\s)([\w/:]+)=(\S*)", "\n".join(lines))))
