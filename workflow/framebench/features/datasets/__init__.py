"""Command ``make-data``: images or tokens for input pipelines."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...feature_registry import Feature


def _make_data(options: argparse.Namespace) -> None:
    from . import data_folders

    if options.images:
        made = data_folders.make_images(options.folder, options.images, options.seed)
        rest = f"images in {made['classes']} classes; {made['bytes'] / 1e6:.0f} MB in all"
    else:
        made = data_folders.make_tokens(options.folder, options.tokens, options.seed)
        rest = f"tokens below {made['vocabulary']}"
    print(
        f"data: {options.folder}: {made['train']} to train on and {made['val']} to validate with: "
        f"{rest}; digest {made['digest'][:12]}"
    )


def _add_commands(commands: Any) -> None:
    making_data = commands.add_parser("make-data", help="images or tokens for input pipelines")
    making_data.add_argument("--folder", type=Path, required=True, help="folder to create")
    counts = making_data.add_mutually_exclusive_group(required=True)
    counts.add_argument("--images", type=int, help="how many images")
    counts.add_argument("--tokens", type=int, help="how many tokens")
    making_data.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    making_data.set_defaults(command=_make_data)


FEATURE = Feature(add_commands=_add_commands)
