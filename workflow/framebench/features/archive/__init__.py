"""Commands ``archive`` and ``gpu-check``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...feature_registry import Feature


def _archive(options: argparse.Namespace) -> None:
    from .contents import make_archive

    make_archive(options.results, options.redact, options.figures_only)


def _check_gpus(options: argparse.Namespace) -> None:
    from . import gpu_check

    suite = gpu_check.SHORT if options.short else gpu_check.SUITE
    frameworks = options.frameworks or ("pytorch" if options.short else "all")
    gpu_check.check(suite, frameworks, options.results, options.config)


def _add_commands(commands: Any) -> None:
    archiving = commands.add_parser("archive", help="results as one file to hand on")
    archiving.add_argument("--results", type=Path, default=Path("results"), help="what to archive")
    archiving.add_argument(
        "--redact", action="store_true", help="only named fields, without hosts, users and paths"
    )
    archiving.add_argument(
        "--figures-only", action="store_true", help="like --redact, and without reasons of failures"
    )
    archiving.set_defaults(command=_archive)
    checking = commands.add_parser("gpu-check", help="try which ways to use the GPUs work here")
    checking.add_argument(
        "--frameworks", help="such as pytorch,jax (default: all, with --short pytorch)"
    )
    checking.add_argument("--short", action="store_true", help="only six paths, in three minutes")
    checking.add_argument("--results", type=Path, default=Path("gpu_check"), help="where to write")
    checking.add_argument(
        "--config", nargs="+", default=[], metavar="KEY=VALUE", help="as for Snakemake"
    )
    checking.set_defaults(command=_check_gpus)


FEATURE = Feature(add_commands=_add_commands)
