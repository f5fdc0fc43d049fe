"""ResNet-50 of Flax's ImageNet example, replicated by pmap as there, and BERT of transformers."""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import optax
from transformers import BertConfig
from transformers.models.bert.modeling_flax_bert import FlaxBertForPreTrainingModule

from . import SOURCES, Assignment, Run


def cross_entropy(logits: Any, labels: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def resnet50(work: Assignment) -> Run:
    sys.path.append(SOURCES)
    from official_jax import ResNet50

    model = ResNet50(num_classes=work.hyper["classes"])
    images, labels = jnp.array(work.batch["images"])[None], jnp.array(work.batch["labels"])[None]
    variables = jax.jit(model.init)(jax.random.key(0), images[0])
    rate, momentum, decay = work.sgd
    optimizer = optax.chain(optax.add_decayed_weights(decay), optax.sgd(rate, momentum))

    def train(state: Any, images: Any, labels: Any) -> Any:
        parameters, statistics, moments = state

        def losses(parameters: Any) -> Any:
            variables = {"params": parameters, "batch_stats": statistics}
            logits, changed = model.apply(variables, images, mutable=["batch_stats"])
            return cross_entropy(logits, labels), changed["batch_stats"]

        (loss, changed), gradients = jax.value_and_grad(losses, has_aux=True)(parameters)
        gradients = jax.lax.pmean(gradients, "batch")
        updates, moments = optimizer.update(gradients, moments, parameters)
        return (optax.apply_updates(parameters, updates), changed, moments), loss

    def infer(state: Any, images: Any, labels: Any) -> Any:
        variables = {"params": state[0], "batch_stats": state[1]}
        return state, model.apply(variables, images, train=False, mutable=False)

    state = variables["params"], variables["batch_stats"], optimizer.init(variables["params"])
    state = jax.tree_util.tree_map(lambda array: jnp.array(array)[None], state)
    step = jax.pmap(train if work.trains else infer, axis_name="batch", donate_argnums=0)
    return _running(step, state, images, labels)


def bert(work: Assignment) -> Run:
    model = FlaxBertForPreTrainingModule(BertConfig())
    arrays = {name: jnp.array(array) for name, array in work.batch.items()}
    shape = arrays["token_ids"].shape
    arrays["places"] = jnp.broadcast_to(jnp.arange(shape[1]), shape)

    def inputs(arrays: Any) -> Any:
        names = ("token_ids", "attention_mask", "segment_ids", "places")
        return (*(arrays[name] for name in names), None)

    def outputs(model: Any, arrays: Any) -> Any:
        """Return the logits; token logits only at the masked positions, as in our model."""
        is_fixed = not work.trains
        x, pooled = model.bert(*inputs(arrays), deterministic=is_fixed, return_dict=False)[:2]
        chosen = jnp.take_along_axis(x, arrays["masked_positions"][:, :, None], axis=1)
        table = model.bert.variables["params"]["embeddings"]["word_embeddings"]["embedding"]
        return model.cls(chosen, pooled, shared_embedding=table)

    parameters = jax.jit(model.init)(jax.random.key(0), *inputs(arrays))["params"]
    rate, decay, *others = work.adamw
    optimizer = optax.chain(
        optax.clip_by_global_norm(work.hyper["clip_global_norm"]),
        optax.adamw(rate, *others, weight_decay=decay),
    )

    def train(state: Any, arrays: Any) -> Any:
        parameters, moments, key = state
        key, own = jax.random.split(key)

        def losses(parameters: Any) -> Any:
            variables, keys = {"params": parameters}, {"dropout": own}
            words, following = model.apply(variables, arrays, method=outputs, rngs=keys)
            loss = cross_entropy(following, arrays["next_sentence_labels"])
            return loss + cross_entropy(words, arrays["masked_labels"])

        loss, gradients = jax.value_and_grad(losses)(parameters)
        updates, moments = optimizer.update(gradients, moments, parameters)
        return (optax.apply_updates(parameters, updates), moments, key), loss

    def infer(state: Any, arrays: Any) -> Any:
        return state, model.apply({"params": state[0]}, arrays, method=outputs)

    state = parameters, optimizer.init(parameters), jax.random.key(1)
    step = jax.jit(train if work.trains else infer, donate_argnums=0)
    return _running(step, state, arrays)


def _running(step: Any, state: Any, *inputs: Any) -> Run:
    def run(steps: int) -> None:
        nonlocal state
        for _ in range(steps):
            state, value = step(state, *inputs)
        jax.block_until_ready((state, value))

    return run
