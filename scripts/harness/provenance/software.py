"""What the user brought for a run, an image or environment modules: whether the run has it, and
what the record says of it."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional

from harness.request.command_line import Request

#: Set inside a container, to the image that it was made of.
_CONTAINER_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


def loaded_modules(environment: Mapping[str, str]) -> List[str]:
    """The environment modules that are loaded, in that order, with their versions."""
    return [name for name in environment.get("LOADEDMODULES", "").split(":") if name]


def missing(request: Request, environment: Mapping[str, str]) -> Optional[str]:
    """What was asked for and is not there; None if all is."""
    if request.image is not None:
        wrong = _wrong_image(request.image, environment)
        if wrong:
            return wrong
    loaded = loaded_modules(environment)
    for name in request.modules:
        if not any(one == name or one.startswith(name + "/") for one in loaded):
            return f"module {name} was asked for; loaded are: {', '.join(loaded) or 'none'}"
    return None


def _wrong_image(asked: str, environment: Mapping[str, str]) -> Optional[str]:
    found = next((environment[v] for v in _CONTAINER_VARIABLES if environment.get(v)), None)
    if found is None:
        return f"image {asked} was asked for, but this is not in a container"
    # What was pulled from a URI has a name of its own.
    if "://" not in asked and os.path.basename(asked) != os.path.basename(found):
        return f"image {asked} was asked for, but the container is of {found}"
    return None


def fields(request: Request, environment: Mapping[str, str]) -> Dict[str, Any]:
    """Of the record's ``environment``: the image, or all modules that are loaded. Empty where
    neither was asked for."""
    if request.image is not None:
        return {"image": request.image, "image_digest": request.image_digest}
    return {"modules": loaded_modules(environment)} if request.modules else {}
