"""Small ELECTRA config for SQuAD."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.request.declaration import read_model
from reference import bert, compute

from ...conftest import ROOT


def write_small_squad(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Write a small config of ELECTRA for SQuAD with a learning rate; return path and shapes."""
    model_config = compute.reduced(read_model(str(ROOT / "scripts/models/electra_base_squad.json")))
    del model_config["reduced_from"]
    model_config["hyperparameters"]["learning_rate"] = 0.01
    path = folder / "small_squad.json"
    path.write_text(json.dumps(model_config))
    shapes = {name: parameter.shape for name, parameter in bert.parameters(model_config).items()}
    return path, shapes
