"""ELECTRA's pre-training (Clark et al. 2020, arXiv:2003.10555): a generator replaces tokens, a
discriminator tells which; see scripts/reference/electra.py."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import paddle
import paddle.nn.functional as F
from networks import transformers
from networks.transformers import DRAWS, MASK, MIXER, WORD
from paddle import Tensor, nn

from .bert import Embeddings, Layer, added_to_scores, at, normalization, tied_logits
from .layers import ModelDefinition, initialized


def noise(draws: Tensor, vocabulary: int) -> Tensor:
    """Return the Gumbel noise of each word (batch, predictions, vocabulary), computed from one draw
    per prediction."""
    # Python numbers would be converted to float32
    mask, word, mixer = (paddle.full([1], number, "int64") for number in (MASK, WORD, MIXER))
    half, lower = (paddle.full([1], bits, "int64") for bits in (16, 12))
    bits = paddle.bitwise_and(paddle.arange(vocabulary, dtype="int64") * word, mask)
    mixed = paddle.bitwise_xor(draws.unsqueeze(-1), bits)
    for _ in range(2):
        mixed = paddle.bitwise_xor(mixed, paddle.bitwise_right_shift(mixed, half)) * mixer
        mixed = paddle.bitwise_and(mixed, mask)
    mixed = paddle.bitwise_xor(mixed, paddle.bitwise_right_shift(mixed, half))
    uniform = paddle.bitwise_right_shift(mixed, lower)
    return -paddle.log(-paddle.log((uniform.astype("float32") + 0.5) / DRAWS))


def replaced(tokens: Tensor, positions: Tensor, new: Tensor) -> Tensor:
    """Return ``tokens`` (batch, sequence) with ``new`` ones (batch, predictions) at
    ``positions``."""
    return paddle.put_along_axis(tokens, positions, new, axis=1)


class Generator(nn.Layer):
    """Generator of ELECTRA: embeddings (batch, sequence, hidden) -> (batch x predictions, hidden),
    which the token embedding and ``decoder_bias`` turn into logits."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        generator_hyper = transformers.generator(hyper)
        self.heads = generator_hyper["heads"]
        self.project = nn.Linear(hyper["hidden"], generator_hyper["hidden"])
        self.layers = nn.LayerList(
            [Layer(generator_hyper) for _ in range(generator_hyper["layers"])]
        )
        self.transform = nn.Linear(generator_hyper["hidden"], hyper["hidden"])
        self.transform_norm = normalization(hyper)
        self.decoder_bias = self.create_parameter([hyper["vocabulary"]], is_bias=True)

    def forward(self, x: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        x = self.project(x)
        for layer in self.layers:
            x = layer(x, mask)
        return self.transform_norm(F.gelu(self.transform(at(positions, x))))


class Discriminator(nn.Layer):
    """Embeddings (batch, sequence, hidden) -> logits that a token is replaced (batch, sequence)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.heads = hyper["heads"]
        self.layers = nn.LayerList([Layer(hyper) for _ in range(hyper["layers"])])
        self.transform = nn.Linear(hyper["hidden"], hyper["hidden"])
        self.score = nn.Linear(hyper["hidden"], 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return self.score(F.gelu(self.transform(x))).squeeze(-1)


class Electra(nn.Layer):
    """ELECTRA's pre-training. Outputs: logits that a token is replaced (batch, sequence), logits of
    the generator at the masked positions (batch, predictions, vocabulary), and labels (batch,
    sequence), 1 where a token is replaced, else 0."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.mask_token, self.masked_percent = hyper["mask_token"], hyper["masked_percent"]
        # the generator and the discriminator share the embeddings
        self.embeddings = Embeddings(hyper)
        self.generator = Generator(hyper)
        self.discriminator = Discriminator(hyper)

    def forward(
        self,
        token_ids: Tensor,
        segment_ids: Tensor,
        attention_mask: Tensor,
        positions: Tensor,
        mask_draws: Tensor,
        sampling_draws: Tensor,
    ) -> Tuple[Tensor, Tensor, Tensor]:
        shown = paddle.take_along_axis(token_ids, positions, axis=1)
        masked = mask_draws < self.masked_percent
        shown = paddle.where(masked, paddle.full_like(shown, self.mask_token), shown)
        x = self.embeddings(replaced(token_ids, positions, shown), segment_ids)
        x = self.generator(x, added_to_scores(attention_mask, x, self.generator.heads), positions)
        tokens, bias = self.embeddings.token.weight, self.generator.decoder_bias
        logits = tied_logits(x, tokens, bias, token_ids.shape[0])
        noisy = logits.detach().astype("float32") + noise(sampling_draws, logits.shape[-1])
        corrupted = replaced(token_ids, positions, noisy.argmax(axis=-1))
        x = self.embeddings(corrupted, segment_ids)
        mask = added_to_scores(attention_mask, x, self.discriminator.heads)
        scores = self.discriminator(x, mask)
        return scores, logits, (corrupted != token_ids).astype(scores.dtype)


class Definition(ModelDefinition):
    def build(self) -> nn.Layer:
        return initialized(Electra(self.hyper), transformers.electra(self.hyper))

    def loss(self, outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor]) -> Tensor:
        scores, logits, replaced = (output.astype("float32") for output in outputs)
        hyper = self.hyper
        originals = paddle.take_along_axis(batch["token_ids"], batch["masked_positions"], axis=1)
        generator = F.cross_entropy(logits.flatten(0, 1), originals.flatten())
        real = batch["attention_mask"].astype("float32")  # padding does not count
        discriminator = F.binary_cross_entropy_with_logits(
            scores, replaced, weight=real, reduction="sum"
        )
        discriminator = discriminator / real.sum()
        return hyper["generator_weight"] * generator + hyper["discriminator_weight"] * discriminator
