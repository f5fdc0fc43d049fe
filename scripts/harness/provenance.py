"""Provenance of a figure: packages and container image, hardware, system, job, variables; version
and commit of the code, and digest of what computes the figure."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import socket
import subprocess
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from core import limits, precisions, programs

import harness
from harness import hardware
from harness.variables import is_recorded

SCRIPTS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_KNOWN = "harness/__main__.py"  # path below scripts/ at the root of our repository
#: Seconds to wait for SLURM's and for git's answer.
SECONDS, _GIT_SECONDS = 10.0, 30.0
#: Folder of a distribution's metadata, with its name and version.
_METADATA = re.compile(r"([^-]+)-([^-]+?)(?:-py[0-9.]+)?[.](?:dist|egg)-info")
#: Variables that name the image inside a container.
_CONTAINER_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


def normal(name: str) -> str:
    """Return a distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(environment: Mapping[str, str], folder: str) -> Dict[str, str]:
    """Return the version of each distribution that ranks started with ``environment`` in ``folder``
    can import, by normalized name; the first on ``sys.path`` wins, as in importing.
    Raises OSError or subprocess.SubprocessError."""
    ask = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.path[1:]))"]
    answer = programs.run(ask, env=environment, cwd=folder, stdin=subprocess.DEVNULL, check=True)
    versions: Dict[str, str] = {}
    for entry in json.loads(answer.stdout.splitlines()[-1]):
        try:
            names = sorted(os.listdir(entry))
        except OSError:
            continue
        for match in filter(None, map(_METADATA.fullmatch, names)):
            versions.setdefault(normal(match.group(1)), match.group(2))
    return dict(sorted(versions.items()))


def wrong_environment(
    prefix: Optional[str], pins: Sequence[Tuple[str, str]], packages: Mapping[str, str]
) -> Optional[str]:
    """Return how this environment differs from the requested one; None if it does not."""
    if prefix is not None and os.path.realpath(prefix) != os.path.realpath(sys.prefix):
        return f"the environment is {sys.prefix}, not {prefix}"
    for name, version in pins:
        has = packages.get(normal(name))
        if has is None:
            return f"{name}=={version} was asked for, but {name} is not installed in {sys.prefix}"
        # a local part such as +cpu counts only if it was requested
        if version != (has if "+" in version else has.partition("+")[0]):
            return f"{name}=={version} was asked for, but {has} is installed in {sys.prefix}"
    return None


def wrong_image(asked: Optional[str], environment: Mapping[str, str]) -> Optional[str]:
    """Return how this container differs from the requested image; None if it does not, or if no
    image was requested."""
    if asked is None:
        return None
    image = next((environment[v] for v in _CONTAINER_VARIABLES if environment.get(v)), None)
    if image is None:
        return f"image {asked} was requested, but this process is not in a container"
    # An image pulled from a URI has another name.
    if "://" not in asked and os.path.basename(asked) != os.path.basename(image):
        return f"image {asked} was requested, but the container's image is {image}"
    return None


def capture(
    install_method: str,
    cores: Sequence[int],
    packages: Mapping[str, str],
    rank_environment: Mapping[str, str],
) -> Dict[str, Any]:
    """Return the record's ``environment``. ``cores``: logical cores this process may use."""
    job = os.environ.get("SLURM_JOB_ID")
    return {
        "install_method": install_method,
        "python": platform.python_version(),
        "prefix": sys.prefix,
        "packages": dict(packages),
        "hardware": hardware.describe(cores),
        "system": _system(),
        "scheduler": {"name": "slurm", "job": job} if job else None,  # sacct reports the rest
        # those that change how a framework runs; never a credential
        "variables": {n: rank_environment[n] for n in sorted(rank_environment) if is_recorded(n)},
        "code": code(),
    }


def _system() -> Dict[str, Any]:
    """Return host, operating system, kernel, frequency governor, and control group limits (cores,
    bytes)."""
    release = hardware.file_text("/etc/os-release") or ""
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)', release, re.MULTILINE)
    return {
        "host": socket.gethostname(),
        "os": name.group(1) if name else platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "governor": hardware.file_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "cgroup_cpu_limit": limits.cpu_limit(),
        "cgroup_memory_limit_bytes": limits.memory_limit(),
    }


