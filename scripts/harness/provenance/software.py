"""Container image or environment modules of a run: check and record."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional

from harness.request.command_line import Request

#: Variables that name the image inside a container.
_CONTAINER_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


def loaded_modules(environment: Mapping[str, str]) -> List[str]:
    """Return the loaded environment modules in order, with their versions."""
    return [name for name in environment.get("LOADEDMODULES", "").split(":") if name]


def missing(request: Request, environment: Mapping[str, str]) -> Optional[str]:
    """Return which requested software is missing; None if all is present."""
    if request.image is not None:
        wrong = _wrong_image(request.image, environment)
        if wrong:
            return wrong
    loaded = loaded_modules(environment)
    for name in request.modules:
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


def fields(request: Request, environment: Mapping[str, str]) -> Dict[str, Any]:
    """Return the image or all loaded modules, for the record's ``environment``; {} where neither
    was requested."""
    if request.image is not None:
        return {"image": request.image, "image_digest": request.image_digest}
    return {"modules": loaded_modules(environment)} if request.modules else {}
