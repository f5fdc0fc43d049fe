"""Layers of the models: pure functions of parameters and activations.

In mixed precision, activations have the narrow dtype, and matmuls cast their weights to the dtype
of ``x``. Statistics, softmax and loss are computed in float32, as in jmp's policy
``params=float32,compute=bfloat16,output=float32`` and in Flax's ``dtype`` argument."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from harness.adapter import Definition
from jax import Array, lax
from networks import Layer, Weight, total_loss

Arrays = Dict[str, Array]  # arrays by the names that all frameworks share
Hyper = Dict[str, Any]  # hyper-parameters of a model
Key = Optional[Array]  # key of random numbers; None in inference, which has no dropout

#: Key next to a model's hyper-parameters: how ranks shard its layers, if they do.
SHARING = "sharing"


def drawn(weight: Weight, random: Any) -> np.ndarray:
    """Return initial values. ``random``: generator of numpy; None for a constant weight."""
    distribution, value = weight.initial
    if distribution == "normal":
        return random.standard_normal(weight.shape, np.float32) * np.float32(value)
    if distribution == "uniform":
        return random.uniform(-value, value, weight.shape).astype(np.float32)
    return np.full(weight.shape, value, np.float32)


def dense(parameters: Arrays, name: str, x: Array) -> Array:
    """Map ``x`` (.., in) to (.., out) by a linear layer, with a bias if there is one."""
    y = jnp.matmul(x, parameters[f"{name}.weight"].astype(x.dtype))
    bias = parameters.get(f"{name}.bias")
    return y if bias is None else y + bias.astype(x.dtype)


def convolution(
    parameters: Arrays, name: str, x: Array, stride: int, padding: Tuple[int, int], groups: int
) -> Array:
    """Map (batch, h, w, in) to (batch, h / stride, w / stride, out), padded by ``padding`` (rows,
    columns) on both sides alike.

    Channels last, as in Flax: the layout of tensor cores, and XLA's choice for CPUs."""
    weight = parameters[f"{name}.weight"].astype(x.dtype)
    return lax.conv_general_dilated(
        x,
        weight,
        (stride, stride),
        [(size, size) for size in padding],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def batch_norm(
    parameters: Arrays, statistics: Arrays, layer: Layer, x: Array, train: bool
) -> Tuple[Array, Arrays]:
    """Return normalised channels and the next running statistics. In training, the batch's
    statistics are used and mixed into the running ones with the share ``layer.momentum``, the
    running variance unbiased, as in ``torch.nn.BatchNorm2d``."""
    name = layer.name
    mean, variance = f"{name}.running_mean", f"{name}.running_var"
    wide = x.astype(jnp.float32)
    if train:
        # Flax's default (use_fast_variance): mean and variance in one pass over the activations
        axes = tuple(range(x.ndim - 1))
        moments = {mean: wide.mean(axes)}
        moments[variance] = jnp.maximum((wide * wide).mean(axes) - jnp.square(moments[mean]), 0.0)
        count = x.size // x.shape[-1]
        share = {mean: layer.momentum}
        share[variance] = share[mean] * count / max(count - 1, 1)
        kept = 1.0 - layer.momentum
        after = {key: kept * statistics[key] + share[key] * moments[key] for key in moments}
    else:
        moments = {key: statistics[key] for key in (mean, variance)}
        after = moments
    scale = parameters[f"{name}.weight"] * lax.rsqrt(moments[variance] + layer.epsilon)
    y = (wide - moments[mean]) * scale + parameters[f"{name}.bias"]
    return y.astype(x.dtype), after


def layer_norm(parameters: Arrays, name: str, x: Array, epsilon: float) -> Array:
    """Return ``x`` normalised over its last axis, scaled and shifted; computed in float32, in the
    dtype of ``x``."""
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(-1, keepdims=True)
    scale = lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + epsilon)
    y = centred * scale * parameters[f"{name}.weight"] + parameters[f"{name}.bias"]
    return y.astype(x.dtype)


