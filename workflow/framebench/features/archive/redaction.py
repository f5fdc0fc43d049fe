"""Redaction of records and texts: people, hosts, paths, addresses and credentials.

A name has one stand-in everywhere (``host-1``, ``path-2``), numbered in the order of first
occurrence, so that the same records give the same text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from ... import PROJECT
from ...config import secrets
from ...files import json_files
from . import shapes

#: Fields of a record that identify nobody and are read again. A version looks like an address, and
#: a host may be called like a framework.
KEPT = frozenset(
    {
        *("format", "source", "kind", "case", "metrics", "packages", "hardware"),
        *("code", "status", "install_method", "started"),
    }
)
#: Parameters of a benchmark: they identify nobody except in folders.
PARAMETERS = "parameters"
#: User names that identify nobody.
NOBODY = frozenset({"root", "user", "runner", "ubuntu", "debian", "git"})

#: Folder of the harness in a command, below the project's folder.
_HARNESS = "/scripts/harness"
_SCHEMA = PROJECT / "workflow" / "schemas" / "record.schema.json"
_NUMBER = re.compile(r"[\d.,+-]+|true|false|none|null|found|of", re.IGNORECASE)


class Redaction:
    """Stand-ins for the names in one set of results."""

    def __init__(self, roots: Iterable[str] = (), people: Iterable[str] = ()) -> None:
        """Start a redaction without stand-ins.
        ``roots``: folders that are known to be personal; ``people``: user names."""
        self._names: dict[str, dict[str, str]] = {}
        self._hosts: set[str] = set()
        self._roots = {os.path.abspath(root) for root in roots} - {"/"}
        self._people = {name for name in people if name not in NOBODY}
        self._versions: set[str] = set()
        # Environments may be named after a package and a variant, such as pytorch@tuned.
        self._packages = {path.name for path in (PROJECT / "scripts" / "frameworks").glob("*")}

    def learn(self, value: Any) -> None:
        """Learn the hosts and users that a record names.
        Must be called before any text is changed: a record may name the host of another."""
        for key, text in _texts(value):
            kind = shapes.KEYS.get(key.lower())
            if kind in ("host", "person"):
                self._learn(kind, text)
            if key == "prefix" or text.endswith(_HARNESS):
                self._roots.add(text.removesuffix(_HARNESS))
            self.learn_text(text)
        given = value.get(PARAMETERS) if isinstance(value, Mapping) else None
        folders = {text for _, text in _texts(given) if text.startswith("/") and " " in text}
        self._roots |= {folder for folder in folders if shapes.is_personal(folder)}
        environment = value.get("environment") if isinstance(value, Mapping) else None
        if isinstance(environment, Mapping) and isinstance(environment.get("packages"), Mapping):
            self._versions |= {str(package) for package in environment["packages"].values()}
            self._packages |= {*environment["packages"]}
        if isinstance(value, Mapping) and value.get("framework_version"):
            self._versions.add(str(value["framework_version"]))

    def learn_text(self, text: str) -> None:
        """Learn the hosts and users that a text names."""
        for match in shapes.HOME.finditer(text):
            self._learn("person", match[1] or match[2])
        for match in shapes.MAIL.finditer(text):
            if match["person"] not in self._packages:
                self._learn("person", match["person"])
        for match in shapes.ON_HOST.finditer(text):
            self._learn("host", _parts(match, "name"))
        for match in shapes.FIELD.finditer(text):
            key, name = _parts(match, "key"), _parts(match, "name")
            kind = shapes.KEYS[key.lower()]
            if kind in ("host", "person") and not _is_number(name):
                self._learn(kind, name)

    def _learn(self, kind: str, name: str) -> None:
        if kind == "person":
            name = name.partition("(")[0].partition("@")[0].strip(".,")
            if name not in (*NOBODY, *_KINDS, "") and not name.isdigit():
                self._people.add(name)
            return
        for text in _hosts_of(name):
            short = text.partition(".")[0]
            known = {text} if short.isdigit() else {text, short}
            self._hosts |= known - {*_KINDS, "localhost", ""}

    def record(self, value: Any, key: str = "", top: bool = True) -> Any:
        """Return a record, or the part of it under ``key``, with stand-ins."""
        if isinstance(value, Mapping):
            return {
                self._key(name): self._field(entry, str(name), top) for name, entry in value.items()
            }
        if isinstance(value, list):
            before = [None, *value]
            return [
                self._stand_in("credential", text)
                if isinstance(text, str) and _is_option_of_credential(previous)
                else self.record(text, key, False)
                for previous, text in zip(before, value, strict=False)
            ]
        if not isinstance(value, str) or value in _fixed().values:
            return value
        kind = _kind_of(key)
        return self._stand_in(kind, value) if kind and value else self.text(value)

    def _field(self, value: Any, name: str, top: bool) -> Any:
        if name == PARAMETERS:
            return self._with_shapes(value)
        # At deeper levels a kept name may mean something else: the source of a user's model is its
        # path.
        of_environment = ("packages", "hardware", "code", "install_method", "kind")
        if name in KEPT and (top or name in of_environment):
            return self._with_shapes(value)
        return self.record(value, name, name == "environment")

    def _with_shapes(self, value: Any, key: str = "") -> Any:
        """Return ``value`` with recognisable shapes replaced; plain names stay.
        A framework may be called like a host."""
        if isinstance(value, Mapping):
            return {name: self._with_shapes(entry, str(name)) for name, entry in value.items()}
        if isinstance(value, list):
            return [self._with_shapes(entry, key) for entry in value]
        if not isinstance(value, str):
            return value
        if shapes.KEYS.get(key.lower()) == "serial":
            return (
                self._identifiers(value)
                if value.count("-") > 2
                else self._stand_in("serial", value)
            )
        return self._identifiers(self._places(self._credentials(value)))

    def _key(self, name: Any) -> Any:
        is_ours = not isinstance(name, str) or name in _fixed().keys
        return name if is_ours else self.text(name)

    def text(self, text: str) -> str:
        """Return a text with stand-ins."""
        text = shapes.PROCESS.sub(self._process, text)
        text = self._credentials(text)
        text = shapes.FIELD.sub(self._field_of_text, text)
        text = self._places(text)
        text = shapes.MAIL.sub(self._mail, text)
        text = self._identifiers(text)
        text = shapes.ADDRESS.sub(self._address, text)
        text = self._named("host", self._hosts, text)
        text = shapes.ON_HOST.sub(self._host_of_text, text)
        text = shapes.DOMAIN.sub(lambda match: self._stand_in("host", match[0]), text)
        return self._named("person", self._people, text)

    def _credentials(self, text: str) -> str:
        for kind, shape in secrets.known().shapes.items():
            if "address" not in kind:  # replaced as a whole
                text = shape.sub(lambda match: self._stand_in("credential", match[0]), text)
        return shapes.ASSIGNMENT.sub(self._assignment, text)

    def _assignment(self, match: re.Match[str]) -> str:
        key, name = _parts(match, "key").lstrip("-"), _parts(match, "name")
        harmless = _NUMBER.fullmatch(name) or _is_stand_in(name) or name.startswith("/")
        if harmless or not secrets.is_named_like_one(key):
            return match[0]
        return _parts(match, "keep") + self._stand_in("credential", name)

    def _field_of_text(self, match: re.Match[str]) -> str:
        key, name = _parts(match, "key").lower(), _parts(match, "name")
        kind = shapes.KEYS[key]
        if _is_number(name) or name in _fixed().values:
            return match[0]
        if kind == "path" and not shapes.is_personal(name):
            return match[0]
        return _parts(match, "keep") + self._stand_in(kind, name)

    def _process(self, match: re.Match[str]) -> str:
        return match["keep"] + self._stand_in("process", match["name"])

    def _host_of_text(self, match: re.Match[str]) -> str:
        return _parts(match, "keep") + self._stand_in("host", _parts(match, "name"))

    def _places(self, text: str) -> str:
        """Replace paths and URLs in a text."""
        text = shapes.URL.sub(lambda match: self._stand_in("url", match[0]), text)
        text = shapes.REMOTE.sub(lambda match: self._stand_in("url", match[0]), text)
        for root in sorted(self._roots, key=_longest):
            text = _whole(root).sub(lambda match: self._stand_in("path", match[0]), text)
        for shape in shapes.PATHS:
            text = shape.sub(self._place, text)
        return text

    def _place(self, match: re.Match[str]) -> str:
        groups = match.groupdict()
        path = groups.get("name") or match[0]
        if not shapes.is_personal(path):
            return match[0]
        name = path.rstrip("/.") or path
        return (groups.get("keep") or "") + self._stand_in("path", name) + path[len(name) :]

    def _mail(self, match: re.Match[str]) -> str:
        is_software = match["person"] in self._packages and "." not in match["host"]
        return match[0] if is_software else self._stand_in("mail", match[0])

    def _named(self, kind: str, names: Iterable[str], text: str) -> str:
        for name in sorted(names, key=_longest):
            if name.lower() in text.lower():
                # Compute the stand-in here: it belongs to this name in any letter case.
                stand_in = self._stand_in(kind, name)
                text = _whole(name).sub(stand_in, text)
        return text

    def _identifiers(self, text: str) -> str:
        """Replace identifiers of devices and cards, also in the hardware description."""
        text = shapes.IDENTIFIER.sub(self._identifier, text)
        return shapes.HARDWARE_ADDRESS.sub(lambda match: self._stand_in("address", match[0]), text)

    def _identifier(self, match: re.Match[str]) -> str:
        if match["name"]:
            return match["keep"] + self._stand_in("serial", match["name"])
        return self._stand_in("uuid", match[0])

    def _address(self, match: re.Match[str]) -> str:
        if match[0] in self._versions or not shapes.is_public_address(match[0]):
            return match[0]
        return self._stand_in("address", match[0])

    def _stand_in(self, kind: str, name: str) -> str:
        if _is_stand_in(name):
            return name
        known = self._names.setdefault(kind, {})
        return known.setdefault(name, f"{kind}-{len(known) + 1}")


class _Fixed:
    """Keys of a record and values listed in its schema, which no stand-in may replace."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.values: set[str] = set()
        self._gather(json_files.read(_SCHEMA))

    def _gather(self, part: Any) -> None:
        if isinstance(part, list):
            for entry in part:
                self._gather(entry)
        elif isinstance(part, Mapping):
            own = part.get("properties")
            self.keys |= {*own} if isinstance(own, Mapping) else set()
            listed = [*part.get("enum", ()), part.get("const")]
            self.values |= {text for text in listed if isinstance(text, str)}
            for entry in part.values():
                self._gather(entry)


