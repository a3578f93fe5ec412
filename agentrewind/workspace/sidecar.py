r"""What a git tree cannot say about a directory, as one small blob.

A sidecar stands beside each directory's tree and holds the directory's own mode and modification time, the
same for each file and symbolic link in it, which names are hard links of another path, and which names were
left out of the snapshot and why. Names may hold any byte but NUL and `/`, so records end in NUL:

```text
agentrewind-sidecar 1\n
d <mode> <mtime_ns>\0                  the directory itself
f <mode> <mtime_ns> <name>\0           a file; its bytes are the blob of that name in the tree
l <mode> <mtime_ns> <name>\0           a symbolic link
p <mode> <mtime_ns> <size> <name>\0    a large file in pieces; the blob in the tree only describes it
h <name>\0<path>\0                     a further name of the file at <path> (from the root)
x <value> <attribute>\0                an extended attribute of what the last record but these says
o <reason> <name>\0                    left out
```

Modes are octal permission bits, times are nanoseconds since 1970, values are base64. Records are sorted by
name.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias, TypeVar

from agentrewind.workspace.attributes import Attributes

HEADER = b"agentrewind-sidecar 1\n"


class Omission(StrEnum):
    """Why a name is not in a snapshot."""

    EXCLUDED = "excluded"
    TOO_LARGE = "too-large"
    SPECIAL = "special"
    UNREADABLE = "unreadable"
    UNSTABLE = "unstable"
    TOO_DEEP = "too-deep"
    LATE = "late"

    @property
    def by_rule(self) -> bool:
        """Whether a rule says so; otherwise the snapshot is partial."""
        return self in (Omission.EXCLUDED, Omission.TOO_LARGE, Omission.SPECIAL)

    @property
    def explanation(self) -> str:
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    Omission.EXCLUDED: "excluded by the path rules",
    Omission.TOO_LARGE: "larger than the path rules allow",
    Omission.SPECIAL: "a FIFO, socket or device, which snapshots do not cover",
    Omission.UNREADABLE: "could not be read",
    Omission.UNSTABLE: "kept changing while it was read",
    Omission.TOO_DEEP: "nested too deeply",
    Omission.LATE: "not looked at before the deadline of the snapshot",
}


class FileKind(StrEnum):
    """The kinds of leaf that a snapshot holds."""

    FILE = "f"
    LINK = "l"
    PIECES = "p"


class FileFacts(NamedTuple):
    """A leaf: `leader` names the path whose further hard link it is; all else is then the leader's."""

    kind: FileKind
    mode: int
    mtime_ns: int
    size: int = 0
    leader: bytes | None = None
    attributes: Attributes = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A directory's own mode, time and attributes, its leaves by name, and what was left out."""

    mode: int
    mtime_ns: int
    attributes: Attributes = ()
    files: Mapping[bytes, FileFacts] = field(default_factory=dict)
    omitted: Mapping[bytes, Omission] = field(default_factory=dict)


def encode_sidecar(sidecar: Sidecar) -> bytes:
    """The bytes of a sidecar; equal sidecars have equal bytes."""
    records = [
        file_record(facts.kind, facts.mode, facts.mtime_ns, facts.size, name, facts.leader)
        + attribute_records(facts.attributes)
        for name, facts in sorted(sidecar.files.items())
    ]
    own = directory_record(sidecar.mode, sidecar.mtime_ns, sidecar.attributes)
    return join_records(own, records, sidecar.omitted)


def file_record(
    kind: FileKind, mode: int, mtime_ns: int, size: int, name: bytes, leader: bytes | None
) -> bytes:
    """The record of one leaf."""
    if leader is not None:
        return b"h %s\0%s\0" % (name, leader)
    if kind is FileKind.FILE:
        return b"f %o %d %s\0" % (mode, mtime_ns, name)
    if kind is FileKind.LINK:
        return b"l %o %d %s\0" % (mode, mtime_ns, name)
    return b"p %o %d %d %s\0" % (mode, mtime_ns, size, name)


