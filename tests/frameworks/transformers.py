"""The language models of one definition, made small: one of each kind."""

from __future__ import annotations

from pathlib import Path

from framebench.config.catalog import model_facts
from reference import compute

from ..conftest import ROOT
from .models import SEQUENCE

DECODERS = {
    path.stem: facts
    for path in sorted(ROOT.glob("scripts/models/*.json"))
    if (facts := model_facts(path)).get("definition") == "decoder"
}

#: Learned positions, rotary ones with a tied head, and with a head of its own.
COMPARED = ("gpt2_small", "llama_1b", "llama_8b")


def write_decoder_references(folder: Path) -> None:
    for model in COMPARED:
        compute.write(compute.reduced(DECODERS[model]), SEQUENCE, 0, folder / model)
