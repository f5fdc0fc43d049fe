"""``framebench archive``: a result set as one zip file."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import io
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

from core import bounded

from ... import PROJECT
from ...commands.reporting import make_report
from ...config import yaml_files
from ...config.validation import ConfigError, NotAllowed
from ...files import json_files
from ...files.problem import Problem, cause
from ...files.whole_files import write_whole, write_whole_bytes
from ...records import expected, record_sets, searches, sidecars
from ...records.read_files import READ, RUNS
from ...records.sidecars import CallEntry, Interruption
from .handed_on import HandedOn, names_in

#: Folders of records, and files of notes that are read with them.
RECORDS = ("runs", "verification", "peak_flops", searches.FOLDER)
NOTES = (expected.FILE, sidecars.FILES[Interruption])
#: What ``gpu-check`` writes: output of commands, and its table.
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
#: File with checksums of all files, in the format of ``sha256sum``.
CHECKSUMS = "manifest-sha256.txt"
SUITE = "suite.yaml"
README = "README.md"
_README = f"""# Results of Framebench

`report.html` is the report, `tables/` has its figures, `runs/` the record behind each. `suite.yaml`
is what was asked for. `sha256sum -c {CHECKSUMS}` checks all files. With Framebench at the same
commit (`environment.code` of a record),

    snakemake --cores 1 report --config records=runs results=again

makes the same tables from these records.
"""
#: Fixed time of each file in the archive, so that its bytes depend on the contents alone.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def make_archive(
    results: Path, suite: Path | None = None, redacts: bool = False, figures_only: bool = False
) -> None:
    """Write ``archives/NAME.zip`` below the results folder.

    It has records, suite, and tables and report made anew from these records; with ``redacts`` only
    what may go, with ``figures_only`` without texts of frameworks. ``suite``: the suite's file, by
    default the shipped one of the latest call. Raises ConfigError for a folder without records."""
    if not json_files.below(results / "runs")[0]:
        raise ConfigError(
            f"--results: found {results}, which has no record in runs/; allowed: a folder that was "
            "measured into"
        )
    suite = suite or measured_suite(results)
    with tempfile.TemporaryDirectory(prefix="framebench-") as temporary:
        folder = Path(temporary)
        handed_on = None
        if redacts or figures_only:
            handed_on = HandedOn(_names(results), texts=not figures_only)
        for problem in _gather(results, suite, folder, handed_on):
            print(f"left out: {problem.origin}: {problem.message}", file=sys.stderr)
        with redirect_stdout(io.StringIO()):
            make_report(folder / "runs", folder)
        runs = record_sets.load(folder / "runs").runs
        digest = hashlib.sha256(bounded.read_bytes(folder / RUNS)).hexdigest()[:12]
        name = suite.stem if suite else "results"
        ending = "-figures" if figures_only else "-redacted" if redacts else ""
        name = handed_on.text(name) if handed_on else name
        target = results / "archives" / f"{name}-{digest}{ending}.zip"
        _pack(folder, target)
    print(f"archive: {target} ({target.stat().st_size / 1e6:.1f} MB, {len(runs)} runs)")


def measured_suite(results: Path) -> Path | None:
    """Return the file of the suite of the latest call; None for a suite that is not shipped."""
    measured = sidecars.load(results, CallEntry)[0]
    with contextlib.suppress(NotAllowed):
        return yaml_files.find_suite(measured[-1].suite, PROJECT) if measured else None
    return None


def _gather(
    results: Path, suite: Path | None, folder: Path, handed_on: HandedOn | None
) -> Iterator[Problem]:
    """Copy all results and the suite into ``folder``, with ``handed_on`` only what may go.
    Yields a problem for each file that is left out. Raises OSError."""
    for path in _records(results):
        place = path.relative_to(results)
        try:
            content = bounded.read_bytes(path)
            if handed_on:
                place = Path(*map(handed_on.text, place.parts))
                goes = handed_on.record(json_files.decode(content))
                content = f"{json.dumps(goes, indent=1)}\n".encode()
            write_whole_bytes(folder / place, content)
        except ValueError as error:
            yield Problem(str(path.relative_to(results)), cause(error))
    if called := sidecars.load(results, CallEntry)[0]:
        kept = [call._replace(command="") for call in called] if handed_on else called
        sidecars.append(folder, kept)
    for name in (*GPU_REPORTS, GPU_PATHS):
        if (results / name).is_file():
            lines = bounded.read_text(results / name).splitlines()
            goes = map(handed_on.text, lines) if handed_on else lines
            write_whole(folder / name, "\n".join([*goes, ""]))
    others = {name: results / name for name in NOTES if (results / name).is_file()}
    for name, path in {**others, **({SUITE: suite} if suite else {})}.items():
        if handed_on and path.parent.resolve() != PROJECT / "config" / "suites":
            yield Problem(name, "is not among what is handed on")
        else:
            write_whole_bytes(folder / name, bounded.read_bytes(path))
    if not suite:
        yield Problem(SUITE, "is not shipped with Framebench; allowed: --suite FILE")
    write_whole(folder / README, _README)


def _records(results: Path) -> list[Path]:
    return [path for name in RECORDS for path in json_files.below(results / name)[0]]


def _names(results: Path) -> list[tuple[str, str]]:
    """Return the hosts and users that texts may name, by kind."""
    names = [("user", os.environ.get(name, "")) for name in ("USER", "LOGNAME")]
    with contextlib.suppress(KeyError, OSError):  # the user may have no account
        names.append(("user", getpass.getuser()))
    for path in _records(results):
        with contextlib.suppress(ValueError, AttributeError):  # told where it is copied
            names += names_in(json_files.decode(bounded.read_bytes(path)))
    return names


def _pack(folder: Path, target: Path) -> None:
    """Write all files of ``folder`` with their checksums to one reproducible ZIP file, without
    hidden files and lists of what was read. Raises OSError."""
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    contents = {
        name: bounded.read_bytes(path)
        for name, path in sorted(names.items())
        if path.is_file() and not name.startswith((".", RUNS, str(READ)))
    }
    sums = [
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items()
    ]
    contents[CHECKSUMS] = "".join(sums).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(contents.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    write_whole_bytes(target, packed.getvalue())
