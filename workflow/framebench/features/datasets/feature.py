"""Command ``make-data``: images or tokens for input pipelines."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...config.arguments import whole
from ...config.validation import ConfigError
from ...feature_registry import Feature

_IMAGES, _TOKENS = 2000, 1_000_000


def _make_data(options: argparse.Namespace) -> None:
    from . import image_folder, token_file

    folder, images, tokens, form = options.folder, options.images, options.tokens, options.format
    if form not in ("folder", "tokens"):
        raise ConfigError(f"--format: found {form}; allowed: folder, tokens")
    name, other = ("images", tokens) if form == "folder" else ("tokens", images)
    if other is not None:
        wrong = "tokens" if form == "folder" else "images"
        raise ConfigError(f"--{wrong}: found {other} with --format {form}; allowed: --{name}")
    if form == "folder":
        made = image_folder.make(folder, images or _IMAGES, options.seed)
        rest = f"in {made['classes']} classes; {made['bytes'] / 1e6:.0f} MB in all"
    else:
        made = token_file.make(folder, tokens or _TOKENS, options.seed)
        rest = f"below {made['vocabulary']}"
    print(
        f"data: {folder}: {made['train']} {name} to train on and {made['val']} to validate with, "
        f"{rest}; digest {made['digest'][:12]}"
    )


def _add_commands(commands: Any) -> None:
    making_data = commands.add_parser("make-data", help="images or tokens for input pipelines")
    making_data.add_argument("--folder", type=Path, required=True, help="where they are made")
    images, tokens = whole(2, 10**6), whole(2, 10**9)
    making_data.add_argument("--images", type=images, help=f"how many (default: {_IMAGES})")
    making_data.add_argument("--tokens", type=tokens, help=f"how many (default: {_TOKENS})")
    making_data.add_argument("--format", default="folder", help="folder, of images, or tokens")
    making_data.add_argument("--seed", type=whole(0, 10**6), default=0, help="of all that is drawn")
    making_data.set_defaults(command=_make_data)


FEATURE = Feature(add_commands=_add_commands)
