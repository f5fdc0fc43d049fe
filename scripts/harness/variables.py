"""Effects of the caller's environment on a run: the list of variables that change what ranks
compute, or how fast.

A variable of the caller is dropped, refused, recorded or, where no rule names it, passed on
silently. Variables that a run gets on purpose (``variables`` of a variant, ``--variable``) are not
dropped and always recorded; they may still be refused. Values stand in a record only where a rule
names the variable and the name is not that of a credential.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from core import precisions

#: Variables that size the thread pools of numeric libraries.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
DROPPED, RECORDED, REFUSED = "dropped", "recorded", "refused"


class Rule(NamedTuple):
    """Rule for variables of the caller.

    ``names``: shell patterns. ``unless``: install methods, or OWN_MODEL, with which a variable is
    passed on instead of dropped, and recorded where a later rule says so."""

    action: str
    names: Tuple[str, ...]
    why: str
    unless: Tuple[str, ...] = ()


#: Marks a run of a user's model.
OWN_MODEL = "own model"
#: Install methods of the user's own software; a cluster's modules rely on PYTHONPATH.
BROUGHT = ("interpreter", "modules", "container", "hand")

#: Rules; the first that matches a variable counts.
RULES: Sequence[Rule] = (
    Rule(
        DROPPED,
        (
            *("GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_HW_SUBSET", "KMP_PLACE_THREADS"),
            *("KMP_TOPOLOGY_METHOD", "KMP_CPUINFO_FILE", "KMP_*_AFFINITY", "OMP_PLACES"),
            *("OMP_PROC_BIND", "OMP_TARGET_*", "BLIS_*AFFINITY*", "OPENBLAS_*AFFINITY*"),
            *("GOTOBLAS_*AFFINITY*", "MKL_*AFFINITY*", "TBB_*AFFINITY*", "SUNW_MP_PROCBIND"),
        ),
        "ranks are pinned to cores that the caller does not know",
    ),
    Rule(
        DROPPED,
        (
            *THREAD_VARIABLES,
            *("OMP_DYNAMIC", "OMP_NESTED", "OMP_MAX_ACTIVE_LEVELS", "OMP_THREAD_LIMIT"),
            *("OMP_SCHEDULE", "OMP_WAIT_POLICY", "OMP_STACKSIZE", "GOMP_SPINCOUNT"),
            *("GOMP_STACKSIZE", "GOMP_RTEMS_*", "KMP_BLOCKTIME", "KMP_LIBRARY", "KMP_STACKSIZE"),
            *("KMP_*THREAD*", "KMP_*BARRIER*", "KMP_TEAMS_*", "MKL_DYNAMIC"),
            *("MKL_DOMAIN_NUM_THREADS", "MKL_THREADING_LAYER", "MKL_*_NUM_THREADS"),
            *("BLIS_*NUM_THREADS", "BLIS_*_NT", "GOTO_NUM_THREADS", "OPENBLAS_MAIN_FREE"),
            *("OPENBLAS_THREAD_TIMEOUT", "NUMEXPR_MAX_THREADS", "TBB_NUM_THREADS"),
            *("RAYON_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
            *("MXNET_CPU_WORKER_NTHREADS", "MXNET_OMP_MAX_THREADS", "JULIA_NUM_THREADS"),
            *("NPROC", "ONEFLOW_*THREAD*", "TORCHINDUCTOR_CPP_THREADS"),
        ),
        "a device has as many threads as cores",
    ),
    Rule(
        DROPPED,
        (
            *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_*"),
            *("GROUP_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_*"),
            *("TF_CONFIG", "PADDLE_TRAINER*", "PADDLE_CURRENT_ENDPOINT", "PADDLE_MASTER"),
            *("DMLC_*", "JAX_COORDINATOR_*", "JAX_NUM_PROCESSES", "JAX_PROCESS_*"),
            *("JAX_LOCAL_DEVICE_IDS", "OMPI_COMM_*", "PMI_*", "PMIX_*"),
        ),
        "they are the ranks of another program",
    ),
    Rule(
        DROPPED,
        ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONNOUSERSITE"),
        "modules come from the environment that the run was planned with",
        BROUGHT,
    ),
    Rule(RECORDED, ("PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONHASHSEED"), "modules, hashing"),
    Rule(DROPPED, ("PYTHON*",), "the interpreter runs as it does without any option"),
    Rule(
        DROPPED,
        ("LD_PRELOAD", "LD_AUDIT", "LD_PROFILE*"),
        "a library that is loaded first may be another allocator",
        BROUGHT,
    ),
    Rule(
        DROPPED,
        (
            *("LD_DEBUG*", "LD_BIND_NOW", "LD_BIND_NOT", "LD_DYNAMIC_WEAK", "GLIBC_TUNABLES"),
            *("MALLOC_*", "TCMALLOC_*", "MIMALLOC_*", "HEAPPROFILE", "CPUPROFILE*"),
        ),
        "the allocator is asked for by preload or huge_pages",
    ),
    Rule(
        DROPPED,
        ("LC_*", "LANG", "LANGUAGE", "CHARSET", "OUTPUT_CHARSET"),
        "texts are read and written as UTF-8, numbers with a point",
    ),
    Rule(
        DROPPED,
        (
            *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "grpc_proxy"),
            *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY", "GRPC_PROXY"),
            *("no_grpc_proxy", "NO_GRPC_PROXY"),
        ),
        "ranks call each other through them, and they may hold a password",
        (OWN_MODEL,),
    ),
    Rule(
        DROPPED,
        (
            *("CUDA_LAUNCH_BLOCKING", "CUDA_INJECTION*_PATH", "CUDA_API_TRACE*", "CUDA_ENABLE_*"),
            *("NVTX_INJECTION*_PATH", "COMPUTE_PROFILE*", "NSYS_*", "CUDA_GDB_*"),
        ),
        "a debugger or profiler of the caller's makes every kernel wait",
    ),
    Rule(
        REFUSED,
        (*precisions.variables(),),
        "libraries compute in another precision; each precision declares the values that it allows",
    ),
    Rule(
        RECORDED,
        (
            *("LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_*", "MALLOC_*", "TORCHDYNAMO*"),
            *(
                f"{prefix}_*"
                for prefix in (
                    *("OMP", "MKL", "KMP", "GOMP", "OPENBLAS", "GOTO", "BLIS", "NUMEXPR", "TBB"),
                    *("CUDA", "CUDNN", "CUBLAS", "CUBLASLT", "NVIDIA", "NCCL", "GLOO", "UCX"),
                    *("TF", "XLA", "TORCH", "TORCHINDUCTOR", "PYTORCH", "JAX", "FLAGS", "MXNET"),
                    *("ONEFLOW", "ONEDNN", "DNNL", "TRITON", "SLURM_CPU", "ATEN", "NVTE"),
                )
            ),
        ),
        "frameworks and their libraries read it",
    ),
)
#: Names of credentials, and similar names of others.
_CREDENTIAL = re.compile(
    r"SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|^TF_(VAR|CLI)_"
    r"|(^|_|-)([A-Z0-9]*(TOKEN|PASSCODE|PWD|CREDS?|KEY|COOKIE)S?|PATS?|PASS|PW|AUTH|BEARER|JWT|DSN"
    r"|SAS|OTP)\d*(_|-|$)",
    re.IGNORECASE,
)
_NO_CREDENTIAL = re.compile(r"_PKEY(_|$)", re.IGNORECASE)
_PATTERNS = [
    (rule, re.compile("|".join(fnmatch.translate(name) for name in rule.names))) for rule in RULES
]


def action(name: str, keeps: Sequence[str] = ()) -> Optional[str]:
    """Return the treatment of a caller's variable: DROPPED, REFUSED at some values and else
    recorded, RECORDED, or None, which passes it on.

    ``keeps``: the install method, and OWN_MODEL for a user's model."""
    for rule, pattern in _PATTERNS:
        if pattern.match(name) and not set(rule.unless).intersection(keeps):
            return rule.action
    return None


