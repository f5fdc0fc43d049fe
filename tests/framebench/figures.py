"""Kept records, and every table made of them: tests/data/figures.

    .venv/bin/python -m tests.framebench.figures

makes the kept tables anew, for an intended change, and prints the difference."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "figures"
#: Published results of DLPerf.
DLPERF = ROOT / "results" / "published" / "dlperf-v1.0"

#: Commands that make each set of tables.
COMMANDS: dict[str, list[list[str]]] = {
    "quick": [["report", "--records", "quick/runs"]],
    "made_up": [
        ["report", "--records", "made_up/runs"],
        ["compare", "--base", "made_up/runs@old", "--candidate", "made_up/runs@new"],
    ],
    "dlperf": [["report", "--records", str(DLPERF)]],
}


def unpacked(name: str, folder: Path) -> Path:
    """Unpack ``results`` or ``tables`` below ``folder``, and return the path."""
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        archive.extractall(folder / name, filter="data")
    return folder / name


def made(name: str, records: Path, folder: Path) -> Path:
    """Make the tables of one set in ``folder`` from ``records``, the unpacked results."""
    from framebench import cli

    with contextlib.chdir(records):
        for command in COMMANDS[name]:
            assert cli.main([*command, "--results", str(folder)]) == 0, command
    return folder / "tables"


def _renew() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records, kept = unpacked("results", folder), folder / "kept"
        for command in COMMANDS:
            for table in made(command, records, folder / command).glob("*.csv"):
                target = kept / command / table.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(table.read_bytes())
        subprocess.run(["diff", "-ruN", unpacked("tables", folder), kept], check=False)
        with tarfile.open(DATA / "tables.tar.xz", "w:xz") as archive:
            for path in sorted(kept.rglob("*.csv")):
                archive.add(path, path.relative_to(kept).as_posix(), filter=_anonymous)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "workflow"), str(ROOT / "scripts")]
    _renew()
