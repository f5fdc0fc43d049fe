"""Version, digest and commit of the code."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import harness
from harness.machine.sources import command_output, file_text

_SCRIPTS = os.path.normpath(os.path.join(os.path.realpath(__file__), *[os.pardir] * 3))
_KNOWN = "harness/__main__.py"  # in a repository of ours, below scripts/ at its root
# Variables that a hook or a shell has set for its own repository.
_OTHER_REPOSITORY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
)
_ARCHIVED = os.path.join(os.path.dirname(_SCRIPTS), ".git_archival.txt")


def _files() -> List[str]:
    paths: List[str] = []
    for folder, folders, names in os.walk(_SCRIPTS):
        folders[:] = [name for name in folders if name != "__pycache__"]
        paths.extend(
            os.path.join(folder, name) for name in names if name.endswith((".py", ".json"))
        )
    return sorted(paths)


@contextlib.contextmanager
def _trusting_own_clone(variables: Dict[str, str]) -> Iterator[Dict[str, str]]:
    """Yield variables with which git reads our clone although another user owns it, such as the
    administrator.

    This process runs the clone's code anyway. Git before 2.38 takes ``safe.directory`` only from a
    user's configuration, so a file sets it; the user's own stays in force. The file has no name, so
    none is left when this process is killed."""
    with tempfile.TemporaryFile("w", encoding="utf-8") as file:
        for own in _user_configurations(variables):
            file.write("[include]\n\tpath = {}\n".format(_quoted(own)))
        file.write("[safe]\n\tdirectory = {}\n".format(_quoted(os.path.dirname(_SCRIPTS))))
        file.flush()
        yield {**variables, "GIT_CONFIG_GLOBAL": f"/proc/{os.getpid()}/fd/{file.fileno()}"}


def _user_configurations(variables: Mapping[str, str]) -> List[str]:
    """Return the files that git reads as a user's configuration, the first to be overridden
    first."""
    if "GIT_CONFIG_GLOBAL" in variables:
        return [variables["GIT_CONFIG_GLOBAL"]]
    home = variables.get("HOME", "")
    folder = variables.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    paths = [os.path.join(folder, "git", "config"), os.path.join(home, ".gitconfig")]
    return [path for path in paths if os.path.isabs(path)]


def _quoted(value: str) -> str:
    """Quote a value for a configuration of git."""
    return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"'))


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
    git = ["git", "-C", _SCRIPTS]
    with _trusting_own_clone(outside) as variables:
        known = command_output([*git, "ls-files", "--full-name", "--", _KNOWN], variables)
        commit = command_output([*git, "rev-parse", "HEAD"], variables)
        status = command_output([*git, "status", "--porcelain", "--", "."], variables)
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
