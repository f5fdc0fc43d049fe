"""Snakemake of another Python, without our logger plugin on its path."""

from __future__ import annotations

import sys

from snakemake.cli import main

sys.path[:] = [text for text in sys.path if not text.endswith("logger")]
main()
