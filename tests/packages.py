"""Packages without content, for indexes made by tests."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def metadata(name: str, version: str, needs: Sequence[str] = ()) -> str:
    lines = ["Metadata-Version: 2.2", f"Name: {name}", f"Version: {version}"]
    return "\n".join([*lines, *(f"Requires-Dist: {other}" for other in needs), ""])


def write_wheel(
    folder: Path, name: str, version: str, needs: Sequence[str] = (), module: str = ""
) -> Path:
    """Write a wheel for any Python, with the text of a ``module`` if given. Returns the file."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    files = {"METADATA": metadata(name, version, needs), "WHEEL": WHEEL}
    sizes = {f"{about}/{file}": len(text) for file, text in files.items()}
    sizes |= {f"{name}/__init__.py": len(module)} if module else {}
    listed = "".join(f"{file},,{size}\n" for file, size in sizes.items())
    files["RECORD"] = f"{listed}{about}/RECORD,,\n"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(f"{about}/{file}", text)
        if module:
            wheel.writestr(f"{name}/__init__.py", module)
    return path


def write_source(folder: Path, name: str, version: str) -> Path:
    """Write a package that must be built, and cannot be. Returns the file."""
    path = folder / f"{name}-{version}.tar.gz"
    text = metadata(name, version).encode()
    folder.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as source:
        for file, content in (("PKG-INFO", text), ("pyproject.toml", b"")):
            entry = tarfile.TarInfo(f"{name}-{version}/{file}")
            entry.size = len(content)
            source.addfile(entry, io.BytesIO(content))
    return path
