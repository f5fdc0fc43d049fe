"""Contents of an archive of results, gathered in a folder."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core import bounded

from ... import PROJECT
from ...config import catalog, yaml_files
from ...config.validation import ConfigError
from ...config.yaml_files import read_mapping
from ...environments import added_packages
from ...environments.venvs import read_environment_file
from ...files import json_files
from ...files.problem import Problem, cause
from ...files.whole_files import write_whole, write_whole_bytes
from ...records import searches
from ...records.read_files import READ, RUNS
from ...records.sidecars import calls, expected, interruptions, noted
from .handed_on import HandedOn, names_in

#: Folders of records, and files of notes that are read with them.
RECORDS = ("runs", "verification", "peak_flops", searches.FOLDER)
SMI = "nvidia-smi.txt"
#: Lines of SMI that are handed on.
_SMI_LINES = (
    *("Attached GPUs", "CUDA Version", "Driver Version", "Product Architecture", "Product Name"),
    *("Compute Mode", "Persistence Mode", "Current", "FB Memory Usage", "Total", "Used", "Free"),
)
#: Files of ``gpu-check``, with the commands whose output they hold, and its table.
GPU_REPORTS = {
    SMI: ("nvidia-smi", "-q"),
    "topology.txt": ("nvidia-smi", "topo", "-m"),
}
GPU_PATHS = "gpu_check.txt"
NOTED = (
    *GPU_REPORTS,
    GPU_PATHS,
    calls.FILE,
    expected.FILE,
    interruptions.FILE,
)
#: File with checksums of all files, in the format of ``sha256sum``.
CHECKSUMS = "manifest-sha256.txt"
SUITE = "suite.yaml"
README = "README.md"
ENVIRONMENTS = "envs"
#: Files of the project: what was run, and how to cite it.
OF_PROJECT = ("workflow/Snakefile", "CITATION.cff", "LICENSE")
_README = """# Results of Framebench

`report.html` is the report, `tables/` has its figures, `runs/` the record behind each. `suite.yaml`
and `envs/` are what was asked for and what it ran in. `sha256sum -c {checksums}` checks all files.
With Framebench at the same commit (`environment.code` of a record),

    snakemake --cores 1 report --config records=runs results=again

