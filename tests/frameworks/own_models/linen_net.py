"""Module of Flax Linen."""

import jax
import optax
from flax import linen

FRAMEWORK = "jax"


class Linen(linen.Module):
    @linen.compact
    def __call__(self, x, train):
        x = linen.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        return linen.Dense(10)(linen.Dropout(0.5, deterministic=not train)(x))


def loss(outputs, targets):
    return optax.softmax_cross_entropy_with_integer_labels(outputs, targets).mean()


def make(batch_size, key):
    inputs = 1 + jax.random.normal(key, (batch_size, 32))
    return Linen(), ({"x": inputs}, jax.random.randint(key, (batch_size,), 0, 10)), loss
