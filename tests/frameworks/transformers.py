"""Small versions of the transformers that share a definition, one of each kind."""

from __future__ import annotations

from pathlib import Path

from reference import compute

from ..conftest import ROOT
from .models import SEQUENCE, definition_of, model_config_of

#: Models that generate text: learned positions; rotary positions, with a tied or separate head.
CAUSAL = ("gpt2_small", "llama_1b", "llama_8b")
#: Models compared with the reference: those of CAUSAL, two with SuperBench's heads, ELECTRA, whose
#: encoders share embeddings, and two that find answers in text.
COMPARED = (
    *CAUSAL,
    *("superbench_gpt2_small", "superbench_bert_base", "electra_base"),
    *("bert_base_squad", "electra_base_squad"),
)
#: Framework that, as the fastest, compares all models in full. Others compare one model of each
#: structure, also in inference and with dropout, and skip models that differ only in the tied head.
FULL = "pytorch"
THOROUGH = ("gpt2_small", "electra_base")
TIED_AGAIN = "llama_1b"
#: Frameworks with learning rates by layer, and models that use such rates, in place of models that
#: differ in nothing else.
LAYERWISE = ("pytorch", "tensorflow", "jax", "paddle", "mindspore")
WITH_DECAY, WITHOUT_DECAY = "electra_base_squad", "bert_base_squad"


#: Name of the reference for each model's generated text.
GENERATED = {model: f"{model}, generated" for model in CAUSAL}


def write_decoder_references(folder: Path) -> None:
    """Write the references of the compared models and of the text that they generate."""
    for model in COMPARED:
        compute.write(compute.reduced(model_config_of(model)), SEQUENCE, 0, folder / model)
    for model, name in GENERATED.items():
        compute.write_generation(
            compute.reduced(model_config_of(model)), SEQUENCE, 0, folder / name
        )


def compared_in(framework: str) -> list[str]:
    folder = ROOT / "scripts/frameworks" / framework
    other = WITHOUT_DECAY if framework in LAYERWISE else WITH_DECAY
    left_out = (other,) if framework == FULL else (other, TIED_AGAIN)
    return [
        model
        for model in COMPARED
        if (folder / "models" / f"{definition_of(model)}.py").exists() and model not in left_out
    ]
