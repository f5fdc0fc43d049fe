"""Container image or environment modules of a run: check and record."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Any, Dict, List, Mapping, Optional

#: Variables that name the image inside a container.
_CONTAINER_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


def loaded_modules(environment: Mapping[str, str]) -> List[str]:
    """Return the loaded environment modules in order, with their versions."""
    return [name for name in environment.get("LOADEDMODULES", "").split(":") if name]


def missing(options: Namespace, environment: Mapping[str, str]) -> Optional[str]:
    """Return which requested software is missing; None if all is present."""
    if options.image is not None:
        wrong = _wrong_image(options.image, environment)
        if wrong:
            return wrong
    loaded = loaded_modules(environment)
    for name in options.modules:
        if not any(module == name or module.startswith(name + "/") for module in loaded):
            return f"module {name} was asked for; loaded are: {', '.join(loaded) or 'none'}"
    return None


def _wrong_image(asked: str, environment: Mapping[str, str]) -> Optional[str]:
    image = next((environment[v] for v in _CONTAINER_VARIABLES if environment.get(v)), None)
    if image is None:
        return f"image {asked} was asked for, but this is not in a container"
    # An image pulled from a URI has another name.
    if "://" not in asked and os.path.basename(asked) != os.path.basename(image):
        return f"image {asked} was asked for, but the container is of {image}"
    return None


def fields(options: Namespace, environment: Mapping[str, str]) -> Dict[str, Any]:
    """Return the image or all loaded modules, for the record's ``environment``; {} where neither
    was requested."""
    if options.image is not None:
        return {"image": options.image, "image_digest": options.image_digest}
    return {"modules": loaded_modules(environment)} if options.modules else {}
