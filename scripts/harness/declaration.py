"""Declarations of frameworks and models, and checks of a request before anything runs."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Any, Dict, Mapping, Optional

from core import axes, declarations, precisions
from core.axes import READING
from core.declarations import read_model_config
from core.parallelism import DATA, form_of, mismatch

from harness import optimizers, own_model
from harness.adapter import Case
from harness.kind import TOPOLOGY, Kind
from harness.samples import tokens
from harness.samples.folder import size_of

_MODELS = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "models")
#: Default values of axes on the command line.
DEFAULTS: Dict[str, Any] = {
    "precision": precisions.default(),
    "compiler": "none",
    "nodes": 1,
    "devices_per_node": 1,
}


def read_framework(folder: str) -> Dict[str, Any]:
    """Return ``framework.json`` in a framework's folder, with its own and the common optimizers and
    kinds of parallelism. Raises ValueError for a missing or incomplete file."""
    declared = declarations.read_framework(folder)
    return {
        **declared,
        "folder": folder,
        "parallelism": [DATA, *declared["parallelism"]],
        "optimizers": [*optimizers.COMMON, *declared["optimizers"]],
    }


def model_path(text: str) -> str:
    """Return a model as an absolute path, if it is a path or the name of one of our models."""
    ours = os.path.join(_MODELS, f"{text}.json")
    is_ours = os.path.isfile(ours) and not os.path.exists(text)
    return ours if is_ours else own_model.absolute(text)


def read_model(path: str) -> Dict[str, Any]:
    """Return the model config, merged over its ``base`` in the folder ``bases``.

    ``path``: path of the config, or a user's own model. Raises ValueError.
    """
    if own_model.is_own(path):
        try:
            return own_model.model_config(path)
        except own_model.NotAModel as error:
            raise ValueError(f"--model: {error}") from None
    model_config = read_model_config(path)
    required = ("name", "unit", "trainable_parameters", "sequence_lengths", "inputs")
    lacking = [key for key in required if key not in model_config]
    if lacking:
        raise ValueError(f"{path} lacks the keys {', '.join(lacking)}")
    try:
        optimizers.check(model_config.get("hyperparameters", {}))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return model_config


def definition_of(model_config: Dict[str, Any]) -> str:
    """Return the module that defines the model, in the folder ``models`` of a framework."""
    return str(model_config.get("definition", model_config["name"].replace(".", "_")))


def at_sequence_length(
    model_config: Dict[str, Any], sequence_length: Optional[int]
) -> Dict[str, Any]:
    """Return the model config with the hyper-parameters for this sequence length.

    ``of_sequence_length`` has them by length, for example for a phase of a training."""
    phases = model_config.get("of_sequence_length")
    if not phases:
        return model_config
    hyper = {**model_config["hyperparameters"], **phases.get(str(sequence_length), {})}
    return {**model_config, "hyperparameters": hyper}


def case_of(
    kind: Kind,
    parameters: Mapping[str, Any],
    options: Namespace,
    framework: Optional[Dict[str, Any]],
    model_config: Dict[str, Any],
) -> Case:
    """Return the requested case; ``native`` becomes the framework's own compiler if it has one.

    Raises ValueError for a missing axis or one that the kind does not have, and for values that the
    model, the mode or the number of devices excludes.
    """
    values = _values_of_axes(kind, options)
    length, lengths = values["sequence_length"], model_config.get("sequence_lengths")
    if lengths and length is None:
        raise ValueError(f"{model_config['name']} needs --sequence-length")
    if model_config and not lengths and length is not None:
        raise ValueError(f"{model_config['name']} has no --sequence-length")
    mode = kind.mode(parameters)
    for axis in axes.BUILT_IN:
        if mode not in axis.applies_to and values[axis.name] not in (None, axis.default):
            allowed = ", ".join(axis.applies_to)
            raise ValueError(f"{mode} has no {axis.option}; allowed in: {allowed}")
    reason = mismatch(values["parallelism"] or DATA, values["nodes"] * values["devices_per_node"])
    if reason:
        raise ValueError(f"--parallelism: {reason}")
    reads = values["input"] in READING or kind.reads_images
    if reads and options.data is None:
        option = f"--kind {kind.name}" if kind.reads_images else f"--input {values['input']}"
        raise ValueError(f"{option} needs --data FOLDER")
    if options.data is not None and not reads:
        raise ValueError(
            f"--data is for --input {', '.join(READING)}, and for kinds that read images"
        )
    compiler = values["compiler"]
    native = framework["native_compiler"] if framework and compiler == "native" else None
    case = Case(
        framework=framework["name"] if framework else "",
        model=model_config.get("name", ""),
        mode=mode,
        nodes=values["nodes"],
        devices_per_node=values["devices_per_node"],
        batch_per_device=values["batch_per_device"] or 1,
        precision=values["precision"] or (precisions.default() if framework else ""),
        compiler=native or compiler or "none",
        sequence_length=length,
    )
    optional = {axis.name: values[axis.name] for axis in axes.OPTIONAL}
    return case._replace(**{name: value for name, value in optional.items() if value is not None})


def _values_of_axes(kind: Kind, options: Namespace) -> Dict[str, Any]:
    """Return the values of all axes, with defaults; None for axes that the benchmark lacks."""
    values, own = {}, (*kind.axes, *TOPOLOGY)
    for axis in axes.BUILT_IN:
        value, usual = getattr(options, axis.name), DEFAULTS.get(axis.name, axis.default)
        if axis.name not in own and value is not None:
            raise ValueError(f"--kind {kind.name} has no {axis.option}")
        if axis.name in own and value is None and axis.name != "sequence_length":
            if usual is None:
                raise ValueError(f"--kind {kind.name} needs {axis.option}")
            value = usual
        values[axis.name] = value
    return values


def unsupported(
    framework: Mapping[str, Any], case: Case, model_config: Dict[str, Any]
) -> Optional[str]:
    """Return why declarations exclude a run; None if it may be supported."""
    own = model_config.get("own", {}).get("framework", framework["name"])
    if own != framework["name"]:
        return f"{case.model} is a model for {own}, not for {framework['name']}"
    for axis in case.differing():
        if "own" in model_config and not axis.in_own_models:
            value = axis.text(getattr(case, axis.name))
            return f"a user's own model makes its batch itself, on the device: no {value}"
    inputs = model_config.get("inputs", [])
    if case.input in READING and size_of(inputs) is None and not tokens.form_of(inputs):
        return (
            f"{case.model} reads no files: it has neither images, nor running text, nor sequences "
            "with masked words"
        )
    features = [
        ("compiler", case.compiler, framework["compilers"]),
        ("precision", case.precision, framework["precisions"]),
    ]
    optimizer = optimizers.declared_name(model_config.get("hyperparameters", {}))
    if case.mode == "train" and optimizer:
        features.insert(0, ("optimizer", optimizer, framework["optimizers"]))
    if case.parallelism != DATA:
        if case.devices == 1:
            return f"{case.parallelism} needs several devices"
        if "heads" not in model_config.get("hyperparameters", {}):
            return f"{case.model} is not a transformer: its parallelism can only be {DATA}"
        features.insert(0, ("parallelism", form_of(case.parallelism), framework["parallelism"]))
    if model_config:
        names = definition_of(model_config).split(".")
        path = os.path.join(framework["folder"], "models", *names)
        if not (os.path.isfile(f"{path}.py") or os.path.isfile(f"{path}/__init__.py")):
            return f"{framework['name']} has no definition of the model {case.model}"
    for name, value, known in features:
        if value not in known:
            return f"{framework['name']} has no {name} {value} (it has: {', '.join(known)})"
    if case.sequence_length is not None:
        shortest, longest = model_config["sequence_lengths"]
        if not shortest <= case.sequence_length <= longest:
            return (
                f"{case.model} takes sequences of {shortest} to {longest} tokens, "
                f"not {case.sequence_length}"
            )
    return None
