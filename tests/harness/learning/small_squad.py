"""Small ELECTRA config for SQuAD."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.request.declaration import read_model
from reference import bert, compute

from ...conftest import ROOT


def write_small_squad(place: Path) -> tuple[Path, dict[str, Any]]:
    """Write a small config of ELECTRA for SQuAD with a learning rate; return path and shapes."""
    facts = compute.reduced(read_model(str(ROOT / "scripts/models/electra_base_squad.json")))
    del facts["reduced_from"]
    facts["hyperparameters"]["learning_rate"] = 0.01
    path = place / "small_squad.json"
    path.write_text(json.dumps(facts))
    shapes = {name: parameter.shape for name, parameter in bert.parameters(facts).items()}
    return path, shapes
