"""Command ``make-data``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...config.arguments import whole
from ...feature_registry import Feature


def _make_data(options: argparse.Namespace) -> None:
    from . import command

    command.make_data(options.folder, options.images, options.tokens, options.format, options.seed)


def _add_commands(commands: Any) -> None:
    making_data = commands.add_parser("make-data", help="images or tokens for input pipelines")
    making_data.add_argument("--folder", type=Path, required=True, help="where they are made")
    images, tokens = whole(2, 10**6), whole(1, 10**12)
    making_data.add_argument("--images", type=images, help="how many (default: 2000)")
    making_data.add_argument("--tokens", type=tokens, help="how many (default: 1000000)")
    making_data.add_argument("--format", help="see docs/input.md (default: folder)")
    making_data.add_argument("--seed", type=whole(0, 10**6), default=0, help="of all that is drawn")
    making_data.set_defaults(command=_make_data)


FEATURE = Feature(add_commands=_add_commands)
