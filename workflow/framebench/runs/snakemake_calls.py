"""Calls of Snakemake by commands that measure: gate, bisection, ``gpu-check``."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from .. import PROJECT
from ..cases import fitting
from ..config.catalog import Catalog
from ..config.keys import configuration_file, read_mapping
from ..config.settings import Settings, load_settings
from ..config.validation import ConfigError
from ..machine import local
from ..plan.job import OUTCOME

#: Exit status of a command after Ctrl-C, as in shells, and its message.
INTERRUPTED = 128 + signal.SIGINT
GOES_ON = "interrupted: the same command continues"


class MeasuringFailed(Exception):
    """Failure of Snakemake itself."""


def measure(suite: Path, folder: Path, config: Sequence[str], arguments: Sequence[str]) -> None:
    """Measure a suite file into ``folder``. Raises :class:`MeasuringFailed`, and KeyboardInterrupt
    once an interrupted call has noted what it measured.

    ``config``: arguments of ``--config``; ``arguments``: further arguments of Snakemake."""
    own = ["--workflow-profile", str(PROJECT / "profiles" / "default")]
    profile = [] if "--workflow-profile" in arguments else own
    call = [
        *(sys.executable, "-I", "-m", "snakemake", "--cores", "all"),
        *("--snakefile", str(PROJECT / "workflow" / "Snakefile")),
        *(*profile, *arguments),
        *("--config", *config, f"suite={suite}", f"results={folder}"),
    ]
    outcome = folder / OUTCOME
    outcome.unlink(missing_ok=True)
    with subprocess.Popen(call) as process:
        try:
            ended = process.wait()
        except KeyboardInterrupt:
            # on a terminal, the process has already received the signal
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
    # a failed run has a record, which the caller judges
    if ended and not outcome.exists():
        raise MeasuringFailed(f"measuring ended with {ended}; its message is above")


def _value(text: str) -> Any:
    """Return a value of ``--config`` as Snakemake reads it: mappings and lists are YAML."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        return text


def settings_of(
    arguments: Sequence[str],
    catalog: Catalog,
    reserved: Mapping[str, str],
) -> tuple[Settings, dict[str, Any]]:
    """Return the settings as Snakemake will read them, and the suite for this machine as written.
    ``reserved``: keys that may not be set, and what to use instead. Raises
    :class:`ConfigError` for an invalid configuration or suite, before anything is measured."""
    pairs = [word.partition("=") for word in arguments]
    if wrong := [word for word, (_, equals, _) in zip(arguments, pairs, strict=True) if not equals]:
        raise ConfigError(f"--config: found {wrong[0]!r}; allowed: KEY=VALUE")
    own = {key: _value(text) for key, _, text in pairs}
    for key, instead in reserved.items():
        if key in own:
            raise ConfigError(f"--config: {key}: found {own[key]!r}; allowed: {instead}")
    settings = load_settings({**read_mapping(configuration_file()), **own}, catalog)
    if settings.suite.on_gpus:
        machine = settings.cluster.machine if settings.cluster else local.detect()
        settings = fitting.on_machine(settings, machine)
    suite = read_mapping(settings.suite.file)
    suite.pop("on_gpus", None)  # this key must not be in a suite made from this one
    return settings, suite
