"""A network without a family: its layers one by one."""

from __future__ import annotations

from networks.layers import IMAGES, Layers


def listed(add: Layers) -> str:
    """Add the layers that a model config lists. ``layers``: each a mapping with ``op`` (a method of
    :class:`Layers`), ``name`` and what the method takes; ``inputs``, a list of names, or else the
    layer before. The last one's output are the logits. ``head_begins``, on the last layer of an
    auxiliary head: the name of its first."""
    x, begins = IMAGES, {}
    for entry in add.hyper["layers"]:
        attributes = dict(entry)
        op, name = attributes.pop("op"), attributes.pop("name")
        inputs, head = attributes.pop("inputs", [x]), attributes.pop("head_begins", None)
        begins[name] = len(add)
        several = op in ("add", "concatenate")
        x = getattr(add, op)(inputs if several else inputs[0], name, **attributes)
        if head is not None:
            add.head(x, begins[head])
    return x
