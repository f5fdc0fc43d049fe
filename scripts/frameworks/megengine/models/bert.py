"""BERT (Devlin et al. 2018, arXiv:1810.04805) with the head that its model config names; see
scripts/reference/bert.py."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import megengine
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine import Tensor
from networks import transformers
from networks.transformers import MASKED_SCORE

from ..steps import Multiplication
from .layers import ModelDefinition, initialized


class Embeddings(M.Module):
    """Token and segment ids, (batch, sequence) each -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.token = M.Embedding(hyper["vocabulary"], hyper["hidden"])
        self.position = M.Embedding(hyper["positions"], hyper["hidden"])
        self.segment = M.Embedding(hyper["segments"], hyper["hidden"])
        self.norm = M.LayerNorm(hyper["hidden"], hyper["layer_norm_epsilon"])
        self.dropout = M.Dropout(hyper["dropout"])

    def forward(self, token_ids: Tensor, segment_ids: Tensor) -> Tensor:
        positions = self.position.weight[: token_ids.shape[1]]
        return self.dropout(
            self.norm(self.token(token_ids) + self.segment(segment_ids) + positions)
        )


class Attention(M.Module):
    """Attention from (batch, sequence, hidden) and scores to add (batch, 1, 1, sequence) to (batch,
    sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.heads = hyper["heads"]
        self.head_size = hidden // hyper["heads"]
        self.query = M.Linear(hidden, hidden)
        self.key = M.Linear(hidden, hidden)
        self.value = M.Linear(hidden, hidden)
        self.output = M.Linear(hidden, hidden)
        self.dropout = M.Dropout(hyper["dropout"])  # on attention probabilities
        self.scores = Multiplication(transpose_b=True)
        self.context = Multiplication()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        shape = (x.shape[0], x.shape[1], self.heads, self.head_size)
        query, key, value = (
            projection(x).reshape(*shape).transpose(0, 2, 1, 3)
            for projection in (self.query, self.key, self.value)
        )
        scores = self.scores(query * self.head_size**-0.5, key) + mask
        context = self.context(self.dropout(F.softmax(scores, -1)), value)
        return self.output(F.flatten(context.transpose(0, 2, 1, 3), 2))


class Layer(M.Module):
    """Encoder layer, normalised after each residual; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, epsilon = hyper["hidden"], hyper["layer_norm_epsilon"]
        self.attention = Attention(hyper)
        self.attention_norm = M.LayerNorm(hidden, epsilon)
        self.intermediate = M.Linear(hidden, hyper["intermediate"])
        self.output = M.Linear(hyper["intermediate"], hidden)
        self.output_norm = M.LayerNorm(hidden, epsilon)
        self.dropout = M.Dropout(hyper["dropout"])

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention_norm(x + self.dropout(self.attention(x, mask)))
        return self.output_norm(x + self.dropout(self.output(F.gelu(self.intermediate(x)))))


class Bert(M.Module):
    """Encoder and head: token ids, segment ids and attention mask, (batch, sequence) each, and in
    pre-training masked positions (batch, predictions) -> the outputs of the reference."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.embeddings = Embeddings(hyper)
        self.layers = [Layer(hyper) for _ in range(hyper["layers"])]
        self.head = "classes" if "classes" in hyper else hyper.get("head", "pretraining")
        if self.head == "span":
            self.span = M.Linear(hidden, 2)
            return
        self.pooler = M.Linear(hidden, hidden)
        if self.head == "classes":
            self.classifier = M.Linear(hidden, hyper["classes"])
            return
        self.transform = M.Linear(hidden, hidden)
        self.transform_norm = M.LayerNorm(hidden, hyper["layer_norm_epsilon"])
        # the decoder's weight is the token embedding; its bias is a separate parameter
        self.decoder = Multiplication(transpose_b=True)
        self.decoder_bias = megengine.Parameter([0.0] * hyper["vocabulary"], dtype="float32")
        self.next_sentence = M.Linear(hidden, 2)

    def forward(
        self, token_ids: Tensor, segment_ids: Tensor, attention_mask: Tensor, *positions: Tensor
    ) -> Tuple[Tensor, ...]:
        x = self.embeddings(token_ids, segment_ids)
        mask = (1.0 - F.expand_dims(attention_mask, (1, 2)).astype("float32")) * MASKED_SCORE
        for layer in self.layers:
            x = layer(x, mask)
        if self.head == "span":
            return (self.span(x),)
        pooled = F.tanh(self.pooler(x[:, 0]))
        if self.head == "classes":
            return (self.classifier(pooled),)
        masked = F.gelu(self.transform(_at_positions(x, positions[0])))
        masked = self.transform_norm(masked)
        tokens = self.decoder(masked, self.embeddings.token.weight) + self.decoder_bias
        return tokens, self.next_sentence(pooled)


def _at_positions(x: Tensor, positions: Tensor) -> Tensor:
    """Return the values (batch, sequence, hidden) at positions (batch, predictions).

    ``F.gather`` cannot be used: at the default ``async_level`` it finds its own indices out of
    bounds on CPUs (1.13.0)."""
    batch, count = positions.shape
    rows = megengine.tensor(np.arange(batch, dtype="int32").repeat(count))
    return x[rows, F.flatten(positions)].reshape(batch, count, -1)


class Definition(ModelDefinition):
    def build(self) -> M.Module:
        return initialized(Bert(self.hyper), transformers.bert(self.hyper))
