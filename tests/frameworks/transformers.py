"""The transformers that share a definition, made small: one of each kind."""

from __future__ import annotations

from pathlib import Path

from framebench.config.catalog import model_facts
from reference import compute

from ..conftest import ROOT
from .models import SEQUENCE, definition_of, facts_of

MODELS = {path.stem: model_facts(path) for path in sorted(ROOT.glob("scripts/models/*.json"))}
DECODERS = {model: facts for model, facts in MODELS.items() if facts.get("definition") == "decoder"}
ENCODERS = {
    model: facts
    for model, facts in MODELS.items()
    if facts.get("definition") in ("bert", "electra")
}

#: Those that generate text: learned positions, rotary ones with a tied head, and with a head of
#: its own.
CAUSAL = ("gpt2_small", "llama_1b", "llama_8b")
#: These, SuperBench's heads, two encoders that see the same embeddings, and where answers stand.
COMPARED = (
    *CAUSAL,
    *("superbench_gpt2_small", "superbench_bert_base", "electra_base"),
    *("bert_base_squad", "electra_base_squad"),
)
#: The frameworks whose layers learn at rates of their own, and models that do; they stand for those
#: that differ in nothing else.
LAYERWISE = ("pytorch", "tensorflow", "jax", "paddle")
WITH_DECAY, WITHOUT_DECAY = "electra_base_squad", "bert_base_squad"


def write_decoder_references(folder: Path) -> None:
    """Encoders are compared with padding, of which no loss may know."""
    for model in COMPARED:
        facts = compute.reduced(facts_of(model))
        for one in facts["inputs"]:
            if one["name"] == "attention_mask":
                one["distribution"] = "padded"
        compute.write(facts, SEQUENCE, 0, folder / model)


def compared_in(framework: str) -> list[str]:
    """Those that the framework has."""
    folder = ROOT / "scripts/frameworks" / framework
    other = WITHOUT_DECAY if framework in LAYERWISE else WITH_DECAY
    return [
        model
        for model in COMPARED
        if (folder / f"{definition_of(model)}.py").exists() and model != other
    ]