def limit_reached(variables: Mapping[str, str]) -> str:
    """Return a message that the job's time limit was reached; "" otherwise, or without an
    answer."""
    job = variables.get("SLURM_JOB_ID")
    shown = job and _answer(["scontrol", "show", "job", job], SECONDS)
    # Users choose the texts of the first line (job name) and of lines after these fields: skip
    # both.
    texts = re.findall(r"\s(Reason|TimeLimit)=(\S*)", (shown or "").partition("\n")[2])
    fields = dict(reversed(texts))
    if fields.get("Reason") != "TimeLimit":
        return ""
    return f"SLURM ended job {job} at its limit of {fields.get('TimeLimit', 'unknown')}"


def code() -> Dict[str, Any]:
    """Return the harness's version, the commit, and whether ``scripts/`` differs from it. Outside
    of the repository, the last two are None."""
    known, commit, modified = _git(SCRIPTS, [_KNOWN, "."])
    if known != f"scripts/{_KNOWN}":  # the files lie in another repository
        commit, modified = None, None
    return {"version": harness.VERSION, "commit": commit, "modified": modified}


def own_commit(paths: List[str]) -> Dict[str, Any]:
    """Return the commit of the user's repository that contains the first of ``paths``, and whether
    any path differs from it; {} without a repository."""
    known, commit, modified = _git(os.path.dirname(paths[0]), paths)
    return {"commit": commit, "modified": modified} if known and commit else {}


def _git(folder: str, paths: List[str]) -> Tuple[str, Optional[str], Optional[bool]]:
    """Return how the repository around ``folder`` names the first of ``paths``, "" for none, its
    commit, and whether ``paths`` differ from it."""
    # A hook or a shell may have named another repository.
    outside = {name: os.environ[name] for name in os.environ if not name.startswith("GIT_")}
    outside["GIT_OPTIONAL_LOCKS"] = "0"
    git = ["git", "-C", folder]
    known = _answer([*git, "ls-files", "--full-name", "--", paths[0]], _GIT_SECONDS, env=outside)
    commit = _answer([*git, "rev-parse", "HEAD"], _GIT_SECONDS, env=outside)
    status = _answer([*git, "status", "--porcelain", "--", *paths], _GIT_SECONDS, env=outside)
    if not known or not commit or status is None:
        return "", None, None
    return known.strip(), commit.strip(), bool(status)


def _answer(command: Sequence[str], seconds: float, **options: Any) -> Optional[str]:
    """Return the output of a command; None where it fails, is missing or takes longer."""
    try:
        ended = programs.run(command, stdin=subprocess.DEVNULL, timeout=seconds, **options)
    except (OSError, subprocess.SubprocessError):
        return None
    return ended.stdout if ended.returncode == 0 else None


def computation_digest(framework: str, model_config: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of all that computes a figure.

    It covers the adapter's folder, the model config, all precisions as ranks see them (they run the
    same code), ``scripts/core``, ``scripts/harness`` and ``scripts/networks``. ``model_config``:
    for timing or for verification; both give the same digest."""
    about = [_compared(model_config), precisions.known_to_ranks()]
    sha256 = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    rooms = (os.path.join(SCRIPTS, room) for room in ("core", "harness", "networks"))
    for folder in (framework, *rooms):
        paths = (os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)
        for path in sorted(path for path in paths if path.endswith((".py", ".json"))):
            with open(path, "rb") as file:
                content = file.read()
            sha256.update(f"{os.path.relpath(path, folder)}\0{len(content)}\0".encode() + content)
    return sha256.hexdigest()


def _compared(model_config: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the model config without the hyper-parameters that verification changes. It changes
    them to show that none is hard-coded.

    A model that was reduced for verification is replaced by the original."""
    model_config = model_config.get("reduced_from", model_config)
    others = {"dropout", "clip_global_norm"}
    others |= set(model_config.get("verification", {}).get("hyperparameters", {}))
    own = model_config.get("hyperparameters", {})
    kept = {name: None if name in others else value for name, value in own.items()}
    compared = {**model_config, "hyperparameters": kept}
    if "own" in model_config:  # the content of the user's model decides, not its path
        compared["own"] = {**model_config["own"], "source": None}
    # how verification reduces the model does not affect what is timed
    if "verification" in model_config:
        ways = ("small", "reduced")
        compared["verification"] = {
            key: value for key, value in model_config["verification"].items() if key not in ways
        }
    return compared
