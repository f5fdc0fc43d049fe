"""``framebench archive``: a result set as one zip file."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
import zipfile
from contextlib import redirect_stdout
from pathlib import Path

from core import bounded

from ...cli import make_report
from ...config.validation import ConfigError
from ...files import json_files
from ...files.json_files import cause
from ...files.whole_files import write_whole
from ...records import sidecars
from ...records.record_sets import READ, RUNS, SEARCHES
from ...records.sidecars import EXPECTED, CallEntry, Interruption
from .handed_on import HandedOn, names_in

#: Folders of records, and sidecar files that are read with them.
RECORDS = ("runs", "verification", "peak_flops", SEARCHES)
NOTES = (EXPECTED, sidecars.FILES[Interruption])
#: Files that ``gpu-check`` writes: output of commands, and its table.
GPU_REPORTS = {
    "nvidia-smi.txt": (
        "nvidia-smi",
        "--query-gpu=name,driver_version,memory.total,memory.used,persistence_mode,compute_mode,"
        "mig.mode.current,ecc.mode.current",
        "--format=csv",
    ),
    "topology.txt": ("nvidia-smi", "topo", "-m"),
}
GPU_PATHS = "gpu_check.txt"


def make_archive(results: Path, redacts: bool = False, figures_only: bool = False) -> None:
    """Write ``archives/NAME.zip`` below the results folder: records, and tables and report made
    anew from them; with ``redacts`` only what may go, with ``figures_only`` also without texts of
    frameworks.

    Raises ConfigError for a folder without records."""
    if not json_files.below(results / "runs")[0]:
        raise ConfigError(
            f"--results: found {results}, which has no record in runs/; allowed: a folder that was "
            "measured into"
        )
    handed_on = None
    if redacts or figures_only:
        handed_on = HandedOn(_names(results), texts=not figures_only)
    calls = sidecars.load(results, CallEntry)
    name = calls[-1].suite if calls else "results"
    with tempfile.TemporaryDirectory(prefix="framebench-") as temporary:
        folder = Path(temporary)
        _gather(results, folder, handed_on)
        with redirect_stdout(io.StringIO()):
            make_report(folder / "runs", folder)
        digest = hashlib.sha256(bounded.read_bytes(folder / RUNS)).hexdigest()[:12]
        ending = "-figures" if figures_only else "-redacted" if redacts else ""
        name = handed_on.text(name) if handed_on else name
        target = results / "archives" / f"{name}-{digest}{ending}.zip"
        _pack(folder, target)
    print(f"archive: {target} ({target.stat().st_size / 1e6:.1f} MB)")


def _gather(results: Path, folder: Path, handed_on: HandedOn | None) -> None:
    """Copy all results into ``folder``, with ``handed_on`` only what may go.
    Prints which records are left out. Raises OSError."""
    for path in _records(results):
        place = path.relative_to(results)
        try:
            content = bounded.read_bytes(path)
            if handed_on:
                goes = handed_on.record(json_files.decode(content))
                content = f"{json.dumps(goes, indent=1)}\n".encode()
                place = Path(*map(handed_on.text, place.parts))
            write_whole(folder / place, content)
        except ValueError as error:
            print(f"left out: {place}: {cause(error)}", file=sys.stderr)
    if called := sidecars.load(results, CallEntry):
        kept = [call._replace(command="") for call in called] if handed_on else called
        sidecars.append(folder, kept)
    for name in (*GPU_REPORTS, GPU_PATHS, *(() if handed_on else NOTES)):
        if (results / name).is_file():
            lines = bounded.read_text(results / name).splitlines()
            goes = map(handed_on.text, lines) if handed_on else lines
            write_whole(folder / name, "\n".join([*goes, ""]))


def _records(results: Path) -> list[Path]:
    return [path for name in RECORDS for path in json_files.below(results / name)[0]]


def _names(results: Path) -> list[tuple[str, str]]:
    """Return the hosts and users that texts may name, by kind."""
    names = [("user", os.environ.get(name, "")) for name in ("USER", "LOGNAME")]
    for path in _records(results):
        with contextlib.suppress(ValueError, AttributeError):  # reported where the file is copied
            names += names_in(json_files.decode(bounded.read_bytes(path)))
    return names


def _pack(folder: Path, target: Path) -> None:
    """Write all files of ``folder`` to one ZIP file, without hidden files and the lists of files
    that were read. Raises OSError."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and not name.startswith((".", RUNS, str(READ))):
                archive.write(path, name)
    write_whole(target, packed.getvalue())
