"""Command ``archive``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...config.arguments import suite
from ...feature_registry import Feature


def _archive(given: argparse.Namespace) -> None:
    from . import command, contents

    environments = contents.environments_of(given.results, given.suite)
    source = contents.ArchiveSource(given.results, given.suite, environments)
    command.make_archive(source, given.redact)


def _add_commands(commands: Any) -> None:
    archiving = commands.add_parser("archive", help="results as one file to hand on")
    archiving.add_argument("--results", type=Path, default=Path("results"), help="what to archive")
    archiving.add_argument(
        "--suite", type=suite, default="quick", help="the suite that was measured: name or file"
    )
    archiving.add_argument(
        "--redact", action="store_true", help="without names of people, hosts, paths"
    )
    archiving.set_defaults(command=_archive)


FEATURE = Feature(add_commands=_add_commands)
