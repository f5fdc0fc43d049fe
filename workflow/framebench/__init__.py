"""The driver's half: from configuration to cases, from records to tables and report."""

from pathlib import Path

#: The folder of the project, wherever the working directory is.
PROJECT = Path(__file__).absolute().parents[2]
