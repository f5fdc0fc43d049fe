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
#: Compares all of each: the quickest. The others take these two, one of each structure, in
#: inference and with dropout, too, and leave out what differs from others in its tied head alone.
FULL = "pytorch"
THOROUGH = ("gpt2_small", "electra_base")
TIED_AGAIN = "llama_1b"
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


def compared_in(framework: str, every: bool) -> list[str]:
    """Those that the framework has; ``every``: also the one with a tied head alone."""
    folder = ROOT / "scripts/frameworks" / framework
    other = WITHOUT_DECAY if framework in LAYERWISE else WITH_DECAY
    left_out = (other,) if every else (other, TIED_AGAIN)
    return [
        model
        for model in COMPARED
        if (folder / f"{definition_of(model)}.py").exists() and model not in left_out
    ]
