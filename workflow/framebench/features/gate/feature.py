"""Commands ``gate`` and ``bisect``."""

from __future__ import annotations

from ...feature_registry import Feature, Program

FEATURE = Feature(
    programs={
        "bisect": Program("find the version that changed a figure", "gate.bisect"),
        "gate": Program("measure two sides in pairs, and decide", "gate.command"),
    },
    tables={"gate": "gate.decisions.TABLE"},
)
