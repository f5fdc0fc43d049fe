"""Arguments of the rules ``export``, ``import`` and ``make_data``."""

from __future__ import annotations

import json

from ..config.settings import Settings
from ..plan import targets
from .call import checked, refuse
from .internals import Wildcards, for_rules
from .work import Work


class TransferCommands:
    """Arguments of the commands that export, import and make data."""

    def __init__(self, work: Work) -> None:
        self._work = work

    @for_rules
    def exported(self, wildcards: Wildcards) -> list[str]:
        """Return the arguments of ``export``."""
        settings = self._settings("export")
        records = settings.records or f"{self._work.results}/runs"
        words = ["--records", str(records), *_format(settings)]
        return [*words, *(["--to", str(settings.to)] if settings.to else [])]

    @for_rules
    def imported(self, wildcards: Wildcards) -> list[str]:
        """Return the arguments of ``import``."""
        settings = self._settings("import")
        if settings.imported is None:
            refuse("import: needs a file or a folder: --config from=PATH")
        words = ["--from", str(settings.imported), *_format(settings)]
        return [*words, "--facts", json.dumps(settings.facts)]

    @for_rules
    def data(self, wildcards: Wildcards) -> list[str]:
        """Return the arguments of ``make_data``."""
        settings = self._settings(targets.MAKES_DATA)
        if settings.data is None:
            refuse("make_data: needs a folder: --config data=DIR, and images=N or tokens=N")
        words = ["--folder", str(settings.data), "--seed", str(settings.seed)]
        asked = {
            "--images": settings.images_asked,
            "--tokens": settings.tokens,
            "--format": settings.format,
        }
        given = ((name, str(value)) for name, value in asked.items() if value is not None)
        return [*words, *(word for pair in given for word in pair)]

    def _settings(self, target: str) -> Settings:
        settings = self._work.plan.settings
        checked(targets.check_keys, settings, target)
        return settings


def _format(settings: Settings) -> list[str]:
    return ["--format", settings.format] if settings.format is not None else []
