"""A network without a family: its layers one by one."""

from __future__ import annotations

from networks.layers import IMAGES, Layers


def listed(add: Layers) -> str:
    """``layers``: each a mapping with ``op`` (a method of :class:`Layers`), ``name`` and what the
    method takes; ``inputs``, a list of names, or else the layer before. The last one's output are
    the logits. ``head``: on the last layer of an auxiliary head, its weight in the loss, and
    ``head_begins``: the name of its first."""
    x, begins = IMAGES, {}
    for given in add.hyper["layers"]:
        attributes = dict(given)
        op, name = attributes.pop("op"), attributes.pop("name")
        inputs, weight = attributes.pop("inputs", [x]), attributes.pop("head", None)
        begins[name] = len(add)
        first = attributes.pop("head_begins", name)
        several = op in ("add", "concatenate")
        x = getattr(add, op)(inputs if several else inputs[0], name, **attributes)
        if weight is not None:
            add.head(x, weight, begins[first])
    return x
