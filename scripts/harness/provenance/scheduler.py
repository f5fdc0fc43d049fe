"""SLURM's job of a run."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Mapping, Optional

from harness.machine.sources import command_output

#: Facts of the job by their key in the record, and their key in ``scontrol show job``.
_FACTS = {"partition": "Partition", "account": "Account", "nodelist": "NodeList"}
#: Seconds to wait for SLURM's answer.
SECONDS = 10.0


def _answer(command: List[str]) -> Optional[str]:
    return command_output(command, seconds=SECONDS)


def scheduler(
    variables: Mapping[str, str], answer: Callable[[List[str]], Optional[str]] = _answer
) -> Optional[Dict[str, Any]]:
    """Return this process's job and what SLURM reports of it; None without a job.

    ``exclusive``: whether no other job may share its nodes. SLURM is queried, once and for at most
    SECONDS, because Snakemake removes most of its variables from a job of several nodes.
    ``answer``: returns a command's output, None where it fails."""
    job = variables.get("SLURM_JOB_ID")
    if not job:
        return None
    shown = _shown(job, answer)
    description: Dict[str, Any] = {"name": "slurm", "job": job}
    for name, key in _FACTS.items():
        if shown.get(key, "(null)") not in ("", "(null)"):
            description[name] = shown[key]
    if "OverSubscribe" in shown:
        description["exclusive"] = shown["OverSubscribe"] == "NO"
    return description


def limit_reached(
    variables: Mapping[str, str], answer: Callable[[List[str]], Optional[str]] = _answer
) -> str:
    """Return a message that the job's time limit was reached; "" otherwise.

    ``answer``: returns a command's output, None where it fails."""
    job = variables.get("SLURM_JOB_ID")
    shown = _shown(job, answer) if job else {}
    if shown.get("Reason") != "TimeLimit":
        return ""
    return f"SLURM ended job {job} at its limit of {shown.get('TimeLimit', 'unknown')}"


def _shown(job: str, answer: Callable[[List[str]], Optional[str]]) -> Dict[str, str]:
    """Return the fields of ``scontrol show job``, of a job in several parts those of the first.

    The first line, with the job's name, and lines behind these fields have texts of users."""
    printed = answer(["scontrol", "show", "job", job]) or ""
    fields = re.findall(r"(?:^|\s)([\w/:]+)=(\S*)", printed.partition("\n")[2])
    return dict(reversed(fields))
