"""A small MLP-Mixer of Flax (Linen)."""

import jax
import optax
from flax import linen as nn

FRAMEWORK = "jax"
CLASSES, TOKENS, WIDTH = 100, 64, 192


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        tokens = nn.LayerNorm()(x).swapaxes(1, 2)
        tokens = nn.Dense(TOKENS)(nn.gelu(nn.Dense(2 * TOKENS)(tokens)))
        x = x + tokens.swapaxes(1, 2)
        return x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))))


class Mixer(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(WIDTH)(x)
        for _ in range(4):
            x = Block()(x)
        return nn.Dense(CLASSES)(nn.LayerNorm()(x).mean(1))


def make(batch_size, key):
    inputs, labels = jax.random.split(key)
    patches = jax.random.normal(inputs, (batch_size, TOKENS, 48))
    classes = jax.random.randint(labels, (batch_size,), 0, CLASSES)
    return Mixer(), (patches, classes), loss


def loss(outputs, targets):
    return optax.softmax_cross_entropy_with_integer_labels(outputs, targets).mean()


def optimizer():
    return optax.adamw(1e-3)
