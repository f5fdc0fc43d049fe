"""Links of GPUs as NVML reports them: of each to the host, and between pairs."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

from harness.telemetry import nvml

GENERATION, LANES = "pcie_generation", "pcie_lanes"
#: Quantities of the link between a GPU and the host, and of two GPUs.
OF_HOST, NVLINKS = (GENERATION, LANES), "nvlinks"
UNITS = {GENERATION: "generation", LANES: "lanes", NVLINKS: "links"}
#: Path between two GPUs on PCI Express, by ``nvmlGpuTopologyLevel_t``, named as in ``nvidia-smi
#: topo``: one bridge, several, the host's bridge, several of these in a NUMA node, several nodes.
PATHS = {0: "board", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
#: Type of the other end of a link, by NVML_NVLINK_DEVICE_TYPE.
_SWITCH = 2


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
        """Return the links from one GPU to another.

        ``path``: one of PATHS; ``peer_access``: whether the sender may write to the receiver's
        memory; ``nvlinks``: number of links, direct or through switches."""

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


def nvlinks(library: Any, sender: Any, receiver: Any) -> int:
    """Return the number of active links of ``sender`` that lead to ``receiver``.

    Where all lead to switches, it is the smaller number of links of the two. Raises NVMLError where
    the GPU reports none."""
    address = nvml.text(library.nvmlDeviceGetPciInfo(receiver).busId).lower()
    ends = _other_ends(library, sender)
    direct = ends.count(address)
    return direct or min(ends.count(""), _other_ends(library, receiver).count(""))


def _other_ends(library: Any, gpu: Any) -> List[str]:
    """Return the PCI addresses of the GPUs at the other ends of active links, "" for a switch."""
    ends: List[str] = []
    for link in range(library.NVML_NVLINK_MAX_LINKS):
        try:
            if not library.nvmlDeviceGetNvLinkState(gpu, link):
                continue
        except library.NVMLError:
            if link:  # it has no more
                return ends
            raise
        if library.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, link) == _SWITCH:
            ends.append("")
        else:
            info = library.nvmlDeviceGetNvLinkRemotePciInfo(gpu, link)
            ends.append(nvml.text(info.busId).lower())
    return ends


def find(variables: Mapping[str, str], devices: int) -> Links:
    """Return the links of a run with ``devices`` on this node and these variables."""
    try:
        return Links(nvml.find(variables, devices))
    except nvml.Unwatchable as error:
        return Links(None, str(error))
