"""Command ``archive``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...feature_registry import Feature


def _archive(given: argparse.Namespace) -> None:
    from . import command, contents

    source = contents.ArchiveSource(given.results, given.suite, given.environments)
    command.make_archive(source, given.redact)


def _add_commands(commands: Any) -> None:
    archiving = commands.add_parser("archive", help="results as one file to hand on")
    archiving.add_argument("--results", type=Path, required=True, help="folder of results")
    archiving.add_argument("--suite", type=Path, required=True, help="the file of its suite")
    archiving.add_argument("--environments", type=Path, nargs="*", default=[], help="their files")
    archiving.add_argument("--redact", action="store_true", help="without names")
    archiving.set_defaults(command=_archive)


FEATURE = Feature(add_commands=_add_commands)
