"""BERT (Devlin et al. 2018, arXiv:1810.04805) with the head that its model config names; see
scripts/reference/bert.py."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from harness.adapter import Definition as Base
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal
from networks.transformers import MASKED_SCORE


def dense(inputs: int, outputs: int, hyper: Dict[str, Any]) -> nn.Dense:
    return nn.Dense(
        inputs, outputs, weight_init=Normal(hyper["initializer_range"]), bias_init="zeros"
    )


def normalization(hyper: Dict[str, Any]) -> nn.LayerNorm:
    return nn.LayerNorm((hyper["hidden"],), epsilon=hyper["layer_norm_epsilon"])


def table(rows: int, hyper: Dict[str, Any]) -> nn.Embedding:
    return nn.Embedding(rows, hyper["hidden"], embedding_table=Normal(hyper["initializer_range"]))


def at(positions: Tensor, x: Tensor) -> Tensor:
    """Return ``x`` (batch, sequence, hidden) at ``positions`` (batch, predictions), (batch x
    predictions, hidden)."""
    batch, sequence, hidden = x.shape
    begins = sequence * ops.arange(batch)[:, None].astype(positions.dtype)
    return ops.gather(x.reshape(-1, hidden), (positions + begins).reshape(-1), 0)


class Embeddings(nn.Cell):
    """Token and segment ids, (batch, sequence) each -> (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.token = table(hyper["vocabulary"], hyper)
        self.position = table(hyper["positions"], hyper)
        self.segment = table(hyper["segments"], hyper)
        self.norm = normalization(hyper)
        self.dropout = nn.Dropout(p=hyper["dropout"])

    def construct(self, token_ids: Tensor, segment_ids: Tensor) -> Tensor:
        positions = self.position.embedding_table[: token_ids.shape[1]]
        x = self.token(token_ids) + self.segment(segment_ids) + positions
        return self.dropout(self.norm(x))


class Attention(nn.Cell):
    """Attention from (batch, sequence, hidden) and scores to add (batch, 1, 1, sequence) to (batch,
    sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.heads, self.head_size = hyper["heads"], hidden // hyper["heads"]
        self.query = dense(hidden, hidden, hyper)
        self.key = dense(hidden, hidden, hyper)
        self.value = dense(hidden, hidden, hyper)
        self.output = dense(hidden, hidden, hyper)
        self.dropout = nn.Dropout(p=hyper["dropout"])  # on attention probabilities
        self.scores = ops.BatchMatMul(transpose_b=True)
        self.context = ops.BatchMatMul()

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, sequence, hidden = x.shape
        query, key, value = (
            projection(x).reshape(batch, sequence, self.heads, self.head_size).swapaxes(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        scores = self.scores(query * self.head_size**-0.5, key) + mask
        context = self.context(self.dropout(ops.softmax(scores, -1)), value)
        return self.output(context.swapaxes(1, 2).reshape(batch, sequence, hidden))


class Layer(nn.Cell):
    """Encoder layer, normalised after each residual; it keeps (batch, sequence, hidden)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        self.attention = Attention(hyper)
        self.attention_norm = normalization(hyper)
        self.intermediate = dense(hyper["hidden"], hyper["intermediate"], hyper)
        self.output = dense(hyper["intermediate"], hyper["hidden"], hyper)
        self.output_norm = normalization(hyper)
        # separate layers, because in a graph two calls of one layer have the same masks
        self.attention_dropout = nn.Dropout(p=hyper["dropout"])
        self.output_dropout = nn.Dropout(p=hyper["dropout"])

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention_norm(x + self.attention_dropout(self.attention(x, mask)))
        inner = ops.gelu(self.intermediate(x), approximate="none")
        return self.output_norm(x + self.output_dropout(self.output(inner)))


class Bert(nn.Cell):
    """Encoder and head: token ids, segment ids and attention mask, (batch, sequence) each, and in
    pre-training masked positions (batch, predictions) -> the outputs of the reference."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden = hyper["hidden"]
        self.embeddings = Embeddings(hyper)
        self.layers = nn.CellList([Layer(hyper) for _ in range(hyper["layers"])])
        self.head = "classes" if "classes" in hyper else hyper.get("head", "pretraining")
        if self.head == "span":
            self.span = dense(hidden, 2, hyper)
            return
        self.pooler = dense(hidden, hidden, hyper)
        if self.head == "classes":
            self.classifier = dense(hidden, hyper["classes"], hyper)
            return
        self.transform = dense(hidden, hidden, hyper)
        self.transform_norm = normalization(hyper)
        # the decoder's weight is the token embedding; its bias is a separate parameter
        self.decoder = ops.MatMul(transpose_b=True)
        self.decoder_bias = Parameter(ops.zeros(hyper["vocabulary"]), name="decoder_bias")
        self.next_sentence = dense(hidden, 2, hyper)

    def construct(
        self,
        token_ids: Tensor,
        segment_ids: Tensor,
        attention_mask: Tensor,
        positions: Any = None,
    ) -> Tuple[Tensor, ...]:
        x = self.embeddings(token_ids, segment_ids)
        mask = (1 - attention_mask).astype(x.dtype)[:, None, None, :] * MASKED_SCORE
        for layer in self.layers:
            x = layer(x, mask)
        if self.head == "span":
            return (self.span(x),)
        pooled = ops.tanh(self.pooler(x[:, 0]))
        if self.head == "classes":
            return (self.classifier(pooled),)
        masked = ops.gelu(self.transform(at(positions, x)), approximate="none")
        masked = self.transform_norm(masked)
        tokens = self.decoder(masked, self.embeddings.token.embedding_table) + self.decoder_bias
        return tokens.reshape(*positions.shape, -1), self.next_sentence(pooled)


class Definition(Base):
    def build(self, training: bool) -> nn.Cell:
        return Bert(self.hyper)

    @staticmethod
    def loss(
        outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], hyper: Dict[str, Any]
    ) -> Tensor:
        """Return the sum of the mean cross-entropies of the heads."""
        if "classes" in hyper:
            return ops.cross_entropy(outputs[0], batch["labels"])
        if hyper.get("head") == "span":  # begin and end are classified over the tokens
            scores = outputs[0].swapaxes(1, 2)
            return ops.cross_entropy(
                scores.reshape(-1, scores.shape[-1]), batch["spans"].reshape(-1)
            )
        tokens, next_sentence = outputs
        return ops.cross_entropy(
            tokens.reshape(-1, tokens.shape[-1]), batch["masked_labels"].reshape(-1)
        ) + ops.cross_entropy(next_sentence, batch["next_sentence_labels"])
