"""Version, digest and commit of the code."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any, Dict, List, Optional, Tuple

import harness
from harness.machine.sources import command_output, file_text

SCRIPTS = os.path.normpath(os.path.join(os.path.realpath(__file__), *[os.pardir] * 3))
_KNOWN = "harness/__main__.py"  # in a repository of ours, below scripts/ at its root
# Variables that a hook or a shell has set for its own repository.
_OTHER_REPOSITORY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
)
_ARCHIVED = os.path.join(os.path.dirname(SCRIPTS), ".git_archival.txt")


def update(sha256: Any, folder: str) -> None:
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
    """Return the commit of the user's repository that knows the first of ``paths``, and whether any
    of them differs from it; {} without one."""
    outside = {name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}
    outside["GIT_OPTIONAL_LOCKS"] = "0"
    git = ["git", "-C", os.path.dirname(paths[0])]
    known = command_output([*git, "ls-files", "--", paths[0]], outside)
    commit = command_output([*git, "rev-parse", "HEAD"], outside)
    status = command_output([*git, "status", "--porcelain", "--", *paths], outside)
    if not known or not commit or status is None:
        return {}
    return {"commit": commit.strip(), "modified": bool(status)}


def _from_git() -> Tuple[Optional[str], Optional[bool]]:
    """Return the commit, and whether ``scripts/`` differs from it.

    Only a repository that knows these files counts, not another one around it."""
    outside = {name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}
    outside["GIT_OPTIONAL_LOCKS"] = "0"
    git = ["git", "-C", SCRIPTS]
    known = command_output([*git, "ls-files", "--full-name", "--", _KNOWN], outside)
    commit = command_output([*git, "rev-parse", "HEAD"], outside)
    status = command_output([*git, "status", "--porcelain", "--", "."], outside)
    if known is None or known.strip() != f"scripts/{_KNOWN}" or not commit or status is None:
        return None, None
    return commit.strip(), bool(status)


def _from_archive() -> Optional[str]:
    """Return the commit that ``git archive`` has written into its copy of a file."""
    match = re.search(r"^node: ([0-9a-f]{40,64})$", file_text(_ARCHIVED) or "", re.MULTILINE)
    return match.group(1) if match else None


def code() -> Dict[str, Any]:
    """Return the harness's version, the SHA-256 of ``scripts/``, the commit, and whether
    ``scripts/`` differs from it.

    An unpacked archive has only the commit; otherwise None."""
    digest = hashlib.sha256()
    update(digest, SCRIPTS)
    commit, modified = _from_git()
    return {
        "version": harness.VERSION,
        "sha256": digest.hexdigest(),
        "commit": commit or _from_archive(),
        "modified": modified,
    }