def passed_on(environment: Mapping[str, str], keeps: Sequence[str]) -> Dict[str, str]:
    """Return the caller's ``environment`` without dropped variables."""
    return {name: value for name, value in environment.items() if action(name, keeps) != DROPPED}


def dropped(environment: Mapping[str, str], keeps: Sequence[str]) -> List[str]:
    """Return the sorted names of the dropped variables in the caller's ``environment``."""
    return sorted(name for name in environment if action(name, keeps) == DROPPED)


def is_recorded(name: str) -> bool:
    """Return whether a variable changes what ranks compute or how fast, and holds no credential,
    whoever set it."""
    if _CREDENTIAL.search(name) and not _NO_CREDENTIAL.search(name):
        return False
    return any(pattern.match(name) for rule, pattern in _PATTERNS if rule.action != DROPPED)


def recorded(named: Mapping[str, str]) -> Dict[str, str]:
    """Return variables as records show them. Any text can hold a credential, so only the values of
    those that are known to steer performance stand there; of others a digest tells them apart."""
    return {
        name: value
        if is_recorded(name)
        else f"sha256:{hashlib.sha256(value.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
        for name, value in named.items()
    }


def refused(precision: str, environment: Mapping[str, str]) -> str:
    """Return which variable of the ranks' ``environment`` changes the precision, and its allowed
    values; "" without one."""
    return precisions.contradicted(precision, environment)
