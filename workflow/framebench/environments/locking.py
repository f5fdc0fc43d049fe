"""``framebench hashes``: writes ``envs/NAME.hashes.txt``, and environment files with other pins, by
``uv pip compile``."""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml
from core import bounded, programs

from ..config.keys import PIN, read_mapping
from ..config.settings import SOURCE
from ..config.validation import ConfigError, show
from ..files.whole_files import write_whole
from . import uv
from .venvs import COMMAND, SUFFIX, EnvironmentFile, bare, digest_of, read_environment_file

#: Install wheels only. An index must have wheels for Linux on x86-64 with the newest glibc that uv
#: knows; whether a machine supports a wheel shows at installation. The hashes are of the files for
#: all platforms. The options in the file also apply at installation.
_LOCK = (
    *("pip", "compile", "--generate-hashes", "--only-binary", ":all:", "--emit-build-options"),
    *("--no-header", "--no-annotate", "--python-platform", "x86_64-manylinux_2_40"),
)
_PINS = (
    *("pip", "compile", "--only-binary", ":all:", "--no-strip-extras"),
    *("--python-platform", "linux", "--no-header", "--no-annotate", "--quiet"),
)
_PIN = re.compile(r"^[^\s#]+==[^\s;]+", re.MULTILINE)


def lock(environment: Path) -> Path:
    """Write the hashes of all packages of ``environment``, from the indexes in pip's settings, and
    return their file. Raises :class:`ConfigError` with uv's message if uv fails."""
    wanted = read_environment_file(environment, hashed=False)
    failed = f"{environment}: cannot be locked"
    text = _compiled(wanted, wanted.packages, (*_LOCK, "--quiet"), failed)
    # local versions such as +cpu
    labels = re.findall(r"^[^\s#]+==[^\s+]+(\+\S+)", text, re.MULTILINE)
    label = "".join(sorted({*labels}))
    target = environment.with_name(environment.stem + label + SUFFIX)
    command = " ".join((*_LOCK, "--python-version", wanted.python))
    header = (
        f"# Written by `framebench hashes`: uv {command}\n"
        f"# For {wanted.path.name} sha256:{digest_of(wanted.path)}\n"
    )
    write_whole(target, header + text)
    return target


def with_version(
    environment_file: EnvironmentFile, package: str, version: str, target: Path
) -> EnvironmentFile:
    """Write ``target``: ``environment_file`` with ``version`` of ``package``, or of its build such
    as ``tensorflow-cpu``. Other packages change only if needed. Raises :class:`ConfigError` with
    uv's message if uv fails, as for a version that its Python lacks."""
    name, _, old = environment_file.pin(package).partition("==")
    heads = [entry.partition("==")[0] for entry in environment_file.packages]
    # Plugins share the version of their framework, but no requirement makes uv change both.
    known = {bare(entry): entry.partition("==")[2] for entry in environment_file.packages}
    plugins = {head for head in known if head.startswith(f"{bare(name)}-") and known[head] == old}
    of_release = {bare(name), *plugins}
    asked = [f"{head}=={version}" if bare(head) in of_release else head for head in heads]
    with tempfile.TemporaryDirectory(prefix="framebench-") as folder:
        # uv prefers the versions in an existing output file. The first call fills it with the
        # builds that uv chooses for the unchanged file, for example for CPUs.
        file = Path(folder, "pins.txt")
        arguments = (*_PINS, "--output-file", str(file))
        _compiled(
            environment_file, environment_file.packages, arguments, environment_file.path.name
        )
        _compiled(environment_file, asked, arguments, f"{name}=={version}")
        _write(environment_file, bounded.read_text(file), target)
    return read_environment_file(target, hashed=False)


def file_with(environment_file: EnvironmentFile, pins: Sequence[str], environments: Path) -> Path:
    """Return the path of an environment file with ``pins`` added, in the folder of
    ``environments``. Its name depends on the content of ``environment_file``."""
    content = f"{environment_file.digest} {' '.join(sorted(pins))}"
    digest = hashlib.sha256(content.encode()).hexdigest()
    return environments / f"{environment_file.path.stem}-with-{digest[:8]}.yaml"


def lock_with(environment_file: EnvironmentFile, pins: Sequence[str], environments: Path) -> Path:
    """Write the environment file with ``pins`` added, and its hashes, and return their path.

    Existing pins stay. Raises :class:`ConfigError` for packages without a version, and with uv's
    message if that is impossible."""
    if loose := [pin for pin in pins if not re.fullmatch(PIN, pin)]:
        raise ConfigError(f"--with: found {show(loose[0])}; allowed: NAME==VERSION")
    target = file_with(environment_file, pins, environments)
    environments.mkdir(parents=True, exist_ok=True)
    asked = [*environment_file.packages, *pins]
    failed = f"{environment_file.path.name} with {pins}"
    _write(environment_file, _compiled(environment_file, asked, _PINS, failed), target)
    return lock(target)


def read_with(
    environment_file: EnvironmentFile,
    framework: str,
    pins: Sequence[str],
    environments: Path,
    hashed: bool,
) -> EnvironmentFile:
    """Return the locked environment file with ``pins`` added. Raises :class:`ConfigError` with the
    command that locks it if there is no lock."""
    file = file_with(environment_file, pins, environments)
    if not file.is_file():
        added = f"{environment_file.path.stem} --with {' '.join(pins)}"
        raise ConfigError(
            f"{SOURCE}: packages.{framework}: found {show(list(pins))}, which are not locked for "
            f"{environment_file.path.name}; "
            f"allowed: after `{COMMAND} {added} --environments {environments}`"
        )
    return read_environment_file(file, hashed)


def _write(environment_file: EnvironmentFile, compiled: str, target: Path) -> None:
    """Write ``target``: ``environment_file`` with the pins that uv ``compiled``."""
    found = [pin.partition("+")[0] for pin in _PIN.findall(compiled)]
    content = read_mapping(environment_file.path)
    dependencies = []
    for entry in content["dependencies"]:
        if isinstance(entry, dict):
            options = [line for line in map(str, entry["pip"]) if line.startswith("--")]
            entry = {"pip": [*options, *sorted(found)]}
        dependencies.append(entry)
    text = yaml.safe_dump({**content, "dependencies": dependencies}, sort_keys=False)
    write_whole(target, text)


def _compiled(
    wanted: EnvironmentFile, packages: Sequence[str], arguments: Sequence[str], what: str
) -> str:
    """Return uv's output for these ``arguments`` and ``packages``, with the Python and indexes of
    the environment ``wanted``. Raises :class:`ConfigError` with ``what`` and uv's message."""
    settings = uv.pip_settings()
    # Wheels need no interpreter of that version, which uv would look for and download.
    python = [] if wanted.sources else ["--python", sys.executable]
    ended = programs.run(
        [uv.executable(), *arguments, "--python-version", wanted.python, *python]
        + [*uv.arguments(settings), "-"],
        input="\n".join((*packages, *(f"--no-binary {name}" for name in wanted.sources))),
        env=uv.variables(settings, wanted.indexes),
    )
    if ended.returncode:
        raise ConfigError(f"{what}: {ended.stderr.strip()}")
    return ended.stdout
