"""What NVML tells of the links of GPUs: of each to the host, and of two to each other."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

from harness.telemetry import nvml

GENERATION, LANES = "pcie_generation", "pcie_lanes"
#: Of the link between a GPU and the host; of two GPUs.
OF_HOST, NVLINKS = (GENERATION, LANES), "nvlinks"
UNITS = {GENERATION: "generation", LANES: "lanes", NVLINKS: "links"}
#: What lies between two GPUs on PCI Express, by ``nvmlGpuTopologyLevel_t``, as ``nvidia-smi topo``
#: has it: one bridge, several, the host's bridge, several of these in a NUMA node, several nodes.
PATHS = {0: "board", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
#: Of NVML_NVLINK_DEVICE_TYPE: what the other end of a link is.
_SWITCH = 2


class Links:
    """Of the GPUs of one run, by their number. ``absent``: of each quantity that NVML does not
    tell, why; it is None then. ``gpus``: None where there is no NVML, and ``why``."""

    def __init__(self, gpus: Optional[nvml.Gpus], why: str = "") -> None:
        self._gpus, self._why = gpus, why
        self.absent: Dict[str, str] = {}

    def to_host(self, index: int) -> Dict[str, Any]:
        """Generation and lanes of PCI Express, as they are now."""

        def asked(name: str, function: str) -> Any:
            return self._asked(
                f"gpu-{index} {name}", lambda n, gpus: getattr(n, function)(gpus[index])
            )

        return {
            GENERATION: asked(GENERATION, "nvmlDeviceGetCurrPcieLinkGeneration"),
            LANES: asked(LANES, "nvmlDeviceGetCurrPcieLinkWidth"),
        }

    def between(self, sender: int, receiver: int) -> Dict[str, Any]:
        """``path``: one of PATHS; ``peer_access``: whether the one may write to the other's memory;
        ``nvlinks``: how many lead there, directly or through switches."""

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
            NVLINKS: asked(NVLINKS, nvlinks),
        }

    def _asked(self, what: str, ask: Callable[[Any, List[Any]], Any]) -> Any:
        if self._gpus is None:
            self.absent[what] = self._why
            return None
        try:
            return ask(self._gpus.library, self._gpus.handles)
        except self._gpus.library.NVMLError as error:
            self.absent[what] = str(error)
            return None

    def close(self) -> None:
        if self._gpus is not None:
            self._gpus.close()


def nvlinks(library: Any, sender: Any, receiver: Any) -> int:
    """Those of ``sender`` that are up and lead to ``receiver``. Where all lead to switches, as many
    as both have there. Raises NVMLError where the GPU tells of none."""
    address = nvml.text(library.nvmlDeviceGetPciInfo(receiver).busId).lower()
    ends = _other_ends(library, sender)
    direct = ends.count(address)
    return direct or min(ends.count(""), _other_ends(library, receiver).count(""))


def _other_ends(library: Any, gpu: Any) -> List[str]:
    """PCI addresses of the GPUs to which links lead that are up, "" for a switch."""
    found: List[str] = []
    for link in range(library.NVML_NVLINK_MAX_LINKS):
        try:
            if not library.nvmlDeviceGetNvLinkState(gpu, link):
                continue
        except library.NVMLError:
            if link:  # it has no more
                return found
            raise
        if library.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, link) == _SWITCH:
            found.append("")
        else:
            info = library.nvmlDeviceGetNvLinkRemotePciInfo(gpu, link)
            found.append(nvml.text(info.busId).lower())
    return found


def find(variables: Mapping[str, str], devices: int) -> Links:
    """Of a run of so many devices of this node, with these variables."""
    try:
        return Links(nvml.find(variables, devices))
    except nvml.Unwatchable as error:
        return Links(None, str(error))