@cache
def _fixed() -> _Fixed:
    return _Fixed()


_KINDS = (
    *("credential", "host", "person", "path", "url", "mail"),
    *("account", "reservation", "serial", "uuid", "address", "process"),
)
_STAND_IN = re.compile(rf"({'|'.join(_KINDS)})-\d+")


def _is_stand_in(name: str) -> bool:
    return bool(_STAND_IN.fullmatch(name))


def _kind_of(key: str) -> str | None:
    """Return what replaces a value under ``key``; None for any text."""
    kind = shapes.KEYS.get(key.lower())
    if kind in ("path", "serial"):
        return "serial" if kind == "serial" else None
    return kind or ("credential" if secrets.is_named_like_one(key) else None)


def _is_option_of_credential(word: Any) -> bool:
    is_option = isinstance(word, str) and word.startswith("-") and "=" not in word
    return is_option and secrets.is_named_like_one(str(word).lstrip("-"))


def _parts(match: re.Match[str], name: str) -> str:
    """Return the matched group ``name``, or its alternative ``name_..``; "" if neither matched."""
    groups = match.groupdict()
    generator = (
        value for key, value in groups.items() if key == name or key.startswith(f"{name}_")
    )
    return next((value for value in generator if value is not None), "")


def _is_number(text: str) -> bool:
    """Return whether a text is a number, or one of a list such as ``[1, 2]``."""
    return bool(_NUMBER.fullmatch(text.strip("[]")))


def _hosts_of(listed: str) -> Iterator[str]:
    """Yield the names in a SLURM node list such as ``gpu[01-03],login1``."""
    yield listed
    for word in re.split(r",(?![^\[]*\])", listed):
        span = re.fullmatch(r"(.*?)\[([\d,-]+)\](.*)", word)
        if span is None:
            yield word
            continue
        for part in span[2].split(","):
            first, _, last = part.partition("-")
            for number in range(int(first), min(int(last or first), int(first) + 4096) + 1):
                yield f"{span[1]}{number:0{len(first)}d}{span[3]}"


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts of a record with their keys."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, entry in value.items():
            if name not in KEPT or name == "source":
                yield from _texts(entry, name)
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry, key)


def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")


def _longest(name: str) -> tuple[int, str]:
    return -len(name), name
