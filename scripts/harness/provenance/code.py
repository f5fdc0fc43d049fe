"""Version and commit of the code, and digest of what computes a figure: a verification holds only
for figures of the same code."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple

from core import precisions

import harness
from harness.machine.sources import command_output

SCRIPTS = os.path.normpath(os.path.join(os.path.realpath(__file__), *[os.pardir] * 3))
_KNOWN = "harness/__main__.py"  # path below scripts/ at the root of our repository


def _update(sha256: Any, folder: str) -> None:
    """Add the names and contents of all code and declarations in a folder to a digest."""
    for path in sorted(
        os.path.join(where, name)
        for where, _, names in os.walk(folder)
        for name in names
        if name.endswith((".py", ".json"))
    ):
        with open(path, "rb") as file:
            content = file.read()
        sha256.update(f"{os.path.relpath(path, folder)}\0{len(content)}\0".encode() + content)


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
    known = command_output([*git, "ls-files", "--full-name", "--", paths[0]], outside)
    commit = command_output([*git, "rev-parse", "HEAD"], outside)
    status = command_output([*git, "status", "--porcelain", "--", *paths], outside)
    if not known or not commit or status is None:
        return "", None, None
    return known.strip(), commit.strip(), bool(status)


def code() -> Dict[str, Any]:
    """Return the harness's version, the commit, and whether ``scripts/`` differs from it; None for
    both outside of the repository."""
    known, commit, modified = _git(SCRIPTS, [_KNOWN, "."])
    if known != f"scripts/{_KNOWN}":  # the files lie in another repository
        commit, modified = None, None
    return {"version": harness.VERSION, "commit": commit, "modified": modified}


def computation_digest(framework: str, model_config: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of all that computes a figure.

    It covers the adapter's folder, the model config, a rank's view of all precisions (precisions of
    one framework run the same code), ``scripts/core``, ``scripts/harness`` and
    ``scripts/networks``. ``model_config``: that of timing or that of verification; both give the
    same digest."""
    about = [_compared(model_config), precisions.known_to_ranks()]
    sha256 = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    rooms = (os.path.join(SCRIPTS, room) for room in ("core", "harness", "networks"))
    for folder in (framework, *rooms):
        _update(sha256, folder)
    return sha256.hexdigest()


def _compared(model_config: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the model config without hyper-parameters that verification changes, to show that none
    is hard-coded.

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
