"""Commands for environments, data sets, and generated pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import PROJECT
from ..config.validation import ConfigError


def make_data(
    folder: Path, images: int | None, tokens: int | None, form: str | None, seed: int
) -> None:
    """Make a data set of images or tokens in a folder, and print a summary.
    ``form``: the format, None for folders of image files. Raises ConfigError for a folder with
    other content."""
    from ..features.datasets import folders, image_folder, sequences, texts

    allowed = (*image_folder.FORMATS, *texts.FORMATS, *sequences.FORMATS)
    form = form or image_folder.FOLDER
    if form not in allowed:
        raise ConfigError(f"format: found {form}; allowed for make_data: {', '.join(allowed)}")
    of_images = form in image_folder.FORMATS
    if (tokens if of_images else images) is not None:
        key, other = ("tokens", "images") if of_images else ("images", "tokens")
        raise ConfigError(
            f"{key}: found {tokens if of_images else images} with format={form}, which is of "
            f"{other}; allowed: {other}=N"
        )
    try:
        if of_images:
            manifest = image_folder.make(folder, images or image_folder.IMAGES, seed, form)
        else:
            make = texts.make if form in texts.FORMATS else sequences.make
            manifest = make(folder, tokens or texts.COUNT, seed, form)
    except folders.DataSetError as error:
        raise ConfigError(str(error)) from None
    made = manifest["made"]
    if of_images:
        print(
            f"data: {folder}: {made['train']} images to train on and {made['val']} to validate "
            f"with, in {made['classes']} classes; in the mean {made['mean_width']:.0f} x "
            f"{made['mean_height']:.0f} pixels and {made['mean_bytes'] / 1e3:.0f} KB, "
            f"{made['bytes'] / 1e6:.0f} MB in all; digest {made['digest'][:12]}"
        )
    else:
        print(
            f"data: {folder}: {made['train']} tokens to train on and {made['val']} to validate "
            f"with, of {made['texts']} texts; digest {made['digest'][:12]}"
        )


def make_hashes(names: Sequence[str]) -> None:
    """Write the hashes of the environments ``names``; by default, of all that are not exempt."""
    from ..environments import hashes, locking

    envs = PROJECT / "envs"
    for name in names or sorted(path.stem for path in envs.glob("*.yaml")):
        file = Path(name) if name.endswith(".yaml") else envs / f"{name}.yaml"
        if reason := "" if names else hashes.exemption(file):
            print(f"{file.name} is exempt: {reason}")
        else:
            print(locking.lock(file), flush=True)


def write_recipes(names: Sequence[str], folder: Path) -> None:
    """Write image recipes, and print their paths."""
    from ..environments import recipe

    print("\n".join(recipe.told(recipe.write(PROJECT / "envs", names, folder))))


def clean(environments: Path, wanted: Sequence[str]) -> None:
    """Remove the environments that are not ``wanted``, and print the freed space."""
    from ..environments import cleaning

    found = list(cleaning.clean(environments, wanted))
    removed = [one for one in found if not one.why]
    for one in found:
        did = f"left, {one.why}" if one.why else "removed"
        print(f"{one.folder}: {did}, {one.size / 1e9:.1f} GB")
    freed = sum(one.freed for one in removed) / 1e9
    shared = sum(one.size - one.freed for one in removed) / 1e9
    print(f"{len(removed)} environments removed, {freed:.1f} GB free", end="")
    print(f"; {shared:.1f} GB more when uv's cache lets go of them: uv cache prune" * bool(shared))


def print_formats() -> None:
    """Print the generated table of docs/formats.md."""
    from ..features.formats import page

    print(page.text(), end="")


def print_columns() -> None:
    """Print the page docs/columns.md."""
    from ..comparison import compare
    from ..features.audit import findings, published
    from ..features.bisect import messages
    from ..features.gate import decisions
    from ..features.history import trends
    from ..tables import columns_page, registry

    made = (compare.TABLE, decisions.TABLE, messages.TABLE, trends.POINTS, trends.CHANGES)
    others = (*made, published.TABLE, findings.TABLE)
    print(columns_page.text([*registry.known().values(), *others]), end="")
