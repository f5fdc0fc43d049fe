"""Images built by buildah, without daemon or server; base images consist of this machine's
files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

#: Isolation for root that needs neither a container runtime nor user namespaces.
CHROOT = ("--isolation", "chroot")
#: Folder in which programs find copied libraries.
LIBRARIES = "/libraries"
#: Large parts of Python's library that nothing here imports.
LEFT_OUT = ("site-packages", "test", "idlelib", "__pycache__", "config-*", "lib2to3", "tkinter")


@dataclass(frozen=True)
class Builder:
    """Separate images and containers below a folder."""

    folder: Path

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        state = self.folder / "state"
        place = ("--root", str(state / "root"), "--runroot", str(state / "run"))
        return subprocess.run(
            ["buildah", "--storage-driver", "vfs", *place, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )

    def done(self, *arguments: str) -> str:
        """Return the output of a call that must not fail."""
        called = self.call(*arguments)
        assert called.returncode == 0, f"buildah {' '.join(arguments)}: {called.stderr[-2000:]}"
        return called.stdout.strip()

    def base(self, root: Path, *names: str, **variables: str) -> None:
        """Make an image of the files in ``root`` under these names."""
        container = self.done("from", "scratch")
        self.done("copy", container, str(root), "/")
        options = {"LD_LIBRARY_PATH": LIBRARIES, "PATH": "/usr/local/bin:/bin", **variables}
        arguments = [
            word for name, value in options.items() for word in ("--env", f"{name}={value}")
        ]
        self.done("config", *arguments, container)
        image = self.done("commit", "--rm", container)
        self.done("tag", image, *names)

    def build(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Build an image. ``arguments``: arguments after ``docker build``."""
        return self.call("bud", "--pull-never", *CHROOT, *arguments)

    def run(self, image: str, command: list[str], *volumes: str) -> None:
        container = self.done("from", "--pull-never", image)
        binds = [word for volume in volumes for word in ("--volume", volume)]
        self.done("run", *CHROOT, *binds, container, "--", *command)

    def root(self, image: str) -> Path:
        """Return the folder with the files of an image."""
        return Path(self.done("mount", self.done("from", "--pull-never", image)))


def put_programs(root: Path, *paths: Path) -> None:
    """Copy programs with the libraries that they need, to ``/bin`` and LIBRARIES."""
    for path in paths:
        target = root / "bin" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
        put_libraries(root, path)


def put_libraries(root: Path, *files: Path) -> None:
    """Copy the libraries that ``files`` are linked to; the loader keeps its path."""
    (root / LIBRARIES[1:]).mkdir(parents=True, exist_ok=True)
    arguments = ["ldd", *map(str, files)]
    said = subprocess.run(arguments, capture_output=True, text=True, check=False).stdout
    for word in sorted({word for word in said.split() if word.startswith("/")}):
        library = Path(word.rstrip(":"))
        if library.name.startswith("ld-linux"):
            target = root / str(library)[1:]
        elif ".so" in library.name and library not in files:
            target = root / LIBRARIES[1:] / library.name
        else:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)


def put_script(root: Path, name: str, *lines: str) -> None:
    path = root / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


def put_shell(root: Path) -> None:
    """Copy the programs that recipes call besides packages: a shell and ``rm``.
    Debian's ``apt-get`` is replaced by a script that notes its arguments."""
    actual = [shutil.which(name) for name in ("sh", "rm")]
    put_programs(root, *(Path(path) for path in actual if path))
    put_script(root, "apt-get", 'echo "$@" >> /apt-get.words')
    for folder in ("tmp", "var/lib/apt/lists"):
        (root / folder).mkdir(parents=True, exist_ok=True)


def put_python(root: Path) -> None:
    """Copy this machine's Python with its pip, below ``/usr/local``."""
    program = Path(os.path.realpath(sys.executable))
    library = Path(sysconfig.get_path("stdlib"))
    target = root / "usr/local/lib" / library.name
    shutil.copytree(library, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (root / "usr/local/bin").mkdir(parents=True)
    shutil.copy(program, root / "usr/local/bin/python3")
    put_libraries(root, program, *sorted((library / "lib-dynload").glob("*.so")))
    (pip,) = (library / "ensurepip" / "_bundled").glob("pip-*.whl")
    shutil.unpack_archive(pip, target / "site-packages", "zip")
