"""Metadata of an archive: a Workflow Run RO-Crate 0.5 (w3id.org/ro/wfrun/workflow/0.5)."""

from __future__ import annotations

import json
import mimetypes
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...tables.origin import Origin
from . import contents

FILE = "ro-crate-metadata.json"
WORKFLOW = "workflow/Snakefile"
_CRATE = "https://w3id.org/ro/crate/1.1"
_OF_WORKFLOWS = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    _OF_WORKFLOWS: ("Workflow RO-Crate", "1.0"),
}
_BIOSCHEMAS = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
#: Inputs of the run; all other files of an archive are its results.
_INPUTS = (contents.SUITE, contents.ENVIRONMENTS)
_ABOUT = (WORKFLOW, "CITATION.cff", "LICENSE", contents.README)
_SNAKEMAKE = "https://snakemake.github.io"
_UNLICENSED = "Not stated by whoever measured."


def metadata(folder: Path, suite: str, origin: Origin, span: tuple[float, float]) -> str:
    """Return the JSON-LD metadata of the files in ``folder``.
    ``span``: start of the first run and end of the last, in seconds since the epoch."""
    names = [path.relative_to(folder).as_posix() for path in contents.files(folder)]
    given = [name for name in names if name.split("/")[0] in _INPUTS]
    about = [name for name in names if name in _ABOUT]
    made = [name for name in names if name not in given and name not in about]
    began, ended = (_instant(seconds) for seconds in span)
    origin_text = " \N{MIDDLE DOT} ".join(origin.facts)
    graph = [
        {
            "@id": FILE,
            "@type": "CreativeWork",
            "conformsTo": [_reference(_CRATE), _reference(_OF_WORKFLOWS)],
            "about": _reference("./"),
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": f"Framebench results of the suite {suite}",
            "description": f"How fast deep-learning frameworks do the same work: {origin_text}",
            "datePublished": ended,
            "license": _UNLICENSED,
            "conformsTo": [_reference(profile) for profile in _PROFILES],
            "hasPart": [_reference(name) for name in names],
            "mainEntity": _reference(WORKFLOW),
            "mentions": _reference("#measured"),
        },
        *(
            {"@id": profile, "@type": "CreativeWork", "name": name, "version": version}
            for profile, (name, version) in _PROFILES.items()
        ),
        {
            "@id": WORKFLOW,
            "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
            "name": "Framebench",
            "description": "The entry; rules and programs are in the project's repository.",
            "version": ", ".join(origin.commits) or "not recorded",
            "license": _reference("LICENSE"),
            "encodingFormat": "text/plain",
            "conformsTo": _reference(_BIOSCHEMAS),
            "programmingLanguage": _reference("#snakemake"),
        },
        {**_file(folder, contents.README), "about": _reference("./")},
        {
            "@id": "#snakemake",
            "@type": "ComputerLanguage",
            "name": "Snakemake",
            "identifier": _reference(_SNAKEMAKE),
            "url": _reference(_SNAKEMAKE),
        },
        {
            "@id": "#measured",
            "@type": "CreateAction",
            "name": f"Measured by the suite {suite}",
            "description": origin.command or "The command is not recorded.",
            "startTime": began,
            "endTime": ended,
            "actionStatus": _reference("http://schema.org/CompletedActionStatus"),
            "instrument": _reference(WORKFLOW),
            "object": [_reference(name) for name in given],
            "result": [_reference(name) for name in made],
        },
        *(_file(folder, name) for name in names if name not in (WORKFLOW, contents.README)),
    ]
    return json.dumps({"@context": f"{_CRATE}/context", "@graph": graph}, indent=1) + "\n"


def _reference(name: str) -> dict[str, str]:
    return {"@id": name}


def _file(folder: Path, name: str) -> dict[str, Any]:
    form = mimetypes.guess_type(name)[0] or "text/plain"
    size = str((folder / name).stat().st_size)
    return {"@id": name, "@type": "File", "encodingFormat": form, "contentSize": size}


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
