"""Patterns that recognise names of people, hosts and places in a text.

A group ``keep`` is not part of the name; ``name`` is the name where the match is longer.
"""

from __future__ import annotations

import ipaddress
import re

#: Top-level folders that every system has, and personal folders below them.
_SYSTEM = frozenset({"usr", "lib", "lib32", "lib64", "bin", "sbin", "proc", "sys", "dev", "etc"})
_PERSONAL = re.compile(r"/(dev/shm|usr/home|usr/people|usr/users)/.")

_CHARACTER = r"""(?:[^\s'"`<>|:;,(){}=\\]|\\ )"""
_UNTIL = r"""[^\s'"`<>|;,]"""
_PERSONAL_ROOTS = (
    "home|Users|root|mnt|media|scratch|srv|data|work|gpfs|lustre|nfs|project|projects|tmp|var|opt"
)

URL = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?://|\\/\\/|%2[Ff]%2[Ff])[^\s'\"<>]+|\bfile:/[^\s'\"<>]+"
)
#: Location on another machine in the notation of scp and git.
REMOTE = re.compile(r"\b[\w.+-]+@(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):(?!\d+\b)[^\s'\"<>,;]+")
#: Paths in their notations; notations that may contain another come first.
PATHS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<keep>[\"'`])(?P<name>(?:/|~[\w./]|[A-Za-z]:[\\/]|\\\\)[^\"'`\n]*)(?=[\"'`])",
        rf"(?<![\w\\])\\{{2,4}}[\w.$-]+\\{{1,2}}{_UNTIL}+",
        rf"(?<![\w/.~-])[A-Za-z]:(?:\\{{1,2}}|/){_UNTIL}+",
        rf"(?i:%2f|%5c){_UNTIL}+",
        rf"(?:\\/|\\u002[fF]|&#(?:47|x2[fF]);){_UNTIL}+",
        rf"\$\{{?\w+\}}?/{_CHARACTER}+",
        rf"(?<![\w/.~=<>!])~(?:[A-Za-z_][\w.-]*)?/{_CHARACTER}*",
        r"(?<![\w/.~=<>!])~[A-Za-z_][\w.-]*",
        rf"(?<![\w./])\.{{1,2}}/{_CHARACTER}+",
        rf"(?P<keep>(?<![\w-])-{{1,2}}[A-Za-z][\w-]*)(?P<name>/{_CHARACTER}+)",
        rf"(?<![\w.~$*/])/{_CHARACTER}+",
        rf"/(?:{_PERSONAL_ROOTS})/{_CHARACTER}+",
    )
)
#: Separators after the parent folder of home folders, in any notation.
_SLASH = r"(?i:/|\\{1,4}/?|%2f|%5c|\\u002f|&#47;|&#x2f;)"
HOME = re.compile(
    rf"(?:home|Users){_SLASH}(?:[a-z]{_SLASH})?([A-Za-z_][\w.-]*)|(?<![\w/.])~([A-Za-z_][\w-]+)"
)
MAIL = re.compile(
    r"(?<![\w.+-])(?P<person>[A-Za-z_][\w.+-]*)@(?P<host>[A-Za-z][\w-]*(?:\.[\w-]+)*)"
)
#: Process in the output of ``nvidia-smi -q``; its name may be a title without a path.
PROCESS = re.compile(
    r"(?P<keep>^\s+Process ID\s+: \d+\s+(?:Type\s+: .*\s+)?Name\s+: )(?P<name>\S.*)", re.MULTILINE
)
IDENTIFIER = re.compile(
    r"\b(?:(?:MIG-)?(?:GPU|MIG)-[0-9A-Fa-f-]{4,}"
    r"|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\b"
    r"|(?i:(?P<keep>\bS/N[:\s]\s*|\bserial(?:[ _-]?(?:number|no|num))?[\"']?\s*[:=#]\s*[\"']?))"
    r"(?P<name>[\w-]{4,})"
)
HARDWARE_ADDRESS = re.compile(
    r"(?<![\w:-])(?:[0-9A-Fa-f]{2}(?P<by>[:-])(?:[0-9A-Fa-f]{2}(?P=by)){4}"
    r"(?:[0-9A-Fa-f]{2}(?P=by)){0,14}[0-9A-Fa-f]{2}|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}"
    r"|[0-9A-Fa-f]{4}(?::[0-9A-Fa-f]{4}){3}|0x[0-9A-Fa-f]{16})(?![\w:-])"
)
#: An address is not preceded by two equal signs, which precede a package's version.
ADDRESS = re.compile(
    r"(?<![\w.:])(?<!==)(?:[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]*)"
    r"|\d{1,3}(?:\.\d{1,3}){3})(?!\.?\w)"
    r"|\bip-\d{1,3}(?:-\d{1,3}){3}\b"
)
_TOP_LEVEL = (
    "com|org|net|edu|gov|mil|io|ai|dev|info|biz|cloud|local|localdomain|localhost|internal|lan|"
    "intranet|corp|home|cluster|hpc|test|example|invalid|arpa|"
    "ac|au|br|ca|ch|cn|cz|de|dk|es|eu|fi|fr|hk|hu|ie|il|it|jp|kr|mx|nl|nz|pt|ru|se|sg|tr|tw|ua|uk|us|za"
)
DOMAIN = re.compile(
    rf"(?i)(?<![\w./@-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:{_TOP_LEVEL})(?![\w-]|\.\w|\()"
)
#: Messages that name a host: its name has a digit, or an error follows.
ON_HOST = re.compile(
    r"(?P<keep>\b(?:[Nn]odes?|[Hh]osts?)\s+[\"']?)(?P<name>(?=[\w.-]*\d)[A-Za-z][\w.-]*\w)"
    r"|(?P<keep_error>\b(?:srun|slurmstepd|sbatch|ssh|mpirun|prted): (?:error: )?)"
    r"(?P<name_error>[\w.-]+)(?=:)"
    r"|(?P<keep_job>\bON )(?P<name_job>[\w.-]+)(?= CANCELLED)"
)

