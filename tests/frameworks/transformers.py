"""The transformers that share a definition, made small: one of each kind."""

from __future__ import annotations

from pathlib import Path

from framebench.config.catalog import model_facts
from reference import compute

from ..conftest import ROOT
from .models import SEQUENCE, definition_of, facts_of

DECODERS = {
    path.stem: facts
    for path in sorted(ROOT.glob("scripts/models/*.json"))
    if (facts := model_facts(path)).get("definition") == "decoder"
}

#: Learned positions, rotary ones with a tied head, and with a head of its own; SuperBench's heads;
#: two encoders that see the same embeddings.
COMPARED = (
    *("gpt2_small", "llama_1b", "llama_8b"),
    *("superbench_gpt2_small", "superbench_bert_base", "electra_base"),
)


def write_decoder_references(folder: Path) -> None:
    for model in COMPARED:
        compute.write(compute.reduced(facts_of(model)), SEQUENCE, 0, folder / model)


def compared_in(framework: str) -> list[str]:
    """Those that the framework has."""
    folder = ROOT / "scripts/frameworks" / framework
    return [model for model in COMPARED if (folder / f"{definition_of(model)}.py").exists()]
