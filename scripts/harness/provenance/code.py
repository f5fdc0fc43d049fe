"""Which code has measured: version, digest, commit."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any, Dict, List, Optional, Tuple

import harness
from harness.machine.sources import command_output, file_text

_SCRIPTS = os.path.normpath(os.path.join(os.path.realpath(__file__), *[os.pardir] * 3))
_KNOWN = "harness/__main__.py"  # in a repository of ours, below scripts/ at its root
# What a hook or a shell has set for a repository of its own.
_OTHER_REPOSITORY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
)
_ARCHIVED = os.path.join(os.path.dirname(_SCRIPTS), ".git_archival.txt")


def _files() -> List[str]:
    found: List[str] = []
    for folder, folders, names in os.walk(_SCRIPTS):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found.extend(
            os.path.join(folder, name) for name in names if name.endswith((".py", ".json"))
        )
    return sorted(found)


def _from_git() -> Tuple[Optional[str], Optional[bool]]:
    """The commit, and whether ``scripts/`` differs from it, from a repository that is ours: another
    one around us, or one that does not know these files, says nothing of them."""
    outside = {name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}
    outside["GIT_OPTIONAL_LOCKS"] = "0"
    git = ["git", "-C", _SCRIPTS]
    known = command_output([*git, "ls-files", "--full-name", "--", _KNOWN], outside)
    commit = command_output([*git, "rev-parse", "HEAD"], outside)
    status = command_output([*git, "status", "--porcelain", "--", "."], outside)
    if known is None or known.strip() != f"scripts/{_KNOWN}" or not commit or status is None:
        return None, None
    return commit.strip(), bool(status)


def _from_archive() -> Optional[str]:
    """The commit that ``git archive`` has written into its copy of a file."""
    found = re.search(r"^node: ([0-9a-f]{40,64})$", file_text(_ARCHIVED) or "", re.MULTILINE)
    return found.group(1) if found else None


def code() -> Dict[str, Any]:
    """Version of the harness, sha256 over ``scripts/``, the commit, and whether ``scripts/``
    differs from it: of git, of an unpacked archive the commit alone, else not known."""
    digest = hashlib.sha256()
    for path in _files():
        with open(path, "rb") as file:
            content = file.read()
        name = os.path.relpath(path, _SCRIPTS)
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    commit, modified = _from_git()
    return {
        "version": harness.VERSION,
        "sha256": digest.hexdigest(),
        "commit": commit or _from_archive(),
        "modified": modified,
    }
