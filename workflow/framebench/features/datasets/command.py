"""``framebench make-data``: images or tokens for input pipelines."""

from __future__ import annotations

from pathlib import Path

from ...config.validation import ConfigError
from . import folders, image_folder, sequences, texts


def make_data(
    folder: Path, images: int | None, tokens: int | None, form: str | None, seed: int
) -> None:
    """Make a data set of images or tokens in a folder, and print a summary.
    ``form``: the format, None for folders of image files. Raises ConfigError for a folder with
    other content."""
    allowed = (*image_folder.FORMATS, *texts.FORMATS, *sequences.FORMATS)
    form = form or image_folder.FOLDER
    if form not in allowed:
        raise ConfigError(f"--format: found {form}; allowed: {', '.join(allowed)}")
    of_images = form in image_folder.FORMATS
    if (tokens if of_images else images) is not None:
        key, other = ("tokens", "images") if of_images else ("images", "tokens")
        raise ConfigError(
            f"--{key}: found {tokens if of_images else images} with --format {form}, which is of "
            f"{other}; allowed: --{other}"
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
