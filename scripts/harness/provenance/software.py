"""Packages and container image of a run: check and record."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

#: Folder of a distribution's metadata, with its name and version.
_METADATA = re.compile(r"([^-]+)-([^-]+?)(?:-py[0-9.]+)?[.](?:dist|egg)-info")
#: Variables that name the image inside a container.
_CONTAINER_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


def normal(name: str) -> str:
    """Return a distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def search_path(environment: Mapping[str, str], folder: str) -> List[str]:
    """Return ``sys.path`` of ranks started with ``environment`` in ``folder``, from the
    interpreter. Raises OSError or subprocess.SubprocessError."""
    ask = "import json, sys; print(json.dumps(sys.path[1:]))"
    answer = subprocess.run(
        [sys.executable, "-c", ask],
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
        encoding="utf-8",
        errors="replace",
    )
    entries: List[str] = json.loads(answer.stdout.splitlines()[-1])
    return entries


def installed(folders: Iterable[str]) -> Dict[str, str]:
    """Return the version of all distributions in ``folders`` by normalized name, from the names of
    their metadata folders; the first folder wins, as in importing."""
    versions: Dict[str, str] = {}
    for folder in folders:
        try:
            entries = sorted(os.listdir(folder or os.curdir))
        except OSError:
            continue
        for match in filter(None, map(_METADATA.fullmatch, entries)):
            versions.setdefault(normal(match.group(1)), match.group(2))
    return dict(sorted(versions.items()))


def same_version(asked: str, installed_version: str) -> bool:
    """Return whether the versions match; a local part (``+cpu``) counts only if it was
    requested."""
    return asked == (installed_version if "+" in asked else installed_version.partition("+")[0])


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
        if not same_version(version, has):
            return f"{name}=={version} was asked for, but {has} is installed in {sys.prefix}"
    return None


def wrong_image(asked: Optional[str], environment: Mapping[str, str]) -> Optional[str]:
    """Return how this container is not of the requested image; None if it is, or none was asked
    for."""
    if asked is None:
        return None
    image = next((environment[v] for v in _CONTAINER_VARIABLES if environment.get(v)), None)
    if image is None:
        return f"image {asked} was requested, but this process is not in a container"
    # An image pulled from a URI has another name.
    if "://" not in asked and os.path.basename(asked) != os.path.basename(image):
        return f"image {asked} was requested, but the container's image is {image}"
    return None
