"""Mistakes in JAX's adapter."""

from __future__ import annotations

from ..comparing import DROPOUT
from .planted import Change, PlantedMistake

MISTAKES = [
    PlantedMistake(
        "parameters stored in bfloat16",
        "bert_base",
        Change("adapter.py", " or is_mixed(self.case.precision)", ""),
        precision="amp",
    ),
    PlantedMistake(
        "the loss computed in bfloat16",
        "bert_base",
        Change("models/layers.py", "logits = logits.astype(jnp.float32)", "logits = logits * 1"),
        precision="amp",
    ),
    PlantedMistake(
        "gradients that JAX sums over the ranks, then averaged",
        "basic residual, halving",
        Change(
            "parallel/data_parallel.py",
            'return jax.lax.pcast(tree, AXIS, to="varying")',
            "return tree",
        ),
        ranks=2,
    ),
    PlantedMistake(
        "weight decay behind the momentum",
        "basic residual, halving",
        Change("optimizers.py", "optax.chain(decay, momentum, ", "optax.chain(momentum, decay, "),
    ),
    PlantedMistake(
        "images normalised by the variance without bias",
        "basic residual, halving",
        Change(
            "models/layers.py",
            "lax.rsqrt(moments[variance] + epsilon)",
            "lax.rsqrt(moments[variance] * (x.size / (x.size - x.shape[-1]) if train else 1.0) + "
            "epsilon)",
        ),
    ),
    PlantedMistake(
        "windows of the adaptive pool without what they share",
        "all_blocks",
        Change(
            "models/cnn.py", "-((i + 1) * extent // -size), axis", "(i + 1) * extent // size, axis"
        ),
    ),
    PlantedMistake(
        "the exact GELU for the approximation",
        "gpt2_small",
        Change("models/decoder.py", "approximate=True", "approximate=False"),
    ),
    PlantedMistake(
        "positions repeated in the wrong order for grouped queries",
        "llama_8b",
        Change(
            "models/decoder.py",
            "jnp.repeat(positions, heads // groups)",
            "jnp.tile(positions, heads // groups)",
        ),
    ),
    PlantedMistake(
        "no gradient of the tied decoder",
        "bert_base",
        Change(
            "models/bert.py",
            'tokens = parameters["embeddings.token.weight"].astype(x.dtype)',
            'tokens = jax.lax.stop_gradient(parameters["embeddings.token.weight"]).astype(x.dtype)',
        ),
    ),
    PlantedMistake(
        "Adam's epsilon inside the root",
        "bert_base",
        Change(
            "optimizers.py",
            'hyper["beta2"], hyper["epsilon"])',
            'hyper["beta2"], 0.0, hyper["epsilon"])',
        ),
    ),
    PlantedMistake(
        "weight decay before Adam's moments",
        "bert_base",
        Change("optimizers.py", "optax.chain(moments, decay, ", "optax.chain(decay, moments, "),
    ),
    PlantedMistake(
        "the change clipped, not the gradient",
        "bert_base",
        Change("optimizers.py", "parts.insert(0, optax.clip", "parts.append(optax.clip"),
    ),
    PlantedMistake(
        "moments that the step does not keep",
        "bert_base",
        Change(
            "steps.py",
            "Shared(parameters, moments), own",
            "Shared(parameters, shared.moments), own",
        ),
    ),
    PlantedMistake(
        "running statistics that several micro-steps leave as they were",
        "basic residual, halving",
        Change(
            "steps.py",
            "        own, total = carried\n        return",
            "        _, total = carried\n        return",
        ),
        micro_steps=2,
    ),
    PlantedMistake(
        "initial values of one seed for all parameters",
        "bert_base",
        Change(
            "models/bert.py",
            "drawn = self._random.standard_normal(shape",
            "drawn = np.random.default_rng(0).standard_normal(shape",
        ),
    ),
    PlantedMistake(
        "dropout that does not scale what is kept",
        "bert_base",
        Change("models/layers.py", "jnp.where(kept, x / (1.0 - rate), ", "jnp.where(kept, x, "),
        config_name=DROPOUT,
    ),
    PlantedMistake(
        "the same dropout in all training steps",
        "embedding",
        Change(
            "steps.py",
            "return outputs, Own(statistics, key)",
            "return outputs, Own(statistics, own.key)",
        ),
        config_name=DROPOUT,
    ),
]
