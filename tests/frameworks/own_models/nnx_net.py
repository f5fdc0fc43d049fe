"""Module of Flax NNX."""

import jax
import optax
from flax import nnx

FRAMEWORK = "jax"


class Nnx(nnx.Module):
    def __init__(self, rngs):
        self.norm = nnx.BatchNorm(32, momentum=0.9, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, 32, dropout_rate=0.5, decode=False, rngs=rngs)
        self.out = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, x):
        x = self.dropout(self.norm(x))
        return self.out(x + self.attention(x[:, None])[:, 0])


def loss(outputs, targets):
    return optax.softmax_cross_entropy_with_integer_labels(outputs, targets).mean()


def make(batch_size, key):
    inputs = 1 + jax.random.normal(key, (batch_size, 32))
    return Nnx(nnx.Rngs(key)), ({"x": inputs}, jax.random.randint(key, (batch_size,), 0, 10)), loss