makes the same tables from these records.
"""
#: Fixed time of each file in the archive, so that its bytes depend on the contents alone.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class ArchiveSource:
    """Contents of an archive: a results folder, its suite file, and the environment files."""

    results: Path
    suite: Path
    environments: Sequence[Path]


def measured_suite(results: Path, suite: Path) -> Path:
    """Return the suite, or that which replaced it on GPUs, if calls measured that alone."""
    on_gpus = read_mapping(suite).get("on_gpus")
    known = _suites(results)
    if not isinstance(on_gpus, str) or suite.stem in known:
        return suite
    other = yaml_files.find_suite(on_gpus, PROJECT)
    return other if other.stem in known else suite


def _suites(results: Path) -> set[str]:
    """Return the names of the suites that were measured into a folder."""
    return {call.suite for call in calls.load(results)[0]}


def environments_of(results: Path, suite: Path) -> list[Path]:
    """Return the environment files of all records and of the suite's variants, with their hashes.

    Runs in provided software have no such file."""
    known = catalog.load_catalog(PROJECT)
    files = {*yaml_files.environments_of_suite(suite)}
    for path in json_files.below(results / "runs")[0]:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            record = json_files.read(path)
            framework, accelerator = record["case"]["framework"], record["settings"]["accelerator"]
            environment = record["environment"]
            if added := added_packages.file_beside(Path(environment["prefix"])):
                files.add(added)
            elif framework in known.frameworks and environment["install_method"] in (
                "venv",
                "conda",
            ):
                files.update(known.environment_files(framework, accelerator))
    for path in [*files]:
        with contextlib.suppress(ConfigError):  # no hashes, or files that are gone
            files.update(read_environment_file(path, hashed=True).hash_files)
    return sorted(files)


def gather(source: ArchiveSource, folder: Path, handed_on: HandedOn | None) -> list[Problem]:
    """Copy all results, the suite, environments and the project's own files into ``folder``.
    With ``handed_on``, only what may go. Returns a problem for each file that is left out. Raises
    OSError."""
    problems = []
    for path in _records(source.results):
        place = path.relative_to(source.results)
        try:
            content = bounded.read_bytes(path)
            if handed_on:
                place = Path(*map(handed_on.text, place.parts))
                goes = handed_on.record(json_files.decode(content))
                content = f"{json.dumps(goes, indent=1)}\n".encode()
            write_whole_bytes(folder / place, content)
        except ValueError as error:
            problems.append(Problem(str(path.relative_to(source.results)), cause(error)))
    for name, path in _texts(source).items():
        if handed_on and name == calls.FILE:
            called = [call._replace(command="") for call in calls.load(source.results)[0]]
            noted.append(folder / name, calls.CallEntry._fields, called)
        elif handed_on and name in (*GPU_REPORTS, GPU_PATHS):
            lines = bounded.read_text(path).splitlines()
            goes = [handed_on.text(line) for line in lines if name != SMI or _goes(line)]
            write_whole(folder / name, "\n".join(goes) + "\n")
        elif not handed_on or _is_shipped(path):
            write_whole_bytes(folder / name, bounded.read_bytes(path))
        else:
            problems.append(Problem(name, "is not among what is handed on"))
    for path in (PROJECT / name for name in OF_PROJECT):
        if path.is_file():  # some are missing if only the workflow was copied
            write_whole_bytes(folder / path.relative_to(PROJECT), bounded.read_bytes(path))
    write_whole_bytes(folder / README, _README.format(checksums=CHECKSUMS).encode())
    return problems


def _records(results: Path) -> list[Path]:
    return [path for name in RECORDS for path in json_files.below(results / name)[0]]


def _texts(source: ArchiveSource) -> dict[str, Path]:
    """Return the text files by their names in the archive."""
    texts = {name: source.results / name for name in NOTED}
    texts[SUITE] = source.suite
    texts |= {f"{ENVIRONMENTS}/{path.name}": path for path in source.environments}
    return {name: path for name, path in texts.items() if path.is_file()}


def _goes(line: str) -> bool:
    return line.partition(":")[0].strip() in _SMI_LINES


def _is_shipped(path: Path) -> bool:
    """Return whether a file is a suite or an environment of the project."""
    return path.parent.resolve() in (PROJECT / "config" / "suites", PROJECT / ENVIRONMENTS)


def handed_on(source: ArchiveSource, texts: bool) -> HandedOn:
    """Return what goes of ``source``, with stand-ins for the hosts of records and for the user."""
    names = [("user", os.environ.get(name, "")) for name in ("USER", "LOGNAME")]
    with contextlib.suppress(KeyError, OSError):  # the user may have no account
        names.append(("user", getpass.getuser()))
    for path in _records(source.results):
        with contextlib.suppress(ValueError, AttributeError):  # told where it is copied
            names += names_in(json_files.decode(bounded.read_bytes(path)))
    return HandedOn(names, texts)


def check(source: ArchiveSource) -> None:
    """Raise :class:`ConfigError` if ``source`` has no record, or results of other suites."""
    if not json_files.below(source.results / "runs")[0]:
        raise ConfigError(
            f"--results: found {source.results}, which has no record in runs/; allowed: a folder "
            "that was measured into"
        )
    known = _suites(source.results)
    if known and source.suite.stem not in known:
        raise ConfigError(
            f"--suite: found {source.suite.stem}, but {source.results} was measured by "
            f"{', '.join(sorted(known))}; allowed: that suite"
        )


def files(folder: Path) -> list[Path]:
    """Return all files to archive, in a fixed order: without hidden files and lists of what was
    read."""
    left_out = (".", RUNS, READ)
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(
        path for path in paths if not path.relative_to(folder).as_posix().startswith(left_out)
    )


def pack(folder: Path, target: Path) -> None:
    """Write all files of ``folder`` with their checksums to one reproducible ZIP file.
    Raises OSError."""
    names = {path.relative_to(folder).as_posix(): path for path in files(folder)}
    sums = [
        f"{hashlib.sha256(bounded.read_bytes(path)).hexdigest()}  {name}\n"
        for name, path in names.items()
    ]
    write_whole_bytes(folder / CHECKSUMS, "".join(sums).encode())
    names[CHECKSUMS] = folder / CHECKSUMS
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(names):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, bounded.read_bytes(names[name]))
    write_whole_bytes(target, packed.getvalue())
