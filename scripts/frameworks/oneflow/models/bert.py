"""BERT (Devlin et al. 2018, arXiv:1810.04805) with the head that its model config names; see
scripts/reference/bert.py."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import oneflow
import oneflow.nn.functional as F
from networks import transformers
from networks.transformers import MASKED_SCORE
from oneflow import Tensor, nn

from ..steps import Multiplication
from .layers import ModelDefinition, dropout, initialized


class Embeddings(nn.Module):
    """Token and segment ids, (batch, sequence) each -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.token = nn.Embedding(hyper["vocabulary"], hyper["hidden"])
        self.position = nn.Embedding(hyper["positions"], hyper["hidden"])
        self.segment = nn.Embedding(hyper["segments"], hyper["hidden"])
        self.norm = nn.LayerNorm(hyper["hidden"], eps=hyper["layer_norm_epsilon"])
        self.dropout = dropout(hyper["dropout"])

    def forward(self, token_ids: Tensor, segment_ids: Tensor) -> Tensor:
        positions = self.position.weight[: token_ids.shape[1]]
        return self.dropout(
            self.norm(self.token(token_ids) + self.segment(segment_ids) + positions)
        )


class Attention(nn.Module):
    """Attention from (batch, sequence, hidden) and scores to add (batch, 1, 1, sequence) to (batch,
    sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.heads = hyper["heads"]
        self.head_size = hidden // hyper["heads"]
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, hidden)
        self.dropout = dropout(hyper["dropout"])  # on attention probabilities
        self.scores = Multiplication(transpose_b=True)
        self.context = Multiplication()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        shape = (x.shape[0], x.shape[1], self.heads, self.head_size)
        query, key, value = (
            projection(x).reshape(shape).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        scores = self.scores(query * self.head_size**-0.5, key) + mask
        context = self.context(self.dropout(F.softmax(scores, dim=-1)), value)
        return self.output(context.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Encoder layer, normalised after each residual; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, epsilon = hyper["hidden"], hyper["layer_norm_epsilon"]
        self.attention = Attention(hyper)
        self.attention_norm = nn.LayerNorm(hidden, eps=epsilon)
        self.intermediate = nn.Linear(hidden, hyper["intermediate"])
        self.output = nn.Linear(hyper["intermediate"], hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=epsilon)
        self.dropout = dropout(hyper["dropout"])

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention_norm(x + self.dropout(self.attention(x, mask)))
        return self.output_norm(x + self.dropout(self.output(F.gelu(self.intermediate(x)))))


class Bert(nn.Module):
    """Encoder and head: token ids, segment ids and attention mask, (batch, sequence) each, and in
    pre-training masked positions (batch, predictions) -> the outputs of the reference."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.embeddings = Embeddings(hyper)
        self.layers = nn.ModuleList([Layer(hyper) for _ in range(hyper["layers"])])
        self.head = "classes" if "classes" in hyper else hyper.get("head", "pretraining")
        if self.head == "span":
            self.span = nn.Linear(hidden, 2)
            return
        self.pooler = nn.Linear(hidden, hidden)
        if self.head == "classes":
            self.classifier = nn.Linear(hidden, hyper["classes"])
            return
        self.transform = nn.Linear(hidden, hidden)
        self.transform_norm = nn.LayerNorm(hidden, eps=hyper["layer_norm_epsilon"])
        # the decoder's weight is the token embedding; its bias is a separate parameter
        self.decoder = Multiplication(transpose_b=True)
        self.decoder_bias = nn.Parameter(oneflow.zeros(hyper["vocabulary"]))
        self.next_sentence = nn.Linear(hidden, 2)

    def forward(
        self, token_ids: Tensor, segment_ids: Tensor, attention_mask: Tensor, *positions: Tensor
    ) -> Tuple[Tensor, ...]:
        x = self.embeddings(token_ids, segment_ids)
        mask = (1 - attention_mask).to(x.dtype)[:, None, None, :] * MASKED_SCORE
        for layer in self.layers:
            x = layer(x, mask)
        if self.head == "span":
            return (self.span(x),)
        pooled = oneflow.tanh(self.pooler(x[:, 0]))
        if self.head == "classes":
            return (self.classifier(pooled),)
        (at,) = positions
        masked = oneflow.gather(x, 1, at[:, :, None].expand(-1, -1, x.shape[2]))
        masked = self.transform_norm(F.gelu(self.transform(masked)))
        tokens = self.decoder(masked, self.embeddings.token.weight) + self.decoder_bias
        return tokens, self.next_sentence(pooled)


class Definition(ModelDefinition):
    def build(self) -> nn.Module:
        return initialized(Bert(self.hyper), transformers.bert(self.hyper))
