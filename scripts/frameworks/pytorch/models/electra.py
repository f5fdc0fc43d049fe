"""ELECTRA's pre-training (Clark et al. 2020, arXiv:2003.10555): a generator replaces tokens, a
discriminator tells which; see scripts/reference/electra.py."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import torch
import torch.nn.functional as F
from networks import transformers
from networks.transformers import DRAWS, MASK, MIXER, WORD
from torch import Tensor, nn

from .bert import Embeddings, EncoderDefinition, Layer, at, attendable
from .layers import initialized


def noise(draws: Tensor, vocabulary: int) -> Tensor:
    """Return the Gumbel noise of each word (batch, predictions, vocabulary), computed from one draw
    per prediction."""
    bits = torch.arange(vocabulary, device=draws.device) * WORD & MASK
    mixed = draws.unsqueeze(-1) ^ bits
    for _ in range(2):
        mixed = (mixed ^ mixed >> 16) * MIXER & MASK
    uniform = (mixed ^ mixed >> 16) >> 12
    return -(-((uniform.float() + 0.5) / DRAWS).log()).log()


class Generator(nn.Module):
    """Generator of ELECTRA: embeddings (batch, sequence, hidden) -> (batch, predictions, hidden),
    which the token embedding and ``decoder_bias`` turn into logits."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        generator_hyper = transformers.generator(hyper)
        hidden, epsilon = hyper["hidden"], hyper["layer_norm_epsilon"]
        self.project = nn.Linear(hidden, generator_hyper["hidden"])
        self.layers = nn.ModuleList(
            Layer(generator_hyper) for _ in range(generator_hyper["layers"])
        )
        self.transform = nn.Linear(generator_hyper["hidden"], hidden)
        self.transform_norm = nn.LayerNorm(hidden, eps=epsilon)
        self.decoder_bias = nn.Parameter(torch.zeros(hyper["vocabulary"]))

    def forward(self, x: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        x = self.project(x)
        for layer in self.layers:
            x = layer(x, mask)
        return self.transform_norm(F.gelu(self.transform(at(positions, x))))


class Discriminator(nn.Module):
    """Embeddings (batch, sequence, hidden) -> logits that a token is replaced (batch, sequence)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(hyper) for _ in range(hyper["layers"]))
        self.transform = nn.Linear(hyper["hidden"], hyper["hidden"])
        self.score = nn.Linear(hyper["hidden"], 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return self.score(F.gelu(self.transform(x))).squeeze(-1)


class Electra(nn.Module):
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
        mask = attendable(attention_mask)
        masked = mask_draws < self.masked_percent
        shown = token_ids.gather(1, positions).masked_fill(masked, self.mask_token)
        x = self.embeddings(token_ids.scatter(1, positions, shown), segment_ids)
        x = self.generator(x, mask, positions)
        logits = F.linear(x, self.embeddings.token.weight, self.generator.decoder_bias)
        sampled = (logits.detach().float() + noise(sampling_draws, logits.shape[-1])).argmax(-1)
        corrupted = token_ids.scatter(1, positions, sampled)
        scores = self.discriminator(self.embeddings(corrupted, segment_ids), mask)
        return scores, logits, (corrupted != token_ids).to(scores.dtype)


class Definition(EncoderDefinition):
    def build(self) -> nn.Module:
        return initialized(Electra(self.hyper), transformers.electra(self.hyper))

    def loss(self, outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor]) -> Tensor:
        scores, logits, replaced = (output.float() for output in outputs)
        hyper = self.hyper
        originals = batch["token_ids"].gather(1, batch["masked_positions"])
        generator = F.cross_entropy(logits.flatten(0, 1), originals.flatten())
        real = batch["attention_mask"].float()  # padding does not count
        discriminator = F.binary_cross_entropy_with_logits(
            scores, replaced, weight=real, reduction="sum"
        )
        discriminator = discriminator / real.sum()
        return hyper["generator_weight"] * generator + hyper["discriminator_weight"] * discriminator