def rms_norm(parameters: Arrays, name: str, x: Array, epsilon: float) -> Array:
    """Divide the last axis by its root mean square."""
    wide = x.astype(jnp.float32)
    scale = lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + epsilon)
    return (wide * scale * parameters[f"{name}.weight"]).astype(x.dtype)


def attention(
    query: Array, key: Array, value: Array, mask: Array, rate: float, random: Key
) -> Array:
    """Return the attention (batch, sequence, heads, size). Positions where ``mask``,
    broadcast to (batch, heads, sequence, sequence), is False are not attended to; the masks for
    dropout of the probabilities are drawn from ``random``.

    Written out, since ``jax.nn.dot_product_attention`` has no dropout."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key).astype(jnp.float32)
    scores = scores * query.shape[-1] ** -0.5
    scores = jnp.where(mask, scores, jnp.finfo(jnp.float32).min)
    probabilities = jax.nn.softmax(scores, axis=-1).astype(query.dtype)
    probabilities = dropout(probabilities, rate, random)
    return jnp.einsum("bhqk,bkhd->bqhd", probabilities, value)


def relu(x: Array) -> Array:
    """Return ``jax.nn.relu`` that keeps a NaN on CPUs. There, XLA's kernels return zero for the
    maximum of NaN and zero where a sum follows (jaxlib 0.10.2), so that a diverged run had finite
    losses."""
    return jnp.where(x <= 0, jnp.zeros_like(x), x)


def dropout(x: Array, rate: float, key: Key) -> Array:
    """Set each element to zero with probability ``rate``; do nothing without a key."""
    if key is None or rate == 0.0:
        return x
    kept = jax.random.bernoulli(key, 1.0 - rate, x.shape)
    return jnp.where(kept, x / (1.0 - rate), jnp.zeros_like(x))


def keys(key: Key, count: int) -> Iterator[Key]:
    """Return a key for each dropout, in the order of the forward pass; None without dropout."""
    return iter([None] * count if key is None else jax.random.split(key, count))


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Return the mean over all leading axes, in float32. ``labels``: class indices, or
    probabilities of all classes."""
    logits = logits.astype(jnp.float32)
    if jnp.issubdtype(labels.dtype, jnp.floating):
        return -(labels * jax.nn.log_softmax(logits)).sum(axis=-1).mean()
    picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return (jax.nn.logsumexp(logits, axis=-1) - picked).mean()


def cut(x: Array, hyper: Hyper) -> Array:
    """Return activations (batch, sequence, hidden) after a layer's row-parallel projection. With
    tensor parallelism, each rank has a part of the sequence from here on. See :mod:`sharded`."""
    sharing = hyper.get(SHARING)
    return x if sharing is None else sharing.cut(x)


def joined(x: Array, hyper: Hyper) -> Array:
    """Gather the whole sequence of (batch, sequence, hidden) before the columns of a layer."""
    sharing = hyper.get(SHARING)
    return x if sharing is None else sharing.joined(x)


class ModelDefinition(Definition):
    """Model as pure functions of parameters, running statistics and a batch."""

    def weights(self) -> Mapping[str, Weight]:
        """Return all arrays of the model, by name."""
        raise NotImplementedError

    def parameters(self, random: np.random.Generator) -> Dict[str, np.ndarray]:
        return {name: drawn(w, random) for name, w in self.weights().items() if w.trained}

    def statistics(self) -> Dict[str, np.ndarray]:
        """Return the running mean and variance of every batch normalisation at the start."""
        return {name: drawn(w, None) for name, w in self.weights().items() if not w.trained}

    def forward(
        self, parameters: Arrays, statistics: Arrays, batch: Arrays, key: Key, dtype: Any
    ) -> Tuple[Tuple[Array, ...], Arrays]:
        """Return the outputs of the reference in ``dtype``, and the updated running statistics.
        Masks of dropout are drawn from ``key``, which is None in inference."""
        raise NotImplementedError

    def loss(self, outputs: Tuple[Array, ...], batch: Arrays) -> Array:
        return total_loss(outputs, batch, self.hyper, cross_entropy, lambda x: x.swapaxes(1, 2))