def attribute_records(attributes: Attributes) -> bytes:
    """What follows the record of their owner."""
    return b"".join(
        [b"x %s %s\0" % (binascii.b2a_base64(value, newline=False), name) for name, value in attributes]
    )


def directory_record(mode: int, mtime_ns: int, attributes: Attributes) -> bytes:
    """The record of the directory itself."""
    return b"d %o %d\0" % (mode, mtime_ns) + attribute_records(attributes)


def join_records(own: bytes, records: list[bytes], omitted: Mapping[bytes, Omission]) -> bytes:
    """A sidecar from the record of its directory and those of its leaves, which are sorted by name."""
    found = HEADER + own + b"".join(records)
    if not omitted:
        return found
    return found + b"".join([b"o %s %s\0" % (omitted[name].value.encode(), name) for name in sorted(omitted)])


def decode_sidecar(data: bytes) -> Sidecar:
    """The sidecar that was encoded.

    Raises:
        ValueError: the bytes are no sidecar of a known version.
    """
    if not data.startswith(HEADER):
        raise ValueError(f"not a sidecar of version 1: {_text(data[:32])}")
    if not data.endswith(b"\0"):
        raise ValueError("a sidecar ends in the middle of a record")
    records = iter(data[len(HEADER) : -1].split(b"\0"))
    own = next(records).split(b" ")
    if len(own) != 3 or own[0] != b"d":
        raise ValueError(f"a sidecar begins with {_text(own[0])} instead of its directory")
    files, omitted, attributes = _decode_records(records)
    for name, pairs in attributes.items():
        if name is not None:
            files[name] = files[name]._replace(attributes=tuple(pairs))
    return Sidecar(
        mode=int(own[1], 8),
        mtime_ns=int(own[2]),
        attributes=tuple(attributes.get(None, ())),
        files=files,
        omitted=omitted,
    )


_Found: TypeAlias = tuple[
    dict[bytes, FileFacts], dict[bytes, Omission], dict[bytes | None, list[tuple[bytes, bytes]]]
]


def _decode_records(records: Iterator[bytes]) -> _Found:
    """The leaves, what was left out, and attributes by the name of their owner: None for the directory."""
    files: dict[bytes, FileFacts] = {}
    omitted: dict[bytes, Omission] = {}
    attributes: dict[bytes | None, list[tuple[bytes, bytes]]] = {}
    owner: bytes | None = None
    for record in records:
        if record.startswith(b"x "):
            attributes.setdefault(owner, []).append(_decode_attribute(record))
        elif record.startswith(b"h "):
            leader = next(records, None)
            if not leader:
                raise ValueError(f"a sidecar does not say what {_text(record[2:])} is a hard link of")
            _add(files, record[2:], FileFacts(kind=FileKind.FILE, mode=0, mtime_ns=0, leader=leader))
        elif record.startswith(b"o "):
            _, reason, name = record.split(b" ", 2)
            _add(omitted, name, Omission(reason.decode()))
        else:
            owner, facts = _decode_file(record)
            _add(files, owner, facts)
    return files, omitted, attributes


_Value = TypeVar("_Value")


def _add(found: dict[bytes, _Value], name: bytes, value: _Value) -> None:
    if name in found:
        raise ValueError(f"a sidecar names {_text(name)} twice")
    found[name] = value


def _text(data: bytes) -> str:
    return repr(data.decode("utf-8", "backslashreplace"))


def _decode_attribute(record: bytes) -> tuple[bytes, bytes]:
    _, value, name = record.split(b" ", 2)
    return name, binascii.a2b_base64(value, strict_mode=True)


_LEAVES = {b"f": FileKind.FILE, b"l": FileKind.LINK}


def _decode_file(record: bytes) -> tuple[bytes, FileFacts]:
    if record.startswith(b"p "):
        _, mode, mtime, size, name = record.split(b" ", 4)
        return name, FileFacts(FileKind.PIECES, int(mode, 8), int(mtime), int(size))
    kind, mode, mtime, name = record.split(b" ", 3)
    return name, FileFacts(_LEAVES.get(kind) or FileKind(kind.decode()), int(mode, 8), int(mtime))
