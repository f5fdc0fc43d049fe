"""``framebench archive``: packs a result set into one zip file, optionally only its listed fields.

A field that is not listed here is left out, so new fields are, too. Texts of frameworks may contain
anything: paths, addresses, known hosts and users are replaced by stand-ins, long texts are cut, and
all these texts can be left out."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from core import bounded

from ...cli import make_report
from ...config.statuses import OK
from ...config.validation import ConfigError
from ...files import json_files
from ...files.json_files import cause
from ...files.whole_files import write_whole
from ...records import sidecars
from ...records.record_sets import READ, RUNS, SEARCHES
from ...records.sidecars import CallEntry, Interruption

#: Folders of records, and sidecar files that are read with them.
RECORDS = ("runs", "verification", "peak_flops", SEARCHES)
NOTES = (sidecars.EXPECTED, sidecars.FILES[Interruption])
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
#: Most characters of a text in the archive, and most that are searched for names.
LONGEST, LOOKED_AT = 300, 1000
#: Most bytes of the end of a log in the archive.
LOG_END = 20000
WITHHELD = "withheld"
#: Versions of packages, and values of variables, that are handed on unchanged.
_UNCHANGED = {"packages": re.compile(r"[\w.+!-]*"), "variables": re.compile(r"[\d.,:;*-]*")}
#: Texts that identify nobody: system paths, units with a slash, times, words with colons.
_PUBLIC = re.compile(
    r"[\w.%]+/(s|step|device|sample|update)[.,;:)]?|\(?/(usr|lib|lib64|sys|proc)/.*"
    r"|\d{1,2}:\d{2}:\d{2}(\.\d+)?|[A-Za-z:.%]+"
)
#: Patterns of texts that identify somebody, by kind; quoted paths may have blanks.
_NAMING = re.compile(
    r"""(?P<quoted>(['"`])(?=[/~\\.]|\w:[/\\])[^'"`\n]*\2?)"""
    r"""|(?P<gpu>(?:GPU|MIG)-[0-9A-Za-z/-]{8,})"""
    r"""|(?P<path>[^\s'"`=]*[/\\~@][^\s'"`]*)"""
    r"""|(?P<address>(?<![\w.=])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"""
    r"""|(?<![\w:])[0-9a-fA-F]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*(?:%\w+)?(?!\w))"""
)


def _fields(names: str, **inner: Any) -> dict[str, Any]:
    """Return fields to hand on: None for a whole field, else the subfields to hand on."""
    return {**dict.fromkeys(names.split()), **inner}


_GPU = _fields(
    "name uuid memory_bytes driver capability utilization_percent_mean sm_mhz memory_mhz "
    "watts_mean temperature_celsius_max throttle_reasons uncorrected_errors "
    "ecc other_processes state"
)
_HARDWARE = _fields("cpu cores physical_cores memory_bytes processor", gpus=_GPU)
_WATCH = _fields(
    "window_seconds interval_seconds samples cores counted_cores machine_cores foreign_load "
    "machine_foreign_load steal waiting frequency_mhz temperature_celsius_max throttle_events "
    "memory_bytes memory_available_bytes_min swapped_bytes energy_joules watching absent raw",
    gpus=_GPU,
)
#: Fields of a record, and of the objects in it, that are handed on.
FIELDS = _fields(
    "format source kind case parameters repeat status reason framework_version metrics samples "
    "window_seconds wall_seconds started memory lease attempts",
    settings=_fields(
        "accelerator cores_per_device warmup_steps variant node side_by_side dropout variables "
        "preload huge_pages source warmup_limit timed_steps timed_seconds time_limit seed",
        data=_fields("identity bad_images"),
    ),
    own_model=_fields("framework sha256"),
    ranks=_fields(
        "rank host status reason device cores numa_nodes huge_page_bytes framework_version "
        "settings libraries trainable_parameters sample_work matmul_dtypes significant_bits "
        "micro_steps step_all_reduces held_parameters collectives compiled processes preflight "
        "batch_checksum weights_checksum verification blocks threads last_cache_bytes link "
        "links loader_output decoded decoded_alone loaded input_pipeline fio matmuls library "
        "sustained step_breakdown gradient_all_reduce task resumed_after untrained curve phases "
        "settled_after run_ahead warmup_step_seconds step_seconds waited_step_seconds "
        "window_start window_seconds first_value last_value peak_device_memory_bytes "
        "allocated_memory_bytes peak_reserved_memory_bytes peak_host_memory_bytes"
    ),
    watch=_WATCH,
    nodes=_fields("node memory", watch=_WATCH, hardware=_HARDWARE),
    environment=_fields(
        "install_method image_digest python packages variables code",
        hardware=_HARDWARE,
        system=_fields(
            "host os kernel machine governor cgroup_cpu_limit cgroup_memory_limit_bytes"
        ),
        scheduler=_fields("name"),
    ),
)
#: Fields with fixed words, which name nobody.
_WORDS = _fields(
    "format kind status framework framework_version precision compiler parallelism install_method "
    "accelerator mode unit better quantity part ends python"
)
#: Placeholders for required fields whose values are not handed on.
_NEEDED = {"command": [], "prefix": WITHHELD, "folder": WITHHELD, "source": WITHHELD}


def make_archive(results: Path, redacts: bool = False, figures_only: bool = False) -> None:
    """Write ``archives/NAME.zip`` below the results folder: records, and tables and report made
    from them. ``redacts``: hand on only the listed fields, with stand-ins for names;
    ``figures_only``: also leave out texts of frameworks.

    Raises ConfigError for a folder without records."""
    if not json_files.below(results / "runs")[0]:
        raise ConfigError(
            f"--results: found {results}, which has no record in runs/; allowed: a folder that was "
            "measured into"
        )
    is_whole = not (redacts or figures_only)
    handed_on = None if is_whole else HandedOn(_names(results), texts=not figures_only)
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
    """Copy all results into ``folder``, filtered by ``handed_on`` unless that is None.
    Prints which records are left out. Raises OSError."""
    for path in _records(results):
        place = path.relative_to(results)
        try:
            content = bounded.read_bytes(path)
            if handed_on:
                redacted = handed_on.record(json_files.decode(content))
                content = f"{json.dumps(redacted, indent=1)}\n".encode()
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
            redacted = map(handed_on.text, lines) if handed_on else lines
            write_whole(folder / name, "\n".join([*redacted, ""]))
    for path in [] if handed_on and not handed_on.hands_on_texts else _logs(results):
        lines, place = bounded.read_end(path, LOG_END).splitlines(), path.relative_to(results)
        if handed_on:
            lines = [handed_on.text(line) for line in lines[path.stat().st_size > LOG_END :]]
            place = Path(*map(handed_on.text, place.parts))
        write_whole(folder / place, "\n".join([*lines, ""]))


def _logs(results: Path) -> Iterator[Path]:
    """Yield the logs of environments, and those of all ranks of runs that are not ``ok``."""
    yield from sorted(results.glob("logs/environments/*.log"))
    for path in _records(results):
        with contextlib.suppress(ValueError, AttributeError):
            if json_files.decode(bounded.read_bytes(path)).get("status") != OK:
                relative = str(path.relative_to(results).with_suffix("")).removeprefix("runs/")
                log = results / "logs" / relative
                yield from sorted(log.parent.glob(f"{log.name}.*log"))


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


class HandedOn:
    """Filter for the records and texts of an archive. A name has the same stand-in everywhere.

    ``names``: kind and name of hosts and users; ``texts``: whether to hand on frameworks' texts."""

    def __init__(self, names: Iterable[tuple[str, str]], texts: bool = True) -> None:
        self.hands_on_texts = texts
        self._stand_ins: dict[tuple[str, str], str] = {}
        self._kinds = {name.lower(): kind for kind, name in names if name}
        longest_first = sorted(map(re.escape, self._kinds), key=len, reverse=True)
        known = "|".join(longest_first) or "(?!)"
        self._known = re.compile(rf"(?<![A-Za-z0-9])(?:{known})(?![A-Za-z0-9])", re.IGNORECASE)

    def record(self, record: dict[str, Any]) -> Any:
        """Return the parts of a record that are handed on."""
        return self._object(record, FIELDS)

    def text(self, text: str) -> str:
        """Return a text with stand-ins for names, cut to LONGEST characters."""
        if len(text) > LOOKED_AT:  # also drop the last word, which may be part of a name
            text = f"{text[:LOOKED_AT].rpartition(' ')[0]} .."
        text = _NAMING.sub(self._naming, text)
        text = self._known.sub(
            lambda match: self._stand_in(self._kinds[match[0].lower()], match[0].lower()), text
        )
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]} .."

    def _naming(self, match: re.Match[str]) -> str:
        kind, found = str(match.lastgroup).replace("quoted", "path"), match[0].strip("'\"`")
        return match[0] if _PUBLIC.fullmatch(found) else self._stand_in(kind, found)

    def _object(self, value: Any, fields: dict[str, Any] | None) -> Any:
        if isinstance(value, list):
            return [self._object(item, fields) for item in value]
        if isinstance(value, str) and value.startswith(("/", "~")):  # paths may have blanks
            return value if _PUBLIC.fullmatch(value) else self._stand_in("path", value)
        if not isinstance(value, dict):
            return self.text(value) if isinstance(value, str) else value
        handed_on = {
            _NAMING.sub(self._naming, name): self._field(name, item, fields and fields[name])
            for name, item in value.items()
            if fields is None or name in fields
        }
        needed = {name: item for name, item in _NEEDED.items() if name in value}
        return handed_on if fields is None else {**needed, **handed_on}

    def _field(self, name: str, value: Any, fields: dict[str, Any] | None) -> Any:
        if name == "reason" and value and not self.hands_on_texts:
            return WITHHELD
        if name in _WORDS and isinstance(value, str):
            return value
        if name in _UNCHANGED and isinstance(value, dict):
            return {
                key: item
                if _UNCHANGED[name].fullmatch(str(item))
                else self._stand_in("value", str(item))
                for key, item in value.items()
            }
        return self._object(value, fields)

    def _stand_in(self, kind: str, name: str) -> str:
        number = 1 + sum(other == kind for other, _ in self._stand_ins)
        return self._stand_ins.setdefault((kind, name), f"{kind}-{number}")


def names_in(record: Any) -> Iterator[tuple[str, str]]:
    """Yield kind and name of the hosts in a record, with and without domain, and of its user."""
    settings, environment = record.get("settings", {}), record.get("environment", {})
    places = [settings, environment.get("system", {}), *record.get("ranks", [])]
    for place in [*places, *record.get("nodes", [])]:
        for field in ("host", "node"):
            if name := place.get(field):
                yield from (("host", str(name)), ("host", str(name).partition(".")[0]))
    for user in re.findall(r"/(?:home|Users)/([^/]+)", environment.get("prefix", "")):
        yield "user", user
