"""Links of GPUs as NVML reports them: of each to the host, and between pairs."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

from harness.telemetry import nvml

GENERATION, LANES = "pcie_generation", "pcie_lanes"
#: Units of the quantities of the link between a GPU and the host.
UNITS = {GENERATION: "generation", LANES: "lanes"}
#: Path between two GPUs on PCI Express, by ``nvmlGpuTopologyLevel_t``, named as in ``nvidia-smi
#: topo``: one bridge, several, the host's bridge, several of these in a NUMA node, several nodes.
PATHS = {0: "board", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}


class Links:
    """Links of the GPUs of one run, by their number.

    ``absent``: reason for each quantity that NVML does not report, which is None then. ``gpus``:
    None where there is no NVML, and ``why``."""

    def __init__(self, gpus: Optional[nvml.Gpus], why: str = "") -> None:
        self._gpus, self._why = gpus, why
        self.absent: Dict[str, str] = {}

    def to_host(self, index: int) -> Dict[str, Any]:
        """Return the current PCI Express generation and number of lanes of GPU ``index``."""

        def asked(name: str, function: str) -> Any:
            return self._asked(
                f"gpu-{index} {name}", lambda n, gpus: getattr(n, function)(gpus[index])
            )

        return {
            GENERATION: asked(GENERATION, "nvmlDeviceGetCurrPcieLinkGeneration"),
            LANES: asked(LANES, "nvmlDeviceGetCurrPcieLinkWidth"),
        }

    def between(self, sender: int, receiver: int) -> Dict[str, Any]:
        """Return what lies between one GPU and another.

        ``path``: one of PATHS; ``peer_access``: whether the sender may write to the receiver's
        memory."""

        def asked(name: str, ask: Callable[[Any, Any, Any], Any]) -> Any:
            def of_both(n: Any, gpus: List[Any]) -> Any:
                return ask(n, gpus[sender], gpus[receiver])

            return self._asked(f"gpu-{sender} to gpu-{receiver} {name}", of_both)

        level = asked("path", lambda n, a, b: n.nvmlDeviceGetTopologyCommonAncestor(a, b))
        write = asked(
            "peer_access",
            lambda n, a, b: n.nvmlDeviceGetP2PStatus(a, b, n.NVML_P2P_CAPS_INDEX_WRITE),
        )
        return {
            "path": None if level is None else PATHS.get(level, f"level {level}"),
            "peer_access": None if write is None else not write,  # 0: nothing is in its way
        }

    def _asked(self, quantity: str, ask: Callable[[Any, List[Any]], Any]) -> Any:
        if self._gpus is None:
            self.absent[quantity] = self._why
            return None
        try:
            return ask(self._gpus.library, self._gpus.handles)
        except self._gpus.library.NVMLError as error:
            self.absent[quantity] = str(error)
            return None

    def close(self) -> None:
        if self._gpus is not None:
            self._gpus.close()


def find(variables: Mapping[str, str], devices: int) -> Links:
    """Return the links of a run with ``devices`` on this node and these variables."""
    try:
        return Links(nvml.find(variables, devices))
    except nvml.Unwatchable as error:
        return Links(None, str(error))
