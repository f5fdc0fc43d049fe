"""Records without what names people, hosts, paths and addresses.

The same name has the same stand-in everywhere (``host-1``, ``path-2``), numbered in the order in
which names are met, so that the same records give the same text.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

#: Of a record: what is the same for everybody who measures the same, and is read again. A version
#: looks like an address, and a host may be called as a framework is.
KEPT = frozenset(
    {
        *("format", "source", "kind", "case", "metrics", "packages", "hardware"),
        *("code", "status", "way", "started"),
    }
)
#: What a kind was asked for: the same for everybody but for folders.
PARAMETERS = "parameters"
#: What holds the name of a host, of several or of a cluster.
HOSTS = frozenset({"host", "node", "nodelist", "cluster_name"})
#: Names that a cluster has for who computes there and with what right, by what stands for them.
PROJECTS = {"account": "account", "reservation": "reservation"}
#: Folders that every system has.
SYSTEM = frozenset({"usr", "lib", "lib64", "bin", "sbin", "proc", "sys", "dev", "etc"})
#: Users that are nobody's name.
NOBODY = frozenset({"root", "user", "runner", "ubuntu", "debian"})

#: In a command, below the folder of the project.
_HARNESS = "/scripts/harness"
_PLACE = re.compile(
    r"""(?P<url>[A-Za-z][A-Za-z0-9+.-]*://[^\s'"<>]+)|(?<![\w.~$*/])(?P<path>/[^\s'"<>|:;,(){}=]+)"""
)
_HOME = re.compile(r"/(?:home|Users)/(?:[a-z]/)?([^/\s'\":,;]+)")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_UUID = re.compile(
    r"\b(?:(?:GPU|MIG)-[0-9A-Fa-f-]{4,}"
    r"|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\b"
)
_HARDWARE_ADDRESS = re.compile(r"\b[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}\b")
#: A package's version has two equal signs before it.
_ADDRESS = re.compile(
    r"(?<![\w.:])(?<!==)(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:]+)(?![\w.])"
)


class Redaction:
    """``names`` gathers what stands for what: kind of name, then name to its stand-in."""

    def __init__(self, roots: Sequence[str] = (), people: Sequence[str] = ()) -> None:
        """``roots``: folders that are known to be somebody's, whatever is in their names;
        ``people``: names of users."""
        self._names: dict[str, dict[str, str]] = {}
        self._hosts: set[str] = set()
        self._roots = sorted({os.path.abspath(root) for root in roots} - {"/"}, key=_longest)
        self._people = {name for name in people if name not in NOBODY}

    def learn(self, value: Any) -> None:
        """Take note of the hosts and users that a record names; before any text is changed, because
        the text of one record may name the host of another."""
        for key, text in _texts(value):
            if key in HOSTS:
                short = text.partition(".")[0]
                self._hosts |= {text} if short.isdigit() else {text, short}
            if key == "prefix" or text.endswith(_HARNESS):
                root = text.removesuffix(_HARNESS)
                self._roots = sorted({*self._roots, root}, key=_longest)
            self._people |= {*_HOME.findall(text)} - NOBODY
        given = value.get(PARAMETERS) if isinstance(value, Mapping) else None
        folders = {
            text for _, text in _texts(given) if _PLACE.match(text) and not _PLACE.fullmatch(text)
        }
        self._roots = sorted({*self._roots, *filter(_is_somebodys, folders)}, key=_longest)

    def record(self, value: Any, key: str = "") -> Any:
        """A record, or a part of it that stands under ``key``, with stand-ins."""
        if isinstance(value, Mapping):
            return {self.text(name): self._field(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.record(one, key) for one in value]
        if not isinstance(value, str):
            return value
        kind = "host" if key in HOSTS else PROJECTS.get(key)
        return self._stand_in(kind, value) if kind else self.text(value)

    def _field(self, value: Any, name: str) -> Any:
        if name == PARAMETERS:
            return _with_texts(value, lambda text: self._identifiers(self._places(text)))
        return _with_texts(value, self._identifiers) if name in KEPT else self.record(value, name)

    def text(self, text: str) -> str:
        """Any text."""
        text = self._places(text)
        text = _MAIL.sub(lambda match: self._stand_in("mail", match[0]), text)
        text = self._identifiers(text)
        text = _ADDRESS.sub(self._address, text)
        text = self._named("host", self._hosts, text)
        return self._named("person", self._people, text)

    def _places(self, text: str) -> str:
        """Paths and addresses of the web."""
        for root in self._roots:
            text = _whole(root).sub(lambda match: self._stand_in("path", match[0]), text)
        return _PLACE.sub(self._place, text)

    def _named(self, kind: str, names: Iterable[str], text: str) -> str:
        for name in sorted(names, key=_longest):
            text = _whole(name).sub(lambda match: self._stand_in(kind, match[0]), text)
        return text

    def _identifiers(self, text: str) -> str:
        """Of devices and cards: they stand in facts of the hardware, too."""
        text = _UUID.sub(lambda match: self._stand_in("uuid", match[0]), text)
        return _HARDWARE_ADDRESS.sub(lambda match: self._stand_in("address", match[0]), text)

    def _place(self, match: re.Match[str]) -> str:
        if url := match["url"]:
            return self._stand_in("url", url)
        path = match["path"]
        if not _is_somebodys(path):
            return path
        return self._stand_in("path", path.rstrip("/.")) + path[len(path.rstrip("/.")) :]

    def _address(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(match[0])
        except ValueError:
            return match[0]
        if address.is_loopback or address.is_unspecified:
            return match[0]
        return self._stand_in("address", match[0])

    def _stand_in(self, kind: str, name: str) -> str:
        known = self._names.setdefault(kind, {})
        return known.setdefault(name, f"{kind}-{len(known) + 1}")


def _is_somebodys(path: str) -> bool:
    return path.split("/")[1] not in SYSTEM


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """All texts of a record with the key that each stands under."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            if name not in KEPT:
                yield from _texts(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, key)


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """``value`` with each text in it changed."""
    if isinstance(value, Mapping):
        return {name: _with_texts(one, change) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_texts(one, change) for one in value]
    return change(value) if isinstance(value, str) else value


def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")


def _longest(name: str) -> tuple[int, str]:
    return -len(name), name
