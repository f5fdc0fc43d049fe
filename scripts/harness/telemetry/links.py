"""Link of a GPU to the host as NVML reports it."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from harness.telemetry import nvml

#: Units of what is read: the current generation of PCI Express, and the number of its lanes.
UNITS = {"pcie_generation": "generation", "pcie_lanes": "lanes"}
_FUNCTIONS = {
    "pcie_generation": "nvmlDeviceGetCurrPcieLinkGeneration",
    "pcie_lanes": "nvmlDeviceGetCurrPcieLinkWidth",
}


class HostLink:
    """Link to the host of GPU number ``index`` of a run with these ``variables``.

    ``absent``: reason for each quantity that NVML does not report."""

    def __init__(self, variables: Mapping[str, str], index: int) -> None:
        self.absent: Dict[str, str] = {}
        self._name = f"gpu-{index}"
        self._gpus: Optional[nvml.Gpus] = None
        try:
            self._gpus = nvml.find(variables, index + 1)
        except nvml.Unwatchable as error:
            self.absent = {f"{self._name} {name}": str(error) for name in UNITS}

    def read(self) -> Dict[str, Any]:
        """Return each quantity of UNITS; None for one that is absent."""
        return {name: self._asked(name) for name in UNITS}

    def _asked(self, name: str) -> Any:
        if self._gpus is None:
            return None
        library = self._gpus.library
        try:
            return getattr(library, _FUNCTIONS[name])(self._gpus.handles[-1])
        except library.NVMLError as error:
            self.absent[f"{self._name} {name}"] = str(error)
            return None

    def close(self) -> None:
        if self._gpus is not None:
            self._gpus.close()
