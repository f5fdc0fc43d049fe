"""BERT (Devlin et al. 2018, arXiv:1810.04805) with the head that its model config names; see
scripts/reference/bert.py."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import torch
import torch.nn.functional as F
from networks import transformers
from torch import Tensor, nn

from .layers import ModelDefinition, initialized


class Embeddings(nn.Module):
    """Token and segment ids, (batch, sequence) each -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.token = nn.Embedding(hyper["vocabulary"], hyper["hidden"])
        self.position = nn.Embedding(hyper["positions"], hyper["hidden"])
        self.segment = nn.Embedding(hyper["segments"], hyper["hidden"])
        self.norm = nn.LayerNorm(hyper["hidden"], eps=hyper["layer_norm_epsilon"])
        self.dropout = nn.Dropout(hyper["dropout"])

    def forward(self, token_ids: Tensor, segment_ids: Tensor) -> Tensor:
        positions = self.position.weight[: token_ids.shape[1]]
        return self.dropout(
            self.norm(self.token(token_ids) + self.segment(segment_ids) + positions)
        )


class Attention(nn.Module):
    """Attention from (batch, sequence, hidden) and a mask (batch, 1, 1, sequence) to (batch,
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
        query, key, value = (
            projection(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        context = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=self.dropout if self.training else 0.0
        )
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
        self.dropout = nn.Dropout(hyper["dropout"])

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention_norm(x + self.dropout(self.attention(x, mask=mask)))
        return self.output_norm(x + self.dropout(self.output(F.gelu(self.intermediate(x)))))


class Bert(nn.Module):
    """Encoder and head: token ids, segment ids and attention mask, (batch, sequence) each, and in
    pre-training masked positions (batch, predictions) -> the outputs of the reference."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.embeddings = Embeddings(hyper)
        self.layers = nn.ModuleList(Layer(hyper) for _ in range(hyper["layers"]))
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
        self.decoder_bias = nn.Parameter(torch.zeros(hyper["vocabulary"]))
        self.next_sentence = nn.Linear(hidden, 2)

    def forward(self, *inputs: Tensor) -> Tuple[Tensor, ...]:
        mask = self.beside(*inputs)
        x = self.begin(*inputs)
        for layer in self.layers:
            x = layer(x, mask)
        return self.finish(x, *inputs)

    # Parts for the stages of a pipeline: see pipeline.py.

    def begin(self, token_ids: Tensor, segment_ids: Tensor, *_: Tensor) -> Tensor:
        return self.embeddings(token_ids, segment_ids)

    def beside(self, token_ids: Tensor, segment_ids: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
        return attendable(mask)

    def finish(self, x: Tensor, *inputs: Tensor) -> Tuple[Tensor, ...]:
        if self.head == "span":
            return (self.span(x),)
        pooled = torch.tanh(self.pooler(x[:, 0]))
        if self.head == "classes":
            return (self.classifier(pooled),)
        *_, positions = inputs
        masked = self.transform_norm(F.gelu(self.transform(at(positions, x))))
        tokens = F.linear(masked, self.embeddings.token.weight, self.decoder_bias)
        return tokens, self.next_sentence(pooled)


def attendable(attention_mask: Tensor) -> Tensor:
    """Return a mask (batch, 1, 1, sequence) from ``attention_mask`` (batch, sequence); True:
    visible to attention."""
    return attention_mask.bool()[:, None, None, :]


def at(positions: Tensor, x: Tensor) -> Tensor:
    """Return the rows of ``x`` (batch, sequence, hidden) at ``positions``, (batch, predictions,
    hidden)."""
    return x.gather(1, positions[:, :, None].expand(-1, -1, x.shape[2]))


class EncoderDefinition(ModelDefinition):
    """Definition of an encoder whose layers can be sharded over devices: matrices COLUMNS are
    split by columns, ROWS by rows."""

    LAYER = Layer
    COLUMNS = ("attention.query", "attention.key", "attention.value", "intermediate")
    ROWS = ("attention.output", "output")
    NORMS = ("attention_norm", "output_norm")

    def heads_of(self, layer: Layer) -> List[int]:
        """Return the numbers of heads of queries, keys and values."""
        return [layer.attention.heads]

    def share_heads(self, layer: Layer, ranks: int) -> Dict[str, List[int]]:
        """Restrict ``layer`` to the heads of one of ``ranks``.

        Returns the heads of each fused projection by its name; BERT has no such projection."""
        layer.attention.heads //= ranks
        return {}


class Definition(EncoderDefinition):
    def build(self) -> nn.Module:
        return initialized(Bert(self.hyper), transformers.bert(self.hyper))

    def tied(self, model: Bert) -> List[str]:
        """Return the parameters of the embeddings that the head multiplies by."""
        return ["embeddings.token.weight"] if model.head == "pretraining" else []
