"""ELECTRA's pre-training (Clark et al. 2020, arXiv:2003.10555): a generator replaces tokens, a
discriminator tells which; see scripts/reference/electra.py."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import numpy as np
from harness.adapter import inputs as inputs
from mindspore import Parameter, Tensor, float32, int32, nn, ops
from networks.transformers import DRAWS, MASK, MIXER, WORD, generator

from .bert import Embeddings, Layer, added_to_scores, at, dense, normalization


class Noise(nn.Cell):
    """Draws (batch, predictions) -> the Gumbel noise of each word (batch, predictions,
    vocabulary)."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.words = Tensor(np.arange(vocabulary) * WORD & MASK)
        self.mixer, self.mask, self.half, self.lower = (
            Tensor(number) for number in (MIXER, MASK, 16, 12)
        )

    def construct(self, draws: Tensor) -> Tensor:
        mixed = ops.bitwise_xor(draws.astype(self.words.dtype)[..., None], self.words)
        for _ in range(2):
            mixed = ops.bitwise_xor(mixed, ops.bitwise_right_shift(mixed, self.half)) * self.mixer
            mixed = ops.bitwise_and(mixed, self.mask)
        mixed = ops.bitwise_xor(mixed, ops.bitwise_right_shift(mixed, self.half))
        uniform = ops.bitwise_right_shift(mixed, self.lower).astype(float32)
        return -ops.log(-ops.log((uniform + 0.5) / DRAWS))


def replaced(tokens: Tensor, positions: Tensor, new: Tensor) -> Tensor:
    """Return ``tokens`` (batch, sequence) with ``new`` ones (batch, predictions) at
    ``positions``."""
    return ops.tensor_scatter_elements(tokens, positions, new, axis=1)


class Generator(nn.Cell):
    """Generator of ELECTRA: embeddings (batch, sequence, hidden) -> (batch x predictions, hidden),
    which the token embedding and ``decoder_bias`` turn into logits."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        generator_hyper = generator(hyper)
        self.project = dense(hyper["hidden"], generator_hyper["hidden"], hyper)
        self.layers = nn.CellList(
            [Layer(generator_hyper) for _ in range(generator_hyper["layers"])]
        )
        self.transform = dense(generator_hyper["hidden"], hyper["hidden"], hyper)
        self.transform_norm = normalization(hyper)
        self.decoder_bias = Parameter(ops.zeros(hyper["vocabulary"]), name="decoder_bias")

    def construct(self, x: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        x = self.project(x)
        for layer in self.layers:
            x = layer(x, mask)
        masked = self.transform(at(positions, x))
        return self.transform_norm(ops.gelu(masked, approximate="none"))


class Discriminator(nn.Cell):
    """Embeddings (batch, sequence, hidden) -> logits that a token is replaced (batch, sequence)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.layers = nn.CellList([Layer(hyper) for _ in range(hyper["layers"])])
        self.transform = dense(hyper["hidden"], hyper["hidden"], hyper)
        self.score = dense(hyper["hidden"], 1, hyper)

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return self.score(ops.gelu(self.transform(x), approximate="none")).squeeze(-1)


class Electra(nn.Cell):
    """ELECTRA's pre-training. Outputs: logits that a token is replaced (batch, sequence), logits of
    the generator at the masked positions (batch, predictions, vocabulary), and labels (batch,
    sequence), 1 where a token is replaced, else 0."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.mask_token, self.masked_percent = hyper["mask_token"], hyper["masked_percent"]
        self.embeddings = Embeddings(hyper)  # both have it
        # one each: in a graph, two calls of one have the same masks
        self.generator_dropout = nn.Dropout(p=hyper["dropout"])
        self.discriminator_dropout = nn.Dropout(p=hyper["dropout"])
        self.generator = Generator(hyper)
        self.discriminator = Discriminator(hyper)
        self.decoder = ops.MatMul(transpose_b=True)
        self.noise = Noise(hyper["vocabulary"])

    def construct(
        self,
        token_ids: Tensor,
        segment_ids: Tensor,
        attention_mask: Tensor,
        positions: Tensor,
        mask_draws: Tensor,
        sampling_draws: Tensor,
    ) -> Tuple[Tensor, Tensor, Tensor]:
        shown = ops.gather_elements(token_ids, 1, positions)
        masked = mask_draws < self.masked_percent
        shown = ops.where(masked, ops.full_like(shown, self.mask_token), shown)
        x = self.embeddings(replaced(token_ids, positions, shown), segment_ids)
        mask = added_to_scores(attention_mask, x)
        x = self.generator(self.generator_dropout(x), mask, positions)
        logits = self.decoder(x, self.embeddings.token.embedding_table)
        logits = (logits + self.generator.decoder_bias).reshape(*positions.shape, -1)
        noisy = ops.stop_gradient(logits) + self.noise(sampling_draws)
        sampled = ops.argmax(noisy, -1).astype(int32)
        corrupted = replaced(token_ids, positions, sampled)
        x = self.discriminator_dropout(self.embeddings(corrupted, segment_ids))
        scores = self.discriminator(x, mask)
        return scores, logits, (corrupted != token_ids).astype(scores.dtype)


def build(model_config: Dict[str, Any], training: bool) -> nn.Cell:
    return Electra(model_config["hyperparameters"])


def loss(
    outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], model_config: Dict[str, Any]
) -> Tensor:
    scores, logits, replaced = outputs
    hyper = model_config["hyperparameters"]
    originals = ops.gather_elements(batch["token_ids"], 1, batch["masked_positions"])
    generator = ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), originals.reshape(-1))
    real = batch["attention_mask"].astype(scores.dtype)  # padding tells nothing
    discriminator = ops.binary_cross_entropy_with_logits(
        scores, replaced, real, ops.ones_like(scores), reduction="sum"
    )
    discriminator = discriminator / real.sum()
    return hyper["generator_weight"] * generator + hyper["discriminator_weight"] * discriminator
