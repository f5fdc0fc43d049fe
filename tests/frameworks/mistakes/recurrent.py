"""Mistakes in the LSTM of each framework that has one."""

from __future__ import annotations

from collections.abc import Sequence

from ..models import LSTM
from .planted import Change, PlantedMistake


def _mistake(about: str, right: str, wrong: str) -> PlantedMistake:
    return PlantedMistake(about, LSTM, Change(f"models/{LSTM}.py", right, wrong))


FIRST, BACKWARDS = "the first step classified", "the steps backwards"
OWN = "the framework's own initial values"
#: Frameworks whose definitions have these texts in common.
_FIRST = _mistake(FIRST, "outputs[:, -1]", "outputs[:, 0]")
_SAMPLES = _mistake("samples for steps", ", batch_first=True", "")

MISTAKES: dict[str, Sequence[PlantedMistake]] = {
    "jax": [
        _mistake(FIRST, "x[-1]", "x[0]"),
        _mistake("two gates exchanged", "write, keep, new, read =", "keep, write, new, read ="),
        _mistake(
            "the state of the cell put out",
            "jax.nn.sigmoid(read) * jnp.tanh(cell)",
            "jnp.tanh(cell)",
        ),
        _mistake("one bias vector", ' + parameters[f"lstm.bias_hh_l{layer}"]', ""),
    ],
    "mindspore": [
        _FIRST,
        _SAMPLES,
        _mistake(BACKWARDS, "self.lstm(features)", "self.lstm(features.flip((1,)))"),
        _mistake(
            "initial values twice as wide", "Uniform(hidden**-0.5)", "Uniform(2 * hidden**-0.5)"
        ),
    ],
    "mxnet": [
        _mistake(FIRST, "begin=-1, end=None", "begin=0, end=1"),
        _mistake(BACKWARDS, "self.lstm(features)", "self.lstm(F.reverse(features, axis=0))"),
        _mistake(OWN, "            h2h_bias_initializer=uniform,\n", ""),
    ],
    "oneflow": [_FIRST, _SAMPLES],
    "paddle": [
        _FIRST,
        _mistake("samples for steps", 'layers"])', 'layers"], time_major=True)'),
        _mistake(OWN, ", weight_attr=uniform, bias_attr=uniform", ""),
    ],
    "pytorch": [
        _FIRST,
        _SAMPLES,
        _mistake(
            "a second bias vector that starts at zero",
            "self.classifier = nn.Linear",
            "nn.init.zeros_(self.lstm.bias_hh_l0)\n        self.classifier = nn.Linear",
        ),
    ],
    "tensorflow": [
        _mistake(BACKWARDS, "x = features", "x = tf.reverse(features, [1])"),
        _mistake(
            "a forget gate whose bias starts at 1",
            "unit_forget_bias=False,",
            "unit_forget_bias=True,",
        ),
        _mistake(
            "a second bias vector of twice its value",
            "tf.convert_to_tensor(self.recurrent_bias)",
            "2 * tf.convert_to_tensor(self.recurrent_bias)",
        ),
    ],
    "tensorflow1": [
        _mistake(FIRST, "x[-1]", "x[0]"),
        _mistake("two gates exchanged", "GATES = (0, 2, 1, 3)", "GATES = (0, 1, 2, 3)"),
        _mistake("a bias of the forget gate beside its own", "forget_bias=0.0", "forget_bias=1.0"),
    ],
}
