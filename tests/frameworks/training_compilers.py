"""Compilers used by tests that train in every framework."""

from __future__ import annotations

import json

from ..conftest import ROOT

#: Compilers of frameworks whose users train with others as well.
_OTHERS = {"mxnet": "hybridize"}
_DECLARED = {
    path.parent.name: json.loads(path.read_text()).get("trained_with", "none")
    for path in sorted(ROOT.glob("scripts/frameworks/*/framework.json"))
}
#: Compiler that each framework trains with; PyTorch is first and gives the others its weights.
TRAINING_COMPILERS: dict[str, str] = {"pytorch": "none", **_DECLARED, **_OTHERS}
