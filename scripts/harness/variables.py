"""Variables of the caller's environment: which are withheld from ranks, and which a record shows.

All others are passed on silently. Variables that a run gets on purpose (``variables`` of a variant,
``--variable``) are not dropped and always recorded. Those that change the precision are refused
(:func:`core.precisions.contradicted`). A record holds a value only where the list below names the
variable and the name is not a credential's.
"""

from __future__ import annotations

import hashlib
import re
from typing import Dict, Mapping, Sequence

from core import precisions

#: Variables that size the thread pools of numeric libraries.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
#: Marks a run of a user's model.
OWN_MODEL = "own model"
#: Install methods of the user's own software; a cluster's modules rely on PYTHONPATH.
BROUGHT = ("interpreter", "container", "hand")

_LIBRARIES = "MKL|OPENBLAS|GOTO|GOTOBLAS|BLIS|NUMEXPR|VECLIB|TBB|RAYON"
#: Variables that ranks do not get.
_DROPPED = re.compile(
    "|".join(
        [
            # The harness sets a device's threads to its cores, and pins ranks to cores that the
            # caller does not know.
            r"(OMP|GOMP|KMP|SUNW_MP)_(?!DUPLICATE_LIB_OK$).*",
            rf"({_LIBRARIES})_.*(THREAD|AFFINITY).*|BLIS_.*_NT|MKL_DYNAMIC|OPENBLAS_MAIN_FREE",
            r"TF_NUM_INT(RA|ER)OP_THREADS|(MXNET|ONEFLOW|TORCHINDUCTOR_CPP)_.*THREAD.*",
            # These variables describe ranks of another program.
            r"((LOCAL|GROUP|NODE)_)?RANK|((LOCAL|GROUP)_)?WORLD_SIZE|ROLE_.*|MASTER_(ADDR|PORT)",
            r"TORCHELASTIC_.*|TF_CONFIG|PADDLE_(TRAINER|CURRENT_ENDPOINT|MASTER).*|DMLC_.*",
            r"JAX_(COORDINATOR|NUM_PROCESSES|PROCESS|LOCAL_DEVICE_IDS).*|OMPI_COMM_.*|PMIX?_.*",
            # Ranks use an interpreter without options, and the C library's own allocator.
            r"PYTHON(?!HASHSEED$).*|GLIBC_TUNABLES|LD_(PRELOAD|AUDIT|PROFILE|DEBUG|BIND|DYNAMIC).*",
            r"(MALLOC|TCMALLOC|MIMALLOC)_.*|HEAPPROFILE|CPUPROFILE.*",
            # Ranks read and write texts as UTF-8, and numbers with a decimal point.
            r"LC_.*|LANG|LANGUAGE|(OUTPUT_)?CHARSET",
            # Ranks would call each other through these proxies, whose addresses may hold a
            # password.
            r"(?i:(https?|ftp|all|no|grpc|no_grpc)_proxy)",
            # A debugger or profiler of the caller's makes every kernel wait.
            r"CUDA_(LAUNCH_BLOCKING|INJECTION|API_TRACE|ENABLE|GDB)_?.*|NVTX_INJECTION.*",
            r"COMPUTE_PROFILE.*|NSYS_.*",
        ]
    )
)
#: Dropped variables that the user's own software or model needs after all.
_KEPT = {
    **dict.fromkeys(BROUGHT, re.compile(r"PYTHON(PATH|NOUSERSITE)|LD_(PRELOAD|AUDIT|PROFILE.*)")),
    OWN_MODEL: re.compile(r"(?i:.*_proxy)"),
}
#: Variables that frameworks and their libraries read.
_RECORDED = re.compile(
    r"PYTHON(PATH|NOUSERSITE|HASHSEED)|LD_PRELOAD|LD_LIBRARY_PATH|TORCHDYNAMO.*|"
    r"(GLIBC|MALLOC|OMP|MKL|KMP|GOMP|OPENBLAS|GOTO|BLIS|NUMEXPR|TBB|CUDA|CUDNN|CUBLAS|CUBLASLT|"
    r"NVIDIA|NCCL|GLOO|UCX|TF|XLA|TORCH|TORCHINDUCTOR|PYTORCH|JAX|FLAGS|MXNET|ONEFLOW|ONEDNN|DNNL|"
    r"TRITON|SLURM_CPU|ATEN|NVTE)_.*"
)
#: Names of credentials, and similar names that are not credentials.
_CREDENTIAL = re.compile(
    r"SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|^TF_(VAR|CLI)_"
    r"|(^|_|-)([A-Z0-9]*(TOKEN|PASSCODE|PWD|CREDS?|KEY|COOKIE)S?|PATS?|PASS|PW|AUTH|BEARER|JWT|DSN"
    r"|SAS|OTP)\d*(_|-|$)",
    re.IGNORECASE,
)
_NO_CREDENTIAL = re.compile(r"_PKEY(_|$)", re.IGNORECASE)


def passed_on(environment: Mapping[str, str], keeps: Sequence[str]) -> Dict[str, str]:
    """Return the caller's ``environment`` without dropped variables. ``keeps``: the install method,
    and OWN_MODEL for a user's model."""
    kept = [_KEPT[reason] for reason in keeps if reason in _KEPT]
    return {
        name: value
        for name, value in environment.items()
        if not _DROPPED.fullmatch(name) or any(pattern.fullmatch(name) for pattern in kept)
    }


def is_recorded(name: str) -> bool:
    """Return whether a variable changes what ranks compute or how fast, and holds no credential,
    whoever set it."""
    if _CREDENTIAL.search(name) and not _NO_CREDENTIAL.search(name):
        return False
    return bool(_RECORDED.fullmatch(name)) or name in precisions.variables()


def recorded(named: Mapping[str, str]) -> Dict[str, str]:
    """Return variables as records show them. Any text can hold a credential, so a record holds only
    values of variables known to steer performance, and a digest of each other value."""
    return {
        name: value
        if is_recorded(name)
        else f"sha256:{hashlib.sha256(value.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
        for name, value in named.items()
    }
