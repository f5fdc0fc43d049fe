"""Arrays of the transformers and the LSTM in every framework: their names, shapes and initial
values, and the constants of these models. Linear layers are (in, out)."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from networks.layers import ONE, ZERO, Weight

Hyper = Mapping[str, Any]
GATES = 4  # concatenated gates of an LSTM: input, forget, cell, output
#: Added to scores that attention ignores: the value of BERT's authors; unlike -1e9 it fits float16.
MASKED_SCORE = -10000.0
#: Number of possible values of a word's noise in ELECTRA: the midpoints between them are exact in
#: float32.
DRAWS = 2**20
#: Multipliers of the hash of a word (Knuth 1998, 6.4) and of the mixing of its 32 bits, which MASK
#: keeps.
WORD, MIXER, MASK = 0x9E3779B1, 0x45D9F3B, 2**32 - 1


class Arrays(Dict[str, Weight]):
    """Arrays by name. Weights and embeddings are normal with the model's deviation, biases zero."""

    def __init__(self, hyper: Hyper) -> None:
        super().__init__()
        self.deviation = hyper["initializer_range"]

    def table(self, name: str, rows: int, columns: int, share: float = 1.0) -> None:
        """Add a matrix; ``share``: factor of its deviation."""
        self[f"{name}.weight"] = Weight((rows, columns), ("normal", share * self.deviation))

    def linear(
        self, name: str, inputs: int, outputs: int, share: float = 1.0, bias: bool = True
    ) -> None:
        self.table(name, inputs, outputs, share)
        if bias:
            self[f"{name}.bias"] = Weight((outputs,), ZERO)

    def norm(self, name: str, size: int, bias: bool = True) -> None:
        self[f"{name}.weight"] = Weight((size,), ONE)
        if bias:
            self[f"{name}.bias"] = Weight((size,), ZERO)

    def embeddings(self, hyper: Hyper) -> None:
        """Add BERT's embeddings."""
        tables = (("token", "vocabulary"), ("position", "positions"), ("segment", "segments"))
        for name, rows in tables:
            self.table(f"embeddings.{name}", hyper[rows], hyper["hidden"])
        self.norm("embeddings.norm", hyper["hidden"])

    def encoder(self, hyper: Hyper, prefix: str = "") -> None:
        """Add the layers of BERT's encoder."""
        hidden, inner = hyper["hidden"], hyper["intermediate"]
        for layer in (f"{prefix}layers.{number}" for number in range(hyper["layers"])):
            for name in ("query", "key", "value", "output"):
                self.linear(f"{layer}.attention.{name}", hidden, hidden)
            self.norm(f"{layer}.attention_norm", hidden)
            self.linear(f"{layer}.intermediate", hidden, inner)
            self.linear(f"{layer}.output", inner, hidden)
            self.norm(f"{layer}.output_norm", hidden)

    def vocabulary_head(self, hyper: Hyper, inputs: int, prefix: str = "") -> None:
        """Add the head of a masked language model. The decoder's weight is the token embedding; its
        bias is a separate array."""
        self.linear(f"{prefix}transform", inputs, hyper["hidden"])
        self.norm(f"{prefix}transform_norm", hyper["hidden"])
        self[f"{prefix}decoder_bias"] = Weight((hyper["vocabulary"],), ZERO)


def bert(hyper: Hyper) -> Arrays:
    arrays, hidden = Arrays(hyper), hyper["hidden"]
    arrays.embeddings(hyper)
    arrays.encoder(hyper)
    if hyper.get("head") == "span":
        arrays.linear("span", hidden, 2)
        return arrays
    arrays.linear("pooler", hidden, hidden)
    if "classes" in hyper:
        arrays.linear("classifier", hidden, hyper["classes"])
        return arrays
    arrays.vocabulary_head(hyper, hidden)
    arrays.linear("next_sentence", hidden, 2)
    return arrays


def generator(hyper: Hyper) -> Dict[str, Any]:
    """Return the hyper-parameters of ELECTRA's generator."""
    return {**hyper, **hyper["generator"]}


def electra(hyper: Hyper) -> Arrays:
    arrays, hidden, narrow = Arrays(hyper), hyper["hidden"], generator(hyper)
    arrays.embeddings(hyper)  # generator and discriminator share the embeddings
    arrays.linear("generator.project", hidden, narrow["hidden"])
    arrays.encoder(narrow, "generator.")
    arrays.vocabulary_head(hyper, narrow["hidden"], "generator.")
    arrays.encoder(hyper, "discriminator.")
    arrays.linear("discriminator.transform", hidden, hidden)
    arrays.linear("discriminator.score", hidden, 1)
    return arrays


def added_share(hyper: Hyper) -> float:
    """Return the factor of the initial deviation of a decoder's matrices that add to the residuals.
    More layers make it smaller."""
    return float((2 * hyper["layers"]) ** -0.5)


def decoder(hyper: Hyper) -> Arrays:
    arrays, hidden, inner = Arrays(hyper), hyper["hidden"], hyper["intermediate"]
    added, bias, centred = added_share(hyper), hyper["bias"], hyper["norm"] == "layer"
    arrays.table("embeddings.token", hyper["vocabulary"], hidden)
    if hyper["position"] == "learned":
        arrays.table("embeddings.position", hyper["positions"], hidden)
    columns = (hyper["heads"] + 2 * hyper["key_value_heads"]) * (hidden // hyper["heads"])
    for name in (f"layers.{number}" for number in range(hyper["layers"])):
        arrays.norm(f"{name}.attention_norm", hidden, centred)
        arrays.linear(f"{name}.attention.query_key_value", hidden, columns, bias=bias)
        arrays.linear(f"{name}.attention.output", hidden, hidden, added, bias)
        arrays.norm(f"{name}.feed_forward_norm", hidden, centred)
        if hyper["activation"] == "swiglu":
            arrays.linear(f"{name}.feed_forward.gate", hidden, inner, bias=bias)
        arrays.linear(f"{name}.feed_forward.up", hidden, inner, bias=bias)
        arrays.linear(f"{name}.feed_forward.down", inner, hidden, added, bias)
    arrays.norm("norm", hidden, centred)
    if not hyper["tied"]:
        arrays.linear("head", hidden, hyper.get("classes", hyper["vocabulary"]), bias=bias)
    return arrays


def lstm(hyper: Hyper) -> Dict[str, Weight]:
    """Return the arrays by PyTorch's names; as in PyTorch, uniform within 1 / sqrt(hidden)."""
    inputs, hidden, classes = hyper["features"], hyper["hidden"], hyper["classes"]
    shapes: Dict[str, Any] = {}
    for layer in range(hyper["layers"]):
        shapes[f"lstm.weight_ih_l{layer}"] = (inputs, GATES * hidden)
        shapes[f"lstm.weight_hh_l{layer}"] = (hidden, GATES * hidden)
        shapes[f"lstm.bias_ih_l{layer}"] = shapes[f"lstm.bias_hh_l{layer}"] = (GATES * hidden,)
        inputs = hidden
    shapes.update({"classifier.weight": (hidden, classes), "classifier.bias": (classes,)})
    return {name: Weight(shape, ("uniform", hidden**-0.5)) for name, shape in shapes.items()}
