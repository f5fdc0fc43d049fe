"""Parts of a record that one hands on: named fields.

A field that is not named here stays behind, so a new one does, too. Nobody knows what stands in a
text of a framework, so reasons of failures stay behind but for the name of an exception, as does
every text that may hold a path or an address. Hosts are numbered."""

from __future__ import annotations

import re
from typing import Any

WITHHELD = "withheld"
#: Versions of packages, and values of variables, that go as they are.
_VERSION, _NUMBERS = re.compile(r"[\w.+!-]*"), re.compile(r"[\d.,:;*-]*")
#: Characters of paths, addresses and accounts.
_PLACE = re.compile(r"[/\\~@]|\d+\.\d+\.\d+\.\d+")
_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b")


def _fields(names: str, **inner: Any) -> dict[str, Any]:
    """Return fields that go with all they hold, and those of which named ones go."""
    return {**dict.fromkeys(names.split()), **inner}


_GPU = _fields(
    "name memory_bytes driver capability utilization_percent_mean sm_mhz memory_mhz watts_mean "
    "temperature_celsius_max throttle_reasons uncorrected_errors ecc"
)
_HARDWARE = _fields("cpu cores physical_cores memory_bytes processor", gpus=_GPU)
_WATCH = _fields(
    "window_seconds interval_seconds samples cores counted_cores machine_cores foreign_load "
    "machine_foreign_load steal waiting frequency_mhz temperature_celsius_max throttle_events "
    "memory_bytes memory_available_bytes_min swapped_bytes energy_joules watching absent raw",
    gpus=_GPU,
)
#: Fields of a record that go, and of the objects in it.
FIELDS = _fields(
    "format source kind case parameters repeat status reason framework_version metrics samples "
    "window_seconds wall_seconds started memory lease attempts",
    settings=_fields(
        "accelerator cores_per_device warmup_steps variant node side_by_side dropout variables "
        "preload huge_pages source warmup_limit timed_steps timed_seconds time_limit seed",
        data=_fields("identity bad_images"),
    ),
    own_model=_fields("framework sha256"),
    ranks=_fields(
        "rank host status reason device cores numa_nodes huge_page_bytes framework_version "
        "settings libraries trainable_parameters sample_work matmul_dtypes significant_bits "
        "micro_steps step_all_reduces held_parameters collectives compiled processes preflight "
        "batch_checksum weights_checksum verification blocks threads last_cache_bytes link "
        "links loader_output decoded decoded_alone loaded input_pipeline fio matmuls library "
        "sustained step_breakdown gradient_all_reduce task resumed_after untrained curve phases "
        "settled_after run_ahead warmup_step_seconds step_seconds waited_step_seconds "
        "window_start window_seconds first_value last_value peak_device_memory_bytes "
        "allocated_memory_bytes peak_reserved_memory_bytes peak_host_memory_bytes"
    ),
    watch=_WATCH,
    nodes=_fields("node memory", watch=_WATCH, hardware=_HARDWARE),
    environment=_fields(
        "install_method image_digest python packages variables code",
        hardware=_HARDWARE,
        system=_fields(
            "host os kernel machine governor cgroup_cpu_limit cgroup_memory_limit_bytes"
        ),
        scheduler=_fields("name"),
    ),
)
#: What stands in place of fields that stay behind and that a record must have.
_NEEDED = {"command": [], "prefix": WITHHELD, "folder": WITHHELD, "source": WITHHELD}


class HandedOn:
    """Parts of records that an archive hands on, with one number for each host."""

    def __init__(self) -> None:
        self._hosts: dict[str, str] = {}

    def record(self, record: dict[str, Any]) -> Any:
        """Return what goes of a record."""
        return self._object(record, FIELDS)

    def _object(self, value: Any, fields: dict[str, Any] | None) -> Any:
        if isinstance(value, list):
            return [self._object(item, fields) for item in value]
        if isinstance(value, str):
            return WITHHELD if _PLACE.search(value) else value
        if not isinstance(value, dict):
            return value
        goes = {
            name: self._field(name, item, fields and fields[name])
            for name, item in value.items()
            if (name in fields if fields is not None else not _PLACE.search(name))
        }
        needed = {name: item for name, item in _NEEDED.items() if name in value}
        return goes if fields is None else {**needed, **goes}

    def _field(self, name: str, value: Any, fields: dict[str, Any] | None) -> Any:
        if name in ("host", "node") and isinstance(value, str) and value:
            host = value.partition(".")[0].lower()
            return self._hosts.setdefault(host, f"host-{len(self._hosts) + 1}")
        if name == "reason" and value:
            known = _EXCEPTION.search(str(value))
            return f"{WITHHELD} ({known[0]})" if known else WITHHELD
        if name == "unit":
            return value
        if name in ("variables", "packages") and isinstance(value, dict):
            form = _NUMBERS if name == "variables" else _VERSION
            return {
                key: item if form.fullmatch(str(item)) else WITHHELD for key, item in value.items()
            }
        return self._object(value, fields)
