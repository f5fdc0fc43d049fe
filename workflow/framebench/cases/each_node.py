"""The same cases on each of several nodes. Elsewhere nodes with the same hardware are one machine,
and a case is of any of them."""

from __future__ import annotations

from core.case import Case

from ..config.each_node import ALL
from ..config.settings import Settings
from ..config.validation import ConfigError, did_you_mean
from ..machine.local import Machine


def on_each_node(found: list[Case], settings: Settings, machine: Machine) -> list[Case]:
    """Each case once for every node that is to be measured by its name; as they are for a suite
    that says nothing of nodes, and where nobody knows which there are. Raises ConfigError for a
    name of none."""
    asked, known = settings.each_node, machine.named
    if asked is None or not known:
        return found
    names = list(known) if asked == ALL else list(asked)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"config: nodes_named: found {name!r}{did_you_mean(name, known)}; allowed: all, or "
                f"nodes that there are here ({', '.join(known)})"
            )
    return [case._replace(node=name) for case in found for name in names]
