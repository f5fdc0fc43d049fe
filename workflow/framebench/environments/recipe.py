"""``framebench recipe``: a Containerfile for each environment file.
Docker, podman or buildah build an image with the same packages from it, checked by the same hashes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..config.yaml_files import read_mapping
from ..files.whole_files import write_whole
from . import hashes
from .venvs import EnvironmentFile, files_of, read_environment_file

SUFFIX = ".Containerfile"
#: Debian packages that Python packages need but lack: a compiler with the libraries of GCC.
_OF_DEBIAN = ("g++",)


def write(envs: Path, names: Sequence[str], folder: Path) -> list[Path]:
    """Write the recipes of the named environment files in ``envs`` (default: all) to ``folder``.

    Raises :class:`ConfigError` for an unknown name, and for hashes of other pins.
    """
    targets = []
    for path in files_of(envs, names):
        file = read_environment_file(path)
        targets.append(folder / f"{path.stem}{SUFFIX}")
        write_whole(targets[-1], text(file, targets[-1]))
    return targets


def text(file: EnvironmentFile, target: Path) -> str:
    """Return the recipe. Its build context is the folder of the environment file."""
    name = f"framebench-{file.path.stem}"
    lines = [
        f"# {file.path.parent.name}/{file.path.name} as an image:",
        f"#   docker build --tag {name} --file {target} {file.path.parent.name}",
        f"#   apptainer build {file.path.stem}.sif docker-daemon:{name}:latest",
        f"FROM docker.io/library/python:{file.python}-slim",
        "ARG PIP_INDEX_URL",
        _run(
            "apt-get update",
            _command("apt-get", "install", "--yes", "--no-install-recommends", *_OF_DEBIAN),
            "rm -rf /var/lib/apt/lists/*",
        ),
        *_packages(file),
        'CMD ["python3"]',
    ]
    return "\n".join(lines) + "\n"


def _packages(file: EnvironmentFile) -> Iterator[str]:
    pip = _command("python3", "-m", "pip", "install", "--no-cache-dir")
    own = [entry for entry in read_mapping(file.path)["dependencies"] if isinstance(entry, str)]
    pin = next((entry.partition("=")[2] for entry in own if entry.startswith("pip=")), "")
    yield _run(f"{pip} pip=={pin}" if pin else f"{pip} --upgrade pip")
    indexes = [word for index in file.indexes for word in ("--extra-index-url", index)]
    if not file.is_hashed:
        assert file.hashes is not None, "hashes are asked for"
        yield f"# Without hashes: {file.hashes.exempt}"
        sources = [word for name in file.sources for word in ("--no-binary", name)]
        yield _run(f"{pip} {_command(*indexes, *sources, *file.packages)}")
        return
    locked = f"{file.path.stem}{hashes.SUFFIX}"  # for builds of the default index
    yield f"COPY {locked} /tmp/{locked}"
    arguments = _command("--require-hashes", *indexes, "--requirement", f"/tmp/{locked}")
    yield _run(f"{pip} {arguments}", f"rm /tmp/{locked}")


def _command(*arguments: str) -> str:
    return shlex.join(arguments)


def _run(*commands: str) -> str:
    return "RUN " + " \\\n    && ".join(commands)


def messages(targets: Iterable[Path]) -> list[str]:
    """Return the output lines of the command."""
    return [*(f"recipe: {path}" for path in targets), "No image was built: see the first lines."]
