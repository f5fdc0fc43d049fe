"""Minutes that cluster jobs request, and the time limit of their runs."""

from __future__ import annotations

from ..config.settings import Settings
from . import estimates


def minutes(settings: Settings) -> int:
    """Return the minutes to request for a run, which may take ``time_limit``."""
    assert settings.cluster is not None, "only a cluster is asked for something"
    return settings.cluster.minutes(settings.time_limit + _before(settings))


def run_limit(settings: Settings) -> float:
    """Return the seconds after which a run ends by itself.

    On a cluster it may be less than the configured limit, so that a record is left before the job
    ends.
    """
    if settings.cluster is None:
        return settings.time_limit
    left = settings.cluster.run_limit(minutes(settings)) - _before(settings)
    return min(settings.time_limit, max(left, 30.0))


def _before(settings: Settings) -> float:
    """Return seconds before a run begins in its job: the first on a node builds the environment."""
    return 3 * estimates.ENVIRONMENT_SECONDS * settings.node_local
