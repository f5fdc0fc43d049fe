"""BERT (Devlin et al. 2018, arXiv:1810.04805) with the head that its model config names; see
scripts/reference/bert.py."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import paddle
import paddle.nn.functional as F
from networks import transformers
from networks.transformers import MASKED_SCORE
from paddle import Tensor, nn

from .layers import ModelDefinition, initialized

FLASH = (8, 0)  # the first compute capability with flash attention


def normalization(hyper: Dict[str, Any]) -> nn.LayerNorm:
    return nn.LayerNorm(hyper["hidden"], epsilon=hyper["layer_norm_epsilon"])


class Embeddings(nn.Layer):
    """Token and segment ids, (batch, sequence) each -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.token = nn.Embedding(hyper["vocabulary"], hyper["hidden"])
        self.position = nn.Embedding(hyper["positions"], hyper["hidden"])
        self.segment = nn.Embedding(hyper["segments"], hyper["hidden"])
        self.norm = normalization(hyper)
        self.dropout = nn.Dropout(hyper["dropout"])

    def forward(self, token_ids: Tensor, segment_ids: Tensor) -> Tensor:
        positions = self.position.weight[: token_ids.shape[1]]
        return self.dropout(
            self.norm(self.token(token_ids) + self.segment(segment_ids) + positions)
        )


class Attention(nn.Layer):
    """Attention from (batch, sequence, hidden) and the scores of :func:`added_to_scores` to (batch,
    sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.heads = hyper["heads"]
        self.dropout = hyper["dropout"]  # on attention probabilities
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        split = [0, 0, self.heads, -1]  # 0 keeps the extent
        context = F.scaled_dot_product_attention(
            self.query(x).reshape(split),
            self.key(x).reshape(split),
            self.value(x).reshape(split),
            attn_mask=mask,
            dropout_p=self.dropout,
            training=self.training,
        )
        return self.output(context.flatten(2))


class Layer(nn.Layer):
    """Encoder layer, normalised after each residual; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.attention = Attention(hyper)
        self.attention_norm = normalization(hyper)
        self.intermediate = nn.Linear(hyper["hidden"], hyper["intermediate"])
        self.output = nn.Linear(hyper["intermediate"], hyper["hidden"])
        self.output_norm = normalization(hyper)
        self.dropout = nn.Dropout(hyper["dropout"])

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention_norm(x + self.dropout(self.attention(x, mask)))
        return self.output_norm(x + self.dropout(self.output(F.gelu(self.intermediate(x)))))


class Bert(nn.Layer):
    """Encoder and head: token ids, segment ids and attention mask, (batch, sequence) each, and in
    pre-training masked positions (batch, predictions) -> the outputs of the reference."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.heads = hyper["heads"]
        self.embeddings = Embeddings(hyper)
        self.layers = nn.LayerList([Layer(hyper) for _ in range(hyper["layers"])])
        self.head = "classes" if "classes" in hyper else hyper.get("head", "pretraining")
        if self.head == "span":
            self.span = nn.Linear(hidden, 2)
            return
        self.pooler = nn.Linear(hidden, hidden)
        if self.head == "classes":
            self.classifier = nn.Linear(hidden, hyper["classes"])
            return
        self.transform = nn.Linear(hidden, hidden)
        self.transform_norm = normalization(hyper)
        # the decoder's weight is the token embedding; its bias is a separate parameter
        self.decoder_bias = self.create_parameter([hyper["vocabulary"]], is_bias=True)
        self.next_sentence = nn.Linear(hidden, 2)

    def forward(
        self,
        token_ids: Tensor,
        segment_ids: Tensor,
        attention_mask: Tensor,
        positions: Optional[Tensor] = None,
    ) -> Tuple[Tensor, ...]:
        x = self.embeddings(token_ids, segment_ids)
        mask = added_to_scores(attention_mask, x, self.heads)
        for layer in self.layers:
            x = layer(x, mask)
        if self.head == "span":
            return (self.span(x),)
        pooled = paddle.tanh(self.pooler(x[:, 0]))
        if self.head == "classes":
            return (self.classifier(pooled),)
        masked = self.transform_norm(F.gelu(self.transform(at(positions, x))))
        tokens = tied_logits(masked, self.embeddings.token.weight, self.decoder_bias, x.shape[0])
        return tokens, self.next_sentence(pooled)


def added_to_scores(attention_mask: Tensor, x: Tensor, heads: int) -> Tensor:
    """Return the mask to add to attention scores, from ``attention_mask`` (batch, sequence):
    (batch, 1, 1, sequence) in the dtype of ``x``, or (batch, heads, sequence, sequence) where
    attention does not broadcast."""
    scores = ((1.0 - attention_mask.astype(x.dtype)) * MASKED_SCORE).unsqueeze([1, 2])
    if not without_broadcast():
        return scores
    batch, sequence = attention_mask.shape
    return scores.expand([batch, heads, sequence, sequence])


def without_broadcast() -> bool:
    """Return whether attention needs a mask score for every head and query, not broadcast. Paddle's
    memory-efficient attention does; it runs on GPUs in float32, and in half precision on those
    before Ampere, which flash attention does not support."""
    if "gpu" not in paddle.get_device():
        return False
    return not paddle.is_autocast_enabled() or paddle.device.cuda.get_device_capability() < FLASH


def at(positions: Tensor, x: Tensor) -> Tensor:
    """Return the rows of ``x`` (batch, sequence, hidden) at ``positions`` (batch, predictions):
    (batch x predictions, hidden)."""
    rows = positions + x.shape[1] * paddle.arange(x.shape[0]).unsqueeze(1)
    return paddle.gather(x.flatten(0, 1), rows.flatten())


def tied_logits(x: Tensor, tokens: Tensor, bias: Tensor, batch: int) -> Tensor:
    """Return logits (batch, predictions, vocabulary) of ``x`` (batch x predictions, hidden), by the
    token embedding."""
    logits = paddle.matmul(x, tokens, transpose_y=True)
    return (logits + bias).reshape([batch, -1, logits.shape[-1]])


class Definition(ModelDefinition):
    def build(self) -> nn.Layer:
        return initialized(Bert(self.hyper), transformers.bert(self.hyper))
