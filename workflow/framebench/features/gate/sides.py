"""Sides of a gate, parsed from the command line."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core import bounded, programs

from ...config import validation
from ...config.catalog import own_model
from ...config.validation import ConfigError, NotAllowed, RecordSource, did_you_mean
from ...files.whole_files import write_whole

#: Name of the variant without changes.
DEFAULT = "default"
ALLOWED = (
    "default, a variant of the suite, a model of your own (FILE.py or REVISION:FILE.py), or a "
    "folder of records or a CSV of runs (FOLDER@VARIANT of one variant)"
)


@dataclass(frozen=True)
class MeasuredSide:
    """A side to measure, as a variant of a suite.

    ``settings``: settings of the variant; ``model``: name of a user's own model in records, "" for
    none; ``files``: contents of its files by relative path, that of the model first; ``digest``:
    digest of all files that the side names, "" without any."""

    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    model: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def identity(self) -> Any:
        return self.digest or [self.text, self.settings]

    def written(self, folder: Path) -> dict[str, Any]:
        """Return the settings of the variant, after writing the model's files to ``folder``."""
        if not self.files:
            return dict(self.settings)
        for path, content in self.files.items():
            write_whole(folder / path, content)
        return {"model": str(folder / next(iter(self.files)))}


#: A side is measured, or has records.
Side = MeasuredSide | RecordSource


def load_sides(base: str, candidate: str, variants: Mapping[str, Any]) -> tuple[Side, Side]:
    """Return both sides, of one kind.
    ``variants``: those of the suite, as written. Raises :class:`ConfigError` for an invalid side,
    and for two that cannot be measured together."""
    sides = (
        _side("--base", base, variants),
        _side("--candidate", candidate, variants),
    )
    kinds = [
        "records"
        if isinstance(side, RecordSource)
        else "a model of your own"
        if side.model
        else "a variant"
        for side in sides
    ]
    if kinds[0] != kinds[1]:
        raise ConfigError(
            f"--base {base}, --candidate {candidate}: found {kinds[0]} and {kinds[1]}; allowed: "
            "two of one kind"
        )
    return sides


def _side(key: str, text: str, variants: Mapping[str, Any]) -> Side:
    if text in variants or text == DEFAULT:
        return MeasuredSide(text, variants.get(text) or {})
    if text.endswith(".py"):
        return model(key, text)
    try:
        return validation.side(text)
    except NotAllowed:
        hint = did_you_mean(text, [*variants, DEFAULT])
        raise ConfigError(f"{key}: found {text!r}{hint}; allowed: {ALLOWED}") from None


def model(key: str, text: str) -> MeasuredSide:
    """Return the model at a path, or of a commit in the notation of ``git show``, with all files
    that belong to it. Raises ConfigError if it cannot be read."""
    revision, separator, name = text.partition(":")
    if not separator or Path(text).exists():
        return _described(key, text, Path(text))
    with tempfile.TemporaryDirectory(prefix="framebench-") as folder:
        tree = Path(folder, "tree")
        tree.mkdir()
        # a separate index, so that the user's index stays unchanged
        own = {**os.environ, "GIT_INDEX_FILE": f"{folder}/index"}
        checkout = ["git", f"--work-tree={tree}", "checkout", revision, "--", ":(top,glob)**/*.py"]
        for command in (
            ["git", "cat-file", "-e", "--end-of-options", text],
            checkout,
            ["git", "rev-parse", "--show-prefix"],
        ):
            ended = programs.run(command, env=own)
            if ended.returncode:
                said = " ".join(ended.stderr.split())
                raise ConfigError(
                    f"{key}: found {text!r}, and git says: {said}; allowed: REVISION:FILE.py, the "
                    "file from the root of the repository or with ./ from here, of a commit that "
                    "is there"
                )
        here = ended.stdout.strip() if name.startswith(("./", "../")) else ""
        return _described(key, text, tree / here / name, tree)


def _described(key: str, text: str, path: Path, tree: Path | None = None) -> MeasuredSide:
    """Return the model at ``path``; ``tree``: the checkout that its files lie in."""
    try:
        found = own_model(str(path))
        paths = [path.resolve(), *map(Path, found.model_config["own"]["modules"].values())]
        top = tree.resolve() if tree else Path(os.path.commonpath([one.parent for one in paths]))
        files = {
            str(one.relative_to(top)): bounded.read_bytes(one)
            for one in paths
            if one.is_relative_to(top)
        }
    except NotAllowed as error:
        raise ConfigError(error.line(key, text).replace(str(path), text)) from None
    except OSError as error:
        raise ConfigError(
            f"{key}: found {text!r}, {error.strerror or error}; allowed: a file that can be read"
        ) from None
    digest = found.model_config["own"]["sha256"]
    return MeasuredSide(text, digest=digest, model=found.name, files=files)
