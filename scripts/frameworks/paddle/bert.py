"""BERT-base pre-training: masked language model and next sentence (Devlin et al. 2018,
arXiv:1810.04805). The masked-LM head sees the masked positions alone, as in the authors' code."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

MASKED_SCORE = -10000.0  # the authors' value; unlike -1e9 it fits float16


def dense(inputs: int, units: int, hyper: Dict[str, Any]) -> nn.Linear:
    weights = nn.initializer.Normal(std=hyper["initializer_range"])
    zeros = nn.initializer.Constant(0.0)
    return nn.Linear(inputs, units, weight_attr=weights, bias_attr=zeros)


def embedding(rows: int, hyper: Dict[str, Any]) -> nn.Embedding:
    weights = nn.initializer.Normal(std=hyper["initializer_range"])
    return nn.Embedding(rows, hyper["hidden"], weight_attr=weights)


def normalization(hyper: Dict[str, Any]) -> nn.LayerNorm:
    return nn.LayerNorm(hyper["hidden"], epsilon=hyper["layer_norm_epsilon"])


class Embeddings(nn.Layer):
    """Token and segment ids, (batch, sequence) each -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.token = embedding(hyper["vocabulary"], hyper)
        self.position = embedding(hyper["positions"], hyper)
        self.segment = embedding(hyper["segments"], hyper)
        self.norm = normalization(hyper)
        self.dropout = nn.Dropout(hyper["dropout"])

    def forward(self, token_ids: Tensor, segment_ids: Tensor) -> Tensor:
        positions = self.position.weight[: token_ids.shape[1]]
        return self.dropout(
            self.norm(self.token(token_ids) + self.segment(segment_ids) + positions)
        )


class Attention(nn.Layer):
    """(batch, sequence, hidden) and what to add to the scores, (batch, 1, 1, sequence) ->
    (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.heads = hyper["heads"]
        self.dropout = hyper["dropout"]  # of the attention probabilities
        self.query = dense(hidden, hidden, hyper)
        self.key = dense(hidden, hidden, hyper)
        self.value = dense(hidden, hidden, hyper)
        self.output = dense(hidden, hidden, hyper)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        split = [0, 0, self.heads, -1]  # 0: as it was
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
    """One encoder layer, normalised behind each residual; (batch, sequence, hidden) kept."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.attention = Attention(hyper)
        self.attention_norm = normalization(hyper)
        self.intermediate = dense(hyper["hidden"], hyper["intermediate"], hyper)
        self.output = dense(hyper["intermediate"], hyper["hidden"], hyper)
        self.output_norm = normalization(hyper)
        self.dropout = nn.Dropout(hyper["dropout"])

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention_norm(x + self.dropout(self.attention(x, mask)))
        return self.output_norm(x + self.dropout(self.output(F.gelu(self.intermediate(x)))))


class BertPretraining(nn.Layer):
    """-> logits of the masked positions (batch, predictions, vocabulary) and of the next sentence
    (batch, 2)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.embeddings = Embeddings(hyper)
        self.layers = nn.LayerList([Layer(hyper) for _ in range(hyper["layers"])])
        self.transform = dense(hidden, hidden, hyper)
        self.transform_norm = normalization(hyper)
        # the decoder's weight is the token embedding, its bias is its own
        self.decoder_bias = self.create_parameter([hyper["vocabulary"]], is_bias=True)
        self.pooler = dense(hidden, hidden, hyper)
        self.next_sentence = dense(hidden, 2, hyper)

    def forward(
        self, token_ids: Tensor, segment_ids: Tensor, attention_mask: Tensor, positions: Tensor
    ) -> Tuple[Tensor, Tensor]:
        x = self.embeddings(token_ids, segment_ids)
        ignored = 1.0 - attention_mask.astype(x.dtype)
        mask = (ignored * MASKED_SCORE).unsqueeze([1, 2])
        for layer in self.layers:
            x = layer(x, mask)
        # rows of (batch x sequence, hidden)
        rows = positions + x.shape[1] * paddle.arange(x.shape[0]).unsqueeze(1)
        masked = paddle.gather(x.flatten(0, 1), rows.flatten())
        masked = self.transform_norm(F.gelu(self.transform(masked)))
        tokens = paddle.matmul(masked, self.embeddings.token.weight, transpose_y=True)
        tokens = (tokens + self.decoder_bias).reshape([x.shape[0], -1, tokens.shape[-1]])
        return tokens, self.next_sentence(paddle.tanh(self.pooler(x[:, 0])))


def build(facts: Dict[str, Any]) -> nn.Layer:
    return BertPretraining(facts["hyperparameters"])


def inputs(batch: Dict[str, Tensor]) -> Tuple[Tensor, ...]:
    names = ("token_ids", "segment_ids", "attention_mask", "masked_positions")
    return tuple(batch[name] for name in names)


def loss(outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], facts: Dict[str, Any]) -> Tensor:
    tokens, next_sentence = (logits.astype("float32") for logits in outputs)
    masked = F.cross_entropy(tokens.flatten(0, 1), batch["masked_labels"].flatten())
    return masked + F.cross_entropy(next_sentence, batch["next_sentence_labels"])