_PEOPLE_KEYS = (
    "user|userid|groupid|username|user_name|logname|login|mailuser|owner|author|sudo_user|"
    "slurm_job_user"
)
_HOST_KEYS = (
    "host|hosts|hostname|node|nodes|nodelist|nodename|batchhost|reqnodelist|excnodelist|schednodelist|"
    "cluster_name|clustername|allocnode:sid|slurmd_nodename|slurm_nodelist|slurm_job_nodelist|"
    "slurm_step_nodelist|slurm_submit_host|slurm_launch_node_ipaddr|slurm_cluster_name|submit_host|"
    "slurm_job_account|slurm_topology_addr"
)
_PATH_KEYS = "workdir|stderr|stdout|stdin|command|submitline|pwd|oldpwd|home"
_PROJECT_KEYS = "account|reservation|jobname|job_name|comment|admincomment|slurm_job_name"
_SERIAL_KEYS = "serial|serial_number|board_serial|uuid|guid"
#: Kind of name under a key, by the key in lower case.
KEYS = {
    key: kind
    for kind, keys in (
        ("person", _PEOPLE_KEYS),
        ("host", _HOST_KEYS),
        ("path", _PATH_KEYS),
        ("account", _PROJECT_KEYS),
        ("serial", _SERIAL_KEYS),
    )
    for key in keys.split("|")
}
KEYS["reservation"] = "reservation"
_FIELD_KEYS = "|".join(
    sorted((key for key in KEYS if key not in _SERIAL_KEYS.split("|")), key=len)[::-1]
)
#: ``Key=value`` as in SLURM and the environment, and ``key: value`` at the start of a line.
FIELD = re.compile(
    rf"(?i)(?P<keep>(?<![\w-])(?P<key>{_FIELD_KEYS})(?:=|(?<=user)\s*:\s+|(?<=hostname)\s*:\s+))"
    r"(?P<name>[^\s'\"]+)"
    rf"|(?im:^)(?P<keep_line>\s*(?P<key_line>{_FIELD_KEYS})\s*:[ \t]+[\"']?)"
    r"(?P<name_line>[^\s'\"#]+)"
    rf"|(?P<keep_json>[\"'](?P<key_json>{_FIELD_KEYS})[\"']\s*:\s*[\"'])(?P<name_json>[^\"'\n]+)"
)
ASSIGNMENT = re.compile(
    r"(?P<keep>(?P<key>[A-Za-z_][\w-]*)(?:[\"']?\s*=\s*|[\"']?:\s*)[\"']?)(?P<name>[^\s'\",;&]+)"
    r"|(?P<keep_option>(?P<key_option>--?[A-Za-z][\w-]*)[ \t]+[\"']?)"
    r"(?P<name_option>[^\s'\"-][^\s'\"]*)"
)


def is_personal(path: str) -> bool:
    """Return whether ``path`` may be personal, not a folder that every system has."""
    if not path.startswith("/"):
        return True
    first = path.lstrip("/").partition("/")[0]
    return bool(first) and (first not in _SYSTEM or bool(_PERSONAL.match(path)))


def is_public_address(text: str) -> bool:
    """Return whether ``text`` is a network address that tells machines apart."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text.startswith("ip-")
    return not (address.is_loopback or address.is_unspecified)
