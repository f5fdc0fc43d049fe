"""Cases on each of several nodes. By default nodes with the same hardware count as one machine, and
a case belongs to any of them."""

from __future__ import annotations

from core.case import Case

from ..config.each_node import ALL
from ..config.settings import Settings
from ..config.validation import ConfigError, did_you_mean
from ..machine.local import Machine


def on_each_node(cases: list[Case], settings: Settings, machine: Machine) -> list[Case]:
    """Return each case once per node that is measured by name.

    Returns the cases unchanged if the suite names no nodes or the machine's nodes are unknown.
    Raises ConfigError for an unknown node.
    """
    asked, known = settings.each_node, machine.named
    if asked is None or not known:
        return cases
    names = list(known) if asked == ALL else list(asked)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"config: nodes_named: found {name!r}{did_you_mean(name, known)}; allowed: all, or "
                f"nodes that there are here ({', '.join(known)})"
            )
    return [case._replace(node=name) for case in cases for name in names]
